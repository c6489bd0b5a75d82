//! How long a block of a stored session is.

use std::time::Duration;

use super::WarmUp;
use crate::data::Auto;

/// The length of a block where the user leaves it to the tool: 2 s, at least three median
/// requests, and long enough for the requests of the highest gated percentile, as far as a
/// session of `blocks` fits `time`. What does not fit is told by [`short_of`].
pub fn stored_block(
    choice: Auto<Duration>,
    warm_up: &WarmUp,
    quantiles: &[f64],
    blocks: u32,
    time: Duration,
) -> Duration {
    let base = Duration::from_secs(2);
    if let Auto::Fixed(block) = choice {
        return block;
    }
    let median = warm_up
        .histogram
        .as_ref()
        .map_or(Duration::ZERO, |histogram| {
            Duration::from_nanos(histogram.value_at_quantile(0.5))
        });
    let needed = quantiles
        .iter()
        .map(|quantile| requests_for(*quantile))
        .fold(0.0, f64::max);
    let for_requests = if warm_up.request_rate > 0.0 {
        Duration::try_from_secs_f64(needed / warm_up.request_rate).unwrap_or(base)
    } else {
        base
    };
    let room = time / blocks.max(1);
    let block = base.max(median * 3).max(for_requests.min(room));
    // Tenths of a second: the length is part of the load's identity and is read by people.
    Duration::from_millis(u64::try_from(block.as_millis().div_ceil(100) * 100).unwrap_or(2000))
}

/// Requests that a percentile needs in a unit: five beyond it (docs/statistics.md, section 8.1).
fn requests_for(quantile: f64) -> f64 {
    (5.0 / (1.0 - quantile)).ceil()
}

/// The gated percentiles that blocks of this length cannot pass at this rate: percentile,
/// requests that a pass needs a block (1 / (1 - p), docs/statistics.md), requests that one holds.
pub fn short_of(warm_up: &WarmUp, quantiles: &[f64], block: Duration) -> Vec<(f64, f64, f64)> {
    let held = warm_up.request_rate * block.as_secs_f64();
    quantiles
        .iter()
        .map(|quantile| (*quantile, (1.0 / (1.0 - quantile)).round(), held))
        .filter(|(_, needed, held)| held < needed)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warm(request_rate: f64) -> WarmUp {
        WarmUp {
            settled: true,
            seconds: 5.0,
            request_rate,
            histogram: None,
            rate_spread: None,
            overhead: Duration::ZERO,
        }
    }

    #[test]
    fn a_block_holds_the_requests_of_the_gated_percentile_where_time_allows() {
        let minutes = Duration::from_mins(5);
        let length = |rate, time| stored_block(Auto::Auto, &warm(rate), &[0.99], 12, time);
        assert_eq!(length(1000.0, minutes), Duration::from_secs(2));
        assert_eq!(length(100.0, minutes), Duration::from_secs(5));
        // 40 a second would need 12.5 s a block: more than half a minute holds.
        assert_eq!(
            length(40.0, Duration::from_secs(30)),
            Duration::from_millis(2500)
        );
        let short = short_of(&warm(30.0), &[0.5, 0.99], Duration::from_millis(2500));
        assert_eq!(short, [(0.99, 100.0, 75.0)]);
        let fixed = Auto::Fixed(Duration::from_millis(100));
        assert_eq!(
            stored_block(fixed, &warm(1.0), &[0.99], 12, minutes),
            Duration::from_millis(100)
        );
    }
}
