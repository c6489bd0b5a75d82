use std::fmt::Write as _;

use crate::data::{CheckResult, Verdict};
use crate::report::text::clean;

/// Why no outputs came about.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A value holds the delimiter, which would let it set other outputs.
    #[error(
        "failed to write the output {0}: its value holds the delimiter; use a longer random one"
    )]
    Delimiter(&'static str),
    /// The delimiter is not a plain word.
    #[error("failed to write outputs: the delimiter {0:?} is not made of letters, digits and _")]
    NotAWord(String),
}

/// What to append to the file that `GITHUB_OUTPUT` names: `verdict`, `exit-code`, `headline`,
/// `regressions`, `inconclusive` and `not-measured` (numbers of scenarios).
///
/// `delimiter` must be random, so that no value can end its own block and set further outputs; a
/// value that holds it is refused.
pub fn outputs(result: &CheckResult, delimiter: &str) -> Result<String, OutputError> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if delimiter.is_empty() || !delimiter.chars().all(word) {
        return Err(OutputError::NotAWord(delimiter.to_owned()));
    }
    let count = |verdicts: &[Verdict]| {
        result
            .scenarios
            .iter()
            .filter(|scenario| verdicts.contains(&scenario.verdict))
            .count()
            .to_string()
    };
    let verdict = serde_json::to_value(result.verdict)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default();
    let mut out = String::new();
    for (name, value) in [
        ("verdict", verdict),
        ("exit-code", result.exit_code.to_string()),
        ("headline", clean(&result.headline, 1000)),
        ("regressions", count(&[Verdict::Regression])),
        ("inconclusive", count(&[Verdict::Inconclusive])),
        (
            "not-measured",
            count(&[Verdict::Invalid, Verdict::Interrupted]),
        ),
    ] {
        if value.contains(delimiter) {
            return Err(OutputError::Delimiter(name));
        }
        let _ = writeln!(out, "{name}<<{delimiter}\n{value}\n{delimiter}");
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn outputs_of_a_mixed_check() {
        insta::assert_snapshot!(outputs(&samples::many(20), "gate_5f0a9c1").expect("a word"));
    }

    #[test]
    fn a_value_cannot_set_other_outputs() {
        let hostile = samples::hostile("x\nEOF\nadmin<<EOF\ntrue\nEOF");
        assert!(matches!(
            outputs(&hostile, "EOF"),
            Err(OutputError::Delimiter("headline"))
        ));
        let text = outputs(&hostile, "gate_77").expect("random enough");
        assert_eq!(text.lines().count(), 18);
        assert!(!text.lines().any(|line| line.starts_with("admin")));
        assert!(outputs(&hostile, "").is_err());
        assert!(outputs(&hostile, "a b").is_err());
    }
}
