use std::collections::BTreeMap;

use crate::data::{Block, Limit, MetricResult, MetricVerdict};
use crate::stats::{Assumed, TwoLevel};

use super::decision::{blank, change_of, level_of, noise_floor, orient, raw_order};
use super::design::threshold;
use super::series::{Life, median_requests, newest_epoch, values};
use super::{Design, GateError};

/// One-sided error levels of one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Levels {
    pub alpha: f64,
    pub beta: f64,
}

/// An oriented estimate with its bounds; none is unbounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Evidence {
    pub estimate: f64,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
}

/// What a metric may become whatever the numbers say, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Restraint {
    pub never_pass: bool,
    pub never_fail: bool,
    pub note: Option<String>,
}

/// Why a metric is undecided, as far as it changes what to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cause {
    /// Values are missing or cannot be judged.
    Missing,
    /// Too few requests for this percentile.
    FewRequests,
    /// The spread between sessions: more blocks cannot help.
    Sessions {
        /// Standard deviation between sessions.
        sd: f64,
        /// Sessions that were used.
        count: u32,
    },
    /// The pooled tail contradicts the units.
    Tail,
    /// More time would help.
    Time,
}

/// One metric at one look.
#[derive(Debug, Clone)]
pub(crate) struct Evaluated {
    pub result: MetricResult,
    pub cause: Cause,
    /// True where further blocks cannot change the verdict.
    pub stuck: bool,
    pub assumed: Assumed,
    pub raised_by_drift: bool,
    pub within_assumed: bool,
    /// Stored sessions that lack this metric.
    pub sessions_lost: usize,
}

impl Evaluated {
    pub(crate) fn new(result: MetricResult, cause: Cause, stuck: bool) -> Self {
        Self {
            result,
            cause,
            stuck,
            assumed: Assumed::No,
            raised_by_drift: false,
            within_assumed: false,
            sessions_lost: 0,
        }
    }

    pub(crate) fn missing(limit: &Limit, note: String) -> Self {
        let mut result = blank(limit);
        result.note = Some(note);
        Self::new(result, Cause::Missing, true)
    }
}

/// Fills in what an oriented estimate says about a relative limit, and the verdict.
pub(crate) fn judge(
    design: &Design,
    limit: &Limit,
    evidence: Evidence,
    levels: Levels,
    restraint: &Restraint,
) -> Result<MetricResult, GateError> {
    let metric = limit.metric;
    let threshold = threshold(limit)?;
    let mut result = blank(limit);
    result.change = Some(change_of(metric, evidence.estimate));
    result.interval = raw_order(
        metric,
        evidence.lower.map(|bound| change_of(metric, bound)),
        evidence.upper.map(|bound| change_of(metric, bound)),
    );
    result.level = Some(raw_order(metric, levels.alpha, levels.beta));
    result.noise_floor = match (evidence.lower, evidence.upper) {
        (Some(lower), Some(upper)) => Some(noise_floor(metric, upper - lower)),
        _ => None,
    };
    let worse = evidence.lower.is_some_and(|lower| lower > 0.0)
        && evidence.estimate >= design.fail_at(threshold);
    let ruled_out = evidence.upper.is_some_and(|upper| upper < threshold);
    let better = evidence.upper.is_some_and(|upper| upper < -threshold / 2.0);
    result.verdict = if worse && !restraint.never_fail {
        MetricVerdict::Regression
    } else if ruled_out && !restraint.never_pass {
        if better {
            MetricVerdict::Improvement
        } else {
            MetricVerdict::Pass
        }
    } else {
        MetricVerdict::Inconclusive
    };
    if result.verdict == MetricVerdict::Inconclusive {
        result.note.clone_from(&restraint.note);
    }
    Ok(result)
}

/// Requests a block below which its percentile may not pass, and below which it may not fail.
pub(crate) const fn block_needs(tail: f64) -> (u64, u64) {
    // At least one request beyond the percentile is to be expected in every block: below that the
    // figure is the block's slowest request under another name.
    let pass = (1.0 / tail + 0.999) as u64;
    let pass = if pass < 10 { 10 } else { pass };
    (pass, if pass < 20 { pass } else { 20 })
}

/// What the number of requests in the blocks allows for a percentile.
pub(crate) fn request_restraint(limit: &Limit, candidate: &[Block], lives: &[Life]) -> Restraint {
    let Some(p) = limit.metric.quantile() else {
        return Restraint::default();
    };
    let here = median_requests(candidate.iter());
    let stored = median_requests(
        newest_epoch(lives)
            .into_iter()
            .flat_map(|life| &life.blocks),
    );
    let requests = here.min(stored);
    let (pass, fail) = block_needs(1.0 - p);
    if requests >= pass {
        return Restraint::default();
    }
    let stated = |block: &Block| block.duration_ns == 0 && block.stated_throughput.is_some();
    let foreign = candidate.iter().any(stated)
        || newest_epoch(lives)
            .into_iter()
            .flat_map(|life| &life.blocks)
            .any(stated);
    Restraint {
        never_pass: true,
        never_fail: requests < fail,
        note: Some(if foreign {
            format!(
                "needs {pass} requests in each block, and the file does not say how many it had"
            )
        } else {
            format!("needs {pass} requests in each block, a block has {requests}")
        }),
    }
}

/// A relative limit against stored lives at one look.
pub(crate) fn evaluate(
    design: &Design,
    limit: &Limit,
    lives: &[Life],
    candidate: &[Block],
    levels: Levels,
) -> Result<Evaluated, GateError> {
    let metric = limit.metric;
    let oriented = |values: Vec<f64>| -> Vec<f64> {
        values
            .into_iter()
            .map(|value| orient(metric, value))
            .collect()
    };
    let candidate_values = match values(candidate, metric) {
        Ok(values) => oriented(values),
        Err(note) => return Ok(Evaluated::missing(limit, note)),
    };
    let mut epochs: BTreeMap<u32, Vec<Vec<f64>>> = BTreeMap::new();
    for life in lives {
        if let Ok(values) = values(&life.blocks, metric) {
            epochs.entry(life.epoch).or_default().push(oriented(values));
        }
    }
    let usable: usize = epochs.values().map(Vec::len).sum();
    // A level from before an accepted shift is not the baseline, even where nothing else is known.
    let newest = lives.iter().map(|life| life.epoch).max();
    let known = newest
        .and_then(|newest| epochs.remove(&newest))
        .unwrap_or_default();
    let earlier: Vec<Vec<Vec<f64>>> = epochs.into_values().collect();
    if known.is_empty() {
        let note = format!("no stored session has usable values of {}", metric.label());
        let mut evaluated = Evaluated::missing(limit, note);
        evaluated.result.candidate = mean_level(limit, &candidate_values);
        return Ok(evaluated);
    }
    let fail = |source| GateError::Stats { metric, source };
    let levels_of =
        TwoLevel::with_epochs(&known, &earlier, &candidate_values, design.assumed(metric))
            .map_err(fail)?;
    let evidence = Evidence {
        estimate: levels_of.estimate,
        lower: levels_of.lower(levels.alpha).map_err(fail)?,
        upper: levels_of.upper(levels.beta).map_err(fail)?,
    };
    let restraint = request_restraint(limit, candidate, lives);
    let mut result = judge(design, limit, evidence, levels, &restraint)?;
    result.baseline = Some(level_of(metric, levels_of.baseline));
    result.candidate = Some(level_of(metric, levels_of.candidate));
    let bound_by_sessions = levels_of.session_share > SESSION_SHARE;
    // What may never pass is worth more blocks only while it may still fail.
    let wanted = threshold(limit)?;
    let futile = restraint.never_pass
        && (restraint.never_fail || evidence.upper.is_some_and(|upper| upper < wanted));
    let cause = if restraint.never_pass {
        Cause::FewRequests
    } else if bound_by_sessions {
        Cause::Sessions {
            sd: levels_of.session_variance.sqrt(),
            count: known.len() as u32,
        }
    } else {
        Cause::Time
    };
    Ok(Evaluated {
        result,
        cause,
        stuck: bound_by_sessions || futile,
        assumed: levels_of.assumed,
        raised_by_drift: levels_of.raised_by_drift,
        within_assumed: levels_of.within_assumed,
        sessions_lost: lives.len() - usable,
    })
}

/// Share of the variance between sessions from which more blocks are not worth their time.
const SESSION_SHARE: f64 = 0.8;

fn mean_level(limit: &Limit, oriented: &[f64]) -> Option<f64> {
    crate::stats::mean(oriented)
        .ok()
        .map(|mean| level_of(limit.metric, mean))
}
