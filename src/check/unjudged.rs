//! Measuring a session without judging it: to record it, or to show it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::explain::explain;
use super::observer::Observer;
use super::outcome::{empty, measured, not_measured, settle};
use super::scenario::{Bench, Checked};
use super::session::{Surroundings, Visit};
use crate::data::{Auto, Block, Flag, OnMissing, Reason, Scenario, Side, Verdict};
use crate::lab::{SideLab, TritonLab};
use crate::report::format;
use crate::run::{
    Ended, Lab, LabError, MeasurePlan, Measured, Progress, RECORDED_BLOCKS, Spoiled, short_of,
    stored_block,
};

/// Blocks of one stretch of load: a longer measurement is several, so that its memory stays flat.
const STRETCH_BLOCKS: u32 = 30;

/// What an automatic warm-up takes.
pub(super) const WARM_UP: Duration = Duration::from_secs(5);

/// A scenario without a baseline: measured like a session, not judged.
pub(super) fn measure_new(
    bench: &Bench<'_>,
    scenario: &Scenario,
    side: SideLab,
    surroundings: &Surroundings,
    observer: &mut dyn Observer,
) -> Checked {
    let new = scenario.gate.on_missing == OnMissing::New;
    let verdict = if new {
        Verdict::New
    } else {
        Verdict::NoBaseline
    };
    let mut result = empty(scenario, verdict);
    observer.watch(vec![side.gauge()]);
    let mut lab = TritonLab::new(
        bench.runtime.clone(),
        bench.stop.clone(),
        Duration::from_secs(2),
        [(Side::Candidate, side)],
    );
    let measured_blocks = measure_session(&mut lab, scenario, None, observer);
    let block = measured_blocks.block;
    let Some(side) = lab.side(Side::Candidate) else {
        return Checked::only(result);
    };
    let visit = Visit::begin(surroundings, scenario, side, nanos(block));
    measured(
        &mut result,
        &lab.totals(Side::Candidate),
        &measured_blocks.blocks,
    );
    let candidate_blocks: Vec<&Block> = measured_blocks.blocks.iter().collect();
    explain(&mut result, &[], &candidate_blocks);
    result.metrics = crate::gate::describe(&scenario.gate.limits, &measured_blocks.blocks);
    let usable = match empty_blocks(&measured_blocks.blocks) {
        Some(reason) => measured_blocks.ended.and(Err(reason)),
        None => measured_blocks.ended,
    };
    match usable {
        Ok(()) if new => {
            result.reason = Some(Reason {
                code: "new".to_owned(),
                text: "measured, with nothing to compare with".to_owned(),
                next: "record a baseline to gate it".to_owned(),
            });
        }
        Ok(()) => {
            result.reason = Some(Reason {
                code: "recorded".to_owned(),
                text: "no baseline was there; one session was recorded".to_owned(),
                next: "check again, ideally after more sessions with server restarts".to_owned(),
            });
        }
        Err(reason) => {
            result = not_measured(scenario, reason);
        }
    }
    result.discarded.clone_from(&measured_blocks.discarded);
    let complete = matches!(result.verdict, Verdict::New | Verdict::NoBaseline);
    settle(scenario, &mut result);
    let totals = lab.totals(Side::Candidate);
    let life = new_life();
    let session = visit
        .session(
            surroundings,
            scenario,
            measured_blocks.blocks,
            complete,
            life,
            totals.server_requests,
        )
        .ok();
    Checked {
        result,
        sessions: session.into_iter().collect(),
        subject_changes: Vec::new(),
        allowed: Vec::new(),
        pinned: super::pins::Pinned::default(),
    }
}

/// Blocks of one session, and how that ended.
pub(super) struct SessionBlocks {
    pub blocks: Vec<Block>,
    pub block: Duration,
    pub flags: Vec<Flag>,
    pub discarded: BTreeMap<String, u32>,
    pub ended: Result<(), Reason>,
    spoiled: Spoiled,
}

/// Warms up, chooses the block length, and measures one session of `duration`, or as long as a
/// first look takes.
pub(super) fn measure_session(
    lab: &mut TritonLab,
    scenario: &Scenario,
    duration: Option<Duration>,
    observer: &mut dyn Observer,
) -> SessionBlocks {
    let mut result = SessionBlocks {
        blocks: Vec::new(),
        block: Duration::from_secs(2),
        flags: Vec::new(),
        discarded: BTreeMap::new(),
        ended: Ok(()),
        spoiled: Spoiled::default(),
    };
    observer.progress(
        &scenario.name,
        &Progress::WarmingUp {
            side: Side::Candidate,
        },
    );
    let warm_up = match lab.warm_up(Side::Candidate) {
        Ok(warm_up) => warm_up,
        Err(error) => {
            result.ended = Err(lab_reason(error));
            return result;
        }
    };
    let quantiles: Vec<f64> = scenario
        .gate
        .limits
        .iter()
        .filter_map(|limit| limit.metric.quantile())
        .collect();
    // As much as a check of this scenario will have, so that what is recorded can be checked.
    let time = duration
        .unwrap_or(scenario.gate.budget)
        .saturating_sub(WARM_UP);
    result.block = stored_block(
        scenario.measure.block,
        &warm_up,
        &quantiles,
        RECORDED_BLOCKS,
        time,
    );
    for (quantile, needed, held) in short_of(&warm_up, &quantiles, result.block) {
        if duration.is_none() {
            observer.note(&too_few(
                scenario,
                quantile,
                needed,
                held,
                warm_up.request_rate,
            ));
        }
    }
    lab.set_block(result.block);
    let blocks = duration.map_or(RECORDED_BLOCKS, |duration| {
        // As many as fit; at least one.
        let count = duration.as_secs_f64() / result.block.as_secs_f64();
        (count.round() as u32).max(1)
    });
    observer.progress(
        &scenario.name,
        &Progress::Measuring {
            have: 0,
            next: blocks,
            last: blocks,
        },
    );
    while result.ended.is_ok() && (result.blocks.len() as u32) < blocks {
        let have = result.blocks.len() as u32;
        // What had to be discarded is measured again.
        let lost = result.discarded.values().sum::<u32>();
        let wanted = (blocks - have).min(STRETCH_BLOCKS);
        let plan = MeasurePlan::Blocks {
            side: Side::Candidate,
            first_index: have,
            blocks: wanted,
            // A session is whole or it is no baseline: its time is that of its blocks.
            deadline: lab.now() + result.block * (wanted + 1),
        };
        match lab.measure(&plan) {
            Ok(measured) => take(&mut result, measured),
            Err(error) => result.ended = Err(lab_reason(error)),
        }
        let nothing =
            result.blocks.len() as u32 == have && result.discarded.values().sum::<u32>() == lost;
        if result.ended.is_ok() && nothing {
            result.ended = Err(no_time());
        }
    }
    if let (Ok(()), Some(reason)) = (&result.ended, result.spoiled.invalid()) {
        result.ended = Err(reason);
    }
    result
}

/// Keeps what a stretch brought. Its histograms are not needed for a row of a file, and would
/// make a long measurement's memory grow.
fn take(result: &mut SessionBlocks, measured: Measured) {
    result
        .spoiled
        .add(measured.blocks.len() as u32, &measured.discarded);
    for (reason, count) in &measured.discarded {
        *result.discarded.entry(reason.clone()).or_default() += count;
    }
    for mut block in measured.blocks {
        block.histogram = None;
        result.blocks.push(block);
    }
    for flag in measured.flags {
        if !result.flags.contains(&flag) {
            result.flags.push(flag);
        }
    }
    result.ended = match measured.ended {
        Ended::Complete => result.spoiled.hopeless().map_or(Ok(()), Err),
        Ended::Interrupted => Err(lab_reason(LabError::Interrupted)),
        Ended::Failed(reason) => Err(reason),
        Ended::Deadline => Err(no_time()),
    };
}

/// Why blocks can be no baseline: some hold no request that ended, so that they are shorter than
/// a request takes, and their throughput is a matter of chance.
pub(super) fn empty_blocks(blocks: &[Block]) -> Option<Reason> {
    let empty = blocks.iter().filter(|block| block.requests == 0).count();
    if empty == 0 {
        return None;
    }
    let length = blocks.first().map_or(0, |block| block.duration_ns);
    let slowest = blocks
        .iter()
        .filter_map(|block| block.latency.max)
        .fold(0.0, f64::max);
    let (takes, next) = if slowest > 0.0 {
        let block = Duration::from_secs_f64((slowest * 3.0 / 1e6).ceil().max(1.0));
        (
            format!(", a request takes up to {}", format::latency(slowest)),
            format!(
                "set [measure] block to {} or more, or to \"auto\"",
                crate::config::show_duration(block)
            ),
        )
    } else {
        (
            String::new(),
            "set [measure] block to \"auto\", and look whether the model answers".to_owned(),
        )
    };
    Some(Reason {
        code: "empty_blocks".to_owned(),
        text: format!(
            "no request ended in {empty} of {} blocks of {}{takes}",
            blocks.len(),
            format::duration(length as f64 / 1e9)
        ),
        next,
    })
}

fn no_time() -> Reason {
    Reason {
        code: "no_time".to_owned(),
        text: "the time ended before the session was whole".to_owned(),
        next: "raise [gate] budget".to_owned(),
    }
}

/// Longer than anybody waits for a session, in seconds.
const LONGEST_SESSION: f64 = 3600.0;

/// What a percentile out of reach would need.
fn too_few(scenario: &Scenario, quantile: f64, needed: f64, held: f64, rate: f64) -> String {
    let reach = [0.95_f64, 0.9, 0.5]
        .into_iter()
        .find(|lower| held >= 1.0 / (1.0 - lower));
    let seconds = needed / rate.max(0.0);
    let mend = match scenario.measure.block {
        // With no rate at all it is infinite.
        _ if seconds * f64::from(RECORDED_BLOCKS) > LONGEST_SESSION => {
            "At this request rate no session in reason holds them: raise the load".to_owned()
        }
        Auto::Fixed(_) => format!("Lengthen [measure] block to {:.0} s", seconds.ceil()),
        Auto::Auto => {
            let minutes = seconds * f64::from(RECORDED_BLOCKS) / 60.0;
            format!("Raise budget to about {:.0} minutes", minutes.ceil() + 1.0)
        }
    };
    let instead = reach.map_or_else(String::new, |lower| {
        format!(", or gate P{} instead", format::quantile(lower))
    });
    format!(
        "note: {}: P{} needs {needed:.0} requests a block and a block holds {held:.0}: it can \
         fail but never pass. {mend}{instead}",
        scenario.name,
        format::quantile(quantile)
    )
}

fn lab_reason(error: LabError) -> Reason {
    match error {
        LabError::Failed(reason) => reason,
        LabError::Interrupted => Reason {
            code: "interrupted".to_owned(),
            text: "stopped before the measurement was complete".to_owned(),
            next: "start it again".to_owned(),
        },
    }
}

/// A mark for a life of a server that was not seen before.
pub fn new_life() -> Option<String> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).ok()?;
    Some(
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .concat(),
    )
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
