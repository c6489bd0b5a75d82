use super::error::{StatsError, check_sample};
use super::t_quantile;

/// The arithmetic mean.
pub fn mean(values: &[f64]) -> Result<f64, StatsError> {
    check_sample(values, "a mean")?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

/// The median, the mean of the two middle values of an even count.
pub fn median(values: &[f64]) -> Result<f64, StatsError> {
    check_sample(values, "a median")?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    Ok(if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        f64::midpoint(sorted[half - 1], sorted[half])
    })
}

/// The unbiased sample variance (divided by n - 1).
pub fn variance(values: &[f64]) -> Result<f64, StatsError> {
    check_sample(values, "a variance")?;
    if values.len() < 2 {
        return Err(StatsError::TooFew {
            what: "a variance",
            have: values.len(),
            need: 2,
        });
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Ok(squares / (values.len() - 1) as f64)
}

/// How much more the mean of neighbouring values varies than that of independent ones:
/// (1 + r) / (1 - r) of a first-order autoregression, at least 1.
///
/// r is the lag-one autocorrelation `sum(c_i c_(i+1)) / sum(c_i^2)` of the centred values. Below 1
/// nothing is taken back: a negative r is mostly chance in a short series.
pub fn design_effect(values: &[f64]) -> Result<f64, StatsError> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if squares <= 0.0 {
        return Ok(1.0);
    }
    let products: f64 = values
        .windows(2)
        .map(|two| (two[0] - mean) * (two[1] - mean))
        .sum();
    // The estimate is always below 1 for a finite series; the cap keeps rounding out of it.
    let r = (products / squares).min(0.999);
    Ok(((1.0 + r) / (1.0 - r)).max(1.0))
}

/// The mean of one series of neighbouring values with its variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// Variance of the mean, raised by [`design_effect`].
    pub variance: f64,
    /// Degrees of freedom.
    pub df: f64,
}

/// The mean of a series and what its t interval needs; at least two values.
pub fn mean_interval(values: &[f64]) -> Result<MeanInterval, StatsError> {
    let n = values.len();
    let spread = variance(values)?;
    Ok(MeanInterval {
        mean: mean(values)?,
        variance: spread * design_effect(values)? / n as f64,
        df: (n - 1) as f64,
    })
}

impl MeanInterval {
    /// The one-sided lower bound at error level `alpha`.
    pub fn lower(&self, alpha: f64) -> Result<f64, StatsError> {
        Ok(self.mean - t_quantile(1.0 - alpha, self.df)? * self.variance.sqrt())
    }

    /// The one-sided upper bound at error level `beta`.
    pub fn upper(&self, beta: f64) -> Result<f64, StatsError> {
        Ok(self.mean + t_quantile(1.0 - beta, self.df)? * self.variance.sqrt())
    }
}

/// Positions of values further from the median than `limit` scaled median absolute deviations
/// (1.4826 MAD estimates a normal standard deviation). Empty where the MAD is 0.
pub fn mad_outliers(values: &[f64], limit: f64) -> Result<Vec<usize>, StatsError> {
    let centre = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let scale = 1.4826 * median(&deviations)?;
    if scale <= 0.0 {
        return Ok(Vec::new());
    }
    Ok(deviations
        .iter()
        .enumerate()
        .filter(|(_, deviation)| **deviation > limit * scale)
        .map(|(index, _)| index)
        .collect())
}
