//! Pruning, renaming and deleting.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::folders::{entries, must_be_own, session_files};
use super::names;
use super::pins::{PINS, pin_folders};
use super::sessions::{ENVIRONMENTS, SUBJECTS, Store, age_key, read_session};
use crate::baseline::environment::ADDRESS_FIELD;
use crate::baseline::files::{create_folders, sync_folder, write_new};
use crate::baseline::session_csv;
use crate::data::Session;

/// What renaming did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renamed {
    /// The environments in which the scenario was renamed.
    pub environments: Vec<String>,
    /// Sessions that were moved.
    pub sessions: usize,
    /// Old folders that still hold files that are none of the store's, or that came meanwhile.
    pub left: Vec<PathBuf>,
}

/// A lock on a scenario's folder, let go when dropped; none where the file system has no locks.
pub(super) fn lock_shared(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    file.lock_shared().ok()?;
    Some(file)
}

fn lock_exclusive(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    file.lock().ok()?;
    Some(file)
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io("delete", path)(error))
        }
        _ => Ok(()),
    }
}

impl Store {
    /// Deletes one session. Its facts stay until pruned.
    ///
    /// # Errors
    /// No such session; the operating system.
    pub fn delete(
        &self,
        environment: &str,
        scenario: &str,
        session: &str,
    ) -> Result<PathBuf, StoreError> {
        names::check("session", session)?;
        let folder = self.folder(environment, scenario)?;
        let path = folder.join(format!("{session}.csv"));
        match fs::remove_file(&path) {
            Ok(()) => {
                sync_folder(&folder).map_err(StoreError::io("flush", &folder))?;
                self.publish(&format!("delete {environment}/{scenario} {session}"))?;
                Ok(self.shown(&path))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(StoreError::Missing(path))
            }
            Err(error) => Err(StoreError::io("delete", &path)(error)),
        }
    }

    /// Deletes all but the newest `keep` complete sessions of every scenario, and the
    /// interrupted ones that are older than those. Visits to one life of a server are one session,
    /// of which the newest `keep` visits stay. Pinned sessions stay, and so do damaged files for a
    /// person to see. Returns the deleted session files, or with `dry_run` those that would be deleted.
    ///
    /// # Errors
    /// `keep` of 0; the operating system.
    pub fn prune(&self, keep: usize, dry_run: bool) -> Result<Vec<PathBuf>, StoreError> {
        if keep == 0 {
            return Err(StoreError::KeepNone);
        }
        let mut deleted = Vec::new();
        for environment in self.environments()? {
            for scenario in self.scenarios(&environment)? {
                let folder = self.folder(&environment, &scenario)?;
                deleted.extend(prune_folder(&folder, keep, dry_run)?);
            }
        }
        if !deleted.is_empty() && !dry_run {
            self.publish(&format!("prune to {keep} sessions"))?;
        }
        Ok(deleted.iter().map(|path| self.shown(path)).collect())
    }

    /// As [`Self::prune`] for one scenario of one environment.
    ///
    /// # Errors
    /// As [`Self::prune`].
    pub fn prune_scenario(
        &self,
        environment: &str,
        scenario: &str,
        keep: usize,
    ) -> Result<Vec<PathBuf>, StoreError> {
        if keep == 0 {
            return Err(StoreError::KeepNone);
        }
        let folder = self.folder(environment, scenario)?;
        let deleted = prune_folder(&folder, keep, false)?;
        if !deleted.is_empty() {
            self.publish(&format!(
                "prune {environment}/{scenario} to {keep} sessions"
            ))?;
        }
        Ok(deleted.iter().map(|path| self.shown(path)).collect())
    }

    /// Gives a scenario another name in every environment, its sessions with it.
    ///
    /// The new folder is complete before the old one goes, so that no session is ever missing.
    ///
    /// # Errors
    /// No such scenario; the new name is taken somewhere; a damaged session; the operating
    /// system.
    pub fn rename(&self, scenario: &str, new: &str) -> Result<Renamed, StoreError> {
        names::check("scenario", scenario)?;
        names::check("scenario", new)?;
        let mut moves = Vec::new();
        for environment in self.environments()? {
            let old = self.folder(&environment, scenario)?;
            if !old.is_dir() {
                continue;
            }
            let target = self.folder(&environment, new)?;
            if target.exists() {
                return Err(StoreError::Exists(target));
            }
            moves.push((environment, old, target));
        }
        if moves.is_empty() {
            return Err(StoreError::Missing(self.root.join("*").join(scenario)));
        }
        // All that can be refused is refused before anything is written.
        let mut rewritten = Vec::new();
        for (_, old, _) in &moves {
            let mut files = Vec::new();
            let mut paths = session_files(old)?;
            for (_, pin) in pin_folders(old)? {
                paths.extend(session_files(&pin)?);
            }
            for path in paths {
                if read_session(&path)?.is_none() {
                    continue;
                }
                let text = fs::read_to_string(&path).map_err(StoreError::io("read", &path))?;
                let text = session_csv::with_scenario(&text, &path.display().to_string(), new)?;
                files.push((path, text));
            }
            rewritten.push(files);
        }
        let mut renamed = Renamed::default();
        for ((environment, old, target), files) in moves.into_iter().zip(rewritten) {
            renamed.sessions += files
                .iter()
                .filter(|(path, _)| path.parent() == Some(old.as_path()))
                .count();
            move_folder(&old, &target, &files)?;
            if old.exists() {
                renamed.left.push(old);
            }
            renamed.environments.push(environment);
        }
        self.publish(&format!("rename {scenario} to {new}"))?;
        Ok(renamed)
    }
}

fn move_folder(old: &Path, target: &Path, files: &[(PathBuf, String)]) -> Result<(), StoreError> {
    // No session is being stored there while its folder goes.
    let _lock = lock_exclusive(old);
    let facts = facts_files(old)?;
    let outer = target.parent().unwrap_or(Path::new("."));
    // Built under a name that readers pass over.
    let building = tempfile::Builder::new()
        .prefix(".renaming-")
        .tempdir_in(outer)
        .map_err(StoreError::io("create a folder in", outer))?;
    open_to_others(building.path())?;
    for (path, text) in files {
        if let Ok(name) = path.strip_prefix(old) {
            let copy = building.path().join(name);
            let folder = copy.parent().unwrap_or(building.path());
            create_folders(folder).map_err(StoreError::io("create", folder))?;
            write_new(&copy, text.as_bytes()).map_err(StoreError::io("write", &copy))?;
        }
    }
    for (kind, path) in &facts {
        let folder = building.path().join(kind);
        create_folders(&folder).map_err(StoreError::io("create", &folder))?;
        let content = fs::read(path).map_err(StoreError::io("read", path))?;
        if let Some(name) = path.file_name() {
            let copy = folder.join(name);
            write_new(&copy, &content).map_err(StoreError::io("write", &copy))?;
        }
    }
    // Fails where somebody else made that folder meanwhile; then nothing has changed.
    fs::rename(building.path(), target).map_err(StoreError::io("rename a folder to", target))?;
    sync_folder(outer).map_err(StoreError::io("flush", outer))?;

    for (path, _) in files {
        remove(path)?;
    }
    // A session that another process stored in the old folder meanwhile keeps its facts.
    if session_files(old)?.is_empty() {
        for (_, path) in &facts {
            remove(path)?;
        }
        // Each fails where something else is left in it; the caller says so.
        let _ = fs::remove_dir(old.join(SUBJECTS));
        let _ = fs::remove_dir(old.join(ENVIRONMENTS));
        for (_, pin) in pin_folders(old)? {
            let _ = fs::remove_dir(pin);
        }
        let _ = fs::remove_dir(old.join(PINS));
        let _ = fs::remove_dir(old);
    }
    sync_folder(outer).map_err(StoreError::io("flush", outer))
}

/// Temporary folders are private; a scenario's is like any other folder beside it.
fn open_to_others(folder: &Path) -> Result<(), StoreError> {
    #[cfg(unix)]
    {
        let outer = folder.parent().unwrap_or(Path::new("."));
        let permissions = fs::metadata(outer)
            .map_err(StoreError::io("look at", outer))?
            .permissions();
        fs::set_permissions(folder, permissions).map_err(StoreError::io("open", folder))?;
    }
    Ok(())
}

/// The facts files beside a scenario's sessions, each with the folder that it belongs in.
fn facts_files(folder: &Path) -> Result<Vec<(&'static str, PathBuf)>, StoreError> {
    let mut found = Vec::new();
    for kind in [SUBJECTS, ENVIRONMENTS] {
        let inner = folder.join(kind);
        must_be_own(&inner)?;
        for (path, file_type) in entries(&inner)? {
            if file_type.is_file() && path.extension().is_some_and(|ending| ending == "toml") {
                found.push((kind, path));
            }
        }
    }
    Ok(found)
}

/// The lives of servers among the sessions that are kept, newest first.
#[derive(Default)]
struct Lives {
    /// Marks of lives with their complete visits so far; a session without one is its own life.
    marked: BTreeMap<(u32, String), usize>,
    unmarked: usize,
}

impl Lives {
    /// Whether the next older session belongs to the newest `most` lives and to the newest `most`
    /// visits of its own.
    fn keep(&mut self, session: &Session, most: usize) -> bool {
        let full = self.marked.len() + self.unmarked >= most;
        let Some(mark) = &session.life else {
            if !full {
                self.unmarked += usize::from(session.complete);
            }
            return !full;
        };
        let key = (session.epoch, mark.clone());
        match self.marked.get_mut(&key) {
            Some(visits) if *visits >= most => false,
            Some(visits) => {
                *visits += usize::from(session.complete);
                true
            }
            None if full => false,
            None => {
                if session.complete {
                    self.marked.insert(key, 1);
                }
                true
            }
        }
    }
}

fn prune_folder(folder: &Path, keep: usize, dry_run: bool) -> Result<Vec<PathBuf>, StoreError> {
    let lock = lock_exclusive(folder);
    let mut read = Vec::new();
    let mut damaged = false;
    for path in session_files(folder)? {
        match read_session(&path) {
            Ok(Some(session)) => read.push((path, session)),
            Ok(None) => {}
            Err(_) => damaged = true,
        }
    }
    read.sort_by_cached_key(|(_, session)| age_key(&session.recorded_at, &session.id));
    let mut lives = Lives::default();
    let mut kept: Vec<Session> = Vec::new();
    let mut deleted = Vec::new();
    for (path, session) in read.into_iter().rev() {
        if lives.keep(&session, keep) {
            kept.push(session);
        } else {
            deleted.push(path);
        }
    }
    deleted.reverse();
    if dry_run {
        return Ok(deleted);
    }
    for path in &deleted {
        remove(path)?;
    }
    // Only under a lock can no session that is being stored still need them; and a damaged
    // session may be restored one day.
    for (_, pin) in pin_folders(folder)? {
        for path in session_files(&pin)? {
            match read_session(&path) {
                Ok(session) => kept.extend(session),
                Err(_) => damaged = true,
            }
        }
    }
    if lock.is_some() && !damaged && !deleted.is_empty() {
        let needed: BTreeSet<String> = kept
            .iter()
            .flat_map(|session| {
                [
                    Some(session.subject_hash.as_str()),
                    session.environment.get(ADDRESS_FIELD),
                ]
            })
            .flatten()
            .map(|hash| format!("{hash}.toml"))
            .collect();
        for (_, path) in facts_files(folder)? {
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| !needed.contains(name)) {
                remove(&path)?;
            }
        }
    }
    if !deleted.is_empty() {
        sync_folder(folder).map_err(StoreError::io("flush", folder))?;
    }
    Ok(deleted)
}
