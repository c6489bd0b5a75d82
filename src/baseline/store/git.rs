//! A store on a branch of the repository: read into a temporary folder, written as commits.
//!
//! Neither the user's working tree nor the index is touched: an index of its own lies beside the
//! copy. What was added and deleted is applied to the tip of the moment and the branch moves only
//! from that tip, so that two writers at once lose nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// How often a commit is tried again because another writer moved the branch.
const TRIES: u32 = 50;

/// Why a store on a git branch cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Not inside a repository.
    #[error(
        "git:{0}: no git repository here: a store on a branch needs one; run inside it, or give a folder with --baselines"
    )]
    NoRepository(String),
    /// Not the name of a branch.
    #[error(
        "git:{0}: not the name of a branch: expected one like perf-baselines (git:perf-baselines)"
    )]
    BadBranch(String),
    /// Moving the branch would leave a working tree behind.
    #[error(
        "git:{0}: that branch is checked out, and a commit would leave its files behind: check out another branch, or give its folder with --baselines"
    )]
    CheckedOut(String),
    /// git refused.
    #[error("git:{branch}: `git {what}` failed: {message}")]
    Failed {
        /// The branch.
        branch: String,
        /// The subcommand.
        what: String,
        /// What git said.
        message: String,
    },
    /// The copy of the branch cannot be read or written.
    #[error("git:{branch}: the copy of the branch cannot be used: {source}")]
    Copy {
        /// The branch.
        branch: String,
        /// Why.
        source: io::Error,
    },
    /// Written, but not committed.
    #[error("{source}; nothing is lost: what was to be committed is kept in {}", kept.display())]
    Kept {
        /// Why.
        source: Box<GitError>,
        /// Where the files are.
        kept: PathBuf,
    },
}

/// A branch that holds a store.
#[derive(Debug)]
pub(super) struct Branch {
    name: String,
    /// The repository's `.git`, absolute.
    git_dir: String,
    state: Mutex<State>,
    tree: PathBuf,
}

#[derive(Debug)]
struct State {
    folder: TempDir,
    /// Every file of the copy as the branch is known to hold it: path, digest.
    known: BTreeMap<String, [u8; 32]>,
}

impl Branch {
    /// Reads a branch into a temporary folder; a branch that does not exist yet is an empty store.
    /// A local branch goes before one of `origin`.
    pub fn open(name: &str) -> Result<Self, GitError> {
        let git_dir = plain_git(&["rev-parse", "--absolute-git-dir"])
            .ok_or_else(|| GitError::NoRepository(name.to_owned()))?;
        let valid = !name.starts_with('-')
            && plain_git(&["check-ref-format", &format!("refs/heads/{name}")]).is_some();
        if !valid {
            return Err(GitError::BadBranch(name.to_owned()));
        }
        let failed = |source| GitError::Copy {
            branch: name.to_owned(),
            source,
        };
        let folder = tempfile::Builder::new()
            .prefix("triton-gate-")
            .tempdir()
            .map_err(failed)?;
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).map_err(failed)?;
        let branch = Self {
            name: name.to_owned(),
            git_dir,
            tree,
            state: Mutex::new(State {
                folder,
                known: BTreeMap::new(),
            }),
        };
        branch.read()?;
        Ok(branch)
    }

    /// The folder that holds the copy.
    pub fn tree(&self) -> &Path {
        &self.tree
    }

    /// `git:BRANCH`.
    pub fn place(&self) -> String {
        format!("git:{}", self.name)
    }

    fn read(&self) -> Result<(), GitError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let index = state.folder.path().join("index");
        if let Some(tip) = self.base() {
            self.git(&index, &["read-tree", &tip], b"")?;
            let prefix = format!("--prefix={}/", self.tree.display());
            self.git(&index, &["checkout-index", "--all", &prefix], b"")?;
        }
        state.known = self.scan()?;
        Ok(())
    }

    /// Commits what changed in the copy since it was read or last committed; nothing where nothing
    /// did.
    pub fn publish(&self, message: &str) -> Result<(), GitError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = self.scan().and_then(|now| {
            let before = std::mem::take(&mut state.known);
            let done = self.commit(&state.folder, &before, &now, message);
            state.known = if done.is_ok() { now } else { before };
            done
        });
        result.map_err(|source| {
            state.folder.disable_cleanup(true);
            GitError::Kept {
                source: Box::new(source),
                kept: self.tree.clone(),
            }
        })
    }

    fn commit(
        &self,
        folder: &TempDir,
        before: &BTreeMap<String, [u8; 32]>,
        now: &BTreeMap<String, [u8; 32]>,
        message: &str,
    ) -> Result<(), GitError> {
        let changed: Vec<&String> = now
            .iter()
            .filter(|(path, digest)| before.get(*path) != Some(digest))
            .map(|(path, _)| path)
            .collect();
        let gone: Vec<&String> = before
            .keys()
            .filter(|path| !now.contains_key(*path))
            .collect();
        if changed.is_empty() && gone.is_empty() {
            return Ok(());
        }
        self.refuse_checked_out()?;
        let index = folder.path().join("index");
        let mut paths = String::new();
        for path in &changed {
            let _ = writeln!(paths, "{}", self.tree.join(path).display());
        }
        let hashes = self.git(
            &index,
            &["hash-object", "-w", "--no-filters", "--stdin-paths"],
            paths.as_bytes(),
        )?;
        let mut tries = 0;
        loop {
            match self.commit_once(&index, &changed, &gone, &hashes, message) {
                // Another writer moved the branch: once more upon its commit.
                Err(_) if tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(20) * tries.min(10));
                }
                done => return done,
            }
        }
    }

    fn commit_once(
        &self,
        index: &Path,
        changed: &[&String],
        gone: &[&String],
        hashes: &str,
        message: &str,
    ) -> Result<(), GitError> {
        let local = self.resolve(&format!("refs/heads/{}", self.name));
        let base = self.base();
        match &base {
            Some(base) => self.git(index, &["read-tree", base], b"")?,
            None => self.git(index, &["read-tree", "--empty"], b"")?,
        };
        let mut entries = String::new();
        for (path, hash) in changed.iter().zip(hashes.lines()) {
            let _ = write!(entries, "100644 {hash}\t{path}\0");
        }
        let zeros = base.as_deref().map_or(0, str::len);
        for path in gone {
            let _ = write!(entries, "0 {}\t{path}\0", "0".repeat(zeros));
        }
        self.git(
            index,
            &["update-index", "-z", "--index-info"],
            entries.as_bytes(),
        )?;
        let tree = self.git(index, &["write-tree"], b"")?;
        let mut arguments = vec!["commit-tree", &tree, "-m", message];
        if let Some(base) = &base {
            arguments.extend(["-p", base]);
        }
        let commit = self.git(index, &arguments, b"")?;
        let name = format!("refs/heads/{}", self.name);
        let reason = format!("triton-gate: {message}");
        let expected = local.unwrap_or_default();
        self.git(
            index,
            &["update-ref", "-m", &reason, &name, &commit, &expected],
            b"",
        )?;
        Ok(())
    }

    fn refuse_checked_out(&self) -> Result<(), GitError> {
        let index = self.tree.with_file_name("index");
        let list = self.git(&index, &["worktree", "list", "--porcelain"], b"")?;
        let line = format!("branch refs/heads/{}", self.name);
        if list.lines().any(|other| other == line) {
            return Err(GitError::CheckedOut(self.name.clone()));
        }
        Ok(())
    }

    /// The commit that the next one builds on.
    fn base(&self) -> Option<String> {
        self.resolve(&format!("refs/heads/{}", self.name))
            .or_else(|| self.resolve(&format!("refs/remotes/origin/{}", self.name)))
    }

    fn resolve(&self, name: &str) -> Option<String> {
        let index = self.tree.with_file_name("index");
        let commit = format!("{name}^{{commit}}");
        self.git(&index, &["rev-parse", "--verify", "--quiet", &commit], b"")
            .ok()
    }

    /// Every file of the copy with its digest; temporary ones aside.
    fn scan(&self) -> Result<BTreeMap<String, [u8; 32]>, GitError> {
        let failed = |source| GitError::Copy {
            branch: self.name.clone(),
            source,
        };
        let mut found = BTreeMap::new();
        let mut folders = vec![self.tree.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let path = entry.path();
                let kind = entry.file_type().map_err(failed)?;
                let temporary = path
                    .file_name()
                    .and_then(OsStr::to_str)
                    .is_some_and(crate::baseline::files::is_temporary);
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file()
                    && !temporary
                    && let Some(name) = path.strip_prefix(&self.tree).ok().and_then(Path::to_str)
                {
                    let digest = Sha256::digest(fs::read(&path).map_err(failed)?);
                    found.insert(name.to_owned(), digest.into());
                }
            }
        }
        Ok(found)
    }

    /// Runs git on the repository with the copy as its working tree, and returns what it wrote.
    fn git(&self, index: &Path, arguments: &[&str], input: &[u8]) -> Result<String, GitError> {
        let failed = |message: String| GitError::Failed {
            branch: self.name.clone(),
            what: arguments.first().copied().unwrap_or_default().to_owned(),
            message,
        };
        let mut command = command();
        command
            // Files are stored and read byte for byte.
            .args(["-c", "core.autocrlf=false", "-c", "core.symlinks=false"])
            .arg(format!("--git-dir={}", self.git_dir))
            .arg(format!("--work-tree={}", self.tree.display()))
            .args(arguments)
            .env("GIT_INDEX_FILE", index)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if arguments.first() == Some(&"commit-tree")
            && plain_git(&["config", "user.email"]).is_none()
        {
            // A runner where nobody has a name.
            for (role, value) in [("NAME", "triton-gate"), ("EMAIL", "triton-gate@localhost")] {
                for who in ["AUTHOR", "COMMITTER"] {
                    let variable = format!("GIT_{who}_{role}");
                    if std::env::var_os(&variable).is_none() {
                        command.env(variable, value);
                    }
                }
            }
        }
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // git that ends early says why itself.
            let _ = stdin.write_all(input);
        }
        let output = child
            .wait_with_output()
            .map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let message = message.trim();
        Err(failed(if message.is_empty() {
            output.status.to_string()
        } else {
            message.to_owned()
        }))
    }
}

/// git, free of what a hook that called this program has set.
fn command() -> Command {
    let mut command = Command::new("git");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    command
}

fn plain_git(arguments: &[&str]) -> Option<String> {
    let output = command()
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
