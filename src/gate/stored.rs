use crate::data::{Block, Bound, Flag, Limit, MetricResult, MetricVerdict, Rule, Session, Verdict};
use crate::stats::{Assumed, FIRST_LOOK, Looks};

use super::decision::{add_flag, overall};
use super::reason::explain;
use super::relative::{Evaluated, Levels};
use super::series::{Life, lives};
use super::{Decision, Design, GateError, Stage, absolute, point, relative};

/// What a stored decision wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Measure this many more blocks of the candidate.
    Measure {
        /// Blocks, at least 1.
        blocks: u32,
    },
    /// The decision is taken.
    Done(Box<Decision>),
}

/// A candidate against stored sessions.
///
/// The looks are fixed before the first block. A metric that passed stays passed; the first metric
/// that fails ends the search.
#[derive(Debug, Clone)]
pub struct StoredGate {
    design: Design,
    lives: Vec<Life>,
    looks: Looks,
    taken: usize,
    passed: Vec<Option<Evaluated>>,
    flags: Vec<Flag>,
}

impl StoredGate {
    /// Prepares a decision of at most `design.max_samples` blocks. Sessions may be empty only where
    /// every limit is absolute.
    pub fn new(design: Design, sessions: &[Session]) -> Result<Self, GateError> {
        let looks = match design.rule {
            Rule::Evidence => Looks::plan(FIRST_LOOK, design.max_samples),
            Rule::Point => Looks::plan(FIRST_LOOK, design.max_samples.min(FIRST_LOOK)),
        };
        Self::with_looks(design, sessions, looks)
    }

    /// The same with given looks.
    pub(crate) fn with_looks(
        design: Design,
        sessions: &[Session],
        looks: Looks,
    ) -> Result<Self, GateError> {
        design.check()?;
        let mut flags = Vec::new();
        let lives = lives(sessions, &mut flags);
        let needs_baseline = design
            .limits
            .iter()
            .any(|limit| matches!(limit.bound, Bound::Relative(_)));
        if needs_baseline && lives.is_empty() {
            return Err(GateError::NoSessions);
        }
        let passed = vec![None; design.limits.len()];
        Ok(Self {
            design,
            lives,
            looks,
            taken: 0,
            passed,
            flags,
        })
    }

    /// Independent lives of a server that the stored sessions amount to.
    pub fn sessions(&self) -> u32 {
        self.lives.len() as u32
    }

    /// Numbers of blocks at which the rule is applied.
    pub fn looks(&self) -> &[u32] {
        self.looks.sizes()
    }

    /// Takes all blocks of the candidate so far, in order, and says what comes next.
    pub fn step(&mut self, blocks: &[Block]) -> Result<Step, GateError> {
        let have = blocks.len() as u32;
        let next = self
            .looks
            .sizes()
            .get(self.taken)
            .copied()
            .unwrap_or_else(|| self.looks.last());
        if have < next {
            return Ok(Step::Measure {
                blocks: next - have,
            });
        }
        // More blocks than asked for count for the latest look that they reach.
        while self
            .looks
            .sizes()
            .get(self.taken + 1)
            .is_some_and(|size| have >= *size)
        {
            self.taken += 1;
        }
        if self.taken + 1 >= self.looks.sizes().len() {
            return self
                .finish(blocks)
                .map(|decision| Step::Done(Box::new(decision)));
        }
        let levels = Levels {
            alpha: self
                .looks
                .alpha(self.taken, self.design.alpha())
                .map_err(GateError::Plan)?,
            beta: self
                .looks
                .beta(self.taken, self.design.beta())
                .map_err(GateError::Plan)?,
        };
        let metrics = self.evaluate(blocks, levels)?;
        let decided = overall(&results(&metrics));
        let stuck = metrics
            .iter()
            .filter(|(_, metric)| metric.result.verdict == MetricVerdict::Inconclusive)
            .all(|(_, metric)| metric.stuck || self.hopeless(metric));
        if decided == Verdict::Inconclusive && stuck {
            // Whether to stop here depends on variances, not on the estimate, so that the look may
            // have all that is left of both levels.
            return self
                .finish(blocks)
                .map(|decision| Step::Done(Box::new(decision)));
        }
        self.keep_passed(&metrics);
        self.taken += 1;
        if decided == Verdict::Inconclusive {
            return self.step(blocks);
        }
        let early = decided == Verdict::Regression;
        Ok(Step::Done(Box::new(self.decision(&metrics, blocks, early))))
    }

    /// Decides with what is there, spending what is left of both levels: the last look, or the end
    /// of the time between two looks.
    pub fn finish(&mut self, blocks: &[Block]) -> Result<Decision, GateError> {
        if blocks.is_empty() {
            return Err(GateError::NoBlocks);
        }
        let (alpha, beta) = self
            .looks
            .rest(self.taken, self.design.alpha(), self.design.beta())
            .map_err(GateError::Plan)?;
        let metrics = self.evaluate(blocks, Levels { alpha, beta })?;
        self.keep_passed(&metrics);
        self.taken += 1;
        Ok(self.decision(&metrics, blocks, false))
    }

    /// A stage that never fails need not go on when its estimate lies beyond the limit.
    fn hopeless(&self, metric: &Evaluated) -> bool {
        let result = &metric.result;
        self.design.stage == Stage::StoredFirst
            && result
                .change
                .zip(result.threshold)
                .is_some_and(|(change, threshold)| {
                    change.signum() == threshold.signum() && change.abs() >= threshold.abs()
                })
    }

    fn evaluate(
        &self,
        blocks: &[Block],
        levels: Levels,
    ) -> Result<Vec<(Limit, Evaluated)>, GateError> {
        let mut metrics = Vec::with_capacity(self.design.limits.len());
        for (limit, passed) in self.design.limits.iter().zip(&self.passed) {
            let evaluated = match (passed, self.design.rule, limit.bound) {
                (Some(passed), ..) => passed.clone(),
                (None, Rule::Point, _) => {
                    let result = point::evaluate(limit, &self.lives, blocks)?;
                    Evaluated::new(result, relative::Cause::Missing, true)
                }
                (None, Rule::Evidence, Bound::Absolute(_)) => {
                    absolute::evaluate(limit, blocks, levels)?
                }
                (None, Rule::Evidence, Bound::Relative(_)) => {
                    relative::evaluate(&self.design, limit, &self.lives, blocks, levels)?
                }
            };
            metrics.push((*limit, evaluated));
        }
        Ok(metrics)
    }

    fn keep_passed(&mut self, metrics: &[(Limit, Evaluated)]) {
        for (slot, (_, metric)) in self.passed.iter_mut().zip(metrics) {
            let passed = matches!(
                metric.result.verdict,
                MetricVerdict::Pass | MetricVerdict::Improvement
            );
            if passed && slot.is_none() {
                *slot = Some(metric.clone());
            }
        }
    }

    fn decision(&self, metrics: &[(Limit, Evaluated)], blocks: &[Block], early: bool) -> Decision {
        let mut flags = self.flags.clone();
        let mut assumed = Assumed::No;
        for (limit, metric) in metrics {
            flag_metric(&self.design, limit, metric, &mut flags);
            assumed = match (assumed, metric.assumed) {
                (Assumed::Yes, _) | (_, Assumed::Yes) => Assumed::Yes,
                (Assumed::Partly, _) | (_, Assumed::Partly) => Assumed::Partly,
                _ => Assumed::No,
            };
        }
        if early {
            add_flag(
                &mut flags,
                "early_stop",
                "decided before the last look: the estimate may overstate the change".to_owned(),
            );
        }
        let reason = explain(&self.design, metrics);
        let metrics = results(metrics);
        Decision {
            verdict: overall(&metrics),
            metrics,
            looks: self.taken as u32,
            blocks: blocks.len() as u32,
            units: 0,
            pairs: 0,
            assumed_noise: match assumed {
                Assumed::No => None,
                Assumed::Partly => Some("partly_assumed".to_owned()),
                Assumed::Yes => Some("assumed".to_owned()),
            },
            reason,
            flags,
        }
    }
}

fn results(metrics: &[(Limit, Evaluated)]) -> Vec<MetricResult> {
    metrics
        .iter()
        .map(|(_, metric)| metric.result.clone())
        .collect()
}

/// What a reader should know of one metric.
fn flag_metric(design: &Design, limit: &Limit, metric: &Evaluated, flags: &mut Vec<Flag>) {
    let label = limit.metric.label();
    if metric.raised_by_drift {
        add_flag(
            flags,
            "raised_by_drift",
            format!("{label}: drift within the sessions exceeds the assumed noise and replaces it"),
        );
    }
    if metric.within_assumed {
        add_flag(
            flags,
            "within_assumed",
            format!("{label}: one value a side, so that the noise within a session is assumed"),
        );
    }
    if metric.sessions_lost > 0 {
        add_flag(
            flags,
            "sessions_without_metric",
            format!(
                "{label}: {} stored sessions lack usable values",
                metric.sessions_lost
            ),
        );
    }
    flag_gain(design, limit, &metric.result, flags);
}

/// A gain that is too good: often a model that no longer does its work.
pub(crate) fn flag_gain(
    design: &Design,
    limit: &Limit,
    result: &MetricResult,
    flags: &mut Vec<Flag>,
) {
    let better = |change: f64| match limit.metric.direction() {
        crate::data::Direction::HigherIsBetter => change,
        crate::data::Direction::LowerIsBetter => -change,
    };
    let gain = result.change.map_or(0.0, better);
    if design.suspicious_gain > 0.0 && gain > design.suspicious_gain {
        add_flag(
            flags,
            "suspicious_gain",
            format!(
                "{} improved by {:.1} %: check that the model still does its work",
                limit.metric.label(),
                gain * 100.0
            ),
        );
    }
}
