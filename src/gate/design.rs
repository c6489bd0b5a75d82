use crate::data::{Bound, Direction, GateSpec, Limit, Metric, Policy, Rule};

use super::GateError;

/// Spread between sessions that is assumed on a GPU with locked clocks: throughput, latency.
const NOISE_LOCKED: (f64, f64) = (0.01, 0.03);
/// The same anywhere else.
const NOISE_ELSE: (f64, f64) = (0.07, 0.13);
/// Share of the missed-regression level that a stored stage may spend before a live one.
const STORED_SHARE: f64 = 0.3;

/// Which part of a decision is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The only one.
    Only,
    /// Stored sessions are asked before a live reference: it may pass, it never fails.
    StoredFirst,
    /// The live reference after a stored stage that did not pass.
    LiveSecond,
}

/// What a decision is to achieve, fixed before the first measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// What is gated in this scenario.
    pub limits: Vec<Limit>,
    /// Metrics gated over the whole check: the false-alarm level is shared between them.
    pub gated: u32,
    /// Probability of a false alarm over all of them.
    pub false_alarm: f64,
    /// Probability of passing a true regression, a metric.
    pub missed_regression: f64,
    /// How sure a change must be to fail.
    pub policy: Policy,
    /// Evidence or bare comparison.
    pub rule: Rule,
    /// The most blocks (stored) or units (live) that the budget holds.
    pub max_samples: u32,
    /// Standard deviation of ln between sessions that is assumed where too few are stored:
    /// throughput, latency.
    pub assumed_noise: (f64, f64),
    /// An improvement beyond this fraction is flagged.
    pub suspicious_gain: f64,
    /// Which part of the decision this is.
    pub stage: Stage,
}

impl Design {
    /// From the resolved settings of a scenario. `gated` counts the metrics of the whole check;
    /// `locked_clocks` is true on a GPU whose clocks are known to be locked.
    pub fn new(
        spec: &GateSpec,
        gated: u32,
        max_samples: u32,
        locked_clocks: bool,
    ) -> Result<Self, GateError> {
        let default = if locked_clocks {
            NOISE_LOCKED
        } else {
            NOISE_ELSE
        };
        let design = Self {
            limits: spec.limits.clone(),
            gated: gated.max(spec.limits.len() as u32),
            false_alarm: spec.false_alarm.get(),
            missed_regression: spec.missed_regression.get(),
            policy: spec.policy,
            rule: spec.rule,
            max_samples: max_samples.max(1),
            assumed_noise: spec.assumed_noise.unwrap_or(default),
            suspicious_gain: spec.suspicious_gain.get(),
            stage: Stage::Only,
        };
        design.check()?;
        Ok(design)
    }

    /// The same for one stage of a stored-then-live decision: the false-alarm level is spent live
    /// alone, the missed-regression level is split, so that both stages together keep it.
    #[must_use]
    pub fn for_stage(&self, stage: Stage) -> Self {
        let missed_regression = match stage {
            Stage::Only => self.missed_regression,
            Stage::StoredFirst => self.missed_regression * STORED_SHARE,
            Stage::LiveSecond => self.missed_regression * (1.0 - STORED_SHARE),
        };
        Self {
            missed_regression,
            stage,
            ..self.clone()
        }
    }

    /// Refuses limits and levels that no decision can be built on.
    pub(crate) fn check(&self) -> Result<(), GateError> {
        if self.limits.is_empty() {
            return Err(GateError::NoLimits);
        }
        for (index, limit) in self.limits.iter().enumerate() {
            threshold(limit)?;
            let twice = self.limits[..index].iter().any(|other| {
                other.metric == limit.metric
                    && matches!(other.bound, Bound::Relative(_))
                        == matches!(limit.bound, Bound::Relative(_))
            });
            if twice {
                return Err(GateError::DuplicateLimit(limit.metric));
            }
        }
        for (name, value) in [
            ("false_alarm", self.false_alarm),
            ("missed_regression", self.missed_regression),
        ] {
            if !(value > 0.0 && value < 0.5) {
                return Err(GateError::BadLevel { name, value });
            }
        }
        Ok(())
    }

    /// The false-alarm level of one metric; 0 in a stage that never fails.
    pub fn alpha(&self) -> f64 {
        match self.stage {
            Stage::StoredFirst => 0.0,
            Stage::Only | Stage::LiveSecond => self.false_alarm / f64::from(self.gated.max(1)),
        }
    }

    /// The missed-regression level of one metric.
    pub const fn beta(&self) -> f64 {
        self.missed_regression
    }

    /// The spread between sessions that is assumed for a metric.
    pub const fn assumed(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Throughput => self.assumed_noise.0,
            _ => self.assumed_noise.1,
        }
    }

    /// The estimate from which a proven change for the worse fails.
    pub(crate) fn fail_at(&self, threshold: f64) -> f64 {
        match self.policy {
            Policy::Enforce => threshold,
            Policy::Detect => threshold / 2.0,
        }
    }
}

/// A limit as the decision sees it: a relative one on the log scale, -ln(1 - drop) or ln(1 + rise);
/// an absolute one in the metric's unit.
pub fn limit_on_log_scale(limit: &Limit) -> Result<f64, GateError> {
    threshold(limit)
}

/// The threshold of a relative limit on the log scale, positive for the worse: -ln(1 - drop) or
/// ln(1 + rise). An absolute limit gives its value in the metric's unit.
pub(crate) fn threshold(limit: &Limit) -> Result<f64, GateError> {
    let bad = |value, expected| GateError::BadLimit {
        metric: limit.metric,
        value,
        expected,
    };
    match limit.bound {
        Bound::Relative(fraction) => {
            let value = fraction.get();
            match limit.metric.direction() {
                Direction::HigherIsBetter if value > 0.0 && value < 1.0 => Ok(-(-value).ln_1p()),
                Direction::HigherIsBetter => Err(bad(value, "a drop above 0% and below 100%")),
                Direction::LowerIsBetter if value > 0.0 && value.is_finite() => Ok(value.ln_1p()),
                Direction::LowerIsBetter => Err(bad(value, "a rise above 0%")),
            }
        }
        Bound::Absolute(value) => {
            let zero_is_fine = limit.metric == Metric::ErrorRate;
            if value.is_finite() && (value > 0.0 || (zero_is_fine && value == 0.0)) {
                Ok(value)
            } else {
                Err(bad(value, "a positive number"))
            }
        }
    }
}
