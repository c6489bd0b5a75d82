//! `triton-gate history`.

use std::path::Path;

use super::args::HistoryArgs;
use super::failure::Failure;
use super::files;
use super::output::utf8;
use super::terminal::Terminal;
use crate::baseline::Store;
use crate::data::Tool;
use crate::history::{
    Filter, Found, PageStyle, ScenarioHistory, Skipped, assemble, csv, json, page, read_baselines,
    read_results,
};
use crate::report::{Exit, text::clean};
use crate::stats::ShiftSearch;

/// Points that are shown where nothing else is asked for.
const ROWS: usize = 20;
/// Files that are named on the terminal; the JSON names all.
const NAMED: usize = 10;

/// Shows what earlier checks found.
pub fn run(terminal: Terminal, arguments: &HistoryArgs) -> Result<u8, Failure> {
    let to_stdout = |path: Option<&Path>| path.is_some_and(|path| path.as_os_str() == "-");
    let (csv_file, json_file) = (arguments.csv.as_deref(), arguments.json.as_deref());
    if to_stdout(csv_file) && to_stdout(json_file) {
        return Err(
            Failure::usage("--csv and --json cannot both go to standard output")
                .next("give one of them a file"),
        );
    }
    let found = read(arguments)?;
    name_skipped(terminal, &found.skipped);
    let filter = Filter {
        scenarios: arguments.scenario.clone(),
        metrics: arguments.metric.clone(),
        environment: arguments.environment.clone(),
        branch: arguments.branch.clone(),
    };
    let histories = assemble(
        &found.checks,
        &found.sessions,
        &filter,
        &ShiftSearch::default(),
    )
    .map_err(Failure::usage)?;
    if histories.is_empty() {
        return Err(nothing(arguments, &found));
    }
    missing(arguments, &histories, &found)?;
    let last = arguments.last.map(|last| last as usize);
    let text = page(
        &histories,
        PageStyle {
            ascii: !utf8(),
            rows: last.unwrap_or(ROWS),
        },
    );
    if to_stdout(csv_file) || to_stdout(json_file) {
        terminal.say(text.trim_end());
    } else if !terminal.quiet {
        terminal.data(&text)?;
    }
    let last = last.unwrap_or(usize::MAX);
    if let Some(path) = csv_file {
        let text = csv(&histories, last).map_err(Failure::not_measured)?;
        files::write(terminal, path, &text)?;
    }
    if let Some(path) = json_file {
        let tool = Tool {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("TRITON_GATE_COMMIT").to_owned(),
        };
        let text = json(&histories, &found.skipped, &tool, last).map_err(Failure::not_measured)?;
        files::write(terminal, path, &text)?;
    }
    Ok(0)
}

fn read(arguments: &HistoryArgs) -> Result<Found, Failure> {
    let mut found = Found::default();
    read_results(&arguments.results, &mut found).map_err(|error| {
        Failure::usage(format!(
            "failed to list the results folder {}: {error}",
            arguments.results.display()
        ))
        .next("pass the folder that check keeps its results in (--results DIR)")
    })?;
    let store = Store::locate(&arguments.baselines).map_err(Failure::usage)?;
    read_baselines(&store, &mut found).map_err(Failure::usage)?;
    Ok(found)
}

fn name_skipped(terminal: Terminal, skipped: &[Skipped]) {
    for Skipped { file, why } in skipped.iter().take(NAMED) {
        // Messages of some files begin with their place.
        let text = if why.contains(file.as_str()) {
            why.clone()
        } else {
            format!("{file}: {why}")
        };
        terminal.warn(format!("skipped: {}", clean(&text, 600)));
    }
    let more = skipped.len().saturating_sub(NAMED);
    if more > 0 {
        terminal.warn(format!("skipped: {more} more files (--json names all)"));
    }
}

/// Why there is nothing to show.
fn nothing(arguments: &HistoryArgs, found: &Found) -> Failure {
    let places = format!(
        "{} and {}",
        arguments.results.display(),
        arguments.baselines.display()
    );
    if found.checks.is_empty() && found.sessions.is_empty() {
        let skipped = match found.skipped.len() {
            0 => String::new(),
            count => format!(" ({count} files were skipped)"),
        };
        return Failure::new(
            Exit::NoBaseline,
            format!("no check has been kept in {places}{skipped}"),
        )
        .next("run `triton-gate check`, which keeps its results, or pass --results DIR");
    }
    let names = |names: &mut dyn Iterator<Item = &str>| {
        let mut names: Vec<String> = names.map(|name| clean(name, 80)).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    };
    let checks = found.checks.iter();
    let sessions = found.sessions.iter();
    Failure::new(
        Exit::NoBaseline,
        format!("nothing in {places} fits what is asked for"),
    )
    .next(format!(
        "scenarios: {}; environments: {}; branches: {}",
        names(
            &mut checks
                .clone()
                .flat_map(|check| &check.scenarios)
                .map(|scenario| scenario.name.as_str())
                .chain(sessions.clone().map(|session| session.scenario.as_str()))
        ),
        names(
            &mut checks
                .clone()
                .map(|check| check.environment.as_str())
                .chain(sessions.clone().map(|session| session.environment.as_str()))
        ),
        names(
            &mut checks
                .filter_map(|check| check.branch.as_deref())
                .chain(sessions.filter_map(|session| session.branch.as_deref()))
        ),
    ))
}

/// A scenario that was asked for by name must not be missing in silence.
fn missing(
    arguments: &HistoryArgs,
    histories: &[ScenarioHistory],
    found: &Found,
) -> Result<(), Failure> {
    let absent = arguments
        .scenario
        .iter()
        .find(|name| histories.iter().all(|history| history.scenario != **name));
    match absent {
        None => Ok(()),
        Some(name) => {
            let mut failure = nothing(arguments, found);
            failure.message = format!("there is no history of scenario {name:?}");
            Err(failure)
        }
    }
}
