use std::time::Duration;

use serde::Deserialize;

use super::duration;

/// How long one execution takes:
/// `(base + per_item * batch) * noise * slow * (1 + drift * t) * burst`, with `t` the seconds
/// since the server started.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatencySpec {
    /// Median time of an execution before `per_item`. Zero together with `per_item` answers
    /// inline, without a queue.
    #[serde(deserialize_with = "duration::required")]
    pub base: Duration,
    /// Added for each inference of the executed batch.
    #[serde(deserialize_with = "duration::required")]
    pub per_item: Duration,
    /// Log-normal noise: the standard deviation of the logarithm; 0 is constant.
    pub sigma: f64,
    /// Share of executions that take the slow path, 0 to 1.
    pub slow_share: f64,
    /// What the slow path multiplies the time with.
    pub slow_factor: f64,
    /// Relative change per second since the server started: 0.001 is 0.1 % slower each second.
    pub drift: f64,
    /// A burst begins each time this much has passed; zero is never. The first is one period in.
    #[serde(deserialize_with = "duration::required")]
    pub burst_every: Duration,
    /// How long a burst lasts.
    #[serde(deserialize_with = "duration::required")]
    pub burst_length: Duration,
    /// What a burst multiplies the time with.
    pub burst_factor: f64,
}

impl Default for LatencySpec {
    fn default() -> Self {
        Self {
            base: Duration::ZERO,
            per_item: Duration::ZERO,
            sigma: 0.0,
            slow_share: 0.0,
            slow_factor: 1.0,
            drift: 0.0,
            burst_every: Duration::ZERO,
            burst_length: Duration::ZERO,
            burst_factor: 1.0,
        }
    }
}

impl LatencySpec {
    /// Always the same time.
    pub fn constant(base: Duration) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// Log-normal around a median.
    pub fn log_normal(median: Duration, sigma: f64) -> Self {
        Self {
            base: median,
            sigma,
            ..Self::default()
        }
    }

    /// Whether executions take no time at all.
    pub fn is_zero(&self) -> bool {
        self.base.is_zero() && self.per_item.is_zero()
    }
}
