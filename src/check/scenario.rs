//! One scenario against its stored sessions.

use std::time::Duration;

use super::compatible::{Selection, select, sentence};
use super::live::check_live;
use super::observer::Observer;
use super::outcome::{
    add_flags, breakdown, empty, flag, not_measured, reason_result, settle, stored,
};
use super::record::RECORDED_BLOCKS;
use super::servers::Servers;
use super::session::{Surroundings, Visit};
use crate::baseline::Store;
use crate::config::ReferenceSpec;
use crate::data::{
    Auto, Block, Difference, OnMissing, Reason, Scenario, ScenarioResult, Session, Side,
    SubjectChange, Verdict,
};
use crate::gate::{Decision, Design, Stage, StoredGate};
use crate::lab::{SideLab, TritonLab, short_of, stored_block};
use crate::load::Stop;
use crate::run::{Budget, Ended, Lab, LabError, MeasurePlan, ScenarioOutcome, run_stored};

/// What an automatic warm-up takes.
const WARM_UP: Duration = Duration::from_secs(5);

/// What the command line says about a check.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Environment fields that may differ.
    pub allow: Vec<String>,
    /// Record a baseline where there is none.
    pub record_missing: bool,
    /// The day on which an `[[accept]]` must not have expired.
    pub today: chrono::NaiveDate,
}

/// What one scenario left behind.
#[derive(Debug)]
pub(super) struct Checked {
    pub result: ScenarioResult,
    /// What was measured, for results/ or the store.
    pub session: Option<Session>,
    pub subject_changes: Vec<SubjectChange>,
    pub allowed: Vec<Difference>,
}

impl Checked {
    pub fn only(result: ScenarioResult) -> Self {
        Self {
            result,
            session: None,
            subject_changes: Vec::new(),
            allowed: Vec::new(),
        }
    }
}

/// What a scenario is checked with.
pub(super) struct Bench<'a> {
    pub runtime: tokio::runtime::Handle,
    pub stop: Stop,
    pub store: &'a Store,
    pub environment: &'a str,
    pub options: &'a Options,
    pub gated_metrics: u32,
    /// Time that is left for this scenario, where the whole check has less than its own budget.
    pub time: Duration,
}

/// Checks one scenario; always comes back with a result.
///
/// With both a stored baseline and a reference, the stored one is asked first: a pass that rests
/// on measured noise is final, anything else is settled live.
pub(super) fn check_scenario(
    bench: &Bench<'_>,
    scenario: &Scenario,
    sessions: Vec<Session>,
    reference: Option<&ReferenceSpec>,
    servers: &mut Servers,
    surroundings: &Surroundings,
    observer: &mut dyn Observer,
) -> Checked {
    let Some(spec) = reference else {
        let checked = check_stored(
            bench,
            scenario,
            sessions,
            Stage::Only,
            servers,
            surroundings,
            observer,
        );
        return checked.0;
    };
    let begun = std::time::Instant::now();
    let whole = scenario.gate.budget.min(bench.time);
    let mut notes = Vec::new();
    let mut stage = Stage::Only;
    if !sessions.is_empty() {
        let (checked, final_pass) = check_stored(
            bench,
            scenario,
            sessions,
            Stage::StoredFirst,
            servers,
            surroundings,
            observer,
        );
        if final_pass || checked.result.verdict == Verdict::Interrupted {
            return checked;
        }
        notes.push(flag(
            "settled_live",
            format!(
                "the stored baseline did not decide ({}); the live reference did",
                checked
                    .result
                    .reason
                    .as_ref()
                    .map_or("no reason", |reason| reason.text.as_str())
            ),
        ));
        // A stored stage that was never taken has spent nothing of the error budget.
        if checked.result.blocks > 0 {
            stage = Stage::LiveSecond;
        }
    }
    let time = whole.saturating_sub(begun.elapsed()).max(whole / 2);
    let mut checked = check_live(
        bench,
        scenario,
        spec,
        stage,
        time,
        servers,
        surroundings,
        observer,
    );
    servers.release(scenario);
    add_flags(&mut checked.result, notes);
    checked
}

/// Against the stored sessions. The second value is true for a pass that needs no live stage.
fn check_stored(
    bench: &Bench<'_>,
    scenario: &Scenario,
    sessions: Vec<Session>,
    stage: Stage,
    servers: &mut Servers,
    surroundings: &Surroundings,
    observer: &mut dyn Observer,
) -> (Checked, bool) {
    let wanted = scenario.gate.on_missing == OnMissing::New || bench.options.record_missing;
    if sessions.is_empty() && !wanted && needs_baseline(scenario) {
        let reason = missing(bench, &scenario.name);
        return (
            Checked::only(reason_result(scenario, Verdict::NoBaseline, reason)),
            false,
        );
    }
    let opened = servers
        .target(scenario)
        .and_then(|target| SideLab::open(scenario, target));
    let side = match opened {
        Ok(side) => side,
        Err(reason) => return (Checked::only(not_measured(scenario, reason)), false),
    };
    let checked = if sessions.is_empty() && needs_baseline(scenario) {
        (
            measure_new(bench, scenario, side, surroundings, observer),
            false,
        )
    } else {
        judge(
            bench,
            scenario,
            sessions,
            stage,
            side,
            surroundings,
            observer,
        )
    };
    servers.release(scenario);
    checked
}

/// Absolute limits alone need no baseline.
fn needs_baseline(scenario: &Scenario) -> bool {
    scenario
        .gate
        .limits
        .iter()
        .any(|limit| matches!(limit.bound, crate::data::Bound::Relative(_)))
}

fn missing(bench: &Bench<'_>, scenario: &str) -> Reason {
    let root = bench.store.root().display();
    Reason {
        code: "no_baseline".to_owned(),
        text: format!(
            "no baseline for scenario {scenario:?} in environment {:?} (looked in {root})",
            bench.environment
        ),
        next: format!(
            "record one with `triton-gate baseline record --only {scenario}`, or check with \
             --record-missing"
        ),
    }
}

/// The stored rule on a scenario with sessions.
fn judge(
    bench: &Bench<'_>,
    scenario: &Scenario,
    sessions: Vec<Session>,
    stage: Stage,
    side: SideLab,
    surroundings: &Surroundings,
    observer: &mut dyn Observer,
) -> (Checked, bool) {
    let block = match scenario.measure.block {
        Auto::Fixed(block) => block,
        Auto::Auto => sessions.last().map_or(Duration::from_secs(2), |session| {
            Duration::from_nanos(session.load.block_ns)
        }),
    };
    let visit = Visit::begin(surroundings, scenario, &side, nanos(block));
    let selection = select(
        sessions,
        &visit.environment,
        &visit.load,
        &bench.options.allow,
    );
    if selection.sessions.is_empty() && needs_baseline(scenario) {
        let mut result = reason_result(scenario, Verdict::Incompatible, incompatible(&selection));
        result.model_version.clone_from(&visit.model_version);
        return (Checked::only(result), false);
    }
    let mut lab = TritonLab::new(
        bench.runtime.clone(),
        bench.stop.clone(),
        block,
        [(Side::Candidate, side)],
    );
    let budget = Budget {
        time: scenario.gate.budget.min(bench.time),
        block,
    };
    let warm_up = match scenario.measure.warmup {
        Auto::Fixed(length) => length,
        Auto::Auto => WARM_UP,
    };
    let overhead = Duration::from_millis(400);
    let locked = surroundings.hardware.get("gpu.clocks_locked") == Some("Active");
    let gate = Design::new(
        &scenario.gate,
        bench.gated_metrics,
        budget.blocks(warm_up, overhead),
        locked,
    )
    .and_then(|design| StoredGate::new(design.for_stage(stage), &selection.sessions));
    let mut gate = match gate {
        Ok(gate) => gate,
        Err(error) => {
            let checked = Checked::only(not_measured(
                scenario,
                Reason {
                    code: "cannot_decide".to_owned(),
                    text: error.to_string(),
                    next: "correct the thresholds or the baseline that is named".to_owned(),
                },
            ));
            return (checked, false);
        }
    };
    let outcome = run_stored(&mut lab, &mut gate, &budget, &mut |progress| {
        observer.progress(&scenario.name, progress);
    });
    let lives = gate.sessions();
    let final_pass = outcome
        .decision
        .as_ref()
        .is_some_and(Decision::is_final_pass);
    let checked = finish(
        bench,
        scenario,
        surroundings,
        &visit,
        &lab,
        &selection,
        lives,
        outcome,
    );
    (checked, final_pass)
}

fn incompatible(selection: &Selection) -> Reason {
    Reason {
        code: "incompatible".to_owned(),
        text: format!(
            "none of the {} stored sessions may be compared with this measurement: {}",
            selection.left_out,
            sentence(&selection.differences)
        ),
        next: "record a baseline here, or open a field with --allow NAME if the difference does \
               not matter"
            .to_owned(),
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "one place joins everything that is known"
)]
fn finish(
    bench: &Bench<'_>,
    scenario: &Scenario,
    surroundings: &Surroundings,
    visit: &Visit,
    lab: &TritonLab,
    selection: &Selection,
    lives: u32,
    outcome: ScenarioOutcome,
) -> Checked {
    let mut result = empty(scenario, outcome.verdict);
    result.model_version.clone_from(&visit.model_version);
    result.reason.clone_from(&outcome.reason);
    result.seconds = outcome.seconds;
    result.discarded.clone_from(&outcome.discarded);
    if !selection.sessions.is_empty() {
        result.baseline = Some(stored(
            &selection.sessions,
            lives,
            bench
                .store
                .root()
                .join(bench.environment)
                .join(&scenario.name)
                .display()
                .to_string(),
        ));
    }
    measured(&mut result, lab, &outcome.blocks);
    if let Some(decision) = &outcome.decision {
        result.metrics.clone_from(&decision.metrics);
        result.looks = decision.looks;
        result.pairs = decision.pairs;
        result.assumed_noise.clone_from(&decision.assumed_noise);
        add_flags(&mut result, decision.flags.clone());
    }
    let baseline_blocks: Vec<&Block> = selection
        .sessions
        .iter()
        .flat_map(|session| &session.blocks)
        .collect();
    let candidate_blocks: Vec<&Block> = outcome.blocks.iter().collect();
    result.breakdown = breakdown(&baseline_blocks, &candidate_blocks);
    add_flags(&mut result, outcome.flags);
    if selection.left_out > 0 {
        let text = format!(
            "{} stored sessions were left out ({})",
            selection.left_out,
            sentence(&selection.differences)
        );
        add_flags(&mut result, [flag("sessions_left_out", text)]);
    }
    soften(&mut result, selection);
    settle(scenario, &mut result);
    let changes = subject_changes(scenario, selection, visit);
    let session = visit
        .session(
            surroundings,
            scenario,
            outcome.blocks,
            outcome.complete,
            None,
            lab.totals(Side::Candidate).server_requests,
        )
        .ok();
    Checked {
        result,
        session,
        subject_changes: changes,
        allowed: selection.allowed.clone(),
    }
}

/// A difference that weakens numbers caps a regression against a stored baseline.
fn soften(result: &mut ScenarioResult, selection: &Selection) {
    if selection.soft.is_empty() {
        return;
    }
    let text = format!("differs from the baseline: {}", sentence(&selection.soft));
    if result.verdict == Verdict::Regression {
        result.verdict = Verdict::Inconclusive;
        result.reason = Some(Reason {
            code: "soft_difference".to_owned(),
            text: format!(
                "the candidate is worse beyond the threshold, but it also {text}, which may be \
                 the cause"
            ),
            next: "record a baseline under the same conditions".to_owned(),
        });
    }
    add_flags(result, [flag("soft_difference", text)]);
}

/// What differs in what is under test, against the newest session.
fn subject_changes(
    scenario: &Scenario,
    selection: &Selection,
    visit: &Visit,
) -> Vec<SubjectChange> {
    let Some(newest) = selection.sessions.last() else {
        return Vec::new();
    };
    if newest.subject.0.is_empty() {
        return Vec::new();
    }
    newest
        .subject
        .differences(&visit.subject)
        .into_iter()
        .map(|difference| SubjectChange {
            scenario: scenario.name.clone(),
            difference,
        })
        .collect()
}

/// Counts of the load.
pub(super) fn measured(result: &mut ScenarioResult, lab: &TritonLab, blocks: &[Block]) {
    let own = blocks.iter().filter(|block| block.side == Side::Candidate);
    result.blocks = own.clone().count() as u32;
    result.requests = own.map(|block| block.requests).sum();
    let totals = lab.totals(Side::Candidate);
    for (class, count) in &totals.errors.0 {
        let name = serde_json::to_value(class)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default();
        result.errors.insert(name, *count);
    }
    // The server's answer is the truth about which version was measured.
    if totals.model_versions.len() == 1
        && let Some(version) = totals.model_versions.first()
    {
        result.model_version.clone_from(version);
    }
}

/// A scenario without a baseline: measured like a session, not judged.
fn measure_new(
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
    measured(&mut result, &lab, &measured_blocks.blocks);
    let candidate_blocks: Vec<&Block> = measured_blocks.blocks.iter().collect();
    result.breakdown = breakdown(&[], &candidate_blocks);
    result.metrics = crate::gate::describe(&scenario.gate.limits, &measured_blocks.blocks);
    match measured_blocks.ended {
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
        session,
        subject_changes: Vec::new(),
        allowed: Vec::new(),
    }
}

/// Blocks of one session, and how that ended.
pub(super) struct SessionBlocks {
    pub blocks: Vec<Block>,
    pub block: Duration,
    pub flags: Vec<crate::data::Flag>,
    pub ended: Result<(), Reason>,
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
        ended: Ok(()),
    };
    observer.progress(
        &scenario.name,
        &crate::run::Progress::WarmingUp {
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
        &crate::run::Progress::Measuring {
            have: 0,
            next: blocks,
            last: blocks,
        },
    );
    let plan = MeasurePlan::Blocks {
        side: Side::Candidate,
        first_index: 0,
        blocks,
        // A session is whole or it is no baseline: its time is that of its blocks.
        deadline: lab.now() + result.block * (blocks + 1),
    };
    match lab.measure(&plan) {
        Ok(measured) => {
            result.blocks = measured.blocks;
            result.flags = measured.flags;
            result.ended = match measured.ended {
                Ended::Complete => Ok(()),
                Ended::Interrupted => Err(lab_reason(LabError::Interrupted)),
                Ended::Failed(reason) => Err(reason),
                Ended::Deadline => Err(Reason {
                    code: "no_time".to_owned(),
                    text: "the time ended before the session was whole".to_owned(),
                    next: "raise [gate] budget".to_owned(),
                }),
            };
        }
        Err(error) => result.ended = Err(lab_reason(error)),
    }
    result
}

/// What a percentile out of reach would need.
fn too_few(scenario: &Scenario, quantile: f64, needed: f64, held: f64, rate: f64) -> String {
    let reach = [0.95_f64, 0.9, 0.5]
        .into_iter()
        .find(|lower| held >= 1.0 / (1.0 - lower));
    let minutes = needed / rate.max(1e-9) * f64::from(RECORDED_BLOCKS) / 60.0;
    let instead = reach.map_or_else(String::new, |lower| {
        format!(
            ", or gate P{} instead",
            crate::report::format::quantile(lower)
        )
    });
    format!(
        "note: {}: P{} needs {needed:.0} requests a block and a block holds {held:.0}: it can \
         fail but never pass. Raise budget to about {:.0} minutes{instead}",
        scenario.name,
        crate::report::format::quantile(quantile),
        minutes.ceil() + 1.0
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
pub(super) fn new_life() -> Option<String> {
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
