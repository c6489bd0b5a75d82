//! The commits between which a shift came in.

use chrono::{DateTime, Utc};

use super::series::Point;
use crate::stats::Shift;

/// Characters of a commit that are shown.
const SHORT: usize = 10;

/// The last measurement that surely stood before a shift, and the first that surely stood after it.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitRange {
    /// When the former began.
    pub after: DateTime<Utc>,
    /// Its commit; none where unknown or no commit hash.
    pub after_commit: Option<String>,
    /// Whether its work tree had changes.
    pub after_dirty: bool,
    /// When the latter began.
    pub by: DateTime<Utc>,
    /// Its commit.
    pub by_commit: Option<String>,
    /// Whether its work tree had changes.
    pub by_dirty: bool,
}

impl CommitRange {
    /// Of a shift in the values of these points. The range of its place widens the range of commits.
    pub(super) fn of(points: &[Point], indices: &[usize], shift: &Shift) -> Self {
        let point = |position: usize| indices.get(position).and_then(|index| points.get(*index));
        let before = point(shift.earliest.saturating_sub(1));
        let after = point(shift.latest);
        let commit = |point: Option<&Point>| {
            point
                .and_then(|point| point.commit.as_deref())
                .filter(|commit| is_hash(commit))
                .map(str::to_owned)
        };
        let dirty = |point: Option<&Point>| point.is_some_and(|point| point.dirty == Some(true));
        Self {
            after: before.map_or(DateTime::UNIX_EPOCH, |point| point.at),
            after_commit: commit(before),
            after_dirty: dirty(before),
            by: after.map_or(DateTime::UNIX_EPOCH, |point| point.at),
            by_commit: commit(after),
            by_dirty: dirty(after),
        }
    }

    /// True where both ends are one commit without changes: the code did not change.
    pub fn same_commit(&self) -> bool {
        self.after_commit.is_some()
            && self.after_commit == self.by_commit
            && !self.after_dirty
            && !self.by_dirty
    }

    /// The commits of the range, for git; none where an end is unknown or both are the same.
    pub fn command(&self) -> Option<String> {
        let (after, by) = (self.after_commit.as_deref()?, self.by_commit.as_deref()?);
        (after != by).then(|| format!("git log --oneline {}..{}", short(after), short(by)))
    }
}

/// A commit as it is shown. Anything that is no hash never reaches a command line.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

fn is_hash(commit: &str) -> bool {
    (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}
