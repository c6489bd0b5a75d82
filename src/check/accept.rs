//! Intended slowdowns that were committed with the change.

use chrono::NaiveDate;

use super::outcome::{add_flags, flag, settle};
use crate::config::AcceptSpec;
use crate::data::{MetricVerdict, Reason, Scenario, ScenarioResult, Verdict};

/// Turns a regression into an accepted one where every metric that regressed has an entry that
/// covers it today. An expired or exceeded entry is said.
pub(super) fn apply(
    scenario: &Scenario,
    accepts: &[AcceptSpec],
    today: NaiveDate,
    result: &mut ScenarioResult,
) {
    if result.verdict != Verdict::Regression {
        return;
    }
    let mut reasons = Vec::new();
    let mut refused = Vec::new();
    for row in &result.metrics {
        if row.verdict != MetricVerdict::Regression {
            continue;
        }
        let own: Vec<&AcceptSpec> = accepts
            .iter()
            .filter(|accept| accept.scenario == scenario.name && accept.metric == row.metric)
            .collect();
        let change = row.change.map_or(f64::INFINITY, f64::abs);
        match own
            .iter()
            .find(|accept| accept.expires >= today && change <= accept.up_to.get())
        {
            Some(accept) => reasons.push(format!(
                "{} up to {} until {} ({})",
                row.label(),
                accept.up_to,
                accept.expires,
                accept.reason
            )),
            None => match own.last() {
                Some(accept) if accept.expires < today => refused.push(format!(
                    "the [[accept]] of {} expired on {} ({})",
                    row.label(),
                    accept.expires,
                    accept.place
                )),
                Some(accept) => refused.push(format!(
                    "{} changed by more than its [[accept]] allows ({}, {})",
                    row.label(),
                    accept.up_to,
                    accept.place
                )),
                None => refused.push(format!("{} has no [[accept]]", row.label())),
            },
        }
    }
    let covered = accepts
        .iter()
        .any(|accept| accept.scenario == scenario.name);
    if refused.is_empty() && !reasons.is_empty() {
        result.verdict = Verdict::Accepted;
        result.reason = Some(Reason {
            code: "accepted".to_owned(),
            text: format!("accepted slowdown: {}", reasons.join("; ")),
            next: "record a new baseline once the change has landed".to_owned(),
        });
        settle(scenario, result);
    } else if covered {
        add_flags(
            result,
            refused.into_iter().map(|text| flag("not_accepted", text)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Place;
    use crate::data::{Fraction, Metric, MetricResult};

    fn row(change: f64) -> MetricResult {
        MetricResult {
            metric: Metric::P99,
            unit: "us".to_owned(),
            baseline: Some(1000.0),
            candidate: Some(1000.0 * (1.0 + change)),
            change: Some(change),
            interval: [None, None],
            level: None,
            threshold: Some(0.1),
            limit: None,
            noise_floor: None,
            verdict: MetricVerdict::Regression,
            note: None,
            pin: None,
        }
    }

    fn verdict(change: f64, expires: &str) -> (Verdict, usize) {
        let scenario = crate::check::tests::scenario("s");
        let mut result = ScenarioResult::new("s".to_owned(), Verdict::Regression);
        result.metrics.push(row(change));
        let accept = AcceptSpec {
            scenario: "s".to_owned(),
            metric: Metric::P99,
            up_to: Fraction::new(0.25),
            reason: "larger input".to_owned(),
            expires: expires.parse().expect("a date"),
            place: Place {
                file: "t.toml".to_owned(),
                line: Some(3),
            },
        };
        let today = "2026-06-01".parse().expect("a date");
        apply(&scenario, &[accept], today, &mut result);
        (result.verdict, result.flags.len())
    }

    #[test]
    fn within_its_bound_and_its_date_a_slowdown_is_accepted() {
        assert_eq!(verdict(0.2, "2026-06-01"), (Verdict::Accepted, 0));
        assert_eq!(verdict(0.3, "2026-06-01"), (Verdict::Regression, 1));
        assert_eq!(verdict(0.2, "2026-05-31"), (Verdict::Regression, 1));
    }
}
