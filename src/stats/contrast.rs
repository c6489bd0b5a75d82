use super::error::{StatsError, check_sample};
use super::{mean, t_quantile, variance};

/// Two groups of independent sessions, one value each: how far apart their means are.
///
/// Values are logarithms, oriented so that a positive estimate is a change for the worse. Both
/// sides are one model on one machine, so that their spread is taken as one (Student's two-sample
/// t with pooled variance): exact for normal values whatever their number, and with as many
/// sessions a side hardly moved by unequal spreads. A drift that both sides share widens the
/// bounds; it does not move the estimate where the sides take turns in the order A B B A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Mean of the baseline's sessions.
    pub baseline: f64,
    /// Mean of the candidate's sessions.
    pub candidate: f64,
    /// candidate - baseline.
    pub estimate: f64,
    /// Standard error of the estimate.
    pub error: f64,
    /// Degrees of freedom: sessions less 2.
    pub df: f64,
}

impl Contrast {
    /// At least two sessions a side.
    pub fn new(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
        check_sample(baseline, "the baseline's sessions")?;
        check_sample(candidate, "the candidate's sessions")?;
        let (n, m) = (baseline.len() as f64, candidate.len() as f64);
        let df = n + m - 2.0;
        let squares = variance(baseline)? * (n - 1.0) + variance(candidate)? * (m - 1.0);
        let (baseline, candidate) = (mean(baseline)?, mean(candidate)?);
        Ok(Self {
            baseline,
            candidate,
            estimate: candidate - baseline,
            error: (squares / df * (1.0 / n + 1.0 / m)).sqrt(),
            df,
        })
    }

    /// The one-sided lower bound at error level `alpha`; none (minus infinity) at level 0.
    pub fn lower(&self, alpha: f64) -> Result<Option<f64>, StatsError> {
        Ok(self
            .half_width(alpha)?
            .map(|half_width| self.estimate - half_width))
    }

    /// The one-sided upper bound at error level `beta`; none (infinity) at level 0.
    pub fn upper(&self, beta: f64) -> Result<Option<f64>, StatsError> {
        Ok(self
            .half_width(beta)?
            .map(|half_width| self.estimate + half_width))
    }

    fn half_width(&self, level: f64) -> Result<Option<f64>, StatsError> {
        if level == 0.0 {
            return Ok(None);
        }
        Ok(Some(t_quantile(1.0 - level, self.df)? * self.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-8 * other.abs().max(1.0)
    }

    /// The interval by hand, with the tables' t(0.99, 5) = 3.364 930.
    #[test]
    fn agrees_with_the_two_sample_t_interval() {
        let contrast =
            Contrast::new(&[0.010, -0.004, 0.002], &[0.051, 0.047, 0.060, 0.042]).expect("fits");
        assert!(near(contrast.estimate, 0.047_333_333_333_333_33));
        assert!(near(contrast.df, 5.0));
        let (low, high) = (
            contrast.lower(0.01).expect("level").expect("bounded"),
            contrast.upper(0.01).expect("level").expect("bounded"),
        );
        assert!(near(low, 0.028_354_677), "{low:.16}");
        assert!(near(high, 0.066_311_989), "{high:.16}");
        assert_eq!(contrast.lower(0.0).expect("level"), None);
    }

    #[test]
    fn one_session_a_side_is_too_few() {
        assert!(Contrast::new(&[0.1], &[0.1, 0.2]).is_err());
        assert!(Contrast::new(&[0.1, 0.2], &[]).is_err());
        assert!(Contrast::new(&[0.1, f64::NAN], &[0.1, 0.2]).is_err());
    }
}
