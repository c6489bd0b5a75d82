//! `triton-gate baseline import`.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::Utc;

use super::args::ImportArgs;
use super::store::open;
use crate::baseline::environment::{HASH_FIELD, slug};
use crate::baseline::perf_analyzer::{ImportInfo, levels};
use crate::baseline::{Measured, ReadError, Store, UNKNOWN_LIFE, life_of, read_any, session_id};
use crate::check::new_life;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::terminal::Terminal;
use crate::data::{Facts, Session, Side};

/// A session out of a file, on its way to the store.
struct Incoming {
    environment: String,
    session: Session,
    /// The file, for messages.
    file: String,
    /// True for another tool's.
    foreign: bool,
}

/// Takes sessions from files; everything that can be refused is refused before anything is
/// written.
pub fn run(terminal: Terminal, arguments: &ImportArgs) -> Result<u8, Failure> {
    let store = open(&arguments.store)?;
    let mut incoming = Vec::new();
    for file in &arguments.files {
        incoming.extend(read(arguments, &store, file)?);
    }
    let mut groups: BTreeMap<(String, String), Vec<Incoming>> = BTreeMap::new();
    for one in incoming {
        let key = (one.environment.clone(), one.session.scenario.clone());
        groups.entry(key).or_default().push(one);
    }
    let mut ready: Vec<Incoming> = Vec::new();
    let mut merged = Vec::new();
    for ((environment, scenario), mut group) in groups {
        let stored = store
            .all_sessions(&environment, &scenario)
            .map_err(Failure::usage)?;
        group.sort_by(|one, other| one.session.recorded_at.cmp(&other.session.recorded_at));
        if place(&mut group, stored, arguments.restarted)? {
            merged.push(scenario);
        }
        ready.extend(group);
    }
    for one in &ready {
        let path = store
            .append(&one.environment, &one.session)
            .map_err(Failure::usage)?;
        terminal.say(format!(
            "imported {} as {}: {} blocks",
            one.file,
            path.display(),
            one.session.blocks.len()
        ));
    }
    for scenario in merged {
        terminal.say(format!(
            "note: {scenario}: files that may be visits to one running server count as one \
             session; --restarted says that the server was restarted before each"
        ));
    }
    if let Some(one) = ready.iter().find(|one| one.foreign) {
        terminal.say(unknown(one));
    }
    Ok(0)
}

/// Gives each session its life and epoch beside those before it. True where several count as one.
fn place(
    group: &mut [Incoming],
    mut earlier: Vec<Session>,
    restarted: bool,
) -> Result<bool, Failure> {
    let epoch = earlier
        .iter()
        .map(|session| session.epoch)
        .max()
        .unwrap_or_default();
    let mut merged = false;
    for one in group {
        if earlier.iter().any(|other| other.id == one.session.id) {
            return Err(Failure::usage(format!(
                "{}: session {:?} is in the store already, or in two of the files",
                one.file, one.session.id
            ))
            .next("sessions never change; leave that file out"));
        }
        one.session.life = life_of(&one.session, &earlier, restarted, new_life());
        one.session.epoch = epoch;
        merged |= earlier
            .iter()
            .any(|other| other.epoch == epoch && other.life == one.session.life);
        earlier.push(one.session.clone());
    }
    Ok(merged)
}

fn read(arguments: &ImportArgs, store: &Store, path: &Path) -> Result<Vec<Incoming>, Failure> {
    let text = files::read(path, "the measurements")?;
    let file = path.display().to_string();
    match read_any(&text, &file) {
        Ok(Measured::Own(sessions)) => own(arguments, path, sessions),
        Ok(Measured::PerfAnalyzer(table)) => {
            let environment = arguments.store.environment.clone().ok_or_else(|| {
                Failure::usage(format!("{file}: a perf_analyzer file names no environment"))
                    .next("name the machine type that it was measured on: --environment h100")
            })?;
            let scenario = arguments.scenario.clone().ok_or_else(|| {
                Failure::usage(format!("{file}: a perf_analyzer file names no scenario"))
                    .next("name it as in the thresholds file: --scenario yolov9-c8")
            })?;
            let machine = store
                .environment_facts(&environment)
                .map_err(Failure::usage)?;
            let id = session_id(Utc::now(), arguments.commit.as_deref())
                .map_err(Failure::not_measured)?;
            let info = ImportInfo {
                side: Side::Candidate,
                scenario,
                model: arguments.model.clone().unwrap_or_default(),
                recorded_at: arguments.recorded_at.clone().unwrap_or_default(),
                commit: arguments.commit.clone(),
                id,
                environment: machine.unwrap_or_default(),
            };
            foreign(&table, &info, &environment, &file)
        }
        Err(ReadError::Own(error)) => Err(Failure::usage(error)),
        Err(ReadError::PerfAnalyzer(error)) => Err(Failure::usage(error)),
    }
}

fn foreign(
    table: &crate::baseline::perf_analyzer::Table,
    info: &ImportInfo,
    environment: &str,
    file: &str,
) -> Result<Vec<Incoming>, Failure> {
    let mut found = Vec::new();
    for level in levels(table, info) {
        if let Some(why) = level.invalid {
            return Err(Failure::usage(why).next("leave that level out of the file"));
        }
        if level.session.model.is_empty() {
            return Err(Failure::usage(format!("{file}: no column names the model"))
                .next("name it: --model yolov9"));
        }
        found.push(Incoming {
            environment: environment.to_owned(),
            session: level.session,
            file: file.to_owned(),
            foreign: true,
        });
    }
    Ok(found)
}

fn own(
    arguments: &ImportArgs,
    path: &Path,
    sessions: Vec<Session>,
) -> Result<Vec<Incoming>, Failure> {
    let file = path.display().to_string();
    let several = sessions.iter().any(|session| {
        sessions
            .first()
            .is_some_and(|first| first.scenario != session.scenario)
    });
    let mut found = Vec::new();
    for mut session in sessions {
        if !session.complete {
            return Err(Failure::usage(format!(
                "{file}: session {:?} was interrupted: it is no baseline",
                session.id
            ))
            .next("leave it out"));
        }
        Store::fill_in_beside(path, &mut session).map_err(Failure::usage)?;
        if let Some(scenario) = &arguments.scenario {
            if several {
                return Err(Failure::usage(format!(
                    "{file}: --scenario {scenario}, but the file holds several scenarios"
                ))
                .next("leave --scenario out: each keeps its own name"));
            }
            session.scenario.clone_from(scenario);
        }
        let known = Some(&session.environment).filter(|facts| facts.get(HASH_FIELD).is_none());
        let environment = arguments
            .store
            .environment
            .clone()
            .or_else(|| known.and_then(slug))
            .ok_or_else(|| {
                Failure::usage(format!(
                    "{file}: the file tells its environment by a hash alone"
                ))
                .next("name it as in the store: --environment h100")
            })?;
        // What a check measured is what a baseline is made of, whichever side it was.
        for block in &mut session.blocks {
            block.side = Side::Candidate;
        }
        found.push(Incoming {
            environment,
            session,
            file: file.clone(),
            foreign: false,
        });
    }
    Ok(found)
}

/// What another tool's file leaves open, and what that means for a check.
fn unknown(one: &Incoming) -> String {
    let session = &one.session;
    let mut empty = Vec::new();
    for (name, missing) in [
        ("time", session.recorded_at.is_empty()),
        ("commit", session.commit.is_none()),
        ("model version", session.model_version.is_empty()),
        ("machine", session.environment == Facts::default()),
        (
            "server restarts",
            session.life.as_deref() == Some(UNKNOWN_LIFE),
        ),
    ] {
        if missing {
            empty.push(name);
        }
    }
    empty.extend([
        "requests a block",
        "signature",
        "payload",
        "connections",
        "subject",
    ]);
    let mut allow: Vec<&str> = vec![
        "signature",
        "load.connections",
        "load.workers",
        "load.block_ms",
        "load.payload",
        "load.engine",
    ];
    if session.environment == Facts::default() {
        allow.extend(["gpu.name", "gpu.count", "gpu.mig", "cpu.model", "cpu.cores"]);
    }
    format!(
        "note: not in a perf_analyzer file, left empty: {}. `compare` takes it as it is; `check` \
         refuses to compare with what it cannot know to be equal, unless told to: {}",
        empty.join(", "),
        allow
            .iter()
            .map(|field| format!("--allow {field}"))
            .collect::<Vec<_>>()
            .join(" ")
    )
}
