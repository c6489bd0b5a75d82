use crate::data::{Block, Bound, Flag, Limit, Rule, Side};
use crate::stats::{Contrast, Looks, mean};

use super::decision::{level_of, orient, overall};
use super::design::threshold;
use super::reason::explain;
use super::relative::{Cause, Evaluated, Evidence, Levels, judge, request_restraint};
use super::search::{Found, Metrics, Search, flag_early, results};
use super::series::{Life, values};
use super::stored::flag_gain;
use super::{Decision, Design, GateError, absolute, point};

/// Sessions a side before which nothing is decided: fewer say next to nothing about their spread.
pub const FEWEST_SESSIONS: u32 = 3;

/// What a decision over alternating sessions wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionStep {
    /// Measure until each side has this many more sessions.
    Measure {
        /// Sessions a side, at least 1.
        sessions: u32,
    },
    /// The decision is taken.
    Done(Box<Decision>),
}

/// A candidate against a reference where only one of both runs at a time.
///
/// Each session is a new start of its server, and the sides take turns in the order A B B A, so
/// that a drift that both share cancels. The session is the unit: what differs from start to start
/// is in the spread, and a regression needs no further confirmation by a reload.
#[derive(Debug, Clone)]
pub struct SessionGate {
    search: Search,
    candidate_first: bool,
}

impl SessionGate {
    /// Prepares a decision over at most `max_sessions` a side, at least [`FEWEST_SESSIONS`]. The
    /// seed says which side begins.
    pub fn new(design: Design, max_sessions: u32, seed: u64) -> Result<Self, GateError> {
        design.check()?;
        let last = max_sessions.max(FEWEST_SESSIONS);
        let looks = match design.rule {
            Rule::Evidence => Looks::plan(FEWEST_SESSIONS, last),
            Rule::Point => Looks::plan(FEWEST_SESSIONS, FEWEST_SESSIONS),
        };
        Ok(Self {
            search: Search::new(design, looks),
            candidate_first: seed % 2 == 1,
        })
    }

    /// Numbers of sessions a side at which the rule is applied.
    pub fn looks(&self) -> &[u32] {
        self.search.looks()
    }

    /// The side of session `index`, from 0: A B B A A B B A and so on.
    pub const fn side(&self, index: u32) -> Side {
        let second = matches!(index % 4, 1 | 2);
        if second == self.candidate_first {
            Side::Baseline
        } else {
            Side::Candidate
        }
    }

    /// Takes all whole sessions so far and says what comes next.
    pub fn step(
        &mut self,
        baseline: &[Life],
        candidate: &[Life],
    ) -> Result<SessionStep, GateError> {
        let design = self.search.design().clone();
        let have = baseline.len().min(candidate.len()) as u32;
        let found = self.search.look(have, &|limit, levels| {
            evaluate(&design, baseline, candidate, limit, levels)
        })?;
        Ok(match found {
            Found::More(sessions) => SessionStep::Measure { sessions },
            Found::Over { metrics, early } => {
                SessionStep::Done(Box::new(self.decision(&metrics, candidate, early)))
            }
        })
    }

    /// Decides with what is there when the time ends between two looks; none where a side has
    /// fewer than [`FEWEST_SESSIONS`].
    pub fn finish(
        &mut self,
        baseline: &[Life],
        candidate: &[Life],
    ) -> Result<Option<Decision>, GateError> {
        if baseline.len().min(candidate.len()) < FEWEST_SESSIONS as usize {
            return Ok(None);
        }
        let design = self.search.design().clone();
        let metrics = self
            .search
            .last(&|limit, levels| evaluate(&design, baseline, candidate, limit, levels))?;
        Ok(Some(self.decision(&metrics, candidate, false)))
    }

    fn decision(&self, metrics: &Metrics, candidate: &[Life], early: bool) -> Decision {
        let design = self.search.design();
        let mut flags: Vec<Flag> = Vec::new();
        for (limit, metric) in metrics {
            flag_gain(design, limit, &metric.result, &mut flags);
        }
        if early {
            flag_early(&mut flags);
        }
        let results = results(metrics);
        Decision {
            verdict: overall(&results),
            metrics: results,
            looks: self.search.taken(),
            blocks: candidate.iter().map(|life| life.blocks.len() as u32).sum(),
            units: 0,
            pairs: 0,
            assumed_noise: None,
            reason: explain(design, metrics, true),
            flags,
        }
    }
}

/// One limit over the sessions of both sides.
fn evaluate(
    design: &Design,
    baseline: &[Life],
    candidate: &[Life],
    limit: &Limit,
    levels: Levels,
) -> Result<Evaluated, GateError> {
    let blocks = || -> Vec<Block> {
        candidate
            .iter()
            .flat_map(|life| life.blocks.iter().cloned())
            .collect()
    };
    if design.rule == Rule::Point {
        let result = point::evaluate(limit, baseline, &blocks())?;
        return Ok(Evaluated::new(result, Cause::Missing, true));
    }
    if matches!(limit.bound, Bound::Absolute(_)) {
        return absolute::evaluate(limit, &blocks(), levels);
    }
    let metric = limit.metric;
    let fail = |source| GateError::Stats { metric, source };
    let means = |lives: &[Life]| -> Result<Result<Vec<f64>, String>, GateError> {
        let mut means = Vec::with_capacity(lives.len());
        for life in lives {
            let logs: Vec<f64> = match values(&life.blocks, metric) {
                Ok(values) => values.into_iter().map(|v| orient(metric, v)).collect(),
                // A session without the metric may not simply be left out: which ones lack it may
                // depend on the side.
                Err(note) => return Ok(Err(note)),
            };
            means.push(mean(&logs).map_err(fail)?);
        }
        Ok(Ok(means))
    };
    let (base, cand) = match (means(baseline)?, means(candidate)?) {
        (Ok(base), Ok(cand)) => (base, cand),
        (Err(note), _) | (_, Err(note)) => return Ok(Evaluated::missing(limit, note)),
    };
    let contrast = Contrast::new(&base, &cand).map_err(fail)?;
    let evidence = Evidence {
        estimate: contrast.estimate,
        lower: contrast.lower(levels.alpha).map_err(fail)?,
        upper: contrast.upper(levels.beta).map_err(fail)?,
    };
    let restraint = request_restraint(limit, &blocks(), baseline);
    let mut result = judge(design, limit, evidence, levels, &restraint)?;
    result.baseline = Some(level_of(metric, contrast.baseline));
    result.candidate = Some(level_of(metric, contrast.candidate));
    let wanted = threshold(limit)?;
    let ruled_out = evidence.upper.is_some_and(|upper| upper < wanted);
    let stuck = restraint.never_pass && (restraint.never_fail || ruled_out);
    let cause = if restraint.never_pass {
        Cause::FewRequests
    } else {
        Cause::Time
    };
    Ok(Evaluated::new(result, cause, stuck))
}
