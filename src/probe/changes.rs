//! What changed in the work tree since a commit, as git sees it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Files that changed since the merge base of a revision and the checked-out commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The revision as it was given.
    pub since: String,
    /// The merge base, a full hash.
    pub base: String,
    /// The canonical root of the work tree.
    pub root: PathBuf,
    /// Changed, deleted and new files, committed or not, relative to the root, `/` between parts.
    pub files: BTreeSet<String>,
}

/// Why nobody can tell what changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// No git program.
    #[error("failed to run git: {0}")]
    NoGit(io::Error),
    /// Not within a work tree.
    #[error("{} is not in a git work tree: {why}", folder.display())]
    NoWorkTree {
        /// Where git was asked.
        folder: PathBuf,
        /// What git said.
        why: String,
    },
    /// The revision does not exist here.
    #[error("git knows no commit {0:?}")]
    UnknownRevision(String),
    /// No common ancestor, as in a shallow clone.
    #[error("{0:?} and HEAD have no common ancestor here")]
    NoMergeBase(String),
    /// Any other failure of git.
    #[error("git {command} failed: {why}")]
    Git {
        /// The subcommand.
        command: &'static str,
        /// What git said.
        why: String,
    },
}

impl ChangesError {
    /// What to do next.
    pub const fn next(&self) -> &'static str {
        match self {
            Self::NoGit(_) => "install git, or check everything: leave --changed-since out",
            Self::NoWorkTree { .. } => {
                "run in the repository, or check everything: leave --changed-since out"
            }
            Self::UnknownRevision(_) | Self::NoMergeBase(_) => {
                "fetch it with its history (`git fetch origin BRANCH`; fetch-depth: 0 for \
                 actions/checkout), or correct the name"
            }
            Self::Git { .. } => {
                "mend what git says, or check everything: leave --changed-since out"
            }
        }
    }
}

impl Changes {
    /// Asks git about the work tree around `folder`.
    ///
    /// # Errors
    /// Anything that leaves it unknown what changed. There is no answer "nothing" but from git.
    pub fn since(folder: &Path, revision: &str) -> Result<Self, ChangesError> {
        let top = git(folder, &["rev-parse", "--show-toplevel"])?;
        if !top.status.success() {
            return Err(ChangesError::NoWorkTree {
                folder: folder.to_owned(),
                why: said(&top),
            });
        }
        let root = PathBuf::from(line(&top));
        let root = root
            .canonicalize()
            .map_err(|error| ChangesError::NoWorkTree {
                folder: folder.to_owned(),
                why: error.to_string(),
            })?;
        // What begins with a dash would be an option.
        let unknown = || ChangesError::UnknownRevision(revision.to_owned());
        if revision.is_empty() || revision.starts_with('-') {
            return Err(unknown());
        }
        let name = format!("{revision}^{{commit}}");
        let commit = git(&root, &["rev-parse", "--verify", "--quiet", &name])?;
        if !commit.status.success() {
            return Err(unknown());
        }
        let base = git(&root, &["merge-base", &line(&commit), "HEAD"])?;
        if !base.status.success() {
            return Err(ChangesError::NoMergeBase(revision.to_owned()));
        }
        let base = line(&base);
        // Against the work tree, so that what is not committed yet counts. A renamed file is gone
        // here and new there.
        let tracked = list(
            &root,
            "diff",
            &[
                "diff",
                "--name-only",
                "-z",
                "--no-renames",
                "--no-relative",
                "--no-ext-diff",
                "--ignore-submodules=none",
                &base,
                "--",
            ],
        )?;
        let others = list(
            &root,
            "ls-files",
            &["ls-files", "-z", "--others", "--exclude-standard"],
        )?;
        Ok(Self {
            since: revision.to_owned(),
            base,
            root,
            files: tracked.into_iter().chain(others).collect(),
        })
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Result<Output, ChangesError> {
    Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .output()
        .map_err(ChangesError::NoGit)
}

fn list(
    root: &Path,
    command: &'static str,
    arguments: &[&str],
) -> Result<Vec<String>, ChangesError> {
    let output = git(root, arguments)?;
    if !output.status.success() {
        return Err(ChangesError::Git {
            command,
            why: said(&output),
        });
    }
    Ok(output
        .stdout
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

fn line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim_end_matches(['\n', '\r']).to_owned()
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().next().unwrap_or_default().to_owned()
}
