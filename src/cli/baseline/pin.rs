//! `triton-gate baseline pin` and `unpin`.

use std::path::Path;

use super::args::{PinArgs, StoreArgs};
use super::store::{environments, none, open};
use crate::cli::failure::Failure;
use crate::cli::terminal::Terminal;
use crate::data::Session;
use crate::probe::commit_of;
use crate::report::Exit;

/// The shortest beginning of a commit that names one.
const SHORTEST_COMMIT: usize = 4;

/// Which sessions are meant.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Session(String),
    /// A commit or its beginning.
    Commit(String),
}

impl Wanted {
    fn matches(&self, session: &Session) -> bool {
        match self {
            Self::Session(id) => session.id == *id,
            Self::Commit(commit) => session
                .commit
                .as_deref()
                .is_some_and(|own| own.starts_with(commit.as_str())),
        }
    }
}

/// Keeps the sessions of a release under a name.
pub fn pin(terminal: Terminal, arguments: &PinArgs) -> Result<u8, Failure> {
    let store = open(&arguments.store)?;
    let mut found: Vec<(String, Session)> = Vec::new();
    for environment in environments(&arguments.store, &store)? {
        for scenario in store.scenarios(&environment).map_err(Failure::usage)? {
            if !arguments.only.is_empty() && !arguments.only.contains(&scenario) {
                continue;
            }
            let sessions = store
                .sessions(&environment, &scenario)
                .map_err(Failure::usage)?;
            found.extend(
                sessions
                    .into_iter()
                    .map(|session| (environment.clone(), session)),
            );
        }
    }
    if found.is_empty() {
        return Err(none(&arguments.store));
    }
    let sessions: Vec<&Session> = found.iter().map(|(_, session)| session).collect();
    let tag = commit_of(Path::new("."), &arguments.what);
    let wanted = choose(&arguments.what, tag, &sessions)?;
    found.retain(|(_, session)| wanted.matches(session));
    for group in
        found.chunk_by(|one, other| (&one.0, &one.1.scenario) == (&other.0, &other.1.scenario))
    {
        let Some((environment, first)) = group.first() else {
            continue;
        };
        let sessions: Vec<Session> = group.iter().map(|(_, session)| session.clone()).collect();
        let added = store
            .pin(environment, &first.scenario, &sessions, &arguments.name)
            .map_err(Failure::usage)?;
        terminal.say(format!(
            "pinned {environment}/{} as {}: {} added, {} there",
            first.scenario,
            arguments.name,
            crate::report::format::counted(added as u64, "session"),
            sessions.len() - added
        ));
    }
    Ok(0)
}

/// Decides what a word names: a session, the beginning of a stored commit, or a tag's commit.
fn choose(what: &str, tag: Option<String>, sessions: &[&Session]) -> Result<Wanted, Failure> {
    if sessions.iter().any(|session| session.id == what) {
        return Ok(Wanted::Session(what.to_owned()));
    }
    let with = |beginning: &str| -> Vec<&str> {
        let mut commits: Vec<&str> = sessions
            .iter()
            .filter_map(|session| session.commit.as_deref())
            .filter(|commit| commit.starts_with(beginning))
            .collect();
        commits.sort_unstable();
        commits.dedup();
        commits
    };
    let commits = if what.len() >= SHORTEST_COMMIT {
        with(what)
    } else {
        Vec::new()
    };
    match commits.as_slice() {
        [commit] => return Ok(Wanted::Commit((*commit).to_owned())),
        [] => {}
        several => {
            return Err(Failure::usage(format!(
                "{what:?} begins several stored commits: {}",
                several.join(", ")
            ))
            .next("give more of it"));
        }
    }
    if let Some(commit) = tag.filter(|commit| !with(commit).is_empty()) {
        return Ok(Wanted::Commit(commit));
    }
    let known: Vec<String> = with("")
        .into_iter()
        .map(|commit| commit.get(..7).unwrap_or(commit).to_owned())
        .collect();
    Err(Failure::new(
        Exit::NoBaseline,
        format!("no stored session is {what:?}, nor of that commit or tag"),
    )
    .next(if known.is_empty() {
        "name a session: `baseline show SCENARIO` lists them".to_owned()
    } else {
        format!(
            "stored commits: {}; record sessions of the release with `triton-gate baseline record`",
            known.join(", ")
        )
    }))
}

/// Lets a pinned release go.
pub fn unpin(terminal: Terminal, arguments: &StoreArgs, name: &str) -> Result<u8, Failure> {
    let store = open(arguments)?;
    let mut any = false;
    for environment in environments(arguments, &store)? {
        for scenario in store.unpin(&environment, name).map_err(Failure::usage)? {
            any = true;
            terminal.say(format!("unpinned {name} of {environment}/{scenario}"));
        }
    }
    if any {
        return Ok(0);
    }
    Err(
        Failure::new(Exit::NoBaseline, format!("there is no pin {name:?}"))
            .next("`baseline list` shows the pins"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::samples::session;

    fn of(id: &str, commit: &str) -> Session {
        let mut session = session(id, 1);
        session.commit = Some(commit.to_owned());
        session
    }

    #[test]
    fn a_word_is_a_session_a_commit_or_a_tag() {
        let stored = [
            of("s1", "abcd1111"),
            of("s2", "abcd2222"),
            of("s3", "ef000000"),
        ];
        let sessions: Vec<&Session> = stored.iter().collect();
        let commit = |text: &str| Ok(Wanted::Commit(text.to_owned()));
        let table = [
            ("s2", None, Ok(Wanted::Session("s2".to_owned()))),
            ("ef00", None, commit("ef000000")),
            ("abcd1", None, commit("abcd1111")),
            ("v1", Some("abcd2222"), commit("abcd2222")),
            ("abcd", None, Err("several")),
            ("ef0", None, Err("no stored session")),
            ("v1", Some("9999"), Err("no stored session")),
            ("v1", None, Err("no stored session")),
        ];
        for (what, tag, expected) in table {
            let found = choose(what, tag.map(str::to_owned), &sessions);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{what}"),
                (Err(failure), Err(text)) => {
                    assert!(failure.message.contains(text), "{}", failure.message);
                }
                (found, _) => panic!("{what}: {found:?}"),
            }
        }
    }
}
