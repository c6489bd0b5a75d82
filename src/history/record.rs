//! How the gate itself has done.

use super::series::{Checked, StoredSession};
use crate::data::Verdict;

/// Counts of a scenario's checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GateRecord {
    /// Checks in which the scenario stood.
    pub checks: u32,
    /// Passed.
    pub passed: u32,
    /// The evidence did not decide.
    pub undecided: u32,
    /// Failed, advisory ones too.
    pub failed: u32,
    /// Of those that failed: the slowdown was taken in afterwards, by an `[[accept]]` before the
    /// next pass or by a baseline recorded at the same commit.
    pub later_accepted: u32,
    /// Of those that failed: the same commit passed in a later check. A false alarm, or a passing
    /// trouble of the machine.
    pub later_passed: u32,
    /// Worse, and accepted.
    pub accepted: u32,
    /// Nothing was judged: no baseline, another environment, an invalid or interrupted measurement.
    pub without_verdict: u32,
    /// Not measured because no file of the scenario changed.
    pub not_affected: u32,
}

impl GateRecord {
    /// Of a scenario's checks and sessions in one environment, each oldest first.
    pub(super) fn of(checks: &[Checked<'_>], sessions: &[&StoredSession]) -> Self {
        let mut record = Self::default();
        for (index, checked) in checks.iter().enumerate() {
            record.checks += 1;
            let count = match checked.scenario.verdict {
                Some(Verdict::Pass) => &mut record.passed,
                Some(Verdict::Inconclusive) => &mut record.undecided,
                Some(Verdict::Regression) => &mut record.failed,
                Some(Verdict::Accepted) => &mut record.accepted,
                Some(Verdict::NotAffected) => &mut record.not_affected,
                _ => &mut record.without_verdict,
            };
            *count += 1;
            if checked.scenario.verdict == Some(Verdict::Regression) {
                let later = checks.get(index + 1..).unwrap_or_default();
                // A pass against a baseline of the slower code is no second opinion.
                if accepted_later(checked, later, sessions) {
                    record.later_accepted += 1;
                } else if passed_unchanged(checked, later) {
                    record.later_passed += 1;
                }
            }
        }
        record
    }
}

/// The commit of a clean work tree.
fn clean(commit: Option<&String>, dirty: Option<bool>) -> Option<&str> {
    commit.filter(|_| dirty == Some(false)).map(String::as_str)
}

fn passed_unchanged(failed: &Checked<'_>, later: &[Checked<'_>]) -> bool {
    let Some(commit) = clean(failed.check.commit.as_ref(), failed.check.dirty) else {
        return false;
    };
    later.iter().any(|check| {
        check.scenario.verdict == Some(Verdict::Pass)
            && clean(check.check.commit.as_ref(), check.check.dirty) == Some(commit)
    })
}

fn accepted_later(
    failed: &Checked<'_>,
    later: &[Checked<'_>],
    sessions: &[&StoredSession],
) -> bool {
    let next = later.iter().find_map(|check| match check.scenario.verdict {
        Some(verdict @ (Verdict::Pass | Verdict::Accepted)) => Some(verdict),
        _ => None,
    });
    let recorded = clean(failed.check.commit.as_ref(), failed.check.dirty).is_some_and(|commit| {
        sessions.iter().any(|session| {
            session.at > failed.check.at
                && clean(session.commit.as_ref(), session.dirty) == Some(commit)
        })
    });
    next == Some(Verdict::Accepted) || recorded
}
