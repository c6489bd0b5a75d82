//! One scenario: which baselines are asked, in which order.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::live::check_live;
use super::observer::Observer;
use super::outcome::{add_flags, flag, not_measured, reason_result};
use super::servers::Servers;
use super::session::Surroundings;
use super::stored::judge;
use super::unjudged::measure_new;
use crate::baseline::Store;
use crate::config::ReferenceSpec;
use crate::data::{
    Bound, Difference, OnMissing, Reason, Scenario, ScenarioResult, Session, SubjectChange, Verdict,
};
use crate::gate::Stage;
use crate::lab::SideLab;
use crate::load::Stop;

/// What the command line says about a check.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Environment fields that may differ.
    pub allow: Vec<String>,
    /// Record a baseline where there is none.
    pub record_missing: bool,
    /// The day on which an `[[accept]]` must not have expired.
    pub today: chrono::NaiveDate,
    /// Scenarios that the change does not touch, and why: listed, not measured.
    pub not_affected: BTreeMap<String, Reason>,
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
    let begun = Instant::now();
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
pub(super) fn needs_baseline(scenario: &Scenario) -> bool {
    scenario
        .gate
        .limits
        .iter()
        .any(|limit| matches!(limit.bound, Bound::Relative(_)))
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
