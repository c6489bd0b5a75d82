//! Which stored sessions a measurement may be compared with.

use crate::baseline::environment::{Comparison, comparable, compare};
use crate::data::{Difference, Facts, LoadIdentity, Session, Side};

/// The sessions that may be compared with, and what else is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Comparable sessions, oldest first.
    pub sessions: Vec<Session>,
    /// Sessions left out.
    pub left_out: usize,
    /// Why the newest of those was left out.
    pub differences: Vec<Difference>,
    /// Differences that were allowed by name, of the newest comparable session.
    pub allowed: Vec<Difference>,
    /// Differences that weaken a verdict, of the newest comparable session.
    pub soft: Vec<Difference>,
}

/// Sorts the sessions by whether they were measured in this environment under this load.
///
/// `allowed` must have been checked before; an unknown name opens nothing.
pub fn select(
    sessions: Vec<Session>,
    environment: &Facts,
    load: &LoadIdentity,
    allowed: &[String],
) -> Selection {
    let mut now = environment.clone();
    now.0.extend(load.facts().0);
    let mut selection = Selection {
        sessions: Vec::new(),
        left_out: 0,
        differences: Vec::new(),
        allowed: Vec::new(),
        soft: Vec::new(),
    };
    for mut session in sessions {
        let comparison: Comparison =
            compare(&comparable(&session), &now, allowed).unwrap_or_default();
        if comparison.compatible() {
            selection.allowed = comparison.allowed;
            selection.soft = comparison.soft;
            for block in &mut session.blocks {
                block.side = Side::Baseline;
            }
            selection.sessions.push(session);
        } else {
            selection.left_out += 1;
            selection.differences = comparison.incompatible;
        }
    }
    selection
}

/// `load.batch: 1 -> 8`, one a difference.
pub fn sentence(differences: &[Difference]) -> String {
    let parts: Vec<String> = differences
        .iter()
        .map(|difference| {
            format!(
                "{}: {} -> {}",
                difference.field,
                difference.baseline.as_deref().unwrap_or("(none)"),
                difference.candidate.as_deref().unwrap_or("(none)")
            )
        })
        .collect();
    parts.join("; ")
}
