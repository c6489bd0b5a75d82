//! `triton-gate baseline`.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;

use super::args::{BaselineCommand, RecordArgs, StoreArgs};
use super::context::{Context, environment, lock, surroundings, thresholds};
use super::failure::Failure;
use super::progress::Display;
use super::terminal::Terminal;
use crate::baseline::{Entry, Store};
use crate::check::{Observer as _, Servers, record, worst_exit};
use crate::config::{Config, Overrides};
use crate::report::{Exit, text::clean};

/// Runs one subcommand on the store.
pub fn run(terminal: Terminal, command: BaselineCommand) -> Result<u8, Failure> {
    match command {
        BaselineCommand::Record(arguments) => record_sessions(terminal, &arguments),
        BaselineCommand::List { store } => list(terminal, &store),
        BaselineCommand::Show { store, scenario } => show(terminal, &store, &scenario),
        BaselineCommand::Prune { store, keep } => prune(terminal, &store, keep),
        BaselineCommand::Rename { store, from, to } => rename(terminal, &store, &from, &to),
    }
}

fn record_sessions(terminal: Terminal, arguments: &RecordArgs) -> Result<u8, Failure> {
    let context = Context::start(terminal)?;
    let mut servers = Servers::new(context.handle(), context.stop.clone());
    let config = thresholds(&arguments.config, Overrides::default(), &mut servers)?;
    let environment = environment(&config)?;
    if arguments.sessions > 1 {
        refuse_single_life(&config)?;
    }
    let store = Store::open(&arguments.baselines).map_err(Failure::usage)?;
    let surroundings = surroundings(&config, &mut servers);
    let _lock = lock(
        &arguments.lock,
        &config,
        &surroundings.hardware,
        &context.stop,
        terminal,
    )?;
    let mut display = Display::new(terminal);
    let mut codes = vec![0];
    let mut same_life = false;
    for session in 1..=arguments.sessions {
        if session > 1 {
            // The next session is to be another life of the server.
            if let Some(complaint) = servers.stop_launched() {
                display.note(&format!("warning: {complaint}"));
            }
        }
        for scenario in &config.scenarios {
            if context.stop.is_set() {
                codes.push(Exit::Interrupted.code());
                break;
            }
            let recorded = record(
                &context.handle(),
                &context.stop,
                &store,
                &environment,
                scenario,
                arguments.duration,
                &mut servers,
                &surroundings,
                &mut display,
            );
            same_life |= recorded.same_life;
            match recorded.file {
                Ok(file) => {
                    use crate::check::Observer as _;
                    display.note(&format!(
                        "recorded {} (session {session} of {}): {}",
                        recorded.scenario,
                        arguments.sessions,
                        file.display()
                    ));
                }
                Err(reason) => {
                    use crate::check::Observer as _;
                    let code = if reason.code == "interrupted" {
                        Exit::Interrupted
                    } else {
                        Exit::NotMeasured
                    };
                    codes.push(code.code());
                    display.note(&format!("error: {}: {}", recorded.scenario, reason.text));
                    if !reason.next.is_empty() {
                        display.note(&format!("  next: {}", reason.next));
                    }
                }
            }
        }
    }
    drop(display);
    if same_life {
        terminal.say(
            "note: the server was not restarted since the last session: both visits count as one \
             session. Restart it, or let the gate do so ([server] launch, model_control)",
        );
    }
    Ok(worst_exit(codes))
}

/// Several sessions need several lives of a server.
fn refuse_single_life(config: &Config) -> Result<(), Failure> {
    let single = config
        .scenarios
        .iter()
        .find(|scenario| scenario.server.launch.is_empty() && !scenario.server.explicit_models);
    match single {
        None => Ok(()),
        Some(scenario) => Err(Failure::usage(format!(
            "several sessions of {:?} need a server that the gate can restart: repeated visits to \
             one running server are one session",
            scenario.name
        ))
        .next(
            "set [server] launch or model_control = \"explicit\", or record once after each \
             restart of your own",
        )),
    }
}

fn open(arguments: &StoreArgs) -> Result<Store, Failure> {
    Store::open(&arguments.baselines).map_err(Failure::usage)
}

fn entries(arguments: &StoreArgs) -> Result<Vec<Entry>, Failure> {
    let entries = open(arguments)?.list().map_err(Failure::usage)?;
    Ok(entries
        .into_iter()
        .filter(|entry| {
            arguments
                .environment
                .as_ref()
                .is_none_or(|name| *name == entry.environment)
        })
        .collect())
}

fn list(terminal: Terminal, arguments: &StoreArgs) -> Result<u8, Failure> {
    let entries = entries(arguments)?;
    if entries.is_empty() {
        return Err(none(arguments));
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["environment", "scenario", "sessions", "newest", "commit"]);
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
        ]);
    }
    terminal.data(&format!("{table}\n"))?;
    if damaged > 0 {
        for entry in &entries {
            if let Err(error) = &entry.session {
                terminal.warn(format!("{}: {error}", entry.path.display()));
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

fn show(terminal: Terminal, arguments: &StoreArgs, scenario: &str) -> Result<u8, Failure> {
    let all = entries(arguments)?;
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
    for entry in entries {
        let Ok(summary) = &entry.session else {
            table.add_row([entry.path.display().to_string(), "damaged".to_owned()]);
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
            if summary.complete {
                String::new()
            } else {
                "incomplete".to_owned()
            },
        ]);
    }
    terminal.data(&format!("{table}\n"))?;
    Ok(0)
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

fn prune(terminal: Terminal, arguments: &StoreArgs, keep: u32) -> Result<u8, Failure> {
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

fn rename(terminal: Terminal, arguments: &StoreArgs, from: &str, to: &str) -> Result<u8, Failure> {
    let renamed = open(arguments)?.rename(from, to).map_err(Failure::usage)?;
    terminal.say(format!(
        "renamed {from} to {to}: {} sessions",
        renamed.sessions
    ));
    Ok(0)
}

fn none(arguments: &StoreArgs) -> Failure {
    let place = arguments.baselines.display();
    let message = match &arguments.environment {
        Some(name) => format!("there is no baseline in {place} for environment {name:?}"),
        None => format!("there is no baseline in {place}"),
    };
    Failure::new(Exit::NoBaseline, message).next("record one with `triton-gate baseline record`")
}
