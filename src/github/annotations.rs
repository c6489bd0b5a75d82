use crate::data::{CheckResult, ScenarioResult, Verdict};
use crate::report::{format, gate_changes, text, title, worst_first};

/// A step may carry so many annotations of one level; GitHub drops the rest silently.
const MOST: usize = 10;

/// Workflow commands that annotate the run: an error for each scenario that fails the check, a
/// warning for each that deserves a look without failing it, ten at most of either. The last of
/// ten counts those that found no room. Print them to stdout.
///
/// Undecided scenarios (exit 4) are warnings: nothing was proved against the change.
pub fn annotations(result: &CheckResult) -> String {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    for scenario in worst_first(result) {
        match (scenario.verdict, scenario.exit_code) {
            (_, 1 | 2 | 3 | 5 | 130) => errors.push(scenario),
            (Verdict::Pass | Verdict::NotAffected | Verdict::New | Verdict::Accepted, 0) => {}
            _ => warnings.push(scenario),
        }
    }
    let mut warnings: Vec<(String, String)> = warnings.into_iter().map(line).collect();
    if let Some(change) = gate_change(result) {
        warnings.insert(0, change);
    }
    let mut out = String::new();
    level(
        &mut out,
        "error",
        &errors.into_iter().map(line).collect::<Vec<_>>(),
    );
    level(&mut out, "warning", &warnings);
    out
}

/// Title and message of a scenario's annotation.
fn line(scenario: &ScenarioResult) -> (String, String) {
    let message = crate::report::headline("check", std::slice::from_ref(scenario));
    (title(scenario), message)
}

/// The annotation that a pull request changes the gate.
fn gate_change(result: &CheckResult) -> Option<(String, String)> {
    let title = gate_changes::title(result)?;
    Some((title, gate_changes::sentences(result).join("; ")))
}

/// The annotation of a check that ended before it had a result.
pub fn failure_annotation(message: &str) -> String {
    let mut out = String::new();
    command(&mut out, "error", "triton-gate", message);
    out
}

fn level(out: &mut String, level: &str, lines: &[(String, String)]) {
    let shown = if lines.len() > MOST {
        MOST - 1
    } else {
        lines.len()
    };
    for (title, message) in lines.iter().take(shown) {
        command(out, level, title, message);
    }
    if lines.len() > shown {
        let more = format::counted((lines.len() - shown) as u64, "more line");
        command(
            out,
            level,
            "triton-gate",
            &format!("{more}: see the step summary"),
        );
    }
}

fn command(out: &mut String, level: &str, title: &str, message: &str) {
    out.push_str("::");
    out.push_str(level);
    out.push_str(" title=");
    out.push_str(&property(&text::clean(title, 200)));
    out.push_str("::");
    out.push_str(&data(&text::clean(message, 1000)));
    out.push('\n');
}

/// A command's message: percent signs and line breaks as GitHub's runner decodes them.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A command's property: as a message, and the two signs that end one.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::{self, ALL_VERDICTS, HOSTILE};

    #[test]
    fn each_verdict_has_its_level() {
        let text: Vec<String> = ALL_VERDICTS
            .into_iter()
            .map(|verdict| annotations(&samples::check(vec![samples::scenario("a", verdict)])))
            .collect();
        insta::assert_snapshot!(text.concat());
    }

    #[test]
    fn advice_is_a_warning() {
        let mut advisory = samples::scenario("a", Verdict::Regression);
        advisory.advisory = true;
        advisory.exit_code = 0;
        let text = annotations(&samples::check(vec![advisory]));
        assert!(
            text.starts_with("::warning title=a (yolov9 version 2%2C concurrency 8%2C batch 1)")
        );
        assert!(text.contains("+18.2 %25"));
    }

    #[test]
    fn a_changed_gate_is_the_first_warning() {
        let mut result = samples::many(200);
        result.gate_changes = Some(samples::gate_changes());
        let text = annotations(&result);
        assert_eq!(text.matches("::warning ").count(), 10);
        let first = text
            .lines()
            .find(|line| line.starts_with("::warning "))
            .expect("a warning");
        assert!(
            first.starts_with("::warning title=this pull request changes the gate (judged by")
                && first.contains("p99_rise 10%25 -> 50%25 (milder)"),
            "{first}"
        );
    }

    #[test]
    fn never_more_than_ten_and_the_rest_is_counted() {
        let text = annotations(&samples::many(200));
        assert_eq!(text.matches("::error ").count(), 10);
        assert_eq!(text.matches("::warning ").count(), 10);
        assert!(text.contains("more lines: see the step summary"));
        let few = annotations(&samples::many(20));
        assert!(!few.contains("see the step summary"));
    }

    #[test]
    fn a_name_cannot_start_a_command() {
        let text = annotations(&samples::hostile(
            "x\n::set-output name=a::b%0A::stop-commands::",
        ));
        for line in text.lines() {
            assert!(line.starts_with("::error ") || line.starts_with("::warning "));
            assert!(!line.contains("%0A"));
        }
        assert!(annotations(&samples::hostile(HOSTILE)).lines().count() <= 20);
        assert_eq!(property("a:b,c%\r\n"), "a%3Ab%2Cc%25%0D%0A");
    }
}
