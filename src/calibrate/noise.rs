//! How large the noise is, by block length.

use super::outcome::{LengthNoise, MetricNoise};
use super::record::LengthRecord;
use crate::data::{Block, Bound, Direction, Metric};
use crate::gate::{Design, GateError, limit_on_log_scale};
use crate::stats::{
    StatsError, mean, noise_floor_fall, noise_floor_rise, normal_quantile, variance,
};

/// Lengths within this factor of the smallest standard error count as equally good: their own
/// uncertainty is larger.
const AS_GOOD: f64 = 1.1;

/// The natural logarithm of a metric, turned so that more is worse; none where unknown or not
/// positive.
pub(super) fn worse_log(block: &Block, metric: Metric) -> Option<f64> {
    let value = block.value(metric).filter(|value| *value > 0.0)?;
    Some(match metric.direction() {
        Direction::HigherIsBetter => -value.ln(),
        Direction::LowerIsBetter => value.ln(),
    })
}

/// A worse-is-positive ln difference as a change with its raw sign.
pub(super) fn raw_change(metric: Metric, worse: f64) -> f64 {
    match metric.direction() {
        Direction::HigherIsBetter => (-worse).exp_m1(),
        Direction::LowerIsBetter => worse.exp_m1(),
    }
}

/// The noise at one block length, over the relative limits of the design; metrics that fewer than
/// two units know are left out. The standard error is sd / sqrt(units of a check), the noise floor
/// (z(1 - alpha) + z(1 - beta)) standard errors (docs/statistics.md, noise floor).
pub fn noise(design: &Design, record: &LengthRecord) -> Result<LengthNoise, GateError> {
    let mut metrics = Vec::new();
    for limit in &design.limits {
        if !matches!(limit.bound, Bound::Relative(_)) {
            continue;
        }
        let metric = limit.metric;
        let fail = |source: StatsError| GateError::Stats { metric, source };
        let differences: Vec<f64> = record
            .units
            .iter()
            .filter_map(|recorded| {
                let unit = &recorded.unit;
                Some(worse_log(&unit.candidate, metric)? - worse_log(&unit.baseline, metric)?)
            })
            .collect();
        if differences.len() < 2 {
            continue;
        }
        let unit_sd = variance(&differences).map_err(fail)?.sqrt();
        let check_se = unit_sd / f64::from(record.plan.max_units.max(1)).sqrt();
        let reach = normal_quantile(1.0 - design.alpha()).map_err(fail)?
            + normal_quantile(1.0 - design.beta()).map_err(fail)?;
        metrics.push(MetricNoise {
            metric,
            unit_sd,
            check_se,
            noise_floor: match metric.direction() {
                Direction::HigherIsBetter => noise_floor_fall(reach * check_se),
                Direction::LowerIsBetter => noise_floor_rise(reach * check_se),
            },
            mean_change: raw_change(metric, mean(&differences).map_err(fail)?),
        });
    }
    let seconds: Vec<f64> = record.units.iter().map(|one| one.seconds).collect();
    Ok(LengthNoise {
        block_ms: record.plan.block.as_secs_f64() * 1e3,
        chosen: record.chosen,
        pairs_per_unit: record.plan.pairs_per_unit,
        units: record.units.len() as u32,
        unit_seconds: mean(&seconds).unwrap_or(record.plan.unit_seconds),
        units_of_check: record.plan.max_units,
        metrics,
    })
}

/// The index of the best block length: the smallest standard error after a check beside the limit,
/// in the metric for which that is largest. The chosen length wins where it is as good within the
/// uncertainty. Lengths for which `usable` is false do not count; none where nothing is left.
pub fn best_length(
    design: &Design,
    lengths: &[LengthNoise],
    usable: &dyn Fn(&LengthNoise) -> bool,
) -> Option<usize> {
    let score = |length: &LengthNoise| -> Option<f64> {
        let mut worst = None;
        for limit in &design.limits {
            if !matches!(limit.bound, Bound::Relative(_)) {
                continue;
            }
            let noise = length
                .metrics
                .iter()
                .find(|noise| noise.metric == limit.metric)?;
            let share = noise.check_se / limit_on_log_scale(limit).ok()?;
            worst = Some(f64::max(worst.unwrap_or(0.0), share));
        }
        worst
    };
    let scores: Vec<(usize, f64)> = lengths
        .iter()
        .enumerate()
        .filter(|(_, length)| usable(length))
        .filter_map(|(index, length)| Some((index, score(length)?)))
        .collect();
    let (best, least) = scores
        .iter()
        .min_by(|(_, one), (_, other)| one.total_cmp(other))
        .copied()?;
    let chosen = scores.iter().find(|(index, score)| {
        lengths.get(*index).is_some_and(|length| length.chosen) && *score <= least * AS_GOOD
    });
    Some(chosen.map_or(best, |(index, _)| *index))
}
