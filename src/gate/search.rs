use crate::data::{Flag, Limit, MetricResult, MetricVerdict, Verdict};
use crate::stats::Looks;

use super::decision::{add_flag, overall};
use super::relative::{Evaluated, Levels};
use super::{Design, GateError, Stage};

/// The metrics of a scenario as they stand, in the design's order.
pub(crate) type Metrics = Vec<(Limit, Evaluated)>;

/// Share of the remaining false-alarm level that a search spends when the spread between sessions
/// ends it. Hosts that are rented anew are not normally distributed, and a t bound on a dozen of
/// them is the first to suffer: in simulation all of it gave 1.5 % where 1 % was allowed.
pub(crate) const KEPT_BACK: f64 = 0.5;

/// Judges one limit at the levels of a look.
pub(crate) type Judge<'a> = dyn Fn(&Limit, Levels) -> Result<Evaluated, GateError> + 'a;

/// What a search wants after a look.
pub(crate) enum Found {
    /// This many more samples before the next look.
    More(u32),
    /// The search is over.
    Over {
        /// The metrics at the deciding look, those that passed before as they passed.
        metrics: Metrics,
        /// True where a regression ended the search before the last look.
        early: bool,
    },
}

/// The search for a verdict over planned looks, whatever the samples are.
///
/// A metric that passed stays passed; the first that fails ends the search, as does a state that
/// no further sample can change.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    design: Design,
    looks: Looks,
    /// Planned looks that lie behind.
    behind: usize,
    /// Looks really taken.
    taken: u32,
    passed: Vec<Option<Evaluated>>,
}

impl Search {
    pub fn new(design: Design, looks: Looks) -> Self {
        let passed = vec![None; design.limits.len()];
        Self {
            design,
            looks,
            behind: 0,
            taken: 0,
            passed,
        }
    }

    pub const fn design(&self) -> &Design {
        &self.design
    }

    pub fn looks(&self) -> &[u32] {
        self.looks.sizes()
    }

    pub const fn taken(&self) -> u32 {
        self.taken
    }

    /// Takes the looks that `have` samples reach.
    pub fn look(&mut self, have: u32, judge: &Judge<'_>) -> Result<Found, GateError> {
        let size = |index: usize| self.looks.sizes().get(index).copied();
        let next = size(self.behind).unwrap_or_else(|| self.looks.last());
        if have < next {
            return Ok(Found::More(next - have));
        }
        // More samples than asked for count for the latest look that they reach.
        let mut at = self.behind;
        while size(at + 1).is_some_and(|size| have >= size) {
            at += 1;
        }
        let following = size(at + 1);
        self.behind = at;
        let Some(following) = following else {
            return Ok(Found::Over {
                metrics: self.last(judge)?,
                early: false,
            });
        };
        let levels = Levels {
            alpha: self
                .looks
                .alpha(at, self.design.alpha())
                .map_err(GateError::Plan)?,
            beta: self
                .looks
                .beta(at, self.design.beta())
                .map_err(GateError::Plan)?,
        };
        let metrics = self.evaluate(levels, judge)?;
        let verdict = overall(&results(&metrics));
        if verdict == Verdict::Inconclusive && self.pointless(&metrics) {
            // Whether to stop here depends on variances, not on the estimate, so that the look may
            // have what is left of both levels.
            return Ok(Found::Over {
                metrics: self.end(judge, KEPT_BACK)?,
                early: false,
            });
        }
        self.keep_passed(&metrics);
        self.behind += 1;
        self.taken += 1;
        if verdict == Verdict::Inconclusive {
            return Ok(Found::More(following - have));
        }
        Ok(Found::Over {
            metrics,
            early: verdict == Verdict::Regression,
        })
    }

    /// One last look that spends what is left of both levels: at the last planned one, or when the
    /// time ends between two.
    pub fn last(&mut self, judge: &Judge<'_>) -> Result<Metrics, GateError> {
        self.end(judge, 1.0)
    }

    fn end(&mut self, judge: &Judge<'_>, alpha_share: f64) -> Result<Metrics, GateError> {
        let (alpha, beta) = self
            .looks
            .rest(self.behind, self.design.alpha(), self.design.beta())
            .map_err(GateError::Plan)?;
        let alpha = alpha * alpha_share;
        let metrics = self.evaluate(Levels { alpha, beta }, judge)?;
        self.keep_passed(&metrics);
        self.taken += 1;
        Ok(metrics)
    }

    fn evaluate(&self, levels: Levels, judge: &Judge<'_>) -> Result<Metrics, GateError> {
        self.design
            .limits
            .iter()
            .zip(&self.passed)
            .map(|(limit, passed)| {
                let evaluated = match passed {
                    Some(passed) => passed.clone(),
                    None => judge(limit, levels)?,
                };
                Ok((*limit, evaluated))
            })
            .collect()
    }

    fn keep_passed(&mut self, metrics: &Metrics) {
        for (slot, (_, metric)) in self.passed.iter_mut().zip(metrics) {
            let verdict = metric.result.verdict;
            if slot.is_none() && matches!(verdict, MetricVerdict::Pass | MetricVerdict::Improvement)
            {
                *slot = Some(metric.clone());
            }
        }
    }

    /// No further sample can change the verdict.
    fn pointless(&self, metrics: &Metrics) -> bool {
        let open = || {
            metrics
                .iter()
                .filter(|(_, metric)| metric.result.verdict == MetricVerdict::Inconclusive)
        };
        open().all(|(_, metric)| metric.stuck) || open().any(|(_, metric)| self.hopeless(metric))
    }

    /// A stage that never fails need not go on when one estimate lies beyond its limit.
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
}

pub(crate) fn results(metrics: &Metrics) -> Vec<MetricResult> {
    metrics
        .iter()
        .map(|(_, metric)| metric.result.clone())
        .collect()
}

/// What a reader should know of a decision that stopped early on a regression.
pub(crate) fn flag_early(flags: &mut Vec<Flag>) {
    add_flag(
        flags,
        "early_stop",
        "decided before the last look: the estimate may overstate the change".to_owned(),
    );
}
