/// Why a statistic cannot be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// No values at all.
    #[error("no values for {what}")]
    Empty {
        /// What the values are.
        what: &'static str,
    },
    /// A value is NaN or infinite.
    #[error("value {index} of {what} is not a finite number")]
    NotFinite {
        /// What the values are.
        what: &'static str,
        /// Position from 0.
        index: usize,
    },
    /// Too few values for this statistic.
    #[error("{what} has {have} values, at least {need} are needed")]
    TooFew {
        /// What the values are.
        what: &'static str,
        /// How many there are.
        have: usize,
        /// How many are needed.
        need: usize,
    },
    /// A parameter outside its range.
    #[error("{what} is {value}, expected {expected}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// Its value.
        value: f64,
        /// Its range in words.
        expected: &'static str,
    },
}

/// Refuses an empty sample and values that are not finite.
pub(crate) fn check_sample(values: &[f64], what: &'static str) -> Result<(), StatsError> {
    if values.is_empty() {
        return Err(StatsError::Empty { what });
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(StatsError::NotFinite { what, index }),
        None => Ok(()),
    }
}

/// Refuses a probability outside (0, 1), NaN included.
pub(crate) fn check_open_unit(value: f64, what: &'static str) -> Result<(), StatsError> {
    if value > 0.0 && value < 1.0 {
        Ok(())
    } else {
        Err(StatsError::OutOfRange {
            what,
            value,
            expected: "a number between 0 and 1",
        })
    }
}

/// Refuses a number that is not positive and finite.
pub(crate) fn check_positive(value: f64, what: &'static str) -> Result<(), StatsError> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(StatsError::OutOfRange {
            what,
            value,
            expected: "a positive finite number",
        })
    }
}
