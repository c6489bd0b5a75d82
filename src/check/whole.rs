//! All scenarios of a check.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use tokio::runtime::Handle;

use super::accept;
use super::observer::Observer;
use super::outcome::reason_result;
use super::scenario::{Bench, Checked, Options, check_scenario};
use super::servers::Servers;
use super::session::Surroundings;
use crate::baseline::environment::{UnknownField, check_allowed};
use crate::baseline::{Store, StoreError};
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
    let mut stored: Vec<Vec<Session>> = Vec::with_capacity(config.scenarios.len());
    for scenario in &config.scenarios {
        stored.push(store.sessions(environment, &scenario.name)?);
    }
    let begun = Instant::now();
    let mut result = blank(config, environment, surroundings);
    for (scenario, sessions) in config.scenarios.iter().zip(stored) {
        let time = config
            .total_budget
            .map_or(Duration::MAX, |total| total.saturating_sub(begun.elapsed()));
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
                gated_metrics: config.gated_metrics,
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
        keep(&checked, environment, store, results, options, observer);
        result.subject_changes.extend(checked.subject_changes);
        for difference in checked.allowed {
            if !result.allowed.contains(&difference) {
                result.allowed.push(difference);
            }
        }
        result.scenarios.push(checked.result);
    }
    servers.stop_launched();
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
    let Some(session) = checked
        .session
        .as_ref()
        .filter(|session| !session.blocks.is_empty())
    else {
        return;
    };
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
    fn a_regression_is_never_hidden() {
        assert_eq!(worst_exit([0, 4, 5, 3, 1]), 1);
        assert_eq!(worst_exit([0, 4, 5, 3]), 3);
        assert_eq!(worst_exit([0, 4, 5]), 5);
        assert_eq!(worst_exit([0, 4]), 4);
        assert_eq!(worst_exit([0, 0]), 0);
        assert_eq!(worst_exit([]), 2);
    }
}
