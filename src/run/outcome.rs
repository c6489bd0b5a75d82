use std::collections::BTreeMap;
use std::time::Duration;

use crate::data::{Block, Flag, Reason, Side, Verdict};
use crate::gate::{Decision, GateError, PairPlan};

use super::sessions::SessionRange;
use super::spoiled::Spoiled;
use super::{Ended, Measured, WarmUp};

/// How long a scenario may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// From the start of the warm-up to the end of the last measurement.
    pub time: Duration,
    /// Length of a block.
    pub block: Duration,
}

impl Budget {
    /// How many contiguous blocks fit, when a warm-up takes `warm_up` and each stretch of load
    /// costs `overhead`; at least 1. Fixed before the start: the looks depend on it.
    pub fn blocks(&self, warm_up: Duration, overhead: Duration) -> u32 {
        // A decision takes up to about eight stretches, one a look.
        let rest = self
            .time
            .saturating_sub(warm_up)
            .saturating_sub(overhead * 8);
        let block = self.block.as_secs_f64();
        if block <= 0.0 {
            return 1;
        }
        ((rest.as_secs_f64() / block) as u32).max(1)
    }
}

/// What a progress display may say; all of it is known before the next measurement begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A side is being warmed up.
    WarmingUp {
        /// The side.
        side: Side,
    },
    /// A side's server is being started for its next session.
    Starting {
        /// The side.
        side: Side,
    },
    /// One of alternating sessions begins.
    Session {
        /// Its number, from 1.
        number: u32,
        /// Sessions of both sides at the last look.
        most: u32,
        /// The side.
        side: Side,
    },
    /// What a live comparison will measure, and what it can see.
    Planned {
        /// The plan.
        plan: PairPlan,
    },
    /// A measurement begins.
    Measuring {
        /// Blocks or units so far.
        have: u32,
        /// Blocks or units at the next look.
        next: u32,
        /// Blocks or units at the last look.
        last: u32,
    },
    /// A regression is being confirmed after a reload.
    Confirming,
}

/// Everything that is known of a scenario when its loop ends, however it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioOutcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The decision, where it came to one.
    pub decision: Option<Decision>,
    /// Why there is no decision, else the decision's reason.
    pub reason: Option<Reason>,
    /// The warm-ups, in order.
    pub warm_ups: Vec<(Side, WarmUp)>,
    /// Every block that was measured, also after an error or an interruption; with a live
    /// reference one block a unit and side.
    pub blocks: Vec<Block>,
    /// How a live comparison measured; none with a stored baseline.
    pub pair_plan: Option<PairPlan>,
    /// Alternating sessions, in order; empty for every other comparison.
    pub sessions: Vec<SessionRange>,
    /// True where everything planned was measured.
    pub complete: bool,
    /// Seconds from the first warm-up to the end.
    pub seconds: f64,
    /// Blocks or pairs discarded, by reason.
    pub discarded: BTreeMap<String, u32>,
    /// Things that a reader should know, beside the decision's own.
    pub flags: Vec<Flag>,
}

/// What a loop gathers on its way.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub warm_ups: Vec<(Side, WarmUp)>,
    pub blocks: Vec<Block>,
    pub discarded: BTreeMap<String, u32>,
    pub flags: Vec<Flag>,
    spoiled: Spoiled,
}

impl Record {
    pub fn warm_up(&mut self, side: Side, warm_up: WarmUp) {
        if !warm_up.settled {
            let side_name = match side {
                Side::Baseline => "baseline",
                Side::Candidate => "candidate",
            };
            self.flag(Flag {
                code: "not_steady".to_owned(),
                text: format!("the {side_name} was still changing at the end of its warm-up"),
            });
        }
        self.warm_ups.push((side, warm_up));
    }

    /// Keeps what came of a plan and says how it ended; it failed where so much had to be
    /// discarded that going on makes no sense.
    pub fn measured(&mut self, measured: Measured) -> Ended {
        self.spoiled
            .add(measured.blocks.len() as u32, &measured.discarded);
        self.blocks.extend(measured.blocks);
        for (reason, count) in measured.discarded {
            *self.discarded.entry(reason).or_default() += count;
        }
        for flag in measured.flags {
            self.flag(flag);
        }
        match measured.ended {
            ended @ (Ended::Complete | Ended::Deadline) => {
                self.spoiled.hopeless().map_or(ended, Ended::Failed)
            }
            ended => ended,
        }
    }

    fn flag(&mut self, flag: Flag) {
        if !self.flags.contains(&flag) {
            self.flags.push(flag);
        }
    }

    /// A decision was taken; it does not stand where too much had to be discarded for it.
    pub fn decided(self, decision: Decision, seconds: f64) -> ScenarioOutcome {
        if let Some(reason) = self.spoiled.invalid() {
            return self.ended(Ended::Failed(reason), seconds);
        }
        ScenarioOutcome {
            verdict: decision.verdict,
            reason: decision.reason.clone(),
            decision: Some(decision),
            warm_ups: self.warm_ups,
            blocks: self.blocks,
            pair_plan: None,
            sessions: Vec::new(),
            complete: true,
            seconds,
            discarded: self.discarded,
            flags: self.flags,
        }
    }

    /// Measured, but too little to judge anything.
    pub fn undecided(self, reason: Reason, seconds: f64) -> ScenarioOutcome {
        ScenarioOutcome {
            verdict: Verdict::Inconclusive,
            complete: false,
            ..self.ended(Ended::Failed(reason), seconds)
        }
    }

    pub fn ended(self, ended: Ended, seconds: f64) -> ScenarioOutcome {
        let (verdict, reason) = match ended {
            Ended::Failed(reason) => (Verdict::Invalid, reason),
            Ended::Interrupted => (
                Verdict::Interrupted,
                Reason {
                    code: "interrupted".to_owned(),
                    text: "stopped before the decision".to_owned(),
                    next: "start the check again".to_owned(),
                },
            ),
            // Nothing is wrong with the server: there was only too little time.
            Ended::Complete | Ended::Deadline => (
                Verdict::Inconclusive,
                Reason {
                    code: "budget".to_owned(),
                    text: "the budget ended before anything was measured".to_owned(),
                    next: "raise budget, or shorten [measure] warmup".to_owned(),
                },
            ),
        };
        ScenarioOutcome {
            verdict,
            decision: None,
            reason: Some(reason),
            warm_ups: self.warm_ups,
            blocks: self.blocks,
            pair_plan: None,
            sessions: Vec::new(),
            complete: false,
            seconds,
            discarded: self.discarded,
            flags: self.flags,
        }
    }
}

impl From<GateError> for Ended {
    fn from(error: GateError) -> Self {
        Self::Failed(Reason {
            code: "cannot_decide".to_owned(),
            text: error.to_string(),
            next: "mend what is named, or report it".to_owned(),
        })
    }
}
