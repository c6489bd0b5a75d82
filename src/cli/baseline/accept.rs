//! `triton-gate baseline accept`.

use std::path::{Path, PathBuf};

use super::args::AcceptArgs;
use crate::baseline::environment::{comparable, compare};
use crate::baseline::{Store, life_of};
use crate::check::{new_life, sentence};
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::terminal::Terminal;
use crate::data::{
    BaselineKind, CheckResult, MetricVerdict, RESULT_SCHEMA, ScenarioResult, Session, Side, Verdict,
};
use crate::report::Exit;

/// Takes what a check measured as the new level of its scenarios.
pub fn run(terminal: Terminal, arguments: &AcceptArgs) -> Result<u8, Failure> {
    let store = Store::locate(&arguments.baselines).map_err(Failure::usage)?;
    let csv = arguments
        .result
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let (environment, files) = if csv {
        (
            folder_name(&arguments.result, 2)?,
            vec![arguments.result.clone()],
        )
    } else {
        of_result(arguments)?
    };
    // All that can be refused is refused before anything is written.
    let mut ready = Vec::new();
    for file in &files {
        ready.push(prepare(&store, &environment, file)?);
    }
    for session in &ready {
        let path = store
            .append(&environment, session)
            .map_err(Failure::usage)?;
        terminal.say(format!(
            "accepted {}: its baseline's level starts anew with {} (epoch {})",
            session.scenario,
            path.display(),
            session.epoch
        ));
    }
    terminal.say(
        "one session tells little of the new level: record more with `triton-gate baseline record`",
    );
    Ok(0)
}

/// The name of a folder above a file: 1 is the one that holds it.
fn folder_name(file: &Path, above: usize) -> Result<String, Failure> {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    whole
        .ancestors()
        .nth(above)
        .and_then(Path::file_name)
        .and_then(|name| name.to_str())
        .map(str::to_owned)
        .ok_or_else(|| {
            Failure::usage(format!(
                "{} does not lie in a results folder (RESULTS/ENVIRONMENT/SCENARIO/SESSION.csv)",
                file.display()
            ))
            .next("give the file that the check left under results/")
        })
}

/// The environment of a result and the session files of the scenarios that are meant.
fn of_result(arguments: &AcceptArgs) -> Result<(String, Vec<PathBuf>), Failure> {
    let path = &arguments.result;
    let text = files::read(path, "the result")?;
    let result: CheckResult = serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!(
            "{}: not the result of a check: {error}",
            path.display()
        ))
        .next("give the JSON that the check left under results/")
    })?;
    if result.schema > RESULT_SCHEMA {
        return Err(Failure::usage(format!(
            "{}: schema {} is newer than this version reads ({RESULT_SCHEMA})",
            path.display(),
            result.schema
        ))
        .next("update triton-gate"));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for scenario in meant(&result, &arguments.only)? {
        let session = acceptable(scenario)?;
        files.push(folder.join(&scenario.name).join(format!("{session}.csv")));
    }
    Ok((result.environment_name, files))
}

/// The scenarios that were named, else those whose level shifted.
fn meant<'a>(result: &'a CheckResult, only: &[String]) -> Result<Vec<&'a ScenarioResult>, Failure> {
    if let Some(unknown) = only.iter().find(|name| {
        !result
            .scenarios
            .iter()
            .any(|scenario| scenario.name == **name)
    }) {
        let names: Vec<&str> = result
            .scenarios
            .iter()
            .map(|scenario| scenario.name.as_str())
            .collect();
        return Err(
            Failure::usage(format!("the check has no scenario {unknown:?}"))
                .next(format!("it has: {}", names.join(", "))),
        );
    }
    let shifted = |scenario: &ScenarioResult| {
        matches!(scenario.verdict, Verdict::Regression | Verdict::Accepted)
            || scenario.verdict == Verdict::Pass
                && scenario
                    .metrics
                    .iter()
                    .any(|row| row.pin.is_none() && row.verdict == MetricVerdict::Improvement)
    };
    let found: Vec<&ScenarioResult> = result
        .scenarios
        .iter()
        .filter(|scenario| {
            if only.is_empty() {
                shifted(scenario)
            } else {
                only.contains(&scenario.name)
            }
        })
        .collect();
    if found.is_empty() {
        return Err(Failure::usage(
            "no scenario of that check regressed or improved: there is no shift to accept",
        )
        .next("name one with --only to accept it all the same"));
    }
    Ok(found)
}

/// The session of a scenario that can be a baseline.
fn acceptable(scenario: &ScenarioResult) -> Result<&str, Failure> {
    let live = scenario
        .baseline
        .as_ref()
        .is_some_and(|baseline| baseline.kind == BaselineKind::Reference);
    if live {
        return Err(Failure::usage(format!(
            "{} was judged beside a live reference, in blocks that no stored baseline has",
            scenario.name
        ))
        .next(format!(
            "record the new level: triton-gate baseline record --only {} --accept",
            scenario.name
        )));
    }
    scenario.session.as_deref().ok_or_else(|| {
        Failure::usage(format!(
            "the result names no session of {}: nothing was measured, or an older version wrote it",
            scenario.name
        ))
        .next("give the session's CSV under results/ instead")
    })
}

/// Reads a session and makes it the first of a new epoch, or says why it cannot be.
fn prepare(store: &Store, environment: &str, file: &Path) -> Result<Session, Failure> {
    let mut session = Store::read_file(file).map_err(|error| {
        Failure::usage(error)
            .next("the session lies beside the result, in RESULTS/ENVIRONMENT/SCENARIO/")
    })?;
    if !session.complete {
        return Err(Failure::usage(format!(
            "{}: the measurement was interrupted: it is no baseline",
            file.display()
        ))
        .next("check again"));
    }
    let stored = store
        .sessions(environment, &session.scenario)
        .map_err(Failure::usage)?;
    let Some(newest) = stored.last() else {
        return Err(Failure::new(
            Exit::NoBaseline,
            format!(
                "there is no baseline of {} in environment {environment:?} whose level could shift",
                session.scenario
            ),
        )
        .next(format!("triton-gate baseline import {}", file.display())));
    };
    if stored.iter().any(|other| other.id == session.id) {
        return Err(Failure::usage(format!(
            "session {} is in the baseline already",
            session.id
        )));
    }
    let comparison =
        compare(&comparable(newest), &comparable(&session), &[]).map_err(Failure::usage)?;
    if !comparison.compatible() {
        return Err(Failure::new(
            Exit::NoBaseline,
            format!(
                "{}: not measured like the baseline: {}",
                session.scenario,
                sentence(&comparison.incompatible)
            ),
        )
        .next(format!(
            "record the new level: triton-gate baseline record --only {} --accept",
            session.scenario
        )));
    }
    // The level shifted: a life of the server that the old level knows cannot be this one.
    session.life = life_of(&session, &stored, false, new_life());
    session.epoch = 1 + stored
        .iter()
        .map(|session| session.epoch)
        .max()
        .unwrap_or_default();
    for block in &mut session.blocks {
        block.side = Side::Candidate;
    }
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{BaselineUsed, Metric};
    use crate::report::samples;

    #[test]
    fn what_shifted_is_meant_unless_named() {
        let mut better = samples::scenario("better", Verdict::Pass);
        better.metrics[0] = samples::metric(Metric::Throughput, MetricVerdict::Improvement);
        let result = samples::check(vec![
            samples::scenario("worse", Verdict::Regression),
            samples::scenario("same", Verdict::Pass),
            better,
            samples::scenario("open", Verdict::Inconclusive),
        ]);
        let names = |only: &[&str]| -> Result<Vec<String>, String> {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            meant(&result, &only)
                .map(|found| found.iter().map(|scenario| scenario.name.clone()).collect())
                .map_err(|failure| failure.message)
        };
        assert_eq!(
            names(&[]),
            Ok(vec!["worse".to_owned(), "better".to_owned()])
        );
        assert_eq!(names(&["open"]), Ok(vec!["open".to_owned()]));
        assert!(names(&["other"]).is_err_and(|message| message.contains("other")));
        let none = samples::check(vec![samples::scenario("same", Verdict::Pass)]);
        assert!(meant(&none, &[]).is_err());
    }

    #[test]
    fn a_live_comparison_is_no_session_of_a_baseline() {
        let mut scenario = samples::scenario("a", Verdict::Regression);
        scenario.session = Some("s".to_owned());
        scenario.baseline = Some(BaselineUsed {
            kind: BaselineKind::Reference,
            sessions: 1,
            blocks: 1,
            newest: None,
            commit: None,
            source: String::new(),
        });
        assert!(acceptable(&scenario).is_err());
        scenario.baseline = None;
        assert_eq!(acceptable(&scenario).expect("acceptable"), "s");
        scenario.session = None;
        assert!(acceptable(&scenario).is_err());
    }
}
