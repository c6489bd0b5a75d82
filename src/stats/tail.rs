use super::error::{StatsError, check_sample};

/// Z from which a tail counts as worse, one-sided 5 %.
const GUARD_Z: f64 = 1.645;

/// Whether the tail of many units together contradicts what the units say one by one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TailGuard {
    /// ln of the candidate's pooled quantile over the baseline's.
    pub pooled: f64,
    /// Sum of the units' excess shares over the root of the sum of their squares.
    pub z: f64,
}

impl TailGuard {
    /// True where a percentile must not pass: the pooled ratio is beyond the threshold (log scale)
    /// and the excess is not the work of a single unit. A stall in one unit of five moves no
    /// median of units, but it is there.
    pub fn blocks_pass(&self, threshold: f64) -> bool {
        self.pooled >= threshold && self.z >= GUARD_Z
    }
}

/// `excess` holds for each unit the share of the candidate's requests above the pooled quantile of
/// both sides minus the same share of the baseline's; `pooled` is the log ratio of the sides'
/// quantiles over all units.
pub fn tail_guard(excess: &[f64], pooled: f64) -> Result<TailGuard, StatsError> {
    check_sample(excess, "the tail shares")?;
    check_sample(&[pooled], "the pooled ratio of a percentile")?;
    let sum: f64 = excess.iter().sum();
    let squares: f64 = excess.iter().map(|z| z * z).sum();
    let z = if squares > 0.0 {
        sum / squares.sqrt()
    } else {
        0.0
    };
    Ok(TailGuard { pooled, z })
}
