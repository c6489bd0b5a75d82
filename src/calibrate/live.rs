//! The calibration of a live server, scenario by scenario.

use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use tokio::runtime::Handle;

use super::outcome::{CALIBRATION_SCHEMA, Calibrated, Calibration};
use super::plan::{LengthPlan, block_lengths, fitting};
use super::record::{RecordPlan, Recording, record};
use super::summary::{compare_lengths, summarise};
use crate::check::{Observer, Servers, worst_exit};
use crate::config::Config;
use crate::data::{Bound, Flag, Load, Reason, Scenario, Side, Tool};
use crate::gate::{Design, GateError, SideFigures};
use crate::lab::{SideLab, Target, TritonLab};
use crate::load::Stop;
use crate::report::{Exit, format};
use crate::run::{Lab, LabError, Progress};
use crate::stats::histogram_quantile;

/// Share of the time in which all block lengths take turns; the rest goes to the best one.
const TURNS_SHARE: f64 = 0.6;
/// Loads of the model over the turns, where it can be loaded anew.
const LOADS: u32 = 6;
/// Length of the long blocks of one side alone.
const LONG: Duration = Duration::from_secs(2);
/// What a turn costs beside its blocks: a ramp, a drain, questions to the server.
const TURN_COST: Duration = Duration::from_millis(400);

/// What is asked of a calibration.
#[derive(Debug, Clone)]
pub struct Request {
    /// Time for all scenarios together.
    pub time: Duration,
    /// Checks to resample for the rates.
    pub checks: u32,
    /// Version of this program.
    pub tool_version: String,
    /// The environment's name.
    pub environment: String,
}

/// Calibrates every scenario; the time is shared out evenly. Always comes back with what was found,
/// also after an interruption.
pub fn calibrate(
    runtime: &Handle,
    stop: &Stop,
    config: &Config,
    request: &Request,
    servers: &mut Servers,
    observer: &mut dyn Observer,
) -> Calibration {
    let started_at = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let begun = Instant::now();
    let mut scenarios: Vec<Calibrated> = Vec::new();
    for (index, scenario) in config.scenarios.iter().enumerate() {
        let left = (config.scenarios.len() - index) as u32;
        let time = request.time.saturating_sub(begun.elapsed()) / left.max(1);
        let mut calibrated = blank(scenario);
        let since = Instant::now();
        let ended = if stop.is_set() {
            Err(interrupted())
        } else {
            one(
                runtime,
                stop,
                scenario,
                config.gated_metrics,
                time,
                request.checks,
                servers,
                observer,
                &mut calibrated,
            )
        };
        calibrated.seconds = since.elapsed().as_secs_f64();
        calibrated.complete = ended.is_ok();
        calibrated.reason = ended.err();
        scenarios.push(calibrated);
    }
    servers.stop_launched();
    let exit_code = worst_exit(scenarios.iter().map(exit_code));
    Calibration {
        schema: CALIBRATION_SCHEMA,
        tool: Tool {
            version: request.tool_version.clone(),
            commit: env!("TRITON_GATE_COMMIT").to_owned(),
        },
        command: "calibrate".to_owned(),
        exit_code,
        started_at,
        environment_name: request.environment.clone(),
        scenarios,
    }
}

fn exit_code(calibrated: &Calibrated) -> u8 {
    match &calibrated.reason {
        None => 0,
        Some(reason) if reason.code == "interrupted" => Exit::Interrupted.code(),
        Some(reason) if reason.code == "nothing_to_calibrate" => Exit::Usage.code(),
        Some(_) => Exit::NotMeasured.code(),
    }
}

/// A scenario of which nothing is known yet.
fn blank(scenario: &Scenario) -> Calibrated {
    let Load::Closed { concurrency } = scenario.load;
    Calibrated {
        name: scenario.name.clone(),
        model: scenario.model.clone(),
        model_version: scenario.version.clone().unwrap_or_default(),
        load: format!("concurrency {concurrency}, batch {}", scenario.batch),
        budget_seconds: scenario.gate.budget.as_secs_f64(),
        seconds: 0.0,
        complete: false,
        reason: None,
        lengths: Vec::new(),
        best_block_ms: None,
        agreement: Vec::new(),
        loads: Vec::new(),
        loads_seen: 0,
        rates: None,
        advice: Vec::new(),
        toml: String::new(),
        flags: Vec::new(),
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "what one scenario needs, each once"
)]
fn one(
    runtime: &Handle,
    stop: &Stop,
    scenario: &Scenario,
    gated_metrics: u32,
    time: Duration,
    checks: u32,
    servers: &mut Servers,
    observer: &mut dyn Observer,
    calibrated: &mut Calibrated,
) -> Result<(), Reason> {
    let begun = Instant::now();
    let design = design(scenario, gated_metrics)?;
    let candidate = servers.target(scenario)?;
    // The same model a second time, over connections of its own; it is not loaded again.
    let baseline = Target::prepare(runtime, scenario)?;
    calibrated.model_version.clone_from(&candidate.version);
    let candidate = SideLab::open(scenario, candidate)?;
    let baseline = SideLab::open(scenario, baseline)?;
    observer.watch(vec![candidate.gauge(), baseline.gauge()]);
    let mut lab = TritonLab::new(
        runtime.clone(),
        stop.clone(),
        LONG,
        [(Side::Candidate, candidate), (Side::Baseline, baseline)],
    );
    let until = lab.now() + time.saturating_sub(begun.elapsed());
    let mut recording = Recording::default();
    let mut settled = None;
    let measured = measure(
        &mut lab,
        scenario,
        &design,
        until,
        observer,
        calibrated,
        &mut recording,
        &mut settled,
    );
    servers.release(scenario);
    let summarised = summarise(
        &design,
        &recording,
        settled,
        checks,
        scenario.measure.seed,
        scenario.gate.budget,
        calibrated,
    )
    .map_err(|error| cannot_decide(&error));
    // What went wrong first is what a reader needs.
    measured.and(summarised)
}

/// The design of a check of this scenario, its relative limits alone.
fn design(scenario: &Scenario, gated_metrics: u32) -> Result<Design, Reason> {
    let mut spec = scenario.gate.clone();
    spec.limits
        .retain(|limit| matches!(limit.bound, Bound::Relative(_)));
    if spec.limits.is_empty() {
        return Err(Reason {
            code: "nothing_to_calibrate".to_owned(),
            text: format!(
                "scenario {:?} has no relative limit: there is nothing to calibrate",
                scenario.name
            ),
            next:
                "set a limit like throughput_drop or p99_rise, or leave the scenario out (--only)"
                    .to_owned(),
        });
    }
    Design::new(&spec, gated_metrics, 1, false).map_err(|error| cannot_decide(&error))
}

#[expect(
    clippy::too_many_arguments,
    reason = "what a measurement needs and fills in, each once"
)]
fn measure(
    lab: &mut TritonLab,
    scenario: &Scenario,
    design: &Design,
    until: Duration,
    observer: &mut dyn Observer,
    calibrated: &mut Calibrated,
    recording: &mut Recording,
    settled: &mut Option<usize>,
) -> Result<(), Reason> {
    let warm_up_begun = lab.now();
    let baseline = warm_up(lab, Side::Baseline, scenario, observer, calibrated)?;
    let candidate = warm_up(lab, Side::Candidate, scenario, observer, calibrated)?;
    let warm_ups = lab.now().saturating_sub(warm_up_begun);
    let lengths = block_lengths(
        design,
        [&baseline, &candidate],
        scenario.measure.block,
        scenario.gate.budget.saturating_sub(warm_ups),
    )
    .map_err(|error| cannot_decide(&error))?;
    let alone = long_blocks(&candidate);
    let rest = until.saturating_sub(lab.now());
    let turns = rest.mul_f64(TURNS_SHARE);
    let lengths = fitting(lengths, turns, LONG * alone + TURN_COST);
    let shown: Vec<String> = lengths
        .iter()
        .map(|length| format::duration_ms(length.plan.block.as_secs_f64() * 1e3))
        .collect();
    observer.note(&format!(
        "{}: blocks of {} in turns for {}, then the best alone, {} in all",
        scenario.name,
        shown.join(", "),
        format::duration(turns.as_secs_f64()),
        format::duration(rest.as_secs_f64())
    ));
    let mut plan = RecordPlan {
        lengths,
        alone,
        until: lab.now() + turns,
        loads: if scenario.server.explicit_models {
            LOADS
        } else {
            1
        },
        seed: scenario.measure.seed,
    };
    let mut told = |load: u32, units: usize| {
        observer.note(&format!(
            "{}: load {load} of the model, {units} units so far",
            scenario.name
        ));
    };
    record(lab, &plan, recording, &mut told).map_err(reason_of)?;
    let index = compare_lengths(design, recording)
        .map_err(|error| cannot_decide(&error))?
        .best;
    let Some(length) = index.and_then(|index| recording.lengths.get(index)) else {
        return Ok(());
    };
    let length = LengthPlan {
        plan: length.plan.clone(),
        chosen: length.chosen,
    };
    *settled = index;
    observer.progress(
        &scenario.name,
        &Progress::Planned {
            plan: length.plan.clone(),
        },
    );
    plan = RecordPlan {
        lengths: vec![length],
        alone: 0,
        until,
        loads: 1,
        seed: scenario.measure.seed.wrapping_add(2),
    };
    record(lab, &plan, recording, &mut |_, _| {}).map_err(reason_of)
}

/// Blocks of [`LONG`] in a stretch of one side alone: as many as hold three median requests.
fn long_blocks(side: &SideFigures) -> u32 {
    let median = side
        .histogram
        .as_ref()
        .and_then(|histogram| histogram_quantile(histogram, 0.5).ok())
        .unwrap_or(0.0)
        / 1e9;
    ((3.0 * median / LONG.as_secs_f64()).ceil() as u32).clamp(1, 30)
}

fn warm_up(
    lab: &mut TritonLab,
    side: Side,
    scenario: &Scenario,
    observer: &mut dyn Observer,
    calibrated: &mut Calibrated,
) -> Result<SideFigures, Reason> {
    observer.progress(&scenario.name, &Progress::WarmingUp { side });
    let warm = lab.warm_up(side).map_err(reason_of)?;
    if !warm.settled && side == Side::Candidate {
        calibrated.flags.push(Flag {
            code: "not_steady".to_owned(),
            text: "the model was still changing at the end of its warm-up".to_owned(),
        });
    }
    Ok(SideFigures {
        request_rate: warm.request_rate,
        histogram: warm.histogram,
        rate_spread: warm.rate_spread,
        overhead: warm.overhead,
    })
}

fn reason_of(error: LabError) -> Reason {
    match error {
        LabError::Interrupted => interrupted(),
        LabError::Failed(reason) => reason,
    }
}

fn interrupted() -> Reason {
    Reason {
        code: "interrupted".to_owned(),
        text: "stopped before the end; the figures rest on what was measured so far".to_owned(),
        next: "start the calibration again".to_owned(),
    }
}

fn cannot_decide(error: &GateError) -> Reason {
    Reason {
        code: "cannot_decide".to_owned(),
        text: error.to_string(),
        next: "correct the thresholds, or measure for longer (--time)".to_owned(),
    }
}
