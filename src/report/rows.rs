//! The rows of the table that terminal and Markdown share.

use super::format;
use super::verdict::{Exit, severity};
use super::words;
use crate::data::{CheckResult, MetricResult, MetricVerdict, ScenarioResult, Verdict};

/// One row: a scenario and one of its metrics, or a scenario without any.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub scenario: &'a ScenarioResult,
    pub metric: Option<&'a MetricResult>,
}

/// How a row is to be seen at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// It makes the check fail.
    Bad,
    /// It deserves a look.
    Warn,
    /// All is well.
    Good,
    /// Nothing was compared, by intent.
    Quiet,
}

/// Where a scenario stands: what decides the exit code first, then the worse verdict.
pub(super) fn rank(scenario: &ScenarioResult) -> (usize, u8) {
    let weight = Exit::BY_WEIGHT
        .iter()
        .position(|exit| exit.code() == scenario.exit_code)
        .unwrap_or(0);
    (weight, severity(scenario.verdict))
}

/// All scenarios, what decides the exit code first; else in the file's order.
pub(crate) fn worst_first(result: &CheckResult) -> Vec<&ScenarioResult> {
    let mut scenarios: Vec<&ScenarioResult> = result.scenarios.iter().collect();
    scenarios.sort_by_key(|scenario| rank(scenario));
    scenarios
}

/// All rows, what failed first; else in the order of `worst_first`.
pub(super) fn rows(result: &CheckResult) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for scenario in &result.scenarios {
        if scenario.metrics.is_empty() {
            rows.push(Row {
                scenario,
                metric: None,
            });
        }
        rows.extend(scenario.metrics.iter().map(|metric| Row {
            scenario,
            metric: Some(metric),
        }));
    }
    // Stable: what ranks alike stays in the file's order.
    rows.sort_by_key(|row| {
        let fine = matches!(row.tone(), Tone::Good | Tone::Quiet);
        (fine, rank(row.scenario))
    });
    rows
}

impl Row<'_> {
    /// Whether the metric's own verdict counts: not where the scenario as a whole has none.
    fn judged(&self) -> bool {
        matches!(
            self.scenario.verdict,
            Verdict::Pass | Verdict::Regression | Verdict::Inconclusive | Verdict::Accepted
        )
    }

    pub fn metric_label(&self) -> String {
        self.metric.map_or_else(unknown, MetricResult::label)
    }

    pub fn baseline(&self) -> String {
        self.value(|metric| metric.baseline, format::value)
    }

    pub fn candidate(&self) -> String {
        self.value(|metric| metric.candidate, format::value)
    }

    pub fn short_baseline(&self) -> String {
        self.value(|metric| metric.baseline, format::short_value)
    }

    pub fn short_candidate(&self) -> String {
        self.value(|metric| metric.candidate, format::short_value)
    }

    pub fn change(&self) -> String {
        self.metric
            .and_then(|metric| metric.change)
            .map_or_else(unknown, format::change)
    }

    pub fn interval(&self) -> String {
        self.metric
            .map_or_else(unknown, |metric| format::interval(metric.interval))
    }

    pub fn limit(&self) -> String {
        self.metric.map_or_else(unknown, words::limit)
    }

    pub fn noise_floor(&self) -> String {
        self.metric
            .and_then(|metric| metric.noise_floor)
            .map_or_else(unknown, format::percent)
    }

    pub fn verdict(&self) -> &'static str {
        match self.metric {
            Some(metric) if self.judged() => {
                if self.scenario.verdict == Verdict::Accepted
                    && metric.verdict == MetricVerdict::Regression
                {
                    "accepted"
                } else {
                    words::metric_verdict(metric.verdict)
                }
            }
            _ => words::verdict(self.scenario.verdict),
        }
    }

    pub fn tone(&self) -> Tone {
        let fails = self.scenario.exit_code != 0;
        match self.metric {
            Some(metric) if self.judged() => match metric.verdict {
                MetricVerdict::Pass | MetricVerdict::Improvement => Tone::Good,
                MetricVerdict::Regression if fails => Tone::Bad,
                MetricVerdict::Inconclusive if self.scenario.exit_code == 1 => Tone::Bad,
                MetricVerdict::Regression | MetricVerdict::Inconclusive => Tone::Warn,
            },
            _ if fails => Tone::Bad,
            _ => Tone::Quiet,
        }
    }

    fn value(
        &self,
        pick: impl Fn(&MetricResult) -> Option<f64>,
        show: impl Fn(crate::data::Metric, f64) -> String,
    ) -> String {
        self.metric
            .and_then(|metric| pick(metric).map(|value| show(metric.metric, value)))
            .unwrap_or_else(unknown)
    }
}

fn unknown() -> String {
    format::UNKNOWN.to_owned()
}
