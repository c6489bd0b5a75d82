use std::path::Path;
use std::process::{Command, Stdio};

/// What git says of a work tree; all none outside of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repository {
    /// The full commit hash that is checked out.
    pub commit: Option<String>,
    /// The branch; none on a detached head.
    pub branch: Option<String>,
    /// Whether tracked files differ from the commit.
    pub dirty: Option<bool>,
}

impl Repository {
    /// Asks git about the work tree at `folder`.
    pub fn at(folder: &Path) -> Self {
        let Some(commit) = git(folder, &["rev-parse", "--verify", "HEAD"]) else {
            return Self::default();
        };
        let dirty = git(folder, &["status", "--porcelain", "--untracked-files=no"])
            .map(|changes| !changes.is_empty());
        let branch = git(folder, &["symbolic-ref", "--short", "-q", "HEAD"]);
        Self {
            commit: Some(commit),
            branch: branch.filter(|name| !name.is_empty()),
            dirty,
        }
    }

    /// The first seven characters of the commit.
    pub fn short_commit(&self) -> Option<&str> {
        self.commit
            .as_deref()
            .map(|commit| commit.get(..7).unwrap_or(commit))
    }
}

/// The full hash of the commit that a tag, branch or shortened hash names; none where it names
/// none.
pub fn commit_of(folder: &Path, name: &str) -> Option<String> {
    if name.starts_with('-') {
        return None;
    }
    let commit = format!("{name}^{{commit}}");
    git(folder, &["rev-parse", "--verify", "--quiet", &commit])
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_a_repository_nothing_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Repository::at(folder.path()), Repository::default());
    }

    #[test]
    fn a_commit_a_branch_and_a_change_are_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |arguments: &[&str]| {
            assert!(git(folder.path(), arguments).is_some(), "git {arguments:?}");
        };
        run(&["init", "-q", "-b", "trunk"]);
        std::fs::write(folder.path().join("a"), "1").expect("written");
        run(&["add", "a"]);
        run(&[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "commit",
            "-qm",
            "one",
        ]);
        let clean = Repository::at(folder.path());
        assert_eq!(clean.branch.as_deref(), Some("trunk"));
        assert_eq!(clean.dirty, Some(false));
        assert_eq!(clean.short_commit().map(str::len), Some(7));
        std::fs::write(folder.path().join("a"), "2").expect("written");
        assert_eq!(Repository::at(folder.path()).dirty, Some(true));
    }
}
