//! The files that history is read from. Nothing in them is fatal: what cannot be used is named.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::document::{Check, Unusable, Value, parse};
use super::series::StoredSession;
use crate::baseline::{Store, StoreError, session_csv};
use crate::data::{Metric, Session, Side};

/// Result files read at most, the newest by name: those of years.
const MOST_FILES: usize = 100_000;
/// A result of hundreds of scenarios is far smaller.
const MOST_BYTES: u64 = 64 << 20;

/// A file that is no part of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file or folder.
    pub file: String,
    /// Why.
    pub why: String,
}

/// What was read and what was not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Checks, oldest first.
    pub checks: Vec<Check>,
    /// Stored sessions, oldest first.
    pub sessions: Vec<StoredSession>,
    /// Files that were passed over.
    pub skipped: Vec<Skipped>,
}

/// Reads the results of checks in `folder` and in the folders of environments in it. A folder that
/// is not there holds none.
///
/// One file is in memory at a time. A check that lies in two files counts once. Links are not
/// followed.
///
/// # Errors
/// `folder` cannot be listed.
pub fn read_results(folder: &Path, found: &mut Found) -> io::Result<()> {
    let mut files = Vec::new();
    for (path, kind) in listed(folder)? {
        if kind.is_dir() {
            match listed(&path) {
                Ok(inner) => files.extend(inner.into_iter().filter(is_result)),
                Err(error) => found.skip(&path, error),
            }
        } else if is_result(&(path.clone(), kind)) {
            files.push((path, kind));
        }
    }
    // Names begin with the time, so that the newest are kept.
    files.sort_by(|(one, _), (other, _)| one.file_name().cmp(&other.file_name()));
    let beyond = files.len().saturating_sub(MOST_FILES);
    if beyond > 0 {
        found.skip(
            folder,
            format!("the {beyond} oldest files were left out: at most {MOST_FILES} are read"),
        );
    }
    let mut seen = BTreeSet::new();
    for (path, _) in files.into_iter().skip(beyond) {
        match read(&path) {
            Ok(check) => {
                if seen.insert(identity(&check)) {
                    found.checks.push(check);
                }
            }
            Err(why) => found.skip(&path, why),
        }
    }
    // By the time recorded; of one second, in the order of the files.
    found.checks.sort_by_key(|check| check.at);
    Ok(())
}

fn is_result((path, kind): &(PathBuf, FileType)) -> bool {
    kind.is_file() && path.extension().is_some_and(|ending| ending == "json")
}

fn listed(folder: &Path) -> io::Result<Vec<(PathBuf, FileType)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries
        .map(|entry| {
            let entry = entry?;
            Ok((entry.path(), entry.file_type()?))
        })
        .collect()
}

fn read(path: &Path) -> Result<Check, Unusable> {
    let unreadable = |error: io::Error| Unusable::Unreadable(format!("failed to read: {error}"));
    let size = fs::metadata(path).map_err(unreadable)?.len();
    if size > MOST_BYTES {
        return Err(Unusable::Unreadable(format!(
            "{size} bytes, at most {MOST_BYTES} are read"
        )));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| Unusable::NotJson(format!("not UTF-8: {error}")))?;
    parse(text, &path.display().to_string())
}

/// What two files of one check share.
fn identity(check: &Check) -> String {
    let mut text = format!("{} {}", check.at, check.environment);
    for scenario in &check.scenarios {
        let _ = write!(text, "\n{}", scenario.name);
        for (_, value) in &scenario.values {
            let _ = write!(text, " {:x}", value.value.to_bits());
        }
    }
    text
}

/// Reads every complete session of the store.
///
/// # Errors
/// A folder of the store cannot be listed.
pub fn read_baselines(store: &Store, found: &mut Found) -> Result<(), StoreError> {
    for entry in store.list()? {
        if let Err(why) = entry.session {
            found.skip(&entry.path, why);
            continue;
        }
        let file = entry.path.display().to_string();
        let read = fs::read(&entry.path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| {
                session_csv::read_bytes(&bytes, &file).map_err(|error| error.to_string())
            });
        match read {
            Ok(session) if !session.complete => {}
            Ok(session) => match DateTime::parse_from_rfc3339(&session.recorded_at) {
                Ok(at) => found.sessions.push(stored(
                    session,
                    entry.environment,
                    file,
                    at.with_timezone(&Utc),
                )),
                Err(_) => found.skip(&entry.path, Unusable::NoTime(session.recorded_at.clone())),
            },
            Err(why) => found.skip(&entry.path, why),
        }
    }
    found.sessions.sort_by_key(|session| session.at);
    Ok(())
}

fn stored(session: Session, environment: String, file: String, at: DateTime<Utc>) -> StoredSession {
    let values = Metric::ALL
        .into_iter()
        .filter_map(|metric| {
            let value = level(&session, metric)?;
            let value = Value {
                value,
                change: None,
                verdict: None,
            };
            Some((metric, value))
        })
        .collect();
    // In the words of a check's result, so that both fall into one series.
    let load = session.load.concurrency.map_or_else(
        || format!("another load, batch {}", session.load.batch),
        |concurrency| format!("concurrency {concurrency}, batch {}", session.load.batch),
    );
    StoredSession {
        file,
        at,
        environment,
        scenario: session.scenario,
        model: session.model,
        load,
        commit: session.commit.filter(|commit| !commit.is_empty()),
        branch: session.branch.filter(|branch| !branch.is_empty()),
        dirty: session.dirty,
        values,
    }
}

/// A session's level as a check estimates its candidate's: the geometric mean over its blocks. Of
/// values that can be zero the arithmetic one.
fn level(session: &Session, metric: Metric) -> Option<f64> {
    let own = |side: Side| {
        session
            .blocks
            .iter()
            .filter(move |block| block.side == side)
    };
    let side = if own(Side::Candidate).next().is_some() {
        Side::Candidate
    } else {
        Side::Baseline
    };
    let values: Vec<f64> = own(side)
        .map(|block| block.value(metric))
        .collect::<Option<_>>()?;
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let count = values.len() as f64;
    if values.iter().all(|value| *value > 0.0) {
        Some((values.iter().map(|value| value.ln()).sum::<f64>() / count).exp())
    } else {
        Some(values.iter().sum::<f64>() / count)
    }
}

impl Found {
    fn skip(&mut self, path: &Path, why: impl std::fmt::Display) {
        self.skipped.push(Skipped {
            file: path.display().to_string(),
            why: why.to_string(),
        });
    }
}
