use crate::data::{Block, Bound, Limit, Metric, MetricResult, MetricVerdict};
use crate::stats::median;

use super::GateError;
use super::decision::{blank, change_of, orient};
use super::design::threshold;
use super::series::{Life, newest_epoch, values};

/// The bare comparison: medians of blocks against the limit, no interval and no error rates.
pub(crate) fn evaluate(
    limit: &Limit,
    lives: &[Life],
    candidate: &[Block],
) -> Result<MetricResult, GateError> {
    let metric = limit.metric;
    let mut result = blank(limit);
    let fail = |source| GateError::Stats { metric, source };
    let worst = threshold(limit)?;
    if metric == Metric::ErrorRate {
        let rates: Vec<f64> = candidate
            .iter()
            .filter_map(|block| block.value(metric))
            .collect();
        if let Ok(rate) = median(&rates) {
            result.candidate = Some(rate);
            result.verdict = verdict(rate > worst, false);
        } else {
            result.note = Some("no request was answered".to_owned());
        }
        return Ok(result);
    }
    let now = match values(candidate, metric) {
        Ok(values) => median(&values).map_err(fail)?,
        Err(note) => {
            result.note = Some(note);
            return Ok(result);
        }
    };
    result.candidate = Some(now);
    if matches!(limit.bound, Bound::Absolute(_)) {
        result.verdict = verdict(orient(metric, now) > orient(metric, worst), false);
        return Ok(result);
    }
    let stored: Vec<f64> = newest_epoch(lives)
        .into_iter()
        .filter_map(|life| values(&life.blocks, metric).ok())
        .flatten()
        .collect();
    if stored.is_empty() {
        result.note = Some(format!(
            "no stored session has usable values of {}",
            metric.label()
        ));
        return Ok(result);
    }
    let before = median(&stored).map_err(fail)?;
    result.baseline = Some(before);
    let change = orient(metric, now) - orient(metric, before);
    result.change = Some(change_of(metric, change));
    result.verdict = verdict(change > worst, change < -worst / 2.0);
    Ok(result)
}

const fn verdict(worse: bool, better: bool) -> MetricVerdict {
    if worse {
        MetricVerdict::Regression
    } else if better {
        MetricVerdict::Improvement
    } else {
        MetricVerdict::Pass
    }
}
