use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

use super::StatsError;
use super::error::{check_open_unit, check_positive};

/// The quantile of Student's t distribution with `df` degrees of freedom, which need not be whole.
pub fn t_quantile(p: f64, df: f64) -> Result<f64, StatsError> {
    check_open_unit(p, "the probability of a t quantile")?;
    check_positive(df, "the degrees of freedom")?;
    // Above this the two distributions agree to ten digits, and the incomplete beta function
    // behind the quantile loses accuracy.
    if df > 1e8 {
        return normal_quantile(p);
    }
    let student = StudentsT::new(0.0, 1.0, df).map_err(|_| StatsError::OutOfRange {
        what: "the degrees of freedom",
        value: df,
        expected: "a positive finite number",
    })?;
    let value = student.inverse_cdf(p);
    if value.is_finite() {
        Ok(value)
    } else {
        Err(StatsError::OutOfRange {
            what: "a t quantile",
            value,
            expected: "a finite number",
        })
    }
}

/// P(F > `ratio`) for the F distribution with these degrees of freedom: how easily chance alone
/// makes one variance so much larger than another.
pub fn f_tail(ratio: f64, above: f64, below: f64) -> Result<f64, StatsError> {
    let f = FisherSnedecor::new(above, below).map_err(|_| StatsError::OutOfRange {
        what: "the degrees of freedom",
        value: above.min(below),
        expected: "positive finite numbers",
    })?;
    Ok(if ratio > 0.0 { f.sf(ratio) } else { 1.0 })
}

/// The quantile of the standard normal distribution.
pub fn normal_quantile(p: f64) -> Result<f64, StatsError> {
    check_open_unit(p, "the probability of a normal quantile")?;
    Ok(Normal::standard().inverse_cdf(p))
}
