use std::time::Duration;

use crate::data::Side;
use crate::gate::{Step, StoredGate};

use super::outcome::Record;
use super::{Budget, Ended, Lab, MeasurePlan, Progress, ScenarioOutcome};

/// Measures the candidate until the stored decision is taken or the time ends.
///
/// Always returns: an error or an interruption is part of the outcome, beside all blocks so far.
pub fn run_stored(
    lab: &mut dyn Lab,
    gate: &mut StoredGate,
    budget: &Budget,
    progress: &mut dyn FnMut(&Progress),
) -> ScenarioOutcome {
    let start = lab.now();
    let mut record = Record::default();
    let result = decide(lab, gate, budget, start, &mut record, progress);
    let seconds = lab.now().saturating_sub(start).as_secs_f64();
    match result {
        Ok(decision) => record.decided(decision, seconds),
        Err(ended) => record.ended(ended, seconds),
    }
}

fn decide(
    lab: &mut dyn Lab,
    gate: &mut StoredGate,
    budget: &Budget,
    start: Duration,
    record: &mut Record,
    progress: &mut dyn FnMut(&Progress),
) -> Result<crate::gate::Decision, Ended> {
    let deadline = start + budget.time;
    progress(&Progress::WarmingUp {
        side: Side::Candidate,
    });
    let warm_up = lab.warm_up(Side::Candidate)?;
    let overhead = warm_up.overhead;
    record.warm_up(Side::Candidate, warm_up);
    loop {
        let wanted = match gate.step(&record.blocks)? {
            Step::Done(decision) => return Ok(*decision),
            Step::Measure { blocks } => blocks,
        };
        let have = record.blocks.len() as u32;
        let blocks = wanted.min(fitting(deadline, lab.now(), overhead, budget.block));
        if blocks == 0 {
            return finish(gate, record);
        }
        let last = gate.looks().last().copied().unwrap_or(have + wanted);
        progress(&Progress::Measuring {
            have,
            next: have + wanted,
            last,
        });
        let plan = MeasurePlan::Blocks {
            side: Side::Candidate,
            first_index: have,
            blocks,
            deadline,
        };
        let measured = lab.measure(&plan)?;
        let discarded = !measured.discarded.is_empty();
        match record.measured(measured) {
            // A plan that yields nothing would be asked for again without end; one whose blocks
            // were discarded is ended by the clock.
            Ended::Complete if record.blocks.len() as u32 > have || discarded => {}
            Ended::Complete | Ended::Deadline => return finish(gate, record),
            ended => return Err(ended),
        }
    }
}

/// The last look when the time ends between two.
fn finish(gate: &mut StoredGate, record: &Record) -> Result<crate::gate::Decision, Ended> {
    if record.blocks.is_empty() {
        return Err(Ended::Deadline);
    }
    // Blocks that complete a planned look take that look.
    match gate.step(&record.blocks)? {
        Step::Done(decision) => Ok(*decision),
        Step::Measure { .. } => Ok(gate.finish(&record.blocks)?),
    }
}

/// How many blocks one stretch of load holds before the deadline.
fn fitting(deadline: Duration, now: Duration, overhead: Duration, block: Duration) -> u32 {
    let rest = deadline
        .saturating_sub(now)
        .saturating_sub(overhead)
        .as_secs_f64();
    let block = block.as_secs_f64();
    // Half a millisecond forgives rounding: the last planned block must not be lost to it.
    if block > 0.0 {
        ((rest + 0.0005) / block) as u32
    } else {
        0
    }
}
