use crate::data::{Fraction, Limit, MetricVerdict, Reason};
use crate::stats::{FEW_SESSIONS, sessions_needed};

use super::Design;
use super::design::threshold;
use super::relative::{Cause, Evaluated};

/// Why the metrics do not plainly pass, by the one that decides what to do next. `live` is true
/// where the baseline is measured beside the candidate.
pub(crate) fn explain(
    design: &Design,
    metrics: &[(Limit, Evaluated)],
    live: bool,
) -> Option<Reason> {
    let failed: Vec<&(Limit, Evaluated)> = having(metrics, MetricVerdict::Regression);
    if let Some((limit, _)) = failed.first() {
        let names: Vec<&str> = failed
            .iter()
            .map(|(limit, _)| limit.metric.label())
            .collect();
        return Some(Reason {
            code: "regression".to_owned(),
            text: format!("{} worse than the limit allows", names.join(", ")),
            next: format!(
                "see what changed; an intended slowdown is committed as [[accept]] of {}",
                limit.metric
            ),
        });
    }
    let open = having(metrics, MetricVerdict::Inconclusive);
    let order = |cause: Cause| match cause {
        Cause::Missing => 0,
        Cause::FewRequests => 1,
        Cause::Sessions { .. } => 2,
        Cause::Tail => 3,
        Cause::Time => 4,
    };
    let (limit, worst) = open
        .into_iter()
        .min_by_key(|(_, metric)| order(metric.cause))?;
    let label = limit.metric.label();
    Some(match worst.cause {
        Cause::Missing => Reason {
            code: "not_measured".to_owned(),
            text: worst
                .result
                .note
                .clone()
                .unwrap_or_else(|| format!("{label} is unknown")),
            next: format!("remove the limit of {label}, or measure where it is known"),
        },
        Cause::FewRequests => Reason {
            code: "few_requests".to_owned(),
            text: worst.result.note.as_ref().map_or_else(
                || format!("too few requests for {label}"),
                |note| format!("{label} {note}"),
            ),
            next: if live {
                "gate a lower percentile, or raise budget".to_owned()
            } else {
                "gate a lower percentile, or set longer blocks and record the baseline anew"
                    .to_owned()
            },
        },
        Cause::Sessions { sd, count } => sessions(design, limit, sd, count),
        Cause::Tail => Reason {
            code: "bursty_tail".to_owned(),
            text: worst
                .result
                .note
                .clone()
                .unwrap_or_else(|| format!("{label}: bursty tail")),
            next: "look for stalls of the candidate, or raise budget".to_owned(),
        },
        Cause::Time => time(limit, worst, live),
    })
}

fn having(metrics: &[(Limit, Evaluated)], verdict: MetricVerdict) -> Vec<&(Limit, Evaluated)> {
    metrics
        .iter()
        .filter(|(_, metric)| metric.result.verdict == verdict)
        .collect()
}

fn percent(value: f64) -> String {
    format!("{:.1} %", value * 100.0)
}

fn sessions(design: &Design, limit: &Limit, sd: f64, count: u32) -> Reason {
    let label = limit.metric.label();
    let alpha = design.false_alarm / f64::from(design.gated.max(1));
    let needed = threshold(limit)
        .ok()
        .and_then(|wanted| sessions_needed(sd, wanted, alpha, design.beta()).ok())
        .flatten()
        .filter(|needed| *needed > count)
        .or_else(|| ((count as usize) < FEW_SESSIONS).then_some(FEW_SESSIONS as u32));
    let spread = percent(sd.exp_m1());
    let counted = if count == 1 {
        "1 stored session".to_owned()
    } else {
        format!("{count} stored sessions")
    };
    let text = format!(
        "{label}: sessions vary by {spread} and there is only so much {counted} can tell; \
         measuring longer does not help"
    );
    let next = match needed {
        Some(needed) => {
            let missing = needed - count;
            let noun = if missing == 1 { "session" } else { "sessions" };
            format!("record {missing} more {noun}, or compare with a live [reference]")
        }
        None => "compare with a live [reference]: no number of stored sessions resolves this limit"
            .to_owned(),
    };
    Reason {
        code: if (count as usize) < FEW_SESSIONS {
            "few_sessions"
        } else {
            "noisy_sessions"
        }
        .to_owned(),
        text,
        next,
    }
}

fn time(limit: &Limit, metric: &Evaluated, live: bool) -> Reason {
    let label = limit.metric.label();
    let wanted = metric.result.threshold.map(f64::abs);
    let floor = metric.result.noise_floor;
    match (floor, wanted) {
        (Some(floor), Some(wanted)) if floor <= wanted => Reason {
            code: "near_threshold".to_owned(),
            text: format!("{label}: the change is too close to the limit to tell"),
            next: "raise budget, or move the limit away from what is accepted".to_owned(),
        },
        (Some(floor), Some(wanted)) => Reason {
            code: "noisy".to_owned(),
            text: format!(
                "{label}: this sample sees changes from {} on, the limit is {}",
                percent(floor),
                Fraction::new(wanted)
            ),
            next: if live {
                // The width of an interval falls with the square root of the sample.
                let fold = (floor.ln_1p() / wanted.ln_1p()).powi(2).ceil();
                if fold <= 20.0 {
                    format!("raise budget about {fold:.0}-fold, or quieten the machine")
                } else {
                    "quieten the machine: no budget in reason resolves this limit".to_owned()
                }
            } else {
                "raise budget, quieten the machine, or compare with a live [reference]".to_owned()
            },
        },
        _ => Reason {
            code: "too_little_data".to_owned(),
            text: metric
                .result
                .note
                .clone()
                .unwrap_or_else(|| format!("{label}: too little was measured to decide")),
            next: "raise budget".to_owned(),
        },
    }
}
