//! Pinned sessions: copies in `SCENARIO/pins/NAME/`, which no pruning touches.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::folders::{folders, must_be_own, session_files};
use super::names;
use super::sessions::{Store, age_key, fill_in, read_session};
use crate::baseline::files::{create_folders, sync_folder, write_new};
use crate::data::Session;

/// Folder of the pins beside a scenario's sessions.
pub(super) const PINS: &str = "pins";

/// The sessions of one pin, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Pin {
    /// Its name.
    pub name: String,
    /// What it keeps.
    pub sessions: Vec<Session>,
}

/// The folders of a scenario's pins by name.
pub(super) fn pin_folders(folder: &Path) -> Result<Vec<(String, PathBuf)>, StoreError> {
    let pins = folder.join(PINS);
    must_be_own(&pins)?;
    Ok(folders(&pins)?
        .into_iter()
        .filter(|name| names::check_pin(name).is_ok())
        .map(|name| {
            let path = pins.join(&name);
            (name, path)
        })
        .collect())
}

impl Store {
    /// Keeps sessions of a scenario under a name, whatever becomes of the originals. Sessions that
    /// the pin holds already stay as they are. Returns how many were added.
    ///
    /// # Errors
    /// A name that cannot be a pin's; no such session; a pin of that name that keeps another
    /// commit; the operating system.
    pub fn pin(
        &self,
        environment: &str,
        scenario: &str,
        sessions: &[Session],
        name: &str,
    ) -> Result<usize, StoreError> {
        names::check_pin(name)?;
        let folder = self.folder(environment, scenario)?;
        let target = folder.join(PINS).join(name);
        for kept in self.pin_sessions(environment, scenario, name)? {
            if sessions.iter().any(|session| session.commit != kept.commit) {
                return Err(StoreError::PinTaken {
                    path: target,
                    commit: kept.commit.unwrap_or_else(|| "(none)".to_owned()),
                });
            }
        }
        must_be_own(&folder.join(PINS))?;
        create_folders(&target).map_err(StoreError::io("create", &target))?;
        // Held so that pruning neither takes the originals nor their facts meanwhile.
        let _shared = super::change::lock_shared(&folder);
        let mut added = 0;
        for session in sessions {
            names::check("session", &session.id)?;
            let path = folder.join(format!("{}.csv", session.id));
            let content = match fs::read(&path) {
                Ok(content) => content,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(StoreError::Missing(path));
                }
                Err(error) => return Err(StoreError::io("read", &path)(error)),
            };
            let copy = target.join(format!("{}.csv", session.id));
            match write_new(&copy, &content) {
                Ok(()) => added += 1,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(StoreError::io("write", &copy)(error)),
            }
        }
        self.publish(&format!("pin {environment}/{scenario} as {name}"))?;
        Ok(added)
    }

    /// Removes a pin from every scenario of an environment; its sessions stay in the baseline as
    /// far as they were not pruned. Returns the scenarios that had it.
    ///
    /// # Errors
    /// The operating system.
    pub fn unpin(&self, environment: &str, name: &str) -> Result<Vec<String>, StoreError> {
        names::check_pin(name)?;
        let mut had = Vec::new();
        for scenario in self.scenarios(environment)? {
            let folder = self.folder(environment, &scenario)?;
            for (_, path) in pin_folders(&folder)?
                .into_iter()
                .filter(|(pin, _)| pin == name)
            {
                for file in session_files(&path)? {
                    fs::remove_file(&file).map_err(StoreError::io("delete", &file))?;
                }
                // Fails where something else is left in it, which is not the store's to delete.
                let _ = fs::remove_dir(&path);
                let _ = fs::remove_dir(folder.join(PINS));
                sync_folder(&folder).map_err(StoreError::io("flush", &folder))?;
                had.push(scenario.clone());
            }
        }
        if !had.is_empty() {
            self.publish(&format!("unpin {environment} {name}"))?;
        }
        Ok(had)
    }

    /// The pins of a scenario by name, complete sessions only.
    ///
    /// # Errors
    /// A file that cannot be read or lies in the wrong folder.
    pub fn pins(&self, environment: &str, scenario: &str) -> Result<Vec<Pin>, StoreError> {
        let folder = self.folder(environment, scenario)?;
        let mut pins = Vec::new();
        for (name, _) in pin_folders(&folder)? {
            let sessions = self.pin_sessions(environment, scenario, &name)?;
            if !sessions.is_empty() {
                pins.push(Pin { name, sessions });
            }
        }
        Ok(pins)
    }

    fn pin_sessions(
        &self,
        environment: &str,
        scenario: &str,
        name: &str,
    ) -> Result<Vec<Session>, StoreError> {
        let folder = self.folder(environment, scenario)?;
        let pins: BTreeMap<String, PathBuf> = pin_folders(&folder)?.into_iter().collect();
        let Some(pin) = pins.get(name) else {
            return Ok(Vec::new());
        };
        let mut sessions = Vec::new();
        for path in session_files(pin)? {
            let Some(mut session) = read_session(&path)? else {
                continue;
            };
            if session.scenario != scenario {
                return Err(StoreError::Misplaced {
                    path,
                    scenario: session.scenario,
                });
            }
            fill_in(&folder, &mut session)?;
            if session.complete {
                sessions.push(session);
            }
        }
        sessions.sort_by_cached_key(|session| age_key(&session.recorded_at, &session.id));
        Ok(sessions)
    }
}
