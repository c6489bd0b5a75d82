use std::fmt::Write as _;

use std::path::Path;

use serde_json::{Value, json};

use crate::data::{CheckResult, Verdict};
use crate::report::text::clean;
use crate::report::worst_first;

/// The longest `changes`, in bytes: a value that a later step takes through its environment must
/// stay below 128 KiB on Linux.
const CHANGES_LIMIT: usize = 60_000;

/// Files that hold more.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files<'a> {
    /// The report as Markdown.
    pub report: Option<&'a Path>,
    /// The result as JSON.
    pub result: Option<&'a Path>,
}

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
/// `regressions`, `inconclusive` and `not-measured` (numbers of scenarios), `report-path`,
/// `result-path`, `changes`, a JSON list with one entry a gated metric, what failed first, and
/// `gate-changes`, a JSON list of sentences, of which so many are given as fit into some 60 kB.
///
/// `delimiter` must be random, so that no value can end its own block and set further outputs; a
/// value that holds it is refused.
pub fn outputs(
    result: &CheckResult,
    files: Files<'_>,
    delimiter: &str,
) -> Result<String, OutputError> {
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
    let path = |path: Option<&Path>| path.map(|path| path.display().to_string());
    let values = [
        ("verdict", verdict),
        ("exit-code", result.exit_code.to_string()),
        ("headline", clean(&result.headline, 1000)),
        ("regressions", count(&[Verdict::Regression])),
        ("inconclusive", count(&[Verdict::Inconclusive])),
        (
            "not-measured",
            count(&[Verdict::Invalid, Verdict::Interrupted]),
        ),
        ("report-path", path(files.report).unwrap_or_default()),
        ("result-path", path(files.result).unwrap_or_default()),
        ("changes", changes(result)),
        ("gate-changes", gate_changes(result)),
    ];
    blocks(&values, delimiter)
}

/// The same of a check that ended before it had a result: the verdict is `error`.
pub fn failure_outputs(
    exit_code: u8,
    message: &str,
    delimiter: &str,
) -> Result<String, OutputError> {
    let values = [
        ("verdict", "error".to_owned()),
        ("exit-code", exit_code.to_string()),
        ("headline", clean(message, 1000)),
        ("regressions", "0".to_owned()),
        ("inconclusive", "0".to_owned()),
        ("not-measured", "0".to_owned()),
        ("report-path", String::new()),
        ("result-path", String::new()),
        ("changes", "[]".to_owned()),
        ("gate-changes", "[]".to_owned()),
    ];
    blocks(&values, delimiter)
}

fn blocks(values: &[(&'static str, String)], delimiter: &str) -> Result<String, OutputError> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if delimiter.is_empty() || !delimiter.chars().all(word) {
        return Err(OutputError::NotAWord(delimiter.to_owned()));
    }
    let mut out = String::new();
    for (name, value) in values {
        if value.contains(delimiter) {
            return Err(OutputError::Delimiter(name));
        }
        let _ = writeln!(out, "{name}<<{delimiter}\n{value}\n{delimiter}");
    }
    Ok(out)
}

fn changes(result: &CheckResult) -> String {
    let mut length = 2;
    let mut kept: Vec<Value> = Vec::new();
    for scenario in worst_first(result) {
        for metric in &scenario.metrics {
            let mut entry = json!({
                "scenario": clean(&scenario.name, 200),
                "metric": metric.metric.name(),
                "baseline": metric.baseline,
                "candidate": metric.candidate,
                "change": metric.change,
                "interval": metric.interval,
                "threshold": metric.threshold,
                "limit": metric.limit,
                "verdict": metric.verdict,
                "scenario_verdict": scenario.verdict,
            });
            if let (Some(pin), Some(entry)) = (&metric.pin, entry.as_object_mut()) {
                entry.insert("pin".to_owned(), clean(pin, 200).into());
            }
            length += entry.to_string().len() + 1;
            if length > CHANGES_LIMIT {
                return Value::Array(kept).to_string();
            }
            kept.push(entry);
        }
    }
    Value::Array(kept).to_string()
}

/// What the change alters in the gate itself, as a list of as many sentences as fit.
fn gate_changes(result: &CheckResult) -> String {
    let mut length = 2;
    let kept: Vec<Value> = crate::report::gate_changes::sentences(result)
        .into_iter()
        .map(Value::from)
        .take_while(|sentence| {
            length += sentence.to_string().len() + 1;
            length <= CHANGES_LIMIT
        })
        .collect();
    Value::Array(kept).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn files() -> Files<'static> {
        Files {
            report: Some(Path::new("results/h100/a.md")),
            result: None,
        }
    }

    #[test]
    fn changes_are_a_list_that_stays_short() {
        let text = changes(&samples::many(3000));
        assert!(text.len() <= CHANGES_LIMIT);
        let list: Vec<Value> = serde_json::from_str(&text).expect("a list");
        assert!(list.len() > 100);
        assert_eq!(list[0]["scenario_verdict"], "regression");
    }

    #[test]
    fn a_check_without_a_result_still_has_outputs() {
        let text = failure_outputs(2, "a\nEOF", "gate_1").expect("a word");
        assert!(text.starts_with("verdict<<gate_1\nerror\ngate_1\nexit-code<<gate_1\n2\n"));
        assert_eq!(text.lines().count(), 30);
    }

    #[test]
    fn outputs_of_a_mixed_check() {
        insta::assert_snapshot!(
            outputs(&samples::many(2), files(), "gate_5f0a9c1").expect("a word")
        );
    }

    #[test]
    fn a_value_cannot_set_other_outputs() {
        let hostile = samples::hostile("x\nEOF\nadmin<<EOF\ntrue\nEOF");
        assert!(matches!(
            outputs(&hostile, files(), "EOF"),
            Err(OutputError::Delimiter("headline"))
        ));
        let text = outputs(&hostile, files(), "gate_77").expect("random enough");
        assert_eq!(text.lines().count(), 30);
        assert!(!text.lines().any(|line| line.starts_with("admin")));
        assert!(outputs(&hostile, files(), "").is_err());
        assert!(outputs(&hostile, files(), "a b").is_err());
    }
}
