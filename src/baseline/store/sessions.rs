use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use chrono::DateTime;

use super::error::StoreError;
use super::folders::{folders, must_be_own, session_files};
use super::git::Branch;
use super::names;
use crate::baseline::environment::{self, ADDRESS_FIELD, HASH_FIELD};
use crate::baseline::files::{create_folders, remove_stale, write_new, write_over};
use crate::baseline::{facts_file, session_csv};
use crate::data::{Facts, Session};

/// Folder of the readable subjects beside a scenario's sessions.
pub(super) const SUBJECTS: &str = "subjects";
/// Folder of the readable environments beside a scenario's sessions.
pub(super) const ENVIRONMENTS: &str = "environments";
/// The readable machine type of an environment.
const ENVIRONMENT_FILE: &str = "environment.toml";

/// A folder of stored sessions.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) root: PathBuf,
    /// Where the folder is a copy of a git branch.
    branch: Option<Arc<Branch>>,
}

/// One file of the store, for listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The environment's folder.
    pub environment: String,
    /// The scenario's folder.
    pub scenario: String,
    /// The file.
    pub path: PathBuf,
    /// What it holds, or why it cannot be read.
    pub session: Result<Summary, String>,
}

/// What a listing says of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The session.
    pub id: String,
    /// When it was recorded, RFC 3339.
    pub recorded_at: String,
    /// The commit, if any.
    pub commit: Option<String>,
    /// The branch, if any.
    pub branch: Option<String>,
    /// The model and the version that answered.
    pub model: String,
    /// The version that answered.
    pub model_version: String,
    /// Number of blocks.
    pub blocks: usize,
    /// False where it was interrupted: listed, but no baseline.
    pub complete: bool,
    /// The hash of what was under test.
    pub subject_hash: String,
    /// Shifts accepted before it.
    pub epoch: u32,
}

impl Store {
    /// A store at a folder, which need not exist yet.
    ///
    /// # Errors
    /// Something that is not a folder is there.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let root = root.into();
        match fs::metadata(&root) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => {
                return Err(StoreError::InTheWay {
                    path: root,
                    why: "not a folder: the store is a folder of sessions (--baselines DIR)",
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("open", &root)(error)),
        }
        Ok(Self { root, branch: None })
    }

    /// A store where the command line says: a folder, or `git:BRANCH` for a branch of the
    /// repository around the current folder.
    ///
    /// # Errors
    /// As [`Self::open`]; no repository, no such name, or git failed.
    pub fn locate(place: &Path) -> Result<Self, StoreError> {
        match place.to_str().and_then(|text| text.strip_prefix("git:")) {
            None => Self::open(place),
            Some(name) => {
                let branch = Branch::open(name)?;
                Ok(Self {
                    root: branch.tree().to_path_buf(),
                    branch: Some(Arc::new(branch)),
                })
            }
        }
    }

    /// The folder that holds the files.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the store is, for people: its folder, or `git:BRANCH`.
    pub fn place(&self) -> PathBuf {
        self.shown(&self.root)
    }

    /// A path in the store as people know it.
    pub fn shown(&self, path: &Path) -> PathBuf {
        match (&self.branch, path.strip_prefix(&self.root)) {
            (Some(branch), Ok(inner)) if inner.as_os_str().is_empty() => branch.place().into(),
            (Some(branch), Ok(inner)) => Path::new(&branch.place()).join(inner),
            _ => path.to_path_buf(),
        }
    }

    /// Commits what changed, where the store is a branch.
    pub(super) fn publish(&self, message: &str) -> Result<(), StoreError> {
        match &self.branch {
            Some(branch) => Ok(branch.publish(message)?),
            None => Ok(()),
        }
    }

    /// The checked folder of a scenario.
    pub(super) fn folder(&self, environment: &str, scenario: &str) -> Result<PathBuf, StoreError> {
        names::check("environment", environment)?;
        names::check("scenario", scenario)?;
        let outer = self.root.join(environment);
        must_be_own(&outer)?;
        let inner = outer.join(scenario);
        must_be_own(&inner)?;
        Ok(inner)
    }

    /// Stores a session for good and returns its file.
    ///
    /// The file is there whole or not at all, never replaces another, and is on the disk when
    /// this returns.
    ///
    /// # Errors
    /// A session of that id exists; a name that cannot be a folder's; a session that cannot be
    /// written without loss; the operating system. Nothing is left half-written.
    pub fn append(&self, environment: &str, session: &Session) -> Result<PathBuf, StoreError> {
        names::check("session", &session.id)?;
        let folder = self.folder(environment, &session.scenario)?;
        let text = session_csv::write(session)?;
        let mut tries = 0;
        loop {
            match self.store(environment, session, &folder, &text) {
                // Somebody renamed the scenario away at this moment.
                Err(StoreError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && tries < 3 =>
                {
                    tries += 1;
                }
                done => {
                    let path = done?;
                    self.publish(&format!(
                        "record {environment}/{} {}",
                        session.scenario, session.id
                    ))?;
                    return Ok(self.shown(&path));
                }
            }
        }
    }

    fn store(
        &self,
        environment: &str,
        session: &Session,
        folder: &Path,
        text: &str,
    ) -> Result<PathBuf, StoreError> {
        create_folders(folder).map_err(StoreError::io("create", folder))?;
        // Held until the session is in place, so that pruning does not take its facts away.
        let _shared = super::change::lock_shared(folder);
        remove_stale(folder, SystemTime::now());

        // The facts first: a session in the store always finds them.
        if !session.subject.0.is_empty() {
            store_facts(&folder.join(SUBJECTS), &session.subject)?;
        }
        let known = session.environment.get(HASH_FIELD).is_none();
        if known && !session.environment.0.is_empty() {
            store_facts(&folder.join(ENVIRONMENTS), &session.environment)?;
            let machine = environment::machine(&session.environment);
            if !machine.0.is_empty() {
                let path = self.root.join(environment).join(ENVIRONMENT_FILE);
                let content = facts_text(&path, &machine)?;
                match write_new(&path, content.as_bytes()) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(StoreError::io("write", &path)(error));
                    }
                    _ => {}
                }
            }
        }

        let path = folder.join(format!("{}.csv", session.id));
        match write_new(&path, text.as_bytes()) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(StoreError::Exists(path))
            }
            Err(error) => Err(StoreError::io("write", &path)(error)),
        }
    }

    /// The sessions of a scenario that can be a baseline: complete ones, oldest first, with the
    /// facts of environment and subject where they are at hand.
    ///
    /// # Errors
    /// A file that cannot be read, lies in the wrong folder or holds a session that another
    /// file holds too.
    pub fn sessions(&self, environment: &str, scenario: &str) -> Result<Vec<Session>, StoreError> {
        let mut sessions = self.all_sessions(environment, scenario)?;
        sessions.retain(|session| session.complete);
        Ok(sessions)
    }

    /// As [`Self::sessions`], with those that were interrupted.
    ///
    /// # Errors
    /// As [`Self::sessions`].
    pub fn all_sessions(
        &self,
        environment: &str,
        scenario: &str,
    ) -> Result<Vec<Session>, StoreError> {
        let folder = self.folder(environment, scenario)?;
        let mut sessions = Vec::new();
        let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
        for path in session_files(&folder)? {
            let Some(mut session) = read_session(&path)? else {
                continue;
            };
            if session.scenario != scenario {
                return Err(StoreError::Misplaced {
                    path,
                    scenario: session.scenario,
                });
            }
            if let Some(first) = seen.insert(session.id.clone(), path.clone()) {
                return Err(StoreError::Twice {
                    id: session.id,
                    first,
                    second: path,
                });
            }
            fill_in(&folder, &mut session)?;
            sessions.push(session);
        }
        sessions.sort_by_cached_key(|session| age_key(&session.recorded_at, &session.id));
        Ok(sessions)
    }

    /// Reads one session file wherever it lies, with the facts beside it where they are at hand.
    ///
    /// # Errors
    /// No such file, or one that is not one whole session.
    pub fn read_file(path: &Path) -> Result<Session, StoreError> {
        let Some(mut session) = read_session(path)? else {
            return Err(StoreError::Missing(path.to_path_buf()));
        };
        fill_in(path.parent().unwrap_or(Path::new(".")), &mut session)?;
        Ok(session)
    }

    /// Puts the readable facts beside a file in the place of a session's hashes.
    ///
    /// # Errors
    /// Facts that are there and cannot be used.
    pub fn fill_in_beside(path: &Path, session: &mut Session) -> Result<(), StoreError> {
        fill_in(path.parent().unwrap_or(Path::new(".")), session)
    }

    /// The environments in the store.
    ///
    /// # Errors
    /// The root cannot be listed.
    pub fn environments(&self) -> Result<Vec<String>, StoreError> {
        folders(&self.root)
    }

    /// The scenarios of an environment.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn scenarios(&self, environment: &str) -> Result<Vec<String>, StoreError> {
        names::check("environment", environment)?;
        let folder = self.root.join(environment);
        must_be_own(&folder)?;
        folders(&folder)
    }

    /// The readable machine type of an environment; none where the store has not recorded it.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn environment_facts(&self, environment: &str) -> Result<Option<Facts>, StoreError> {
        names::check("environment", environment)?;
        must_be_own(&self.root.join(environment))?;
        read_facts(&self.root.join(environment).join(ENVIRONMENT_FILE))
    }

    /// Every session file of the store by environment, scenario and age, damaged ones too.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        for environment in self.environments()? {
            for scenario in self.scenarios(&environment)? {
                let folder = self.folder(&environment, &scenario)?;
                let mut of_scenario = Vec::new();
                for path in session_files(&folder)? {
                    let session = match read_session(&path) {
                        Ok(Some(session)) => Ok(summary(session)),
                        Ok(None) => continue,
                        Err(error) => Err(error.to_string()),
                    };
                    of_scenario.push(Entry {
                        environment: environment.clone(),
                        scenario: scenario.clone(),
                        path,
                        session,
                    });
                }
                of_scenario.sort_by_cached_key(|entry| match &entry.session {
                    Ok(summary) => age_key(&summary.recorded_at, &summary.id),
                    Err(_) => (i64::MIN, 0, String::new()),
                });
                entries.extend(of_scenario);
            }
        }
        Ok(entries)
    }
}

/// Sorts by time, then by id.
pub(super) fn age_key(recorded_at: &str, id: &str) -> (i64, u32, String) {
    let time = DateTime::parse_from_rfc3339(recorded_at).ok();
    (
        time.map_or(i64::MIN, |time| time.timestamp()),
        time.map_or(0, |time| time.timestamp_subsec_nanos()),
        id.to_owned(),
    )
}

fn summary(session: Session) -> Summary {
    Summary {
        id: session.id,
        recorded_at: session.recorded_at,
        commit: session.commit,
        branch: session.branch,
        model: session.model,
        model_version: session.model_version,
        blocks: session.blocks.len(),
        complete: session.complete,
        subject_hash: session.subject_hash,
        epoch: session.epoch,
    }
}

/// Reads a session file; none where another process deleted it meanwhile.
pub(super) fn read_session(path: &Path) -> Result<Option<Session>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(session_csv::read_bytes(
            &bytes,
            &path.display().to_string(),
        )?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

/// Puts the readable facts in the place of their hashes, where they are at hand.
pub(super) fn fill_in(folder: &Path, session: &mut Session) -> Result<(), StoreError> {
    if names::is_safe(&session.subject_hash) {
        let path = folder
            .join(SUBJECTS)
            .join(format!("{}.toml", session.subject_hash));
        if let Some(facts) = read_facts(&path)? {
            must_match(&path, &facts.hash(), &session.subject_hash)?;
            session.subject = facts;
        }
    }
    if let Some(address) = session.environment.get(ADDRESS_FIELD)
        && names::is_safe(address)
    {
        let path = folder.join(ENVIRONMENTS).join(format!("{address}.toml"));
        if let Some(facts) = read_facts(&path)? {
            must_match(&path, &facts.hash(), address)?;
            session.environment = facts;
        }
    }
    Ok(())
}

fn must_match(path: &Path, found: &str, expected: &str) -> Result<(), StoreError> {
    if found == expected {
        return Ok(());
    }
    Err(StoreError::Facts {
        path: path.to_path_buf(),
        why: "was edited: its facts are not those that its name stands for; restore it from \
              version control"
            .to_owned(),
    })
}

fn read_facts(path: &Path) -> Result<Option<Facts>, StoreError> {
    let fail = |why: String| StoreError::Facts {
        path: path.to_path_buf(),
        why,
    };
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(fail("not a plain file: links are not followed".to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("look at", path)(error)),
    }
    let text = fs::read_to_string(path).map_err(StoreError::io("read", path))?;
    facts_file::read(&text).map(Some).map_err(fail)
}

fn facts_text(path: &Path, facts: &Facts) -> Result<String, StoreError> {
    facts_file::write(facts).map_err(|why| StoreError::Facts {
        path: path.to_path_buf(),
        why,
    })
}

/// Stores facts under their content's name. A file of that name with other content is damaged
/// and is put right: its name says what it must hold.
fn store_facts(folder: &Path, facts: &Facts) -> Result<(), StoreError> {
    must_be_own(folder)?;
    create_folders(folder).map_err(StoreError::io("create", folder))?;
    let path = folder.join(format!("{}.toml", facts.hash()));
    let content = facts_text(&path, facts)?;
    match write_new(&path, content.as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let intact = read_facts(&path)
                .ok()
                .flatten()
                .is_some_and(|there| there == *facts);
            if intact {
                return Ok(());
            }
            write_over(&path, content.as_bytes()).map_err(StoreError::io("write", &path))
        }
        Err(error) => Err(StoreError::io("write", &path)(error)),
    }
}
