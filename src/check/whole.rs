//! All scenarios of a check.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use tokio::runtime::Handle;

use super::accept;
use super::notes;
use super::observer::Observer;
use super::outcome::reason_result;
use super::pins;
use super::scenario::{Bench, Checked, Options, check_scenario};
use super::servers::Servers;
use super::session::Surroundings;
use crate::baseline::environment::{UnknownField, check_allowed};
use crate::baseline::{Pin, Store, StoreError};
use crate::config::Config;
use crate::data::{CheckResult, RESULT_SCHEMA, Reason, Session, Tool, Verdict};
use crate::load::Stop;
use crate::report::{Exit, headline, worst_verdict};

/// What prevents a check before anything is measured.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A baseline file that cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name given to `--allow`.
    #[error(transparent)]
    Allow(#[from] UnknownField),
}

/// Checks every scenario; the results keep the order of the files.
///
/// Baselines are read before any load: a damaged file is said at once, not after minutes. What
/// was measured is written to `results` scenario by scenario, so that an end at any moment keeps
/// what was complete.
#[expect(clippy::too_many_arguments, reason = "what a check needs, each once")]
pub fn check(
    runtime: &Handle,
    stop: &Stop,
    config: &Config,
    environment: &str,
    store: &Store,
    results: &Store,
    options: &Options,
    surroundings: &Surroundings,
    servers: &mut Servers,
    observer: &mut dyn Observer,
) -> Result<CheckResult, CheckError> {
    check_allowed(&options.allow)?;
    let mut stored: Vec<(Vec<Session>, Vec<Pin>)> = Vec::with_capacity(config.scenarios.len());
    for scenario in &config.scenarios {
        let sessions = store.sessions(environment, &scenario.name)?;
        stored.push((sessions, store.pins(environment, &scenario.name)?));
    }
    let others = notes::unclaimed(store, environment, config)?;
    let begun = Instant::now();
    let mut result = blank(config, environment, surroundings);
    if !options.selected {
        result.notes.extend(notes::orphans(&others));
    }
    let pin_rows: u32 = config
        .scenarios
        .iter()
        .zip(&stored)
        .map(|(scenario, (_, pins))| pins::rows(scenario, pins))
        .sum();
    for (index, (scenario, (sessions, pins))) in config.scenarios.iter().zip(stored).enumerate() {
        let own = scenario.gate.budget;
        let time = config.total_budget.map_or(own, |total| {
            let later = config.scenarios.get(index + 1..).unwrap_or_default();
            share(
                total.saturating_sub(begun.elapsed()),
                own,
                later
                    .iter()
                    .filter(|later| !options.not_affected.contains_key(&later.name))
                    .map(|later| later.gate.budget)
                    .sum(),
            )
        });
        let mut checked = if let Some(reason) = options.not_affected.get(&scenario.name) {
            untouched(scenario, reason)
        } else if stop.is_set() {
            interrupted(scenario)
        } else if time.is_zero() {
            out_of_time(scenario)
        } else {
            let bench = Bench {
                runtime: runtime.clone(),
                stop: stop.clone(),
                store,
                environment,
                options,
                gated_metrics: config.gated_metrics + pin_rows,
                pins: &pins,
                rename: notes::rename(scenario, &others),
                time,
            };
            check_scenario(
                &bench,
                scenario,
                sessions,
                config.reference(&scenario.name),
                servers,
                surroundings,
                observer,
            )
        };
        accept::apply(
            scenario,
            &config.accepts,
            options.today,
            &mut checked.result,
        );
        checked.result.session = checked
            .sessions
            .iter()
            .rfind(|session| !session.blocks.is_empty())
            .map(|session| session.id.clone());
        keep(&checked, environment, store, results, options, observer);
        result.subject_changes.extend(checked.subject_changes);
        for difference in checked.allowed {
            if !result.allowed.contains(&difference) {
                result.allowed.push(difference);
            }
        }
        result.scenarios.push(checked.result);
    }
    if let Some(complaint) = servers.stop_launched() {
        observer.note(&format!("warning: {complaint}"));
    }
    conclude(&mut result);
    Ok(result)
}

/// The result where a change touches no scenario: no server is asked for anything.
///
/// The environment's name stays empty where nobody gave it, since only the server could tell.
pub fn nothing_affected(
    config: &Config,
    not_affected: &BTreeMap<String, Reason>,
    surroundings: &Surroundings,
) -> CheckResult {
    let environment = config.environment_name.clone().unwrap_or_default();
    let mut result = blank(config, &environment, surroundings);
    for scenario in &config.scenarios {
        if let Some(reason) = not_affected.get(&scenario.name) {
            result.scenarios.push(untouched(scenario, reason).result);
        }
    }
    conclude(&mut result);
    result
}

/// Fills in what follows from the scenarios: verdict, exit code, first line.
pub(super) fn conclude(result: &mut CheckResult) {
    let verdicts = result.scenarios.iter().map(|scenario| scenario.verdict);
    result.verdict = worst_verdict(verdicts).unwrap_or(Verdict::Invalid);
    result.exit_code = worst_exit(result.scenarios.iter().map(|scenario| scenario.exit_code));
    result.headline = headline(&result.command, &result.scenarios);
}

/// What a scenario gets of the time that is left of the check's own budget: its part by the
/// scenarios' budgets. Where earlier verdicts came early it is more than its own budget, and where
/// the check's budget is short all have less, not only the last.
fn share(left: Duration, own: Duration, later: Duration) -> Duration {
    let all = own.saturating_add(later).as_secs_f64();
    if all <= 0.0 {
        return left;
    }
    left.mul_f64(own.as_secs_f64() / all)
}

/// The code that weighs most: a proven regression is never hidden.
pub fn worst_exit(codes: impl IntoIterator<Item = u8>) -> u8 {
    let codes: Vec<u8> = codes.into_iter().collect();
    Exit::BY_WEIGHT
        .into_iter()
        .map(Exit::code)
        .find(|code| codes.contains(code))
        .unwrap_or(Exit::Usage.code())
}

pub(super) fn blank(
    config: &Config,
    environment: &str,
    surroundings: &Surroundings,
) -> CheckResult {
    CheckResult {
        schema: RESULT_SCHEMA,
        tool: Tool {
            version: surroundings.tool_version.clone(),
            commit: env!("TRITON_GATE_COMMIT").to_owned(),
        },
        command: "check".to_owned(),
        verdict: Verdict::Invalid,
        exit_code: Exit::NotMeasured.code(),
        headline: String::new(),
        started_at: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
        commit: surroundings.repository.commit.clone(),
        branch: surroundings.repository.branch.clone(),
        dirty: surroundings.repository.dirty,
        environment_name: environment.to_owned(),
        environment: surroundings.hardware.clone(),
        subject_changes: Vec::new(),
        allowed: Vec::new(),
        configs: config
            .files
            .iter()
            .map(|file| file.display().to_string())
            .collect(),
        notes: Vec::new(),
        gate_changes: None,
        scenarios: Vec::new(),
    }
}

/// Writes what was measured: to the store where a baseline was asked for, to results always.
fn keep(
    checked: &Checked,
    environment: &str,
    store: &Store,
    results: &Store,
    options: &Options,
    observer: &mut dyn Observer,
) {
    for session in &checked.sessions {
        if !session.blocks.is_empty() {
            keep_session(
                checked,
                session,
                environment,
                store,
                results,
                options,
                observer,
            );
        }
    }
}

fn keep_session(
    checked: &Checked,
    session: &Session,
    environment: &str,
    store: &Store,
    results: &Store,
    options: &Options,
    observer: &mut dyn Observer,
) {
    let record = options.record_missing
        && session.complete
        && checked.result.baseline.is_none()
        && matches!(checked.result.verdict, Verdict::New | Verdict::NoBaseline);
    if record {
        match store.append(environment, session) {
            Ok(file) => observer.note(&format!("recorded {}", file.display())),
            Err(error) => observer.note(&format!("warning: no baseline was recorded: {error}")),
        }
    }
    if let Err(error) = results.append(environment, session) {
        observer.note(&format!("warning: the measurement was not kept: {error}"));
    }
}

fn untouched(scenario: &crate::data::Scenario, reason: &Reason) -> Checked {
    Checked::only(reason_result(
        scenario,
        Verdict::NotAffected,
        reason.clone(),
    ))
}

fn interrupted(scenario: &crate::data::Scenario) -> Checked {
    plain(
        scenario,
        Verdict::Interrupted,
        "interrupted",
        "stopped before this scenario was measured",
        "start the check again",
    )
}

fn out_of_time(scenario: &crate::data::Scenario) -> Checked {
    plain(
        scenario,
        Verdict::Invalid,
        "no_time",
        "total_budget was used up before this scenario was measured",
        "raise total_budget, or lower the scenarios' budget",
    )
}

fn plain(
    scenario: &crate::data::Scenario,
    verdict: Verdict,
    code: &str,
    text: &str,
    next: &str,
) -> Checked {
    let reason = Reason {
        code: code.to_owned(),
        text: text.to_owned(),
        next: next.to_owned(),
    };
    Checked::only(reason_result(scenario, verdict, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_early_verdicts_leave_goes_to_those_that_come_later() {
        let minutes = Duration::from_mins;
        // Ten minutes for three scenarios of two: each has 3:20.
        assert_eq!(share(minutes(10), minutes(2), minutes(4)), minutes(10) / 3);
        // The first took one minute: the rest share nine.
        assert_eq!(share(minutes(9), minutes(2), minutes(2)), minutes(9) / 2);
        assert_eq!(share(minutes(8), minutes(2), Duration::ZERO), minutes(8));
        // Too little for all is little for each.
        assert_eq!(share(minutes(3), minutes(2), minutes(4)), minutes(1));
        assert_eq!(
            share(Duration::ZERO, minutes(2), minutes(4)),
            Duration::ZERO
        );
    }

    #[test]
    fn a_regression_is_never_hidden() {
        assert_eq!(worst_exit([0, 4, 5, 3, 1]), 1);
        assert_eq!(worst_exit([0, 4, 5, 3]), 3);
        assert_eq!(worst_exit([0, 4, 5]), 5);
        assert_eq!(worst_exit([0, 4]), 4);
        assert_eq!(worst_exit([0, 0]), 0);
        assert_eq!(worst_exit([]), 2);
    }
}
