use std::time::Duration;

use hdrhistogram::Histogram;

use crate::data::{Auto, Bound, Metric};
use crate::stats::{
    FIRST_LOOK, histogram_quantile, noise_floor_fall, noise_floor_rise, requests_needed,
    tail_spread,
};

use super::design::threshold;
use super::{Design, GateError};

/// Load a side that a unit holds at least.
const UNIT_TIME: Duration = Duration::from_secs(2);
/// The shortest block that is chosen.
const SHORTEST: Duration = Duration::from_millis(20);
/// Median request times in a block.
const MEDIANS: f64 = 10.0;
/// Blocks are at least this many times the ramp and drain, so that these cost at most a fifth.
const OVERHEADS: f64 = 4.0;
/// Blocks are at least this many times a gated P99.
const TAILS: f64 = 5.0;
/// Standard errors of the difference of two sides, as in `requests_needed`.
const REACH: f64 = 3.97;

/// What a warm-up showed of one side, as far as the plan needs it.
#[derive(Debug, Clone)]
pub struct SideFigures {
    /// Requests a second.
    pub request_rate: f64,
    /// Latencies, nanoseconds.
    pub histogram: Option<Histogram<u64>>,
    /// Standard deviation of the ln throughput of one second of load; none where unknown.
    pub rate_spread: Option<f64>,
    /// Ramp and drain of a block.
    pub overhead: Duration,
}

/// How a live comparison measures, fixed before its first pair.
#[derive(Debug, Clone, PartialEq)]
pub struct PairPlan {
    /// Time in which each block sends requests.
    pub block: Duration,
    /// Pairs in a unit.
    pub pairs_per_unit: u32,
    /// Units that the time holds: the last look.
    pub max_units: u32,
    /// Seconds that a unit takes, both sides with ramp and drain.
    pub unit_seconds: f64,
    /// The smallest fall of throughput that the budget is likely to resolve, a fraction, as far as
    /// the warm-up's own spread tells; none where throughput is not gated or that is unknown.
    pub throughput_resolves: Option<f64>,
    /// What the budget can do for each percentile, in the design's order.
    pub percentiles: Vec<PercentilePlan>,
    /// The highest of P99, P95, P90 and P50 that the budget can decide.
    pub highest_in_reach: Option<Metric>,
}

/// What a budget can do for one gated percentile.
#[derive(Debug, Clone, PartialEq)]
pub struct PercentilePlan {
    /// The percentile.
    pub metric: Metric,
    /// True where twelve units of it fit the budget.
    pub in_reach: bool,
    /// Requests a side that the budget holds.
    pub requests: u64,
    /// Requests a side that tell a change of the threshold from none, by the tail's shape; none
    /// where the warm-up could not say.
    pub requests_needed: Option<u64>,
    /// The smallest rise that the budget's requests can resolve, a fraction; none as above.
    pub resolves: Option<f64>,
    /// Time for both sides that would bring it into reach.
    pub seconds_needed: f64,
}

impl PercentilePlan {
    /// One line for people.
    pub fn text(&self) -> String {
        let label = self.metric.label();
        if !self.in_reach {
            return format!(
                "{label} is out of reach: it needs about {:.0} s, the budget holds {} requests a \
                 side",
                self.seconds_needed, self.requests
            );
        }
        match self.resolves {
            Some(resolves) => {
                format!(
                    "{label}: this budget resolves changes from {:.1} % on",
                    resolves * 100.0
                )
            }
            None => format!("{label}: in reach of this budget"),
        }
    }
}

/// Requests a side in a unit for a percentile: `ceil(5 / (1 - p))`.
pub(crate) fn unit_requests(p: f64) -> u64 {
    // The small term keeps 5 / (1 - 0.99) = 500.00000000000045 at 500.
    (5.0 / (1.0 - p) - 1e-6).ceil() as u64
}

impl PairPlan {
    /// What the budget can see, one line a metric, for people.
    pub fn texts(&self) -> Vec<String> {
        let throughput = self.throughput_resolves.map(|resolves| {
            format!(
                "throughput: this budget resolves changes from about {:.1} % on, if the noise stays \
                 as in the warm-up",
                resolves * 100.0
            )
        });
        let mut texts: Vec<String> = throughput.into_iter().collect();
        texts.extend(self.percentiles.iter().map(PercentilePlan::text));
        let beyond = self
            .percentiles
            .iter()
            .any(|percentile| !percentile.in_reach);
        if let Some(metric) = self.highest_in_reach.filter(|_| beyond) {
            texts.push(format!(
                "the highest percentile in reach is {}",
                metric.label()
            ));
        }
        texts
    }

    /// Plans a live comparison that may take `time`, from the warm-ups of both sides.
    pub fn new(
        design: &Design,
        sides: [&SideFigures; 2],
        block: Auto<Duration>,
        time: Duration,
    ) -> Result<Self, GateError> {
        let quantiles: Vec<(Metric, f64)> = design
            .limits
            .iter()
            .filter_map(|limit| limit.metric.quantile().map(|p| (limit.metric, p)))
            .collect();
        let tail_gated = quantiles.iter().any(|(_, p)| *p >= 0.99);
        let block = match block {
            Auto::Fixed(block) => block.max(Duration::from_millis(1)),
            Auto::Auto => block_length(sides, tail_gated),
        };
        let slowest = sides
            .iter()
            .map(|side| side.request_rate)
            .fold(f64::INFINITY, f64::min);
        let rate = if slowest.is_finite() {
            slowest.max(0.0)
        } else {
            0.0
        };
        let overhead = sides
            .iter()
            .map(|side| side.overhead)
            .max()
            .unwrap_or_default();
        let pair_seconds = 2.0 * (block + overhead).as_secs_f64();
        let pairs_for = |requests: u64| -> u64 {
            let by_time = (UNIT_TIME.as_secs_f64() / block.as_secs_f64()).ceil();
            let a_block = rate * block.as_secs_f64();
            let by_requests = if a_block > 0.0 {
                (requests as f64 / a_block).ceil()
            } else {
                1e9
            };
            by_time.max(by_requests).max(1.0) as u64
        };
        let units_of = |pairs: u64| (time.as_secs_f64() / (pairs as f64 * pair_seconds)) as u64;
        let fits = |p: f64| units_of(pairs_for(unit_requests(p))) >= u64::from(FIRST_LOOK);

        // The largest unit that some gated percentile needs and that fits; else time alone.
        let pairs = quantiles
            .iter()
            .filter(|(_, p)| fits(*p))
            .map(|(_, p)| pairs_for(unit_requests(*p)))
            .max()
            .unwrap_or_else(|| pairs_for(0));
        let max_units = units_of(pairs).clamp(1, 240) as u32;
        let requests = (f64::from(max_units) * pairs as f64 * block.as_secs_f64() * rate) as u64;
        let mut percentiles = Vec::new();
        for limit in &design.limits {
            let Some(p) = limit.metric.quantile() else {
                continue;
            };
            let spread = sides
                .iter()
                .filter_map(|side| side.histogram.as_ref())
                .filter_map(|histogram| tail_spread(p, |q| histogram_quantile(histogram, q)).ok())
                .reduce(f64::max);
            let wanted = match limit.bound {
                Bound::Relative(_) => Some(threshold(limit)?),
                Bound::Absolute(_) => None,
            };
            let resolves = spread
                .filter(|_| requests > 0)
                .map(|spread| noise_floor_rise(REACH * spread * (2.0 / requests as f64).sqrt()));
            percentiles.push(PercentilePlan {
                metric: limit.metric,
                in_reach: fits(p),
                requests,
                requests_needed: spread
                    .zip(wanted)
                    .and_then(|(spread, wanted)| requests_needed(spread, wanted, 1.0).ok()),
                resolves,
                seconds_needed: f64::from(FIRST_LOOK)
                    * pairs_for(unit_requests(p)) as f64
                    * pair_seconds,
            });
        }
        let load_s = f64::from(max_units) * pairs as f64 * block.as_secs_f64();
        let gated = design
            .limits
            .iter()
            .any(|limit| limit.metric == Metric::Throughput);
        let throughput_resolves = sides
            .iter()
            .map(|side| side.rate_spread)
            .reduce(|one, other| Some(one?.max(other?)))
            .flatten()
            .filter(|_| gated && load_s > 0.0)
            .map(|spread| noise_floor_fall(REACH * spread * (2.0 / load_s).sqrt()));
        Ok(Self {
            block,
            throughput_resolves,
            pairs_per_unit: pairs.min(u64::from(u32::MAX)) as u32,
            max_units,
            unit_seconds: pairs as f64 * pair_seconds,
            percentiles,
            highest_in_reach: [Metric::P99, Metric::P95, Metric::P90, Metric::P50]
                .into_iter()
                .find(|metric| metric.quantile().is_some_and(fits)),
        })
    }
}

/// The block that `auto` chooses: about ten median request times, at least 20 ms, longer where ramp
/// and drain would cost more than a fifth of the time or a gated P99 would not fit five times; never
/// above 2 s or three median request times, as blocks of slow models are pooled, not lengthened.
fn block_length(sides: [&SideFigures; 2], tail_gated: bool) -> Duration {
    let slowest = |p: f64| {
        sides
            .iter()
            .filter_map(|side| side.histogram.as_ref())
            .filter_map(|histogram| histogram_quantile(histogram, p).ok())
            .fold(0.0, f64::max)
            / 1e9
    };
    let median = slowest(0.5);
    let overhead = sides
        .iter()
        .map(|side| side.overhead)
        .max()
        .unwrap_or_default()
        .as_secs_f64();
    let mut block = (MEDIANS * median)
        .max(SHORTEST.as_secs_f64())
        .max(OVERHEADS * overhead);
    if tail_gated {
        block = block.max(TAILS * slowest(0.99));
    }
    let most = UNIT_TIME.as_secs_f64().max(3.0 * median);
    let block = block.min(most);
    // Whole milliseconds read better; rounding up keeps the minima.
    Duration::from_millis((block * 1000.0).ceil() as u64)
}
