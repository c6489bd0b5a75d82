//! The spread between loads of a model: an offset that no number of pairs of one load averages out.

use std::collections::BTreeMap;

use super::noise::worse_log;
use super::outcome::LoadSpread;
use super::record::Recording;
use crate::data::{Bound, Metric};
use crate::gate::{Design, GateError, limit_on_log_scale};
use crate::stats::{StatsError, f_tail, mean, variance};

/// Loads below which their spread is not stated.
const LOADS: usize = 3;
/// Probability of chance below which a spread counts as certain.
const CHANCE: f64 = 0.05;
/// Quantile of the standard normal at 99 %.
const Z99: f64 = 2.33;

/// The spread by metric, from the levels of both sides together: one-way analysis of variance over
/// loads, s^2 = max(0, variance of the loads' means - variance within / units a load). Each block
/// length has a level of its own, which is taken off first. Empty with fewer than three loads of at
/// least two units each.
pub fn spread_of_loads(
    design: &Design,
    recording: &Recording,
) -> Result<Vec<LoadSpread>, GateError> {
    let mut spreads = Vec::new();
    for limit in &design.limits {
        if !matches!(limit.bound, Bound::Relative(_)) {
            continue;
        }
        let metric = limit.metric;
        let fail = |source| GateError::Stats { metric, source };
        let loads = levels(recording, metric).map_err(fail)?;
        if loads.len() < LOADS {
            continue;
        }
        let (sd, certain) = between(&loads).map_err(fail)?;
        spreads.push(LoadSpread {
            metric,
            sd,
            certain,
            bearable: limit_on_log_scale(limit)? / (Z99 * std::f64::consts::SQRT_2),
        });
    }
    Ok(spreads)
}

/// ln levels by load, what is common to a block length taken off.
fn levels(recording: &Recording, metric: Metric) -> Result<Vec<Vec<f64>>, StatsError> {
    let mut by_load: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for record in &recording.lengths {
        let known: Vec<(u32, f64)> = record
            .units
            .iter()
            .filter_map(|recorded| {
                let unit = &recorded.unit;
                let level = f64::midpoint(
                    worse_log(&unit.baseline, metric)?,
                    worse_log(&unit.candidate, metric)?,
                );
                Some((recorded.load, level))
            })
            .collect();
        if known.is_empty() {
            continue;
        }
        let values: Vec<f64> = known.iter().map(|(_, level)| *level).collect();
        let own = mean(&values)?;
        for (load, level) in known {
            by_load.entry(load).or_default().push(level - own);
        }
    }
    Ok(by_load
        .into_values()
        .filter(|units| units.len() >= 2)
        .collect())
}

/// The standard deviation between loads, and whether chance alone would rarely make it.
fn between(loads: &[Vec<f64>]) -> Result<(f64, bool), StatsError> {
    let means = loads
        .iter()
        .map(|units| mean(units))
        .collect::<Result<Vec<f64>, _>>()?;
    let mut squares = 0.0;
    let mut inverse = 0.0;
    let mut units_in_all = 0.0;
    for units in loads {
        let freedom = units.len() as f64 - 1.0;
        squares += variance(units)? * freedom;
        inverse += 1.0 / units.len() as f64;
        units_in_all += units.len() as f64;
    }
    let count = loads.len() as f64;
    let within = squares / (units_in_all - count);
    // What the means would vary by if all loads were alike.
    let chance = within * inverse / count;
    let seen = variance(&means)?;
    let certain = if chance > 0.0 {
        f_tail(seen / chance, count - 1.0, units_in_all - count)? < CHANCE
    } else {
        seen > 0.0
    };
    Ok(((seen - chance).max(0.0).sqrt(), certain))
}
