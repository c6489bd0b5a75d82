//! The stored rule on a scenario that has sessions.

use std::time::Duration;

use super::compatible::{Selection, select, sentence};
use super::explain::explain;
use super::observer::Observer;
use super::outcome::{
    add_flags, empty, flag, measured, not_measured, reason_result, settle, stored,
};
use super::pins;
use super::scenario::{Bench, Checked, needs_baseline};
use super::session::{Surroundings, Visit};
use super::unjudged::{WARM_UP, nanos};
use crate::data::{
    Auto, Block, Metric, Reason, Scenario, ScenarioResult, Session, Side, SubjectChange, Verdict,
};
use crate::gate::{Decision, Design, Stage, StoredGate, outliers};
use crate::lab::{SideLab, TritonLab};
use crate::report::format;
use crate::run::{Budget, ScenarioOutcome, run_stored};

/// The stored rule on a scenario with sessions.
pub(super) fn judge(
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
        // Files of another tool name no length.
        Auto::Auto => sessions
            .iter()
            .rev()
            .map(|session| session.load.block_ns)
            .find(|length| *length > 0)
            .map_or(Duration::from_secs(2), Duration::from_nanos),
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
    observer.watch(vec![side.gauge()]);
    let mut lab = TritonLab::new(
        bench.runtime.clone(),
        bench.stop.clone(),
        block,
        [(Side::Candidate, side)],
    );
    let budget = Budget {
        time: bench.time,
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
    let pinned = pins::judge(bench, scenario, &visit, locked, &outcome.blocks);
    let mut checked = finish(
        bench,
        scenario,
        surroundings,
        &visit,
        &lab,
        &selection,
        lives,
        outcome,
    );
    checked.pinned = pinned;
    (checked, final_pass)
}

fn incompatible(selection: &Selection) -> Reason {
    Reason {
        code: "incompatible".to_owned(),
        text: format!(
            "none of {} may be compared with this measurement: {}",
            format::counted(selection.left_out as u64, "stored session"),
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
    // The level is that of the newest epoch.
    let epoch = selection.sessions.iter().map(|session| session.epoch).max();
    let own: Vec<Session> = selection
        .sessions
        .iter()
        .filter(|session| Some(session.epoch) == epoch)
        .cloned()
        .collect();
    if !own.is_empty() {
        result.baseline = Some(stored(
            &own,
            lives,
            bench
                .store
                .place()
                .join(bench.environment)
                .join(&scenario.name)
                .display()
                .to_string(),
        ));
    }
    measured(&mut result, &lab.totals(Side::Candidate), &outcome.blocks);
    if let Some(decision) = &outcome.decision {
        result.metrics.clone_from(&decision.metrics);
        result.looks = decision.looks;
        result.pairs = decision.pairs;
        result.assumed_noise.clone_from(&decision.assumed_noise);
        add_flags(&mut result, decision.flags.clone());
    }
    let baseline_blocks: Vec<&Block> = own.iter().flat_map(|session| &session.blocks).collect();
    let candidate_blocks: Vec<&Block> = outcome.blocks.iter().collect();
    explain(&mut result, &baseline_blocks, &candidate_blocks);
    add_flags(&mut result, outcome.flags);
    if selection.left_out > 0 {
        let text = format!(
            "{} left out ({})",
            format::counted(selection.left_out as u64, "stored session"),
            sentence(&selection.differences)
        );
        add_flags(&mut result, [flag("sessions_left_out", text)]);
    }
    let metrics: Vec<Metric> = scenario
        .gate
        .limits
        .iter()
        .map(|limit| limit.metric)
        .collect();
    for outlier in outliers(&selection.sessions, &metrics) {
        let text = format!(
            "stored session {} is far from the others: {} {}; it counts like any other, look \
             whether it should (`baseline show {}`)",
            outlier.session,
            outlier.metric.label(),
            format::change(outlier.change),
            scenario.name
        );
        add_flags(&mut result, [flag("outlier_session", text)]);
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
        sessions: session.into_iter().collect(),
        subject_changes: changes,
        allowed: selection.allowed.clone(),
        pinned: pins::Pinned::default(),
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
