use std::io;
use std::path::{Path, PathBuf};

use super::git::GitError;
use crate::baseline::session_csv::SessionCsvError;

/// Why the store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A name that cannot be a folder's or file's.
    #[error("{what} {name:?} cannot be a folder name: {why}")]
    BadName {
        /// Environment, scenario or session.
        what: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Something else stands where a folder or file of the store belongs.
    #[error("{}: {why}", path.display())]
    InTheWay {
        /// Where.
        path: PathBuf,
        /// What it is and what to do.
        why: &'static str,
    },
    /// A session, or another with its name, is there already.
    #[error("{} exists: sessions never change; give the session another id, or delete that one first", .0.display())]
    Exists(PathBuf),
    /// No such session or scenario.
    #[error("{} is not in the store: `baseline list` shows what is", .0.display())]
    Missing(PathBuf),
    /// A session file that cannot be read or written.
    #[error(transparent)]
    Session(#[from] SessionCsvError),
    /// One session in two files: it would count twice.
    #[error("{} and {} hold the same session {id:?}: delete one of them", first.display(), second.display())]
    Twice {
        /// The session.
        id: String,
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A session that lies in another scenario's folder.
    #[error("{}: a session of scenario {scenario:?} in another scenario's folder: move it to its own folder", path.display())]
    Misplaced {
        /// The file.
        path: PathBuf,
        /// The scenario that it names.
        scenario: String,
    },
    /// A facts file that cannot be used.
    #[error("{}: {why}", path.display())]
    Facts {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A pin of that name keeps another state.
    #[error("{} keeps commit {commit}: a pin is one state; choose another name, or unpin that one first", path.display())]
    PinTaken {
        /// The pin's folder.
        path: PathBuf,
        /// What it keeps.
        commit: String,
    },
    /// A store on a git branch that cannot be read or written.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Pruning that would leave nothing.
    #[error(
        "cannot keep 0 sessions: that deletes the baseline; delete its folder if that is meant"
    )]
    KeepNone,
    /// The operating system refused.
    #[error("cannot {action} {}: {}", path.display(), explain(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl StoreError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// The cause in words, with what to do next where that is known.
fn explain(error: &io::Error) -> String {
    let next = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; nothing was written: free some space and try again"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; nothing was written: make the folder writable or choose another with --baselines"
        }
        _ => "",
    };
    format!("{error}{next}")
}
