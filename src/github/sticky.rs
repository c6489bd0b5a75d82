use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data::Verdict;

/// GitHub's limit for the body of a comment, in characters.
pub const BODY_LIMIT: usize = 65_536;
/// Attempts of one commit that are listed.
const ATTEMPTS_KEPT: usize = 20;

/// What a comment remembers of itself, hidden in its first lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The commit that the attempts are of.
    pub commit: String,
    /// Their verdicts, oldest first.
    pub attempts: Vec<Verdict>,
}

/// The hidden line by which a gate finds its own comment.
pub fn marker(gate: &str) -> String {
    format!("<!-- triton-gate:{} -->", id(gate))
}

/// The gate's name without letters that could end an HTML comment; a name that had some, or is
/// long, keeps apart from others by a digest.
fn id(gate: &str) -> String {
    let plain = plain(gate);
    if plain == gate {
        return plain;
    }
    let digest = Sha256::digest(gate.as_bytes());
    let mut id = format!("{plain}.");
    for byte in digest.iter().take(4) {
        let _ = write!(id, "{byte:02x}");
    }
    id
}

/// Only letters that cannot end an HTML comment.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/') {
                c
            } else {
                '_'
            }
        })
        .take(200)
        .collect()
}

const MEMORY_START: &str = "<!-- triton-gate-memory:";
const MEMORY_END: &str = " -->";

impl Memory {
    /// What an earlier body remembers; nothing where it holds none.
    pub fn of(body: &str) -> Self {
        body.lines()
            .find_map(|line| {
                line.trim()
                    .strip_prefix(MEMORY_START)?
                    .strip_suffix(MEMORY_END)
            })
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default()
    }

    /// Adds an attempt; another commit starts anew.
    #[must_use]
    pub fn with(mut self, commit: &str, verdict: Verdict) -> Self {
        if self.commit != plain(commit) {
            self = Self {
                commit: plain(commit),
                attempts: Vec::new(),
            };
        }
        self.attempts.push(verdict);
        let surplus = self.attempts.len().saturating_sub(ATTEMPTS_KEPT);
        self.attempts.drain(..surplus);
        self
    }

    /// `attempt 3: regression, regression, pass`; empty for the first.
    pub fn sentence(&self) -> String {
        if self.attempts.len() < 2 {
            return String::new();
        }
        let words: Vec<&str> = self
            .attempts
            .iter()
            .map(|verdict| verdict.label())
            .collect();
        format!(
            "Attempt {} on this commit: {}.",
            words.len(),
            words.join(", ")
        )
    }
}

/// The whole body: marker, memory, report, attempts, and the way to the job.
///
/// The report is cut so that the body fits; it arrives already bounded, so this only guards.
pub fn body(gate: &str, memory: &Memory, report: &str, footer: &str) -> String {
    let json = serde_json::to_string(memory).unwrap_or_default();
    let head = format!("{}\n{MEMORY_START}{json}{MEMORY_END}\n", marker(gate));
    let sentence = memory.sentence();
    let mut tail = String::new();
    for part in [sentence.as_str(), footer] {
        if !part.is_empty() {
            tail.push_str("\n\n");
            tail.push_str(part);
        }
    }
    let room = BODY_LIMIT.saturating_sub(head.chars().count() + tail.chars().count());
    let kept: String = if report.chars().count() > room {
        report.chars().take(room).collect()
    } else {
        report.to_owned()
    };
    format!("{head}{kept}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_of_one_commit_add_up_and_another_starts_anew() {
        let one = Memory::default().with("abc", Verdict::Regression);
        assert_eq!(one.sentence(), "");
        let text = body("g", &one, "report", "");
        let two = Memory::of(&text).with("abc", Verdict::Pass);
        assert_eq!(
            two.sentence(),
            "Attempt 2 on this commit: regression, pass."
        );
        assert_eq!(
            Memory::of(&body("g", &two, "x", ""))
                .with("def", Verdict::Pass)
                .attempts
                .len(),
            1
        );
    }

    #[test]
    fn a_gate_id_cannot_end_its_comment() {
        let odd = marker("a --> <b>");
        assert!(odd.starts_with("<!-- triton-gate:a______b_."), "{odd}");
        assert_eq!(odd.matches("--").count(), 2);
        assert_ne!(marker("gpu-a.toml"), marker("gpu_a.toml"));
        assert_eq!(
            marker("thresholds/a.toml"),
            "<!-- triton-gate:thresholds/a.toml -->"
        );
        assert!(
            Memory::of("<!-- triton-gate-memory:{broken -->")
                .attempts
                .is_empty()
        );
    }

    #[test]
    fn a_body_fits_on_character_borders() {
        let report = "é".repeat(BODY_LIMIT);
        let text = body(
            "g",
            &Memory::default(),
            &report,
            "[job](https://example.com)",
        );
        assert_eq!(text.chars().count(), BODY_LIMIT);
        assert!(text.ends_with("[job](https://example.com)"));
    }
}
