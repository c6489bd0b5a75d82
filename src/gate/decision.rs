use crate::data::{
    Bound, Direction, Flag, Limit, Metric, MetricResult, MetricVerdict, Reason, Verdict,
};
use crate::stats::{noise_floor_fall, noise_floor_rise};

/// What the evidence says about one scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Pass, regression or inconclusive.
    pub verdict: Verdict,
    /// One entry a limit, in the design's order.
    pub metrics: Vec<MetricResult>,
    /// Looks taken.
    pub looks: u32,
    /// Blocks of the candidate that count; 0 with a live reference.
    pub blocks: u32,
    /// Units that count; 0 with a stored baseline.
    pub units: u32,
    /// Pairs that count; 0 with a stored baseline.
    pub pairs: u32,
    /// `assumed` or `partly_assumed` where the noise between sessions was not measured.
    pub assumed_noise: Option<String>,
    /// Why, where it is not a plain pass.
    pub reason: Option<Reason>,
    /// Things that a reader should know.
    pub flags: Vec<Flag>,
}

impl Decision {
    /// True for a pass that needs no live stage: one that rests on measured noise alone.
    pub fn is_final_pass(&self) -> bool {
        self.verdict == Verdict::Pass && self.assumed_noise.is_none()
    }
}

/// The worst of the metrics: a regression, else undecided, else a pass.
pub(crate) fn overall(metrics: &[MetricResult]) -> Verdict {
    let any = |wanted| metrics.iter().any(|metric| metric.verdict == wanted);
    if any(MetricVerdict::Regression) {
        Verdict::Regression
    } else if any(MetricVerdict::Inconclusive) || metrics.is_empty() {
        Verdict::Inconclusive
    } else {
        Verdict::Pass
    }
}

/// One more flag, unless the same is there.
pub(crate) fn add_flag(flags: &mut Vec<Flag>, code: &str, text: String) {
    let flag = Flag {
        code: code.to_owned(),
        text,
    };
    if !flags.contains(&flag) {
        flags.push(flag);
    }
}

/// An oriented log value (positive is worse) of a level of the metric.
pub(crate) fn orient(metric: Metric, value: f64) -> f64 {
    match metric.direction() {
        Direction::HigherIsBetter => -value.ln(),
        Direction::LowerIsBetter => value.ln(),
    }
}

/// Back from [`orient`].
pub(crate) fn level_of(metric: Metric, oriented: f64) -> f64 {
    match metric.direction() {
        Direction::HigherIsBetter => (-oriented).exp(),
        Direction::LowerIsBetter => oriented.exp(),
    }
}

/// An oriented log ratio as candidate / baseline - 1.
pub(crate) fn change_of(metric: Metric, oriented: f64) -> f64 {
    match metric.direction() {
        Direction::HigherIsBetter => (-oriented).exp_m1(),
        Direction::LowerIsBetter => oriented.exp_m1(),
    }
}

/// Two ends `(better, worse)` as `[lower, upper]` of the raw change.
pub(crate) fn raw_order<T>(metric: Metric, better: T, worse: T) -> [T; 2] {
    match metric.direction() {
        Direction::HigherIsBetter => [worse, better],
        Direction::LowerIsBetter => [better, worse],
    }
}

/// The smallest change for the worse that an interval of this width could have seen.
pub(crate) fn noise_floor(metric: Metric, width: f64) -> f64 {
    match metric.direction() {
        Direction::HigherIsBetter => noise_floor_fall(width),
        Direction::LowerIsBetter => noise_floor_rise(width),
    }
}

/// A result that knows nothing yet but its limit.
pub(crate) fn blank(limit: &Limit) -> MetricResult {
    let metric = limit.metric;
    let (threshold, bound) = match limit.bound {
        Bound::Relative(fraction) => {
            let signed = match metric.direction() {
                Direction::HigherIsBetter => -fraction.get(),
                Direction::LowerIsBetter => fraction.get(),
            };
            (Some(signed), None)
        }
        Bound::Absolute(value) => (None, Some(value)),
    };
    MetricResult {
        metric,
        unit: metric.unit().to_owned(),
        baseline: None,
        candidate: None,
        change: None,
        interval: [None, None],
        level: None,
        threshold,
        limit: bound,
        noise_floor: None,
        verdict: MetricVerdict::Inconclusive,
        note: None,
        pin: None,
    }
}
