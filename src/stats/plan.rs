use super::StatsError;
use super::error::{check_open_unit, check_positive};

/// z_.99.. + z_.95 as the plan uses it: alpha .01 one-sided and power .95.
const REQUESTS_FACTOR: f64 = 3.97;
/// 2 z_.95: what a pass on an unchanged candidate needs.
const PAIRS_FACTOR: f64 = 3.29;

/// s1 = sqrt(p (1 - p)) (ln q[p + (1 - p)/2] - ln q[p - (1 - p)/2]) / (1 - p): the standard
/// deviation of ln of the p-quantile's estimate times the root of the number of requests.
///
/// `quantile` gives the distribution's quantile, from a warm-up's histogram.
pub fn tail_spread<F>(p: f64, quantile: F) -> Result<f64, StatsError>
where
    F: Fn(f64) -> Result<f64, StatsError>,
{
    check_open_unit(p, "the probability of a quantile")?;
    let half = (1.0 - p) / 2.0;
    let high = quantile(p + half)?;
    let low = quantile(p - half)?;
    check_positive(high, "a quantile of latency")?;
    check_positive(low, "a quantile of latency")?;
    Ok((p * (1.0 - p)).sqrt() * (high.ln() - low.ln()) / (1.0 - p))
}

/// Requests a side that tell a change of `threshold` (log scale) of a percentile from none:
/// 2 (3.97 s1 / T)^2, times the design effect of neighbouring requests.
pub fn requests_needed(spread: f64, threshold: f64, design_effect: f64) -> Result<u64, StatsError> {
    check_positive(threshold, "a threshold")?;
    check_positive(design_effect, "a design effect")?;
    Ok((2.0 * (REQUESTS_FACTOR * spread / threshold).powi(2) * design_effect).ceil() as u64)
}

/// Pairs that let an unchanged candidate pass with 95 %: (3.29 sd / T)^2, with the standard
/// deviation of a pair's log ratio.
pub fn pairs_needed(pair_sd: f64, threshold: f64) -> Result<u64, StatsError> {
    check_positive(threshold, "a threshold")?;
    Ok((PAIRS_FACTOR * pair_sd / threshold).powi(2).ceil() as u64)
}

/// The smallest rise that an interval of this width (log scale) could have seen: exp(width) - 1.
pub fn noise_floor_rise(width: f64) -> f64 {
    width.exp_m1()
}

/// The smallest fall that an interval of this width (log scale) could have seen: 1 - exp(-width).
pub fn noise_floor_fall(width: f64) -> f64 {
    -(-width).exp_m1()
}
