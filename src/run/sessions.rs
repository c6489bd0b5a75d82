use std::ops::Range;
use std::time::Duration;

use crate::data::{Auto, Reason, Side};
use crate::gate::{Decision, Design, FEWEST_SESSIONS, Life, SessionGate, SessionStep};

use super::outcome::Record;
use super::{Ended, Lab, MeasurePlan, Progress, ScenarioOutcome, WarmUp, stored_block};

/// Blocks of a session: as many as the first look of a check against stored sessions takes.
pub const RECORDED_BLOCKS: u32 = 12;
/// Blocks of a session where the budget is too short for more sessions otherwise.
const FEWEST_BLOCKS: u32 = 3;

/// How a comparison over alternating sessions is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSettings {
    /// From the first start of a server to the end of the last session.
    pub time: Duration,
    /// Length of a block.
    pub block: Auto<Duration>,
    /// Says which side begins.
    pub seed: u64,
}

/// Where the blocks of one session lie in [`ScenarioOutcome::blocks`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRange {
    /// The side.
    pub side: Side,
    /// Positions of its blocks.
    pub blocks: Range<usize>,
    /// False for one that was cut short; it does not count.
    pub complete: bool,
}

/// How sessions are taken, fixed after the first start, before the first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SessionPlan {
    block: Duration,
    blocks: u32,
    /// Sessions a side.
    most: u32,
}

/// Starts the sides in turn, A B B A, and measures a session of each until the decision is taken
/// or the time ends. `Lab::reload` starts a side's server anew, after ending the other's.
///
/// Always returns: an error or an interruption is part of the outcome, beside all blocks so far.
pub fn run_sessions(
    lab: &mut dyn Lab,
    design: &Design,
    settings: &SessionSettings,
    progress: &mut dyn FnMut(&Progress),
) -> ScenarioOutcome {
    let start = lab.now();
    let mut turns = Turns {
        lab,
        record: Record::default(),
        sessions: Vec::new(),
        lives: [Vec::new(), Vec::new()],
        deadline: start + settings.time,
        start,
        progress,
    };
    let result = turns.decide(design, settings);
    let seconds = turns.lab.now().saturating_sub(start).as_secs_f64();
    let Turns {
        record, sessions, ..
    } = turns;
    let mut outcome = match result {
        Ok(decision) => record.decided(decision, seconds),
        Err(Stopped::Ended(ended)) => record.ended(ended, seconds),
        Err(Stopped::Short(reason)) => record.undecided(reason, seconds),
    };
    outcome.sessions = sessions;
    outcome
}

/// Why there is no decision.
enum Stopped {
    Ended(Ended),
    /// The budget does not hold enough sessions.
    Short(Reason),
}

impl<T: Into<Ended>> From<T> for Stopped {
    fn from(ended: T) -> Self {
        Self::Ended(ended.into())
    }
}

struct Turns<'a> {
    lab: &'a mut dyn Lab,
    record: Record,
    sessions: Vec<SessionRange>,
    /// Whole sessions: baseline, candidate.
    lives: [Vec<Life>; 2],
    start: Duration,
    deadline: Duration,
    progress: &'a mut dyn FnMut(&Progress),
}

impl Turns<'_> {
    fn decide(&mut self, design: &Design, settings: &SessionSettings) -> Result<Decision, Stopped> {
        // Which side begins is known without the number of looks, and that follows from the
        // length of the first start.
        let first = SessionGate::new(design.clone(), FEWEST_SESSIONS, settings.seed)?.side(0);
        let warm_up = self.begin(first)?;
        let plan = self.plan(design, settings, &warm_up)?;
        self.lab.set_block(plan.block);
        let mut gate = SessionGate::new(design.clone(), plan.most, settings.seed)?;
        self.measure(first, &plan, plan.most * 2)?;
        let mut next = 1;
        loop {
            let [baseline, candidate] = &self.lives;
            match gate.step(baseline, candidate)? {
                SessionStep::Done(decision) => return Ok(*decision),
                SessionStep::Measure { sessions } => {
                    let wanted = sessions + baseline.len().min(candidate.len()) as u32;
                    while self.lives.iter().any(|lives| (lives.len() as u32) < wanted) {
                        let side = gate.side(next);
                        if !self.fits(&plan, next) {
                            return self.time_is_over(&mut gate);
                        }
                        self.begin(side)?;
                        self.measure(side, &plan, plan.most * 2)?;
                        next += 1;
                    }
                }
            }
        }
    }

    /// Starts a side's server and warms its model up.
    fn begin(&mut self, side: Side) -> Result<WarmUp, Stopped> {
        (self.progress)(&Progress::Starting { side });
        if !self.lab.reload(side)? {
            return Err(Stopped::Ended(Ended::Failed(Reason {
                code: "no_restart".to_owned(),
                text: "the server cannot be started anew for each session".to_owned(),
                next: "give both sides a launch command".to_owned(),
            })));
        }
        (self.progress)(&Progress::WarmingUp { side });
        let warm_up = self.lab.warm_up(side)?;
        self.record.warm_up(side, warm_up.clone());
        Ok(warm_up)
    }

    fn plan(
        &self,
        design: &Design,
        settings: &SessionSettings,
        warm_up: &WarmUp,
    ) -> Result<SessionPlan, Stopped> {
        let quantiles: Vec<f64> = design
            .limits
            .iter()
            .filter_map(|limit| limit.metric.quantile())
            .collect();
        let begun = self.lab.now().saturating_sub(self.start) + warm_up.overhead;
        plan(settings, &quantiles, begun, warm_up).map_err(Stopped::Short)
    }

    /// Whether one more session is likely to fit: as long as the mean of those before it.
    fn fits(&self, plan: &SessionPlan, taken: u32) -> bool {
        let now = self.lab.now();
        let mean = now.saturating_sub(self.start) / taken.max(1);
        // The last planned session must not be lost to a slow start.
        now + mean / 2 < self.deadline && taken < plan.most * 2
    }

    fn measure(&mut self, side: Side, plan: &SessionPlan, most: u32) -> Result<(), Stopped> {
        let from = self.record.blocks.len();
        (self.progress)(&Progress::Session {
            number: self.sessions.len() as u32 + 1,
            most,
            side,
        });
        let ended = self.fill(side, plan, from)?;
        let blocks = from..self.record.blocks.len();
        let complete = ended == Ended::Complete && blocks.len() == plan.blocks as usize;
        if complete {
            let own = self.record.blocks.get(blocks.clone()).unwrap_or_default();
            let life = Life {
                epoch: 0,
                blocks: own.to_vec(),
            };
            self.lives[usize::from(side == Side::Candidate)].push(life);
        }
        self.sessions.push(SessionRange {
            side,
            blocks,
            complete,
        });
        match ended {
            Ended::Complete if complete => Ok(()),
            Ended::Complete | Ended::Deadline => {
                *self
                    .record
                    .discarded
                    .entry("incomplete_session".to_owned())
                    .or_default() += 1;
                Err(Stopped::Ended(Ended::Failed(Reason {
                    code: "incomplete_session".to_owned(),
                    text: "a session came to its end without all of its blocks".to_owned(),
                    next: "see whether the server stalls under this load".to_owned(),
                })))
            }
            ended => Err(Stopped::Ended(ended)),
        }
    }

    /// Measures the blocks of a session, which begin at `from`; those that had to be discarded
    /// are measured again, as long as they are few.
    fn fill(&mut self, side: Side, plan: &SessionPlan, from: usize) -> Result<Ended, Stopped> {
        loop {
            let have = self.record.blocks.len();
            let missing = plan.blocks.saturating_sub((have - from) as u32);
            if missing == 0 {
                return Ok(Ended::Complete);
            }
            let measured = self.lab.measure(&MeasurePlan::Blocks {
                side,
                first_index: have as u32,
                blocks: missing,
                // A session is whole or it does not count: its time is that of its blocks.
                deadline: self.lab.now() + plan.block * (missing + 1),
            })?;
            let discarded = !measured.discarded.is_empty();
            let ended = self.record.measured(measured);
            if ended != Ended::Complete || !discarded {
                return Ok(ended);
            }
        }
    }

    /// The last look when the time ends between two.
    fn time_is_over(&mut self, gate: &mut SessionGate) -> Result<Decision, Stopped> {
        let [baseline, candidate] = &self.lives;
        let have = baseline.len().min(candidate.len());
        match gate.finish(baseline, candidate)? {
            Some(decision) => Ok(decision),
            None => Err(Stopped::Short(Reason {
                code: "few_sessions".to_owned(),
                text: format!(
                    "the budget ended after {have} sessions a side: a decision needs \
                     {FEWEST_SESSIONS}"
                ),
                next: "raise budget, or shorten the start of the servers".to_owned(),
            })),
        }
    }
}

/// Blocks of a session and sessions a side that fit, when one takes `begun` before its first
/// block. The reason says what budget would do.
fn plan(
    settings: &SessionSettings,
    quantiles: &[f64],
    begun: Duration,
    warm_up: &WarmUp,
) -> Result<SessionPlan, Reason> {
    let fewest = FEWEST_SESSIONS * 2;
    let room = (settings.time / fewest).saturating_sub(begun);
    let block = stored_block(settings.block, warm_up, quantiles, RECORDED_BLOCKS, room);
    let fitting = (room.as_secs_f64() / block.as_secs_f64()) as u32;
    if fitting < FEWEST_BLOCKS {
        let needed = (begun + block * FEWEST_BLOCKS) * fewest;
        return Err(Reason {
            code: "budget".to_owned(),
            text: format!(
                "a session takes {:.0} s to start and warm up: {FEWEST_SESSIONS} sessions a side \
                 do not fit a budget of {:.0} s",
                begun.as_secs_f64(),
                settings.time.as_secs_f64()
            ),
            next: format!(
                "set budget to at least {:.0} s",
                needed.as_secs_f64().ceil()
            ),
        });
    }
    let blocks = fitting.min(RECORDED_BLOCKS);
    let session = (begun + block * blocks).as_secs_f64();
    Ok(SessionPlan {
        block,
        blocks,
        most: ((settings.time.as_secs_f64() / session / 2.0) as u32).max(FEWEST_SESSIONS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warm() -> WarmUp {
        WarmUp {
            settled: true,
            seconds: 5.0,
            request_rate: 1000.0,
            histogram: None,
            rate_spread: None,
            overhead: Duration::ZERO,
        }
    }

    fn settings(seconds: u64) -> SessionSettings {
        SessionSettings {
            time: Duration::from_secs(seconds),
            block: Auto::Auto,
            seed: 0,
        }
    }

    #[test]
    fn a_session_is_as_long_as_six_of_them_fit() {
        let begun = Duration::from_secs(6);
        let plan = |seconds| plan(&settings(seconds), &[0.99], begun, &warm());
        let long = plan(300).expect("fits");
        assert_eq!((long.blocks, long.most), (12, 5));
        let short = plan(100).expect("fits");
        assert_eq!((short.blocks, short.most), (5, 3));
        let reason = plan(60).expect_err("does not fit");
        assert_eq!(reason.code, "budget");
        assert_eq!(reason.next, "set budget to at least 72 s");
    }
}
