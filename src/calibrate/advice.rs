//! The smallest limits that a server and a budget can honestly hold.

use std::fmt::Write as _;
use std::time::Duration;

use super::outcome::{Advice, LengthNoise, LoadSpread};
use super::resample::{Resampling, resample};
use crate::config::show_duration;
use crate::data::{Bound, Direction, Fraction, Limit, Metric};
use crate::gate::{Design, GateError, PairPlan, Unit};

/// Limits that a person would write, percent.
const LADDER: [f64; 20] = [
    0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0,
    35.0, 40.0, 50.0,
];
/// Standard errors below a limit at which identical code passes as often as it should: 2 z(.95)
/// (docs/statistics.md).
const REACH: f64 = 3.29;
/// Quantile of the standard normal at 99 %, for the difference of two loads.
const Z99: f64 = 2.33;

/// For each relative limit the smallest value of a ladder with which, over resampled checks with
/// that limit alone, identical code passes in all but `missed_regression` of them and fails in no
/// more than `false_alarm`, and which the spread of loads does not cross.
pub fn honest_limits(
    design: &Design,
    plan: &PairPlan,
    units: &[&Unit],
    noise: &LengthNoise,
    loads: &[LoadSpread],
    how: Resampling,
) -> Result<Vec<Advice>, GateError> {
    let mut advice = Vec::new();
    for limit in &design.limits {
        let Bound::Relative(configured) = limit.bound else {
            continue;
        };
        let metric = limit.metric;
        let known = noise.metrics.iter().find(|noise| noise.metric == metric);
        let spread = loads
            .iter()
            .find(|load| load.metric == metric && load.certain)
            .map_or(0.0, |load| load.sd * std::f64::consts::SQRT_2 * Z99);
        let mut found = Advice {
            metric,
            limit: configured.get(),
            honest: None,
            pass: None,
        };
        if let Some(known) = known {
            // A little below the formula: the ladder's steps and the estimate's own error.
            let least = (REACH * known.check_se * 0.8).max(spread);
            for percent in LADDER {
                let fraction = percent / 100.0;
                if log_size(metric, fraction) < least {
                    continue;
                }
                let alone = Design {
                    limits: vec![Limit {
                        metric,
                        bound: Bound::Relative(Fraction::new(fraction)),
                    }],
                    ..design.clone()
                };
                let rates = resample(&alone, plan, units, how)?;
                if rates.pass >= 1.0 - design.missed_regression
                    && rates.regression <= design.false_alarm
                {
                    found.honest = Some(fraction);
                    found.pass = Some(rates.pass);
                    break;
                }
            }
        }
        advice.push(found);
    }
    Ok(advice)
}

fn log_size(metric: Metric, fraction: f64) -> f64 {
    match metric.direction() {
        Direction::HigherIsBetter => -(-fraction).ln_1p(),
        Direction::LowerIsBetter => fraction.ln_1p(),
    }
}

/// The lines for a thresholds file, below the scenario that they are for.
pub(super) fn toml(
    scenario: &str,
    advice: &[Advice],
    budget: Duration,
    block: Option<Duration>,
) -> String {
    let mut lines = format!("# below scenario {scenario:?}\n[scenario.gate]\n");
    let _ = writeln!(lines, "budget = \"{}\"", show_duration(budget));
    for advice in advice {
        let key = key(advice.metric);
        let _ = match advice.honest {
            Some(honest) => writeln!(lines, "{key} = \"{}\"", Fraction::new(honest)),
            None => writeln!(
                lines,
                "# {key}: no limit up to 50% is decided within this budget"
            ),
        };
    }
    if let Some(block) = block {
        let _ = write!(
            lines,
            "[scenario.measure]\nblock = \"{}\"\n",
            show_duration(block)
        );
    }
    lines
}

/// The key of a relative limit.
fn key(metric: Metric) -> String {
    match metric.direction() {
        Direction::HigherIsBetter => format!("{}_drop", metric.name()),
        Direction::LowerIsBetter => format!("{}_rise", metric.name()),
    }
}
