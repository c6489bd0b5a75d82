//! One scenario: which baselines are asked, in which order.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::alternate::check_in_turns;
use super::live::check_live;
use super::observer::Observer;
use super::outcome::{add_flags, flag, not_measured, reason_result};
use super::pins::{self, Pinned};
use super::servers::Servers;
use super::session::Surroundings;
use super::stored::judge;
use super::unjudged::measure_new;
use crate::baseline::{Pin, Store};
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
    /// True where some of the files' scenarios are left out.
    pub selected: bool,
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
    pub sessions: Vec<Session>,
    pub subject_changes: Vec<SubjectChange>,
    pub allowed: Vec<Difference>,
    /// What came of the pinned releases.
    pub pinned: Pinned,
}

impl Checked {
    pub fn only(result: ScenarioResult) -> Self {
        Self {
            result,
            sessions: Vec::new(),
            subject_changes: Vec::new(),
            allowed: Vec::new(),
            pinned: Pinned::default(),
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
    /// Rows gated over the whole check, those against pinned releases among them.
    pub gated_metrics: u32,
    /// The pinned releases of this scenario.
    pub pins: &'a [Pin],
    /// What else is known of the store, for a scenario without a baseline.
    pub rename: Option<String>,
    /// Time for this scenario: its budget, or its part of what the whole check has.
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
        let (mut checked, _) = check_stored(
            bench,
            scenario,
            sessions,
            Stage::Only,
            servers,
            surroundings,
            observer,
        );
        pins::apply(scenario, &mut checked);
        return checked;
    };
    let begun = Instant::now();
    let whole = bench.time;
    let mut notes = Vec::new();
    let mut stored = None;
    let mut stage = Stage::Only;
    let mut pinned = Pinned::default();
    if sessions.is_empty() && !bench.pins.is_empty() {
        notes.push(flag(
            "pins_not_judged",
            "pinned releases were not judged: a live reference alone does not load them; record \
             stored sessions beside it",
        ));
    }
    if !sessions.is_empty() {
        let (mut checked, final_pass) = check_stored(
            bench,
            scenario,
            sessions,
            Stage::StoredFirst,
            servers,
            surroundings,
            observer,
        );
        if final_pass || checked.result.verdict == Verdict::Interrupted {
            pins::apply(scenario, &mut checked);
            return checked;
        }
        pinned = std::mem::take(&mut checked.pinned);
        notes.push(flag(
            "settled_live",
            format!(
                "the stored baseline did not decide ({}); the live reference was asked",
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
            stored = Some(checked);
        }
    }
    let time = whole.saturating_sub(begun.elapsed()).max(whole / 2);
    let check = if spec.launch.is_empty() {
        check_live
    } else {
        check_in_turns
    };
    let mut checked = check(
        bench,
        scenario,
        spec,
        (stage, time),
        servers,
        surroundings,
        observer,
    );
    servers.release(scenario);
    if checked.result.blocks == 0
        && checked.result.verdict == Verdict::Inconclusive
        && let Some(mut stored) = stored
    {
        // The live stage had no time: what the stored one measured is not lost.
        stored.result.reason = checked.result.reason;
        stored.pinned = pinned;
        pins::apply(scenario, &mut stored);
        return stored;
    }
    add_flags(&mut checked.result, notes);
    checked.pinned = pinned;
    pins::apply(scenario, &mut checked);
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
        let reason = missing(bench, scenario);
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

/// Whether a scenario has a limit that compares: absolute limits alone need no baseline.
pub fn needs_baseline(scenario: &Scenario) -> bool {
    scenario
        .gate
        .limits
        .iter()
        .any(|limit| matches!(limit.bound, Bound::Relative(_)))
}

/// The command that records a baseline for a scenario, as it can be pasted: defaults are left out.
pub(super) fn record_command(scenario: &Scenario, baselines: &Path) -> String {
    let mut command = "triton-gate baseline record".to_owned();
    let mut add = |option: &str, value: &str| {
        command.push(' ');
        command.push_str(option);
        command.push(' ');
        command.push_str(&quoted(value));
    };
    if !scenario.file.starts_with("thresholds") {
        add("-c", &scenario.file.display().to_string());
    }
    add("--only", &scenario.name);
    if baselines != Path::new("baselines") {
        add("--baselines", &baselines.display().to_string());
    }
    command
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn missing(bench: &Bench<'_>, scenario: &Scenario) -> Reason {
    let place = bench.store.place();
    let root = place.display();
    Reason {
        code: "no_baseline".to_owned(),
        text: format!(
            "no baseline for scenario {:?} in environment {:?} (looked in {root})",
            scenario.name, bench.environment
        ),
        next: match &bench.rename {
            Some(rename) => rename.clone(),
            None => format!(
                "record one with `{}`, or check with --record-missing",
                record_command(scenario, &place)
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::scenario;

    #[test]
    fn the_command_that_records_names_what_is_no_default() {
        let mut one = scenario("it's new");
        assert_eq!(
            record_command(&one, Path::new("git:perf")),
            "triton-gate baseline record -c t.toml --only 'it'\\''s new' --baselines git:perf"
        );
        one.name = "yolov9-c8".to_owned();
        one.file = "thresholds/example.toml".into();
        assert_eq!(
            record_command(&one, Path::new("baselines")),
            "triton-gate baseline record --only yolov9-c8"
        );
    }
}
