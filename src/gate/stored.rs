use crate::data::{Block, Bound, Direction, Flag, Limit, MetricResult, Rule, Session};
use crate::stats::{Assumed, FIRST_LOOK, Looks};

use super::decision::{add_flag, overall};
use super::reason::explain;
use super::relative::{Cause, Evaluated, Levels};
use super::search::{Found, Metrics, Search, flag_early, results};
use super::series::{Life, lives, newest_epoch};
use super::{Decision, Design, GateError, absolute, point, relative};

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
    search: Search,
    lives: Vec<Life>,
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
        flag_epoch(&lives, &mut flags);
        let needs_baseline = design
            .limits
            .iter()
            .any(|limit| matches!(limit.bound, Bound::Relative(_)));
        if needs_baseline && lives.is_empty() {
            return Err(GateError::NoSessions);
        }
        Ok(Self {
            search: Search::new(design, looks),
            lives,
            flags,
        })
    }

    /// Independent lives of a server that the stored sessions amount to, those since the last
    /// accepted shift.
    pub fn sessions(&self) -> u32 {
        newest_epoch(&self.lives).len() as u32
    }

    /// Numbers of blocks at which the rule is applied.
    pub fn looks(&self) -> &[u32] {
        self.search.looks()
    }

    /// Takes all blocks of the candidate so far, in order, and says what comes next.
    pub fn step(&mut self, blocks: &[Block]) -> Result<Step, GateError> {
        let (design, lives) = (self.search.design().clone(), &self.lives);
        let found = self.search.look(blocks.len() as u32, &|limit, levels| {
            judge(&design, lives, blocks, limit, levels)
        })?;
        Ok(match found {
            Found::More(blocks) => Step::Measure { blocks },
            Found::Over { metrics, early } => {
                Step::Done(Box::new(self.decision(&metrics, blocks, early)))
            }
        })
    }

    /// Decides with what is there, spending what is left of both levels.
    pub fn finish(&mut self, blocks: &[Block]) -> Result<Decision, GateError> {
        if blocks.is_empty() {
            return Err(GateError::NoBlocks);
        }
        let (design, lives) = (self.search.design().clone(), &self.lives);
        let metrics = self
            .search
            .last(&|limit, levels| judge(&design, lives, blocks, limit, levels))?;
        Ok(self.decision(&metrics, blocks, false))
    }

    fn decision(&self, metrics: &Metrics, blocks: &[Block], early: bool) -> Decision {
        let design = self.search.design();
        let mut flags = self.flags.clone();
        let mut assumed = Assumed::No;
        for (limit, metric) in metrics {
            flag_metric(design, limit, metric, &mut flags);
            assumed = match (assumed, metric.assumed) {
                (Assumed::Yes, _) | (_, Assumed::Yes) => Assumed::Yes,
                (Assumed::Partly, _) | (_, Assumed::Partly) => Assumed::Partly,
                _ => Assumed::No,
            };
        }
        if early {
            flag_early(&mut flags);
        }
        let results = results(metrics);
        Decision {
            verdict: overall(&results),
            metrics: results,
            looks: self.search.taken(),
            blocks: blocks.len() as u32,
            units: 0,
            pairs: 0,
            assumed_noise: match assumed {
                Assumed::No => None,
                Assumed::Partly => Some("partly_assumed".to_owned()),
                Assumed::Yes => Some("assumed".to_owned()),
            },
            reason: explain(design, metrics, false),
            flags,
        }
    }
}

/// Says that the level is that of the newest epoch.
fn flag_epoch(lives: &[Life], flags: &mut Vec<Flag>) {
    let own = newest_epoch(lives).len();
    let earlier = lives.len() - own;
    if earlier > 0 {
        let noun = if own == 1 { "session" } else { "sessions" };
        add_flag(
            flags,
            "epoch",
            format!(
                "the baseline is {own} {noun} since the last accepted shift; {earlier} from before \
                 it tell only how much sessions vary"
            ),
        );
    }
}

/// One limit by the design's rule.
fn judge(
    design: &Design,
    lives: &[Life],
    blocks: &[Block],
    limit: &Limit,
    levels: Levels,
) -> Result<Evaluated, GateError> {
    match (design.rule, limit.bound) {
        (Rule::Point, _) => {
            let result = point::evaluate(limit, lives, blocks)?;
            Ok(Evaluated::new(result, Cause::Missing, true))
        }
        (Rule::Evidence, Bound::Absolute(_)) => absolute::evaluate(limit, blocks, levels),
        (Rule::Evidence, Bound::Relative(_)) => {
            relative::evaluate(design, limit, lives, blocks, levels)
        }
    }
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
        Direction::HigherIsBetter => change,
        Direction::LowerIsBetter => -change,
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
