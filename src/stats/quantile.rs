use hdrhistogram::Histogram;
use statrs::function::beta::checked_beta_reg;

use super::error::{StatsError, check_open_unit, check_sample};

/// The quantile of a sample by Hyndman and Fan's definition 8: h = (n + 1/3) p + 1/3, clamped to
/// [1, n], linear between the order statistics around h. Approximately median-unbiased, without
/// the jumps of the nearest rank.
pub fn quantile(samples: &[f64], p: f64) -> Result<f64, StatsError> {
    check_sample(samples, "a quantile")?;
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_counts(sorted.into_iter().map(|value| (value, 1)), p)
}

/// The same from (value, count) in ascending order of value, as a histogram yields them.
pub fn quantile_of_counts<I>(counts: I, p: f64) -> Result<f64, StatsError>
where
    I: IntoIterator<Item = (f64, u64)>,
{
    check_open_unit(p, "the probability of a quantile")?;
    let counts: Vec<(f64, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return Err(StatsError::Empty { what: "a quantile" });
    }
    if let Some(index) = counts.iter().position(|(value, _)| !value.is_finite()) {
        return Err(StatsError::NotFinite {
            what: "a quantile",
            index,
        });
    }
    let n = total as f64;
    let h = ((n + 1.0 / 3.0) * p + 1.0 / 3.0).clamp(1.0, n);
    let below = h.floor();
    let low = value_at(&counts, below as u64);
    let high = value_at(&counts, (below as u64 + 1).min(total));
    Ok(low + (h - below) * (high - low))
}

/// The same of a histogram, in its unit.
pub fn histogram_quantile(histogram: &Histogram<u64>, p: f64) -> Result<f64, StatsError> {
    quantile_of_counts(
        histogram
            .iter_recorded()
            .map(|step| (step.value_iterated_to() as f64, step.count_at_value())),
        p,
    )
}

/// The value with this rank (from 1, ascending) in a histogram; none beyond its count.
pub fn rank_value(histogram: &Histogram<u64>, rank: u64) -> Option<f64> {
    let mut seen = 0;
    for step in histogram.iter_recorded() {
        seen += step.count_at_value();
        if rank >= 1 && seen >= rank {
            return Some(step.value_iterated_to() as f64);
        }
    }
    None
}

/// The value of 1-based rank in counts that are known to hold at least that many.
fn value_at(counts: &[(f64, u64)], rank: u64) -> f64 {
    let mut seen = 0;
    for (value, count) in counts {
        seen += count;
        if seen >= rank {
            return *value;
        }
    }
    counts.last().map_or(f64::NAN, |(value, _)| *value)
}

/// P(Binomial(n, p) <= k).
fn binomial_cdf(k: u64, n: u64, p: f64) -> Result<f64, StatsError> {
    if k >= n {
        return Ok(1.0);
    }
    checked_beta_reg((n - k) as f64, (k + 1) as f64, 1.0 - p).map_err(|_| StatsError::OutOfRange {
        what: "the probability of a binomial",
        value: p,
        expected: "a number between 0 and 1",
    })
}

/// The smallest k with P(Binomial(n, p) <= k) >= level.
fn binomial_quantile(level: f64, n: u64, p: f64) -> Result<u64, StatsError> {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if binomial_cdf(middle, n, p)? >= level {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

/// Ranks (l, u), from 1, whose order statistics enclose the p-quantile of the distribution with
/// at least the given confidence, whatever the distribution: P(l <= Binomial(n, p) < u) >=
/// confidence. None where the sample is too small for an end.
pub fn order_statistic_ranks(
    n: u64,
    p: f64,
    confidence: f64,
) -> Result<(Option<u64>, Option<u64>), StatsError> {
    check_open_unit(p, "the probability of a quantile")?;
    check_open_unit(confidence, "the confidence")?;
    if n == 0 {
        return Err(StatsError::Empty {
            what: "an interval of a quantile",
        });
    }
    let tail = (1.0 - confidence) / 2.0;
    let lower = binomial_quantile(tail, n, p)?;
    let upper = binomial_quantile(1.0 - tail, n, p)? + 1;
    Ok(((lower >= 1).then_some(lower), (upper <= n).then_some(upper)))
}

/// `MLPerf`'s early stopping: the largest t for which the t-th largest of n latencies is an upper
/// bound of the p-quantile with the given confidence; none where n is too small for t = 1.
///
/// With h(t) the smallest h for which the regularised incomplete beta function `I_p(h, t + 1)` is at
/// most 1 - confidence, t is the largest with n >= h(t) + t. As `I_p(n - t, t + 1)` grows with t at
/// fixed n, that is the largest t with `I_p(n - t, t + 1) <= 1 - confidence`.
pub fn early_stopping_rank(n: u64, p: f64, confidence: f64) -> Result<Option<u64>, StatsError> {
    check_open_unit(p, "the probability of a quantile")?;
    check_open_unit(confidence, "the confidence")?;
    let holds = |t: u64| -> Result<bool, StatsError> {
        Ok(t < n && binomial_cdf(t, n, 1.0 - p)? <= 1.0 - confidence)
    };
    if !holds(1)? {
        return Ok(None);
    }
    let (mut low, mut high) = (1, n);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(Some(low))
}
