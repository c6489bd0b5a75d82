use std::fs;
use std::path::Path;
use std::thread;

use super::*;
use crate::baseline::environment::{HASH_FIELD, identity_hash};
use crate::baseline::samples::session;
use crate::data::{Facts, Session};

const ENVIRONMENT: &str = "nvidia-l4";
const SCENARIO: &str = "resnet-c8";

fn at(id: &str, time: &str) -> Session {
    let mut session = session(id, 2);
    session.recorded_at = format!("2026-01-{time}Z");
    session
}

fn ids(sessions: &[Session]) -> Vec<&str> {
    sessions.iter().map(|session| session.id.as_str()).collect()
}

/// Every file below a folder, relative and sorted.
fn tree(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("list") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(
                    path.strip_prefix(root)
                        .expect("below")
                        .display()
                        .to_string(),
                );
            }
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn what_is_appended_comes_back_oldest_first_with_its_facts() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path().join("baselines")).expect("store");
    assert!(
        store
            .sessions(ENVIRONMENT, SCENARIO)
            .expect("none yet")
            .is_empty()
    );
    assert!(store.list().expect("none yet").is_empty());

    let newer = at("z", "31T12:00:00");
    // An offset that sorts wrongly as text.
    let mut older = at("y", "31T12:00:00");
    older.recorded_at = "2026-01-31T12:30:00+01:00".to_owned();
    store.append(ENVIRONMENT, &newer).expect("stored");
    store.append(ENVIRONMENT, &older).expect("stored");
    let mut cut = at("x", "31T13:00:00");
    cut.complete = false;
    store.append(ENVIRONMENT, &cut).expect("stored");

    assert_eq!(
        store.sessions(ENVIRONMENT, SCENARIO).expect("read"),
        [older, newer]
    );
    assert_eq!(
        store
            .all_sessions(ENVIRONMENT, SCENARIO)
            .expect("read")
            .len(),
        3
    );
    assert_eq!(store.environments().expect("list"), [ENVIRONMENT]);
    let complete: Vec<bool> = store
        .list()
        .expect("list")
        .into_iter()
        .map(|entry| entry.session.expect("readable").complete)
        .collect();
    assert_eq!(complete, [true, true, false]);
    // The machine type is readable, and holds nothing that differs between hosts.
    let machine: Facts = [("gpu.name", "NVIDIA L4")].into_iter().collect();
    assert_eq!(
        store.environment_facts(ENVIRONMENT).expect("read"),
        Some(machine)
    );
}

#[test]
fn a_session_is_never_overwritten() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    let first = at("a", "01T00:00:00");
    let path = store.append(ENVIRONMENT, &first).expect("stored");
    let before = fs::read(&path).expect("read");
    let error = store
        .append(ENVIRONMENT, &session("a", 1))
        .expect_err("taken");
    assert!(matches!(error, StoreError::Exists(_)), "{error}");
    assert_eq!(fs::read(&path).expect("read"), before);
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let root = tempfile::tempdir().expect("folder");
    let path = root.path().join("new");
    thread::scope(|scope| {
        for writer in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let store = Store::open(path).expect("store");
                for number in 0..5 {
                    let id = format!("w{writer}-{number}");
                    store.append(ENVIRONMENT, &session(&id, 1)).expect("stored");
                }
            });
        }
        let path = &path;
        scope.spawn(move || {
            let store = Store::open(path).expect("store");
            for _ in 0..5 {
                store.prune(100, false).expect("pruned");
                store.all_sessions(ENVIRONMENT, SCENARIO).expect("read");
            }
        });
    });
    let store = Store::open(&path).expect("store");
    let sessions = store.sessions(ENVIRONMENT, SCENARIO).expect("read");
    assert_eq!(sessions.len(), 40);
    assert!(sessions.iter().all(|session| !session.subject.0.is_empty()));
    assert_eq!(
        tree(&path).len(),
        43,
        "sessions, two facts files, environment.toml"
    );
}

#[test]
fn a_session_without_facts_keeps_its_hashes() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    let recorded = at("a", "01T00:00:00");
    store.append(ENVIRONMENT, &recorded).expect("stored");
    for folder in ["subjects", "environments"] {
        fs::remove_dir_all(root.path().join(ENVIRONMENT).join(SCENARIO).join(folder))
            .expect("removed");
    }
    let read = store
        .sessions(ENVIRONMENT, SCENARIO)
        .expect("read")
        .remove(0);
    assert!(read.subject.0.is_empty());
    assert_eq!(read.subject_hash, recorded.subject.hash());
    let hash = identity_hash(&recorded.environment);
    assert_eq!(read.environment.get(HASH_FIELD), Some(hash.as_str()));
}

#[test]
fn damage_is_named_when_read_and_listed_beside_the_rest() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    store
        .append(ENVIRONMENT, &at("a", "01T00:00:00"))
        .expect("stored");
    let damaged = store
        .append(ENVIRONMENT, &at("b", "02T00:00:00"))
        .expect("stored");
    let whole = fs::read_to_string(&damaged).expect("read");
    fs::write(&damaged, &whole[..whole.len() - 3]).expect("cut");
    let error = store
        .sessions(ENVIRONMENT, SCENARIO)
        .expect_err("damaged")
        .to_string();
    assert!(error.contains("b.csv:3: the file is truncated"), "{error}");
    let list = store.list().expect("list");
    assert_eq!(
        list.iter().filter(|entry| entry.session.is_err()).count(),
        1
    );
    // Pruning leaves it for a person to see.
    store
        .append(ENVIRONMENT, &at("c", "03T00:00:00"))
        .expect("stored");
    store.prune(1, false).expect("pruned");
    assert!(damaged.exists());

    fs::write(&damaged, whole.replace(SCENARIO, "other")).expect("written");
    let error = store
        .sessions(ENVIRONMENT, SCENARIO)
        .expect_err("misplaced");
    assert!(matches!(error, StoreError::Misplaced { .. }), "{error}");
    fs::copy(damaged.with_file_name("c.csv"), &damaged).expect("copied");
    let error = store.sessions(ENVIRONMENT, SCENARIO).expect_err("twice");
    assert!(matches!(error, StoreError::Twice { .. }), "{error}");
}

#[test]
fn edited_facts_are_noticed_and_put_right_by_the_next_session() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    let recorded = at("a", "01T00:00:00");
    store.append(ENVIRONMENT, &recorded).expect("stored");
    let facts = root
        .path()
        .join(ENVIRONMENT)
        .join(SCENARIO)
        .join("subjects")
        .join(format!("{}.toml", recorded.subject.hash()));
    let text = fs::read_to_string(&facts).expect("read");
    fs::write(&facts, text.replace("2.51.0", "2.52.0")).expect("edited");
    let error = store
        .sessions(ENVIRONMENT, SCENARIO)
        .expect_err("edited")
        .to_string();
    assert!(error.contains("was edited"), "{error}");
    store
        .append(ENVIRONMENT, &at("b", "02T00:00:00"))
        .expect("stored");
    assert_eq!(
        store.sessions(ENVIRONMENT, SCENARIO).expect("read").len(),
        2
    );
}

#[test]
fn pruning_keeps_the_newest_complete_sessions_and_their_facts() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    for day in 1..=5 {
        let mut session = at(&format!("s{day}"), &format!("0{day}T00:00:00"));
        session.complete = day != 5 && day != 2;
        session.subject.set("day", day.to_string());
        session.subject_hash = session.subject.hash();
        store.append(ENVIRONMENT, &session).expect("stored");
    }
    assert!(matches!(store.prune(0, false), Err(StoreError::KeepNone)));
    assert_eq!(store.prune(2, true).expect("planned").len(), 2);
    assert_eq!(store.list().expect("list").len(), 5);
    let deleted = store.prune(2, false).expect("pruned");
    let names: Vec<_> = deleted.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["s1.csv", "s2.csv"]);
    assert_eq!(
        ids(&store.all_sessions(ENVIRONMENT, SCENARIO).expect("read")),
        ["s3", "s4", "s5"]
    );
    let subjects = root
        .path()
        .join(ENVIRONMENT)
        .join(SCENARIO)
        .join("subjects");
    assert_eq!(fs::read_dir(subjects).expect("list").count(), 3);
    assert!(store.prune(2, false).expect("pruned").is_empty());
}

#[test]
fn renaming_moves_everything_or_nothing() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    store
        .append(ENVIRONMENT, &at("a", "01T00:00:00"))
        .expect("stored");
    store
        .append("other", &at("b", "02T00:00:00"))
        .expect("stored");
    let before = store.sessions(ENVIRONMENT, SCENARIO).expect("read");
    let stray = root.path().join("other").join(SCENARIO).join("notes.txt");
    fs::write(&stray, "mine").expect("written");

    let renamed = store.rename(SCENARIO, "new").expect("renamed");
    assert_eq!(renamed.sessions, 2);
    assert_eq!(renamed.environments, [ENVIRONMENT, "other"]);
    assert_eq!(renamed.left, [stray.parent().expect("folder")]);
    let mut after = store.sessions(ENVIRONMENT, "new").expect("read");
    after[0].scenario = SCENARIO.to_owned();
    assert_eq!(after, before);
    assert!(stray.exists());
    assert!(
        store
            .sessions(ENVIRONMENT, SCENARIO)
            .expect("read")
            .is_empty()
    );

    assert!(matches!(
        store.rename("nothing", "x"),
        Err(StoreError::Missing(_))
    ));
    store
        .append(ENVIRONMENT, &at("c", "03T00:00:00"))
        .expect("stored");
    let files = tree(root.path());
    assert!(matches!(
        store.rename("new", SCENARIO),
        Err(StoreError::Exists(_))
    ));
    assert_eq!(tree(root.path()), files);
}

#[test]
fn deleting_takes_one_session() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    store
        .append(ENVIRONMENT, &at("a", "01T00:00:00"))
        .expect("stored");
    store
        .append(ENVIRONMENT, &at("b", "02T00:00:00"))
        .expect("stored");
    store.delete(ENVIRONMENT, SCENARIO, "a").expect("deleted");
    assert_eq!(
        ids(&store.sessions(ENVIRONMENT, SCENARIO).expect("read")),
        ["b"]
    );
    assert!(matches!(
        store.delete(ENVIRONMENT, SCENARIO, "a"),
        Err(StoreError::Missing(_))
    ));
    assert!(matches!(
        store.delete(ENVIRONMENT, SCENARIO, "../b"),
        Err(StoreError::BadName { .. })
    ));
}

#[test]
fn nothing_outside_the_store_is_read_or_written() {
    let root = tempfile::tempdir().expect("folder");
    let outside = tempfile::tempdir().expect("folder");
    let elsewhere = Store::open(outside.path()).expect("store");
    let stored = elsewhere
        .append(ENVIRONMENT, &at("a", "01T00:00:00"))
        .expect("stored");
    let before = tree(outside.path());

    let store = Store::open(root.path()).expect("store");
    for name in ["..", "/etc", "a/b", ""] {
        assert!(store.append(name, &session("b", 1)).is_err(), "{name}");
        assert!(store.sessions(name, SCENARIO).is_err(), "{name}");
    }
    let mut odd = session("b", 1);
    odd.scenario = "../x".to_owned();
    assert!(store.append(ENVIRONMENT, &odd).is_err());
    odd = session("../b", 1);
    assert!(store.append(ENVIRONMENT, &odd).is_err());

    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(outside.path().join(ENVIRONMENT), root.path().join("linked")).expect("link");
        assert!(store.environments().expect("list").is_empty());
        let error = store.append("linked", &session("b", 1)).expect_err("link");
        assert!(matches!(error, StoreError::InTheWay { .. }), "{error}");
        assert!(store.sessions("linked", SCENARIO).is_err());
        // A linked session is not read either.
        store
            .append(ENVIRONMENT, &at("c", "03T00:00:00"))
            .expect("stored");
        symlink(
            stored,
            root.path().join(ENVIRONMENT).join(SCENARIO).join("a.csv"),
        )
        .expect("link");
        assert_eq!(
            ids(&store.sessions(ENVIRONMENT, SCENARIO).expect("read")),
            ["c"]
        );
    }
    assert_eq!(tree(outside.path()), before);
}

#[test]
fn a_failed_write_leaves_nothing_and_says_where() {
    let root = tempfile::tempdir().expect("folder");
    fs::write(root.path().join("file"), "").expect("written");
    assert!(matches!(
        Store::open(root.path().join("file")),
        Err(StoreError::InTheWay { .. })
    ));
    let store = Store::open(root.path()).expect("store");
    let error = store
        .append("file", &session("a", 1))
        .expect_err("in the way")
        .to_string();
    assert!(
        error.ends_with("file: a file stands where a folder belongs: move it away"),
        "{error}"
    );
    assert_eq!(tree(root.path()), ["file"]);

    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = StoreError::io("write", Path::new("x.csv"))(full).to_string();
    assert!(error.contains("cannot write x.csv"), "{error}");
    assert!(
        error.contains("nothing was written: free some space"),
        "{error}"
    );
}

#[test]
fn leftovers_of_other_programs_are_passed_over() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    store
        .append(ENVIRONMENT, &at("a", "01T00:00:00"))
        .expect("stored");
    let folder = root.path().join(ENVIRONMENT).join(SCENARIO);
    for name in [
        ".tmp-1.partial",
        ".a.csv.swp",
        "README.md",
        "a.csv~",
        "-x.csv",
        ".b.csv",
    ] {
        fs::write(folder.join(name), "rubbish").expect("written");
    }
    fs::create_dir(folder.join("folder.csv")).expect("created");
    assert_eq!(
        ids(&store.sessions(ENVIRONMENT, SCENARIO).expect("read")),
        ["a"]
    );
    assert_eq!(store.list().expect("list").len(), 1);
}

#[test]
fn pinned_sessions_outlive_pruning_with_their_facts() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    for day in 1..=3 {
        let mut session = at(&format!("s{day}"), &format!("0{day}T00:00:00"));
        session.subject.set("day", day.to_string());
        session.subject_hash = session.subject.hash();
        session.commit = Some(format!("commit{day}"));
        store.append(ENVIRONMENT, &session).expect("stored");
    }
    let sessions = store.sessions(ENVIRONMENT, SCENARIO).expect("read");
    let pin = |sessions: &[Session]| store.pin(ENVIRONMENT, SCENARIO, sessions, "v1");
    assert_eq!(pin(&sessions[..1]).expect("pinned"), 1);
    assert_eq!(pin(&sessions[..1]).expect("again"), 0);
    assert!(matches!(
        pin(&sessions[1..2]),
        Err(StoreError::PinTaken { .. })
    ));
    assert!(matches!(
        store.pin(ENVIRONMENT, SCENARIO, &sessions[..1], "v 1"),
        Err(StoreError::BadName { .. })
    ));
    assert_eq!(store.prune(1, false).expect("pruned").len(), 2);
    assert_eq!(
        ids(&store.sessions(ENVIRONMENT, SCENARIO).expect("read")),
        ["s3"]
    );
    let pins = store.pins(ENVIRONMENT, SCENARIO).expect("read");
    assert_eq!(pins.len(), 1);
    assert_eq!(pins[0].sessions, sessions[..1]);
    // What is gone cannot be pinned.
    assert!(matches!(
        store.pin(ENVIRONMENT, SCENARIO, &sessions[1..2], "v2"),
        Err(StoreError::Missing(_))
    ));
    let renamed = store.rename(SCENARIO, "new").expect("renamed");
    assert_eq!((renamed.sessions, renamed.left.len()), (1, 0));
    assert_eq!(store.pins(ENVIRONMENT, "new").expect("read").len(), 1);
    assert_eq!(store.unpin(ENVIRONMENT, "v1").expect("unpinned"), ["new"]);
    assert!(store.pins(ENVIRONMENT, "new").expect("read").is_empty());
}

#[test]
fn pruning_counts_lives_of_servers_not_visits() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    for (day, life) in [(1, "x"), (2, "y"), (3, "y"), (4, "y"), (5, "z")] {
        let mut session = at(&format!("s{day}"), &format!("0{day}T00:00:00"));
        session.life = Some(life.to_owned());
        store.append(ENVIRONMENT, &session).expect("stored");
    }
    // Two lives, and two visits of each.
    let deleted = store
        .prune_scenario(ENVIRONMENT, SCENARIO, 2)
        .expect("pruned");
    let names: Vec<_> = deleted.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["s1.csv", "s2.csv"]);
}

#[test]
fn a_file_without_an_epoch_is_of_the_first() {
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    let mut later = at("b", "02T00:00:00");
    later.epoch = 3;
    let path = store.append(ENVIRONMENT, &later).expect("stored");
    let text = fs::read_to_string(&path).expect("read");
    assert_eq!(Store::read_file(&path).expect("read").epoch, 3);
    fs::write(&path, text.replacen(",epoch,", ",other,", 1)).expect("written");
    assert_eq!(Store::read_file(&path).expect("read").epoch, 0);
}
