//! Against pinned releases: what many small steps add up to.

use super::compatible::{select, sentence};
use super::outcome::{add_flags, flag, settle};
use super::scenario::{Bench, Checked};
use super::session::Visit;
use crate::baseline::Pin;
use crate::data::{Block, Bound, Flag, MetricResult, MetricVerdict, Reason, Scenario, Verdict};
use crate::gate::{Design, against_pin};

/// What came of all pins of a scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Pinned {
    /// One row a pin and relative limit.
    pub rows: Vec<MetricResult>,
    /// What a reader should know of them.
    pub flags: Vec<Flag>,
}

/// How many rows the pins of a scenario add to what is gated.
pub(super) fn rows(scenario: &Scenario, pins: &[Pin]) -> u32 {
    let relative = scenario
        .gate
        .limits
        .iter()
        .filter(|limit| matches!(limit.bound, Bound::Relative(_)))
        .count();
    (relative * pins.len()) as u32
}

/// Judges the blocks of a stored measurement against every pin.
pub(super) fn judge(
    bench: &Bench<'_>,
    scenario: &Scenario,
    visit: &Visit,
    locked_clocks: bool,
    blocks: &[Block],
) -> Pinned {
    let mut pinned = Pinned::default();
    if blocks.is_empty() {
        return pinned;
    }
    let Ok(design) = Design::new(&scenario.gate, bench.gated_metrics, 1, locked_clocks) else {
        return pinned;
    };
    for pin in bench.pins {
        let selection = select(
            pin.sessions.clone(),
            &visit.environment,
            &visit.load,
            &bench.options.allow,
        );
        if selection.sessions.is_empty() {
            pinned.flags.push(flag(
                "pin_incompatible",
                format!(
                    "the pin {} cannot be compared with: {}",
                    pin.name,
                    sentence(&selection.differences)
                ),
            ));
            continue;
        }
        match against_pin(&design, &pin.name, &selection.sessions, blocks) {
            Ok(mut rows) => {
                if !selection.soft.is_empty() {
                    soften(&mut rows, &sentence(&selection.soft));
                }
                pinned.flags.extend(undecided(&pin.name, &rows));
                pinned.rows.extend(rows);
            }
            Err(error) => pinned.flags.push(flag(
                "pin_not_judged",
                format!("the pin {} was not judged: {error}", pin.name),
            )),
        }
    }
    pinned
}

/// As for any stored session: a difference that weakens numbers caps a regression.
fn soften(rows: &mut [MetricResult], differences: &str) {
    for row in rows {
        if row.verdict == MetricVerdict::Regression {
            row.verdict = MetricVerdict::Inconclusive;
            row.note = Some(format!(
                "worse beyond the threshold, but it also differs from the pin: {differences}"
            ));
        }
    }
}

fn undecided(pin: &str, rows: &[MetricResult]) -> Option<Flag> {
    let open: Vec<&str> = rows
        .iter()
        .filter(|row| row.verdict == MetricVerdict::Inconclusive)
        .map(|row| row.metric.label())
        .collect();
    (!open.is_empty()).then(|| {
        flag(
            "pin_undecided",
            format!(
                "against the pin {pin} {} is not decided: that holds nothing up, and more sessions \
                 of the pinned commit would tell",
                open.join(", ")
            ),
        )
    })
}

/// Adds the rows to the scenario's result. A regression against a pin is a regression; a row that
/// is not decided changes nothing.
pub(super) fn apply(scenario: &Scenario, checked: &mut Checked) {
    let pinned = std::mem::take(&mut checked.pinned);
    let result = &mut checked.result;
    add_flags(result, pinned.flags);
    let failed: Vec<String> = pinned
        .rows
        .iter()
        .filter(|row| row.verdict == MetricVerdict::Regression)
        .map(MetricResult::label)
        .collect();
    result.metrics.extend(pinned.rows);
    let open = matches!(
        result.verdict,
        Verdict::Pass | Verdict::Inconclusive | Verdict::Regression
    );
    if failed.is_empty() || !open {
        return;
    }
    if result.verdict != Verdict::Regression {
        if let Some(reason) = result.reason.take() {
            add_flags(result, [flag(&reason.code, reason.text)]);
        }
        result.verdict = Verdict::Regression;
        result.reason = Some(Reason {
            code: "pin_regression".to_owned(),
            text: format!(
                "{} worse than the limit allows: what came since the pinned release adds up",
                failed.join(", ")
            ),
            next: "look through the commits since the release; pin a newer one once the slowdown \
                   is wanted"
                .to_owned(),
        });
        settle(scenario, result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::outcome::empty;
    use crate::check::tests::scenario;
    use crate::gate::describe;

    fn checked(verdict: Verdict, row: MetricVerdict) -> Checked {
        let scenario = scenario("a");
        let mut checked = Checked::only(empty(&scenario, verdict));
        let mut rows = describe(&scenario.gate.limits, &[]);
        for found in &mut rows {
            found.verdict = row;
            found.pin = Some("v1".to_owned());
        }
        checked.pinned.rows = rows;
        apply(&scenario, &mut checked);
        checked
    }

    #[test]
    fn only_a_regression_against_a_pin_changes_the_verdict() {
        use MetricVerdict as M;
        use Verdict as V;
        for (before, row, after, code) in [
            (V::Pass, M::Pass, V::Pass, 0),
            (V::Pass, M::Inconclusive, V::Pass, 0),
            (V::Pass, M::Regression, V::Regression, 1),
            (V::Inconclusive, M::Pass, V::Inconclusive, 4),
            (V::Inconclusive, M::Regression, V::Regression, 1),
            (V::Regression, M::Improvement, V::Regression, 1),
            (V::Invalid, M::Regression, V::Invalid, 3),
        ] {
            let checked = checked(before, row);
            assert_eq!(checked.result.verdict, after, "{before:?} {row:?}");
            assert_eq!(checked.result.exit_code, code, "{before:?} {row:?}");
            assert_eq!(checked.result.metrics.len(), 1);
        }
    }

    #[test]
    fn a_soft_difference_caps_a_regression_against_a_pin() {
        let mut rows = describe(&scenario("a").gate.limits, &[]);
        rows[0].verdict = MetricVerdict::Regression;
        soften(&mut rows, "kernel: 1 -> 2");
        assert_eq!(rows[0].verdict, MetricVerdict::Inconclusive);
    }
}
