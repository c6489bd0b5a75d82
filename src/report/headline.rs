use std::fmt::Write as _;

use super::format::counted;
use super::text::{MESSAGE, NAME, clean};
use super::verdict::{severity, worst_verdict};
use super::words;
use crate::data::{MetricResult, MetricVerdict, ScenarioResult, Verdict};

/// How many scenarios or metrics a first line names before it counts the rest.
const NAMED: usize = 2;

/// The one sentence for the first line of every report: the worst verdict with what it rests on,
/// then every other verdict that a reader must not miss, then what does not follow the verdict in
/// the exit code.
///
/// It is plain text in which names are cleaned, but not escaped for any format.
pub fn headline(command: &str, scenarios: &[ScenarioResult]) -> String {
    let Some(worst) = worst_verdict(scenarios.iter().map(|scenario| scenario.verdict)) else {
        return "NOTHING CHECKED: no scenario was selected".to_owned();
    };
    let group = of(scenarios, worst);
    let total = scenarios.len();
    if command == "measure" && worst == Verdict::New {
        return format!(
            "MEASURED: {}, compared with nothing",
            counted(total as u64, "scenario")
        );
    }
    let some = |group: &[&ScenarioResult]| {
        if group.len() == total {
            counted(total as u64, "scenario")
        } else {
            format!("{} of {}", group.len(), counted(total as u64, "scenario"))
        }
    };
    let mut text = match worst {
        Verdict::Regression => {
            let place = if total > 1 {
                format!(" in {}", some(&group))
            } else {
                String::new()
            };
            format!(
                "REGRESSION{place}: {}",
                metrics(&group, MetricVerdict::Regression, words::metric_change)
            )
        }
        Verdict::Inconclusive => {
            let place = if total > 1 {
                format!(" in {}", some(&group))
            } else {
                String::new()
            };
            format!(
                "NOT DECIDED{place}: {}",
                metrics(&group, MetricVerdict::Inconclusive, words::not_ruled_out)
            )
        }
        Verdict::Accepted => format!(
            "ACCEPTED: {} within an [[accept]] entry: {}",
            some(&group),
            metrics(&group, MetricVerdict::Regression, words::metric_change)
        ),
        Verdict::Pass => pass(scenarios, &group),
        Verdict::NotAffected => format!(
            "NOT AFFECTED: {}, none touched by the change; nothing was measured",
            counted(total as u64, "scenario")
        ),
        Verdict::New => format!(
            "NEW: {} measured without a baseline, compared with nothing",
            some(&group)
        ),
        Verdict::Interrupted => format!(
            "INTERRUPTED: {} not finished: {}",
            some(&group),
            names(&group)
        ),
        Verdict::NoBaseline | Verdict::Incompatible | Verdict::Invalid => {
            format!("{}: {}", words::banner(worst), reasons(&group))
        }
    };
    text.push_str(&effect(&group));
    for verdict in others(scenarios, worst) {
        let group = of(scenarios, verdict);
        let more = match verdict {
            Verdict::Pass => format!("; {} passed", group.len()),
            Verdict::NotAffected => format!("; {} not affected", group.len()),
            Verdict::New => format!("; {} new, compared with nothing", group.len()),
            Verdict::Accepted => format!("; {} accepted", group.len()),
            Verdict::Regression | Verdict::Inconclusive => {
                format!("; {}: {}", words::verdict(verdict), names(&group))
            }
            _ => format!("; {}: {}", words::verdict(verdict), reasons(&group)),
        };
        text.push_str(&more);
        if severity(verdict) <= severity(Verdict::Inconclusive) {
            text.push_str(&effect(&group));
        }
    }
    text
}

fn pass(scenarios: &[ScenarioResult], group: &[&ScenarioResult]) -> String {
    // A pinned release may stay undecided in a pass.
    let metrics = group
        .iter()
        .flat_map(|scenario| &scenario.metrics)
        .filter(|metric| metric.verdict != MetricVerdict::Inconclusive)
        .count();
    let better = group
        .iter()
        .flat_map(|scenario| &scenario.metrics)
        .filter(|metric| metric.verdict == MetricVerdict::Improvement)
        .count();
    let assumed = group
        .iter()
        .filter(|scenario| scenario.assumed_noise.is_some())
        .count();
    let mut text = format!(
        "PASS: {}, {} within {} limits",
        counted(group.len() as u64, "scenario"),
        counted(metrics as u64, "metric"),
        if metrics == 1 { "its" } else { "their" }
    );
    if better > 0 {
        let _ = write!(text, ", {}", counted(better as u64, "improvement"));
    }
    if assumed > 0 {
        let place = if assumed == scenarios.len() {
            String::new()
        } else {
            format!(" in {}", counted(assumed as u64, "scenario"))
        };
        let _ = write!(text, "; noise between sessions assumed{place}");
    }
    text
}

fn of(scenarios: &[ScenarioResult], verdict: Verdict) -> Vec<&ScenarioResult> {
    let mut group: Vec<&ScenarioResult> = scenarios
        .iter()
        .filter(|scenario| scenario.verdict == verdict)
        .collect();
    // What counts for the exit code is named before what is only advice.
    group.sort_by_key(|scenario| scenario.exit_code == 0);
    group
}

/// The other verdicts that occur, worst first.
fn others(scenarios: &[ScenarioResult], worst: Verdict) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = scenarios
        .iter()
        .map(|scenario| scenario.verdict)
        .filter(|verdict| *verdict != worst)
        .collect();
    verdicts.sort_by_key(|verdict| severity(*verdict));
    verdicts.dedup();
    verdicts
}

/// `a: P99 ..., throughput ...; b: P99 ...; 3 more`.
fn metrics(
    group: &[&ScenarioResult],
    verdict: MetricVerdict,
    show: impl Fn(&MetricResult) -> String,
) -> String {
    let mut parts = Vec::new();
    let mut more = 0;
    for scenario in group {
        let found: Vec<String> = scenario
            .metrics
            .iter()
            .filter(|metric| metric.verdict == verdict)
            .map(&show)
            .collect();
        if parts.len() == NAMED {
            more += 1;
        } else if found.is_empty() {
            parts.push(reason(scenario));
        } else {
            parts.push(format!(
                "{}: {}",
                clean(&scenario.name, NAME),
                found.join(", ")
            ));
        }
    }
    with_more(&parts, more, "; ", "; ")
}

fn names(group: &[&ScenarioResult]) -> String {
    let parts: Vec<String> = group
        .iter()
        .take(NAMED)
        .map(|scenario| clean(&scenario.name, NAME))
        .collect();
    with_more(&parts, group.len() - parts.len(), ", ", " and ")
}

fn reasons(group: &[&ScenarioResult]) -> String {
    // One reason for all, like a server that cannot be reached, is said once.
    let same = group.iter().all(|scenario| {
        scenario.reason.as_ref().map(|reason| &reason.text)
            == group
                .first()
                .and_then(|first| first.reason.as_ref())
                .map(|reason| &reason.text)
    });
    match group.first().and_then(|first| first.reason.as_ref()) {
        Some(reason) if same && group.len() > 1 => {
            format!("{}: {}", names(group), clean(&reason.text, MESSAGE))
        }
        _ => {
            let parts: Vec<String> = group
                .iter()
                .take(NAMED)
                .map(|scenario| reason(scenario))
                .collect();
            with_more(&parts, group.len() - parts.len(), "; ", "; ")
        }
    }
}

fn reason(scenario: &ScenarioResult) -> String {
    let name = clean(&scenario.name, NAME);
    match &scenario.reason {
        Some(reason) => format!("{name}: {}", clean(&reason.text, MESSAGE)),
        None => name,
    }
}

fn with_more(parts: &[String], more: usize, gap: &str, last: &str) -> String {
    let mut text = parts.join(gap);
    if more > 0 {
        let _ = write!(text, "{last}{more} more");
    }
    text
}

/// What does not follow the verdict in the exit code.
fn effect(group: &[&ScenarioResult]) -> String {
    let effects: Vec<String> = group
        .iter()
        .filter_map(|scenario| words::exit_effect(scenario))
        .collect();
    let Some(first) = effects.first() else {
        return String::new();
    };
    if effects.len() == group.len() && effects.iter().all(|effect| effect == first) {
        return format!(" [{first}]");
    }
    let silent = group
        .iter()
        .filter(|scenario| scenario.exit_code == 0)
        .count();
    if silent == 0 {
        format!(" [{first}]")
    } else {
        format!(" [{silent} of {} do not change the exit code]", group.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::{self, ALL_VERDICTS};

    #[test]
    fn each_verdict_has_a_clear_first_line() {
        let lines: Vec<String> = ALL_VERDICTS
            .into_iter()
            .map(|verdict| headline("check", &[samples::scenario("yolov9-c8", verdict)]))
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn what_does_not_follow_the_verdict_is_said() {
        let mut regression = samples::scenario("a", Verdict::Regression);
        regression.advisory = true;
        regression.exit_code = 0;
        let mut passed = samples::scenario("b", Verdict::Inconclusive);
        passed.exit_code = 0;
        let mut failed = samples::scenario("c", Verdict::Inconclusive);
        failed.exit_code = 1;
        let mut missing = samples::scenario("d", Verdict::NoBaseline);
        missing.exit_code = 0;
        let lines = [
            headline("check", std::slice::from_ref(&regression)),
            headline("check", std::slice::from_ref(&passed)),
            headline("check", std::slice::from_ref(&failed)),
            headline("check", std::slice::from_ref(&missing)),
            headline(
                "check",
                &[regression, samples::scenario("e", Verdict::Regression)],
            ),
            headline("check", &[passed, failed]),
            headline("measure", &[samples::scenario("f", Verdict::New)]),
            headline("check", &[]),
        ];
        insta::assert_snapshot!(lines.join("\n"));
    }

    /// For every pair of verdicts: the worst one leads, and no problem goes unmentioned.
    #[test]
    fn nothing_is_hidden_behind_the_worst() {
        let mut lines = Vec::new();
        for first in ALL_VERDICTS {
            for second in ALL_VERDICTS {
                let scenarios = [
                    samples::scenario("first", first),
                    samples::scenario("second", second),
                    samples::scenario("third", Verdict::Pass),
                ];
                let line = headline("check", &scenarios);
                let worst = if severity(first) < severity(second) {
                    first
                } else {
                    second
                };
                if severity(worst) < severity(Verdict::Pass) {
                    assert!(line.starts_with(words::banner(worst)), "{line}");
                }
                for (name, verdict) in [("first", first), ("second", second)] {
                    if severity(verdict) <= severity(Verdict::Inconclusive) {
                        assert!(line.contains(name), "{name} is missing: {line}");
                        assert!(
                            line.to_lowercase().contains(words::verdict(verdict)),
                            "{verdict:?} is missing: {line}"
                        );
                    }
                }
                assert!(!line.contains('\n'));
                lines.push(line);
            }
        }
        lines.dedup();
        assert!(lines.len() > 50);
    }
}
