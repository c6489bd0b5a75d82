use std::time::Duration;

use chrono::DateTime;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::rows::Row;
use super::text::{HEADLINE, MESSAGE, NAME, clean};
use super::words;
use crate::data::{CheckResult, MetricResult, MetricVerdict, ScenarioResult, Verdict};

/// Why no `JUnit` text came about.
#[derive(Debug, thiserror::Error)]
#[error("failed to write the JUnit report")]
pub struct JunitError(#[from] quick_junit::SerializeError);

/// The result as `JUnit` XML: one suite a scenario, one test case a metric.
///
/// A regression is a failure, what could not be measured or compared is an error. What does not
/// fail the check by its exit code (advice, an accepted change, a new or unaffected scenario) and
/// what is not decided (exit 4) is skipped with a message: neither is a plain success.
pub fn junit(result: &CheckResult) -> Result<String, JunitError> {
    let mut report = Report::new("triton-gate");
    let started = DateTime::parse_from_rfc3339(&result.started_at).ok();
    if let Some(started) = started {
        report.set_timestamp(started);
    }
    for scenario in &result.scenarios {
        let mut suite = TestSuite::new(clean(&scenario.name, NAME));
        if let Some(started) = started {
            suite.set_timestamp(started);
        }
        if let Ok(time) = Duration::try_from_secs_f64(scenario.seconds) {
            suite.set_time(time);
        }
        for (name, value) in [
            ("model", &scenario.model),
            ("model_version", &scenario.model_version),
            ("load", &scenario.load),
        ] {
            suite.add_property((name, clean(value, NAME).as_str()));
        }
        if scenario.metrics.is_empty() {
            suite.add_test_case(case(scenario, None));
        }
        for metric in &scenario.metrics {
            suite.add_test_case(case(scenario, Some(metric)));
        }
        report.add_test_suite(suite);
    }
    Ok(report.to_string()?)
}

fn case(scenario: &ScenarioResult, metric: Option<&MetricResult>) -> TestCase {
    let name = metric.map_or_else(
        || "measurement".to_owned(),
        |metric| match &metric.pin {
            Some(pin) => format!("{} vs {}", metric.metric.name(), clean(pin, NAME)),
            None => metric.metric.name().to_owned(),
        },
    );
    let mut case = TestCase::new(name, status(scenario, metric));
    case.set_classname(clean(&scenario.name, NAME));
    let mut lines: Vec<String> = Vec::new();
    if metric.is_some() {
        let row = Row { scenario, metric };
        lines.push(format!(
            "baseline {}, candidate {}, change {} {}, limit {}, noise floor {}",
            row.baseline(),
            row.candidate(),
            row.change(),
            row.interval(),
            row.limit(),
            row.noise_floor()
        ));
    }
    lines.extend(super::terminal::lines(scenario));
    case.set_system_out(lines.join("\n"));
    case
}

fn status(scenario: &ScenarioResult, metric: Option<&MetricResult>) -> TestCaseStatus {
    let judged = matches!(
        scenario.verdict,
        Verdict::Pass | Verdict::Regression | Verdict::Inconclusive | Verdict::Accepted
    );
    let (kind, message) = match metric {
        Some(metric) if judged => match metric.verdict {
            MetricVerdict::Pass | MetricVerdict::Improvement => return TestCaseStatus::success(),
            MetricVerdict::Regression => (
                (scenario.exit_code != 0).then_some(NonSuccessKind::Failure),
                format!(
                    "{}: {}",
                    words::verdict(scenario.verdict),
                    words::metric_change(metric)
                ),
            ),
            MetricVerdict::Inconclusive => (
                (scenario.exit_code == 1 && !has_regression(scenario))
                    .then_some(NonSuccessKind::Failure),
                format!("not decided: {}", words::not_ruled_out(metric)),
            ),
        },
        // Only where the verdict rests on something that no metric shows.
        None if scenario.verdict == Verdict::Regression && scenario.exit_code != 0 => {
            (Some(NonSuccessKind::Failure), reason(scenario))
        }
        _ if scenario.verdict == Verdict::Pass => return TestCaseStatus::success(),
        _ => (
            (!matches!(scenario.exit_code, 0 | 4)).then_some(NonSuccessKind::Error),
            reason(scenario),
        ),
    };
    let message = match words::exit_effect(scenario) {
        Some(effect) => format!("{message} [{effect}]"),
        None => message,
    };
    let mut status = kind.map_or_else(TestCaseStatus::skipped, TestCaseStatus::non_success);
    status.set_message(clean(&message, HEADLINE));
    if kind.is_some() {
        status.set_type(words::verdict(scenario.verdict).replace(' ', "_"));
    }
    status
}

/// With a proven regression beside it, an undecided metric is not what the exit code rests on.
fn has_regression(scenario: &ScenarioResult) -> bool {
    scenario
        .metrics
        .iter()
        .any(|metric| metric.verdict == MetricVerdict::Regression)
}

fn reason(scenario: &ScenarioResult) -> String {
    let verdict = words::verdict(scenario.verdict);
    match &scenario.reason {
        Some(reason) => format!("{verdict}: {}", clean(&reason.text, MESSAGE)),
        None => verdict.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::{self, ALL_VERDICTS, HOSTILE};

    fn kinds(result: &CheckResult) -> (usize, usize, usize) {
        let text = junit(result).expect("serialises");
        (
            text.matches("<failure").count(),
            text.matches("<error").count(),
            text.matches("<skipped").count(),
        )
    }

    #[test]
    fn each_verdict_becomes_what_the_exit_code_says() {
        for (verdict, expected) in ALL_VERDICTS.into_iter().zip([
            (0, 0, 0),
            (1, 0, 0),
            (0, 0, 1),
            (0, 0, 1),
            (0, 0, 2),
            (0, 0, 1),
            (0, 1, 0),
            (0, 1, 0),
            (0, 1, 0),
            (0, 1, 0),
        ]) {
            let result = samples::check(vec![samples::scenario("a", verdict)]);
            assert_eq!(kinds(&result), expected, "{verdict:?}");
        }
    }

    #[test]
    fn advice_and_settings_decide_about_failures() {
        let mut advisory = samples::scenario("a", Verdict::Regression);
        advisory.advisory = true;
        advisory.exit_code = 0;
        let mut failed = samples::scenario("b", Verdict::Inconclusive);
        failed.exit_code = 1;
        let mut passed = samples::scenario("c", Verdict::Inconclusive);
        passed.exit_code = 0;
        assert_eq!(kinds(&samples::check(vec![advisory])), (0, 0, 1));
        assert_eq!(kinds(&samples::check(vec![failed])), (1, 0, 0));
        assert_eq!(kinds(&samples::check(vec![passed])), (0, 0, 1));
    }

    #[test]
    fn the_whole_file() {
        insta::assert_snapshot!(junit(&samples::full()).expect("serialises"));
    }

    #[test]
    fn hostile_text_stays_text() {
        let text = junit(&samples::hostile(HOSTILE)).expect("serialises");
        assert!(!text.contains("<img"));
        assert!(!text.contains(['\u{0}', '\u{7}', '\u{1b}', '\u{202e}']));
    }
}
