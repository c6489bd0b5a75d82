use hdrhistogram::Histogram;

use crate::data::{Block, Direction, Limit, Metric, MetricResult, MetricVerdict};
use crate::stats::{
    MeanInterval, early_stopping_rank, histogram_quantile, mean_interval, order_statistic_ranks,
    rank_value,
};

use super::GateError;
use super::decision::{blank, level_of, orient, raw_order};
use super::design::threshold;
use super::relative::{Cause, Evaluated, Levels};
use super::series::values;
use super::units::pooled;

/// Nanoseconds of a histogram in the microseconds of a metric.
const NS_PER_US: f64 = 1000.0;

/// A limit in the metric's own unit at one look; it needs no baseline.
pub(crate) fn evaluate(
    limit: &Limit,
    candidate: &[Block],
    levels: Levels,
) -> Result<Evaluated, GateError> {
    if limit.metric == Metric::ErrorRate {
        return error_rate(limit, candidate, levels);
    }
    let series = match values(candidate, limit.metric) {
        Ok(values) => values,
        Err(note) => return Ok(Evaluated::missing(limit, note)),
    };
    let oriented: Vec<f64> = series
        .iter()
        .map(|value| orient(limit.metric, *value))
        .collect();
    if oriented.len() < 2 {
        let mut result = blank(limit);
        result.candidate = series.first().copied();
        result.note = Some("one value has no interval: at least two blocks are needed".to_owned());
        return Ok(Evaluated::new(result, Cause::Time, false));
    }
    let fail = |source| GateError::Stats {
        metric: limit.metric,
        source,
    };
    let interval = mean_interval(&oriented).map_err(fail)?;
    let bounds = Bounds {
        lower: one_end(&interval, levels.alpha, MeanInterval::lower).map_err(fail)?,
        upper: one_end(&interval, levels.beta, MeanInterval::upper).map_err(fail)?,
    };
    let mut result = blank(limit);
    result.candidate = Some(level_of(limit.metric, interval.mean));
    let bounds = match limit.metric.quantile() {
        Some(p) => match pooled(candidate.iter()) {
            Some(histogram) => proven(limit, &mut result, &histogram, p, bounds, levels)?,
            None => bounds,
        },
        None => bounds,
    };
    finish(limit, result, bounds, levels)
}

/// Oriented bounds of the metric's level; none is unbounded.
#[derive(Clone, Copy)]
struct Bounds {
    lower: Option<f64>,
    upper: Option<f64>,
}

fn one_end<E>(
    interval: &MeanInterval,
    level: f64,
    end: fn(&MeanInterval, f64) -> Result<f64, E>,
) -> Result<Option<f64>, E> {
    if level == 0.0 {
        Ok(None)
    } else {
        end(interval, level).map(Some)
    }
}

/// A percentile's bounds from all requests, joined with those from the blocks: each end is the
/// wider of both, as requests of one run are not independent and blocks may hold few of them.
fn proven(
    limit: &Limit,
    result: &mut MetricResult,
    histogram: &Histogram<u64>,
    p: f64,
    blocks: Bounds,
    levels: Levels,
) -> Result<Bounds, GateError> {
    let fail = |source| GateError::Stats {
        metric: limit.metric,
        source,
    };
    let n = histogram.len();
    if n == 0 {
        return Ok(Bounds {
            lower: None,
            upper: None,
        });
    }
    let value = histogram_quantile(histogram, p).map_err(fail)? / NS_PER_US;
    result.candidate = Some(value);
    let log_us = |rank: u64| {
        rank_value(histogram, rank)
            .map(|ns| (ns / NS_PER_US).ln())
            .filter(|ln| ln.is_finite())
    };
    let upper = early_stopping_rank(n, p, 1.0 - levels.beta)
        .map_err(fail)?
        .and_then(|t| log_us(n + 1 - t));
    let lower = if levels.alpha > 0.0 {
        order_statistic_ranks(n, p, 1.0 - 2.0 * levels.alpha)
            .map_err(fail)?
            .0
            .and_then(log_us)
    } else {
        None
    };
    let both = |one: Option<f64>, two: Option<f64>, pick: fn(f64, f64) -> f64| {
        one.zip(two).map(|(one, two)| pick(one, two))
    };
    if upper.is_none() {
        result.note = Some(format!(
            "{n} requests are too few to prove an upper bound of {}",
            limit.metric.label()
        ));
    }
    Ok(Bounds {
        lower: both(lower, blocks.lower, f64::min),
        upper: both(upper, blocks.upper, f64::max),
    })
}

fn finish(
    limit: &Limit,
    mut result: MetricResult,
    bounds: Bounds,
    levels: Levels,
) -> Result<Evaluated, GateError> {
    let metric = limit.metric;
    let worst = orient(metric, threshold(limit)?);
    let level = |bound: Option<f64>| bound.map(|bound| level_of(metric, bound));
    let ends = raw_order(metric, level(bounds.lower), level(bounds.upper));
    result.level = Some(raw_order(metric, levels.alpha, levels.beta));
    result.verdict = if bounds.lower.is_some_and(|lower| lower > worst) {
        MetricVerdict::Regression
    } else if bounds.upper.is_some_and(|upper| upper <= worst) {
        MetricVerdict::Pass
    } else {
        MetricVerdict::Inconclusive
    };
    let cause = if result.note.is_some() {
        Cause::FewRequests
    } else {
        Cause::Time
    };
    if result.verdict != MetricVerdict::Inconclusive || result.note.is_none() {
        result.note = Some(range_note(metric, ends));
    }
    Ok(Evaluated::new(result, cause, false))
}

/// `interval` speaks of changes; the interval of a level is said in words.
fn range_note(metric: Metric, [low, high]: [Option<f64>; 2]) -> String {
    let end = |value: Option<f64>| {
        value.map_or_else(|| "unbounded".to_owned(), |value| format!("{value:.4}"))
    };
    let (low, high) = (end(low), end(high));
    let side = match metric.direction() {
        Direction::HigherIsBetter => "at least",
        Direction::LowerIsBetter => "at most",
    };
    let proven = match metric.direction() {
        Direction::HigherIsBetter => &low,
        Direction::LowerIsBetter => &high,
    };
    format!(
        "proven {side} {proven} {}, interval {low} to {high}",
        metric.unit()
    )
}

/// The share of failed requests: a t interval over blocks on the plain scale.
fn error_rate(limit: &Limit, candidate: &[Block], levels: Levels) -> Result<Evaluated, GateError> {
    let worst = threshold(limit)?;
    let fail = |source| GateError::Stats {
        metric: limit.metric,
        source,
    };
    let failed: u64 = candidate.iter().map(|block| block.errors.total()).sum();
    let all: u64 = failed + candidate.iter().map(|block| block.requests).sum::<u64>();
    if all == 0 {
        return Ok(Evaluated::missing(
            limit,
            "no request was answered".to_owned(),
        ));
    }
    let mut result = blank(limit);
    result.candidate = Some(failed as f64 / all as f64);
    result.level = Some([levels.alpha, levels.beta]);
    if worst == 0.0 && failed > 0 {
        // No interval is needed: a rate of 0 does not fail a request.
        if levels.alpha > 0.0 {
            result.verdict = MetricVerdict::Regression;
        }
        result.note = Some(format!("{failed} of {all} requests failed"));
        return Ok(Evaluated::new(result, Cause::Time, false));
    }
    let rates: Vec<f64> = candidate
        .iter()
        .filter_map(|block| block.value(Metric::ErrorRate))
        .collect();
    if rates.len() < 2 {
        result.note = Some("one value has no interval: at least two blocks are needed".to_owned());
        return Ok(Evaluated::new(result, Cause::Time, false));
    }
    let interval = mean_interval(&rates).map_err(fail)?;
    let lower = one_end(&interval, levels.alpha, MeanInterval::lower).map_err(fail)?;
    let upper = one_end(&interval, levels.beta, MeanInterval::upper).map_err(fail)?;
    result.verdict = if lower.is_some_and(|lower| lower > worst) {
        MetricVerdict::Regression
    } else if upper.is_some_and(|upper| upper <= worst) {
        MetricVerdict::Pass
    } else {
        MetricVerdict::Inconclusive
    };
    Ok(Evaluated::new(result, Cause::Time, false))
}
