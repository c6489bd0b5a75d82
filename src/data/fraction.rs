use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A share of one: `0.05` is 5 %. Written `"5%"` in files and on the command line.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fraction(f64);

impl Fraction {
    /// From a plain number, `0.05` for 5 %.
    pub const fn new(value: f64) -> Self {
        Self(value)
    }

    /// The plain number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ten decimals hide the binary representation; trailing zeros are dropped.
        let text = format!("{:.10}", self.0 * 100.0);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{text}%")
    }
}

/// Why a text is not a percentage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseFractionError {
    /// A bare number: could be meant as a fraction or as a percentage.
    #[error("{0:?} has no unit: write {0}% (a percentage)")]
    NoUnit(String),
    /// Not a number at all.
    #[error("{0:?} is not a percentage: expected a number and %, like 5%")]
    NotANumber(String),
    /// Below zero or not finite.
    #[error("{0:?} is out of range: expected a finite percentage of at least 0%")]
    OutOfRange(String),
}

impl FromStr for Fraction {
    type Err = ParseFractionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let Some(number) = trimmed.strip_suffix('%') else {
            return Err(if trimmed.parse::<f64>().is_ok() {
                ParseFractionError::NoUnit(trimmed.to_owned())
            } else {
                ParseFractionError::NotANumber(trimmed.to_owned())
            });
        };
        let value: f64 = number
            .trim()
            .parse()
            .map_err(|_| ParseFractionError::NotANumber(trimmed.to_owned()))?;
        if !value.is_finite() || value < 0.0 {
            return Err(ParseFractionError::OutOfRange(trimmed.to_owned()));
        }
        Ok(Self(value / 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_percentages() {
        assert_eq!("5%".parse(), Ok(Fraction::new(0.05)));
        assert_eq!(" 0.5 % ".parse(), Ok(Fraction::new(0.005)));
        assert_eq!(Fraction::new(0.05).to_string(), "5%");
        assert_eq!(Fraction::new(0.125).to_string(), "12.5%");
    }

    #[test]
    fn a_bare_number_is_refused_with_the_mend() {
        let error = "5".parse::<Fraction>().expect_err("no unit");
        assert_eq!(
            error.to_string(),
            "\"5\" has no unit: write 5% (a percentage)"
        );
        assert!("x%".parse::<Fraction>().is_err());
        assert!("-1%".parse::<Fraction>().is_err());
        assert!("inf%".parse::<Fraction>().is_err());
    }
}
