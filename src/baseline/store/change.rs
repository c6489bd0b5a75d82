//! Pruning, renaming and deleting.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::folders::{entries, must_be_own, session_files};
use super::names;
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
                Ok(path)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(StoreError::Missing(path))
            }
            Err(error) => Err(StoreError::io("delete", &path)(error)),
        }
    }

    /// Deletes all but the newest `keep` complete sessions of every scenario, and the
    /// interrupted ones that are older than those. Damaged files are left for a person to see.
    /// Returns the deleted session files, or with `dry_run` those that would be deleted.
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
        Ok(deleted)
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
            for path in session_files(old)? {
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
            renamed.sessions += files.len();
            move_folder(&old, &target, &files)?;
            if old.exists() {
                renamed.left.push(old);
            }
            renamed.environments.push(environment);
        }
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
        if let Some(name) = path.file_name() {
            let copy = building.path().join(name);
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
    let mut complete = 0;
    let mut kept: Vec<Session> = Vec::new();
    let mut deleted = Vec::new();
    for (path, session) in read.into_iter().rev() {
        if complete >= keep {
            deleted.push(path);
        } else {
            complete += usize::from(session.complete);
            kept.push(session);
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
