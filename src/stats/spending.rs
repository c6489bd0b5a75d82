use super::error::{StatsError, check_open_unit};

/// Exponent of the spending of alpha: linear, so that a large regression is found early.
const ALPHA_POWER: f64 = 1.0;
/// Exponent of the spending of beta: more is kept for the later looks, where passing is likely.
const BETA_POWER: f64 = 1.5;
/// The number of blocks or units before which nothing is decided.
pub(crate) const FIRST_LOOK: u32 = 12;
/// Each look has this many times the sample of the one before.
const GROWTH: f64 = 1.5;

/// The planned looks of one decision, fixed before the first measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    at: Vec<u32>,
}

impl Looks {
    /// Looks at `first`, then at 1.5 times the one before, the last at `last`. A look so late that
    /// the last would hardly add to it is left out.
    pub fn plan(first: u32, last: u32) -> Self {
        let last = last.max(1);
        let mut at = Vec::new();
        let mut next = first.max(1);
        while f64::from(next) * 1.2 <= f64::from(last) {
            at.push(next);
            next = ((f64::from(next) * GROWTH).floor() as u32).max(next + 1);
        }
        at.push(last);
        Self { at }
    }

    /// Looks at given, ascending sample sizes.
    pub fn at(sizes: &[u32]) -> Result<Self, StatsError> {
        let ascending = sizes.windows(2).all(|two| two[0] < two[1]);
        if sizes.is_empty() || sizes[0] == 0 || !ascending {
            return Err(StatsError::OutOfRange {
                what: "the number of looks",
                value: sizes.len() as f64,
                expected: "ascending positive sample sizes",
            });
        }
        Ok(Self { at: sizes.to_vec() })
    }

    /// Sample sizes, ascending.
    pub fn sizes(&self) -> &[u32] {
        &self.at
    }

    /// The size of the last look.
    pub fn last(&self) -> u32 {
        self.at.last().copied().unwrap_or(1)
    }

    /// What look `index` (from 0) may spend of `total` false alarm; 0 beyond the last.
    pub fn alpha(&self, index: usize, total: f64) -> Result<f64, StatsError> {
        self.increment(index, total, ALPHA_POWER)
    }

    /// What look `index` (from 0) may spend of `total` missed regression; 0 beyond the last.
    pub fn beta(&self, index: usize, total: f64) -> Result<f64, StatsError> {
        self.increment(index, total, BETA_POWER)
    }

    /// What is left of both totals for one last look when `taken` looks were taken.
    pub fn rest(&self, taken: usize, alpha: f64, beta: f64) -> Result<(f64, f64), StatsError> {
        check_level(alpha)?;
        check_level(beta)?;
        let spent = self.share(taken);
        Ok((
            alpha * (1.0 - spent.powf(ALPHA_POWER)),
            beta * (1.0 - spent.powf(BETA_POWER)),
        ))
    }

    fn increment(&self, index: usize, total: f64, power: f64) -> Result<f64, StatsError> {
        check_level(total)?;
        Ok(total * (self.share(index + 1).powf(power) - self.share(index).powf(power)))
    }

    /// The share of the whole sample that `taken` looks have seen.
    fn share(&self, taken: usize) -> f64 {
        match taken.checked_sub(1) {
            None => 0.0,
            Some(index) => self
                .at
                .get(index)
                .map_or(1.0, |size| f64::from(*size) / f64::from(self.last())),
        }
    }
}

/// Zero is a level too: a stage that may not fail anything spends no alpha.
fn check_level(level: f64) -> Result<(), StatsError> {
    if level == 0.0 {
        Ok(())
    } else {
        check_open_unit(level, "an error level")
    }
}

/// The first look of a live comparison: the smallest n, at least 12, for which the exact test can
/// reach the level that the look may spend, 2^-n <= alpha n / last.
pub fn first_paired_look(alpha: f64, last: u32) -> Result<u32, StatsError> {
    check_open_unit(alpha, "an error level")?;
    let mut n = FIRST_LOOK;
    while n < last && 0.5_f64.powf(f64::from(n)) > alpha * f64::from(n) / f64::from(last) {
        n += 1;
    }
    Ok(n.min(last.max(1)))
}
