//! Listing, showing, pruning and renaming.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;

use super::args::StoreArgs;
use super::store::{entries, none, open};
use crate::baseline::{Entry, Store, Summary};
use crate::cli::failure::Failure;
use crate::cli::terminal::Terminal;
use crate::data::{Metric, Session};
use crate::gate::{Outlier, outliers};
use crate::report::{Exit, format, text::clean};

/// In what a session can be far from the others.
const WATCHED: [Metric; 2] = [Metric::Throughput, Metric::P99];

pub fn list(terminal: Terminal, arguments: &StoreArgs) -> Result<u8, Failure> {
    let store = open(arguments)?;
    let entries = entries(arguments, &store)?;
    if entries.is_empty() {
        return Err(none(arguments));
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([
        "environment",
        "scenario",
        "sessions",
        "newest",
        "commit",
        "pins",
        "",
    ]);
    let mut damaged = 0;
    for group in entries.chunk_by(|one, other| {
        one.environment == other.environment && one.scenario == other.scenario
    }) {
        let good: Vec<_> = group
            .iter()
            .filter_map(|entry| entry.session.as_ref().ok())
            .collect();
        damaged += group.len() - good.len();
        let complete = good.iter().filter(|summary| summary.complete).count();
        let newest = good.last();
        let (environment, scenario) = group
            .first()
            .map(|entry| (entry.environment.clone(), entry.scenario.clone()))
            .unwrap_or_default();
        table.add_row([
            clean(&environment, 60),
            clean(&scenario, 60),
            count(complete, good.len() - complete, group.len() - good.len()),
            newest
                .map(|summary| clean(&summary.recorded_at, 40))
                .unwrap_or_default(),
            newest
                .and_then(|summary| summary.commit.as_deref())
                .map(|commit| clean(commit.get(..7).unwrap_or(commit), 40))
                .unwrap_or_default(),
            pins(&store, &environment, &scenario),
            remarks(&store, &environment, &scenario),
        ]);
    }
    terminal.data(&format!("{table}\n"))?;
    if damaged > 0 {
        for entry in &entries {
            if let Err(error) = &entry.session {
                terminal.warn(format!("{}: {error}", store.shown(&entry.path).display()));
            }
        }
        return Ok(Exit::Usage.code());
    }
    Ok(0)
}

fn count(complete: usize, incomplete: usize, damaged: usize) -> String {
    let mut parts = vec![complete.to_string()];
    if incomplete > 0 {
        parts.push(format!("{incomplete} incomplete"));
    }
    if damaged > 0 {
        parts.push(format!("{damaged} damaged"));
    }
    parts.join(" + ")
}

pub fn show(terminal: Terminal, arguments: &StoreArgs, scenario: &str) -> Result<u8, Failure> {
    let store = open(arguments)?;
    let all = entries(arguments, &store)?;
    let entries: Vec<&Entry> = all
        .iter()
        .filter(|entry| entry.scenario == scenario)
        .collect();
    if entries.is_empty() {
        let mut known: Vec<&str> = all.iter().map(|entry| entry.scenario.as_str()).collect();
        known.dedup();
        if known.is_empty() {
            return Err(none(arguments));
        }
        return Err(Failure::new(
            Exit::NoBaseline,
            format!("there is no baseline for scenario {scenario:?}"),
        )
        .next(format!("there are: {}", known.join(", "))));
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([
        "session", "recorded", "commit", "model", "blocks", "infer/s", "P99 us", "",
    ]);
    let mut environments: Vec<&str> = entries
        .iter()
        .map(|entry| entry.environment.as_str())
        .collect();
    environments.dedup();
    let far: Vec<Outlier> = environments
        .iter()
        .flat_map(|environment| far(&store, environment, scenario))
        .collect();
    for entry in entries {
        let Ok(summary) = &entry.session else {
            let path = store.shown(&entry.path).display().to_string();
            table.add_row([path, "damaged".to_owned()]);
            continue;
        };
        let values = medians(&entry.path);
        table.add_row([
            clean(&summary.id, 60),
            clean(&summary.recorded_at, 40),
            summary
                .commit
                .as_deref()
                .map(|commit| clean(commit.get(..7).unwrap_or(commit), 40))
                .unwrap_or_default(),
            clean(&format!("{} {}", summary.model, summary.model_version), 60),
            summary.blocks.to_string(),
            values.0,
            values.1,
            remark(summary, &far),
        ]);
    }
    terminal.data(&format!("{table}\n"))?;
    for environment in environments {
        let names = pins(&store, environment, scenario);
        if !names.is_empty() {
            terminal.say(format!("pinned in {environment}: {names}"));
        }
    }
    Ok(0)
}

/// What is to be known of one session.
fn remark(summary: &Summary, far: &[Outlier]) -> String {
    let mut parts = Vec::new();
    if !summary.complete {
        parts.push("incomplete".to_owned());
    }
    if summary.epoch > 0 {
        parts.push(format!("epoch {}", summary.epoch));
    }
    for outlier in far.iter().filter(|outlier| outlier.session == summary.id) {
        parts.push(format!(
            "outlier: {} {}",
            outlier.metric.label(),
            format::change(outlier.change)
        ));
    }
    parts.join(", ")
}

/// The sessions of a scenario; none where one of them is damaged, which is said elsewhere.
fn readable(store: &Store, environment: &str, scenario: &str) -> Vec<Session> {
    store.sessions(environment, scenario).unwrap_or_default()
}

fn far(store: &Store, environment: &str, scenario: &str) -> Vec<Outlier> {
    outliers(&readable(store, environment, scenario), &WATCHED)
}

fn pins(store: &Store, environment: &str, scenario: &str) -> String {
    let Ok(pins) = store.pins(environment, scenario) else {
        return "damaged".to_owned();
    };
    pins.iter()
        .map(|pin| format!("{} ({})", pin.name, pin.sessions.len()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What a listing says of a scenario: the lives that its files amount to, epochs, outliers.
fn remarks(store: &Store, environment: &str, scenario: &str) -> String {
    let sessions = readable(store, environment, scenario);
    let mut parts = Vec::new();
    let mut lives: Vec<_> = sessions
        .iter()
        .filter_map(|session| Some((session.epoch, session.life.as_deref()?)))
        .collect();
    let marked = lives.len();
    lives.sort_unstable();
    lives.dedup();
    if lives.len() < marked {
        let counted = sessions.len() - marked + lives.len();
        parts.push(format!("count as {counted}: visits to one server are one"));
    }
    let newest = sessions.iter().map(|session| session.epoch).max();
    if newest.is_some_and(|newest| newest > 0) {
        let own = sessions
            .iter()
            .filter(|session| Some(session.epoch) == newest)
            .count();
        parts.push(format!("{own} since the last accepted shift"));
    }
    let mut far: Vec<String> = far(store, environment, scenario)
        .into_iter()
        .map(|outlier| outlier.session)
        .collect();
    far.sort_unstable();
    far.dedup();
    if !far.is_empty() {
        let noun = if far.len() == 1 {
            "outlier"
        } else {
            "outliers"
        };
        parts.push(format!("{} {noun}", far.len()));
    }
    parts.join("; ")
}

/// Median throughput and P99 of a session file, as text; empty where unknown.
fn medians(path: &std::path::Path) -> (String, String) {
    let read = std::fs::read_to_string(path).ok().and_then(|text| {
        crate::baseline::session_csv::read(&text, &path.display().to_string()).ok()
    });
    let Some(session) = read else {
        return (String::new(), String::new());
    };
    let median = |metric: crate::data::Metric| {
        let mut values: Vec<f64> = session
            .blocks
            .iter()
            .filter_map(|block| block.value(metric))
            .collect();
        values.sort_by(f64::total_cmp);
        values
            .get(values.len() / 2)
            .map(|value| format!("{value:.1}"))
            .unwrap_or_default()
    };
    (
        median(crate::data::Metric::Throughput),
        median(crate::data::Metric::P99),
    )
}

pub fn prune(terminal: Terminal, arguments: &StoreArgs, keep: u32) -> Result<u8, Failure> {
    let deleted = open(arguments)?
        .prune(keep as usize, false)
        .map_err(Failure::usage)?;
    for file in &deleted {
        terminal.say(format!("deleted {}", file.display()));
    }
    terminal.say(format!(
        "{} sessions deleted, the newest {keep} of each scenario kept",
        deleted.len()
    ));
    Ok(0)
}

pub fn rename(
    terminal: Terminal,
    arguments: &StoreArgs,
    from: &str,
    to: &str,
) -> Result<u8, Failure> {
    let renamed = open(arguments)?.rename(from, to).map_err(Failure::usage)?;
    terminal.say(format!(
        "renamed {from} to {to}: {} sessions",
        renamed.sessions
    ));
    Ok(0)
}
