//! Sentences that terminal, Markdown and `JUnit` share. Plain text, not yet escaped; names within
//! them are cleaned.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::format;
use super::text::{MESSAGE, NAME, VALUE, clean};
use crate::data::{
    BaselineKind, CheckResult, Difference, Direction, Metric, MetricResult, MetricVerdict,
    ScenarioResult, SideBreakdown, SubjectChange, Verdict,
};

/// The verdict on a scenario in capital words, for the first line.
pub(super) const fn banner(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS",
        Verdict::Regression => "REGRESSION",
        Verdict::Inconclusive => "NOT DECIDED",
        Verdict::Accepted => "ACCEPTED",
        Verdict::New => "NEW",
        Verdict::NotAffected => "NOT AFFECTED",
        Verdict::NoBaseline => "NO BASELINE",
        Verdict::Incompatible => "BASELINE NOT COMPARABLE",
        Verdict::Invalid => "COULD NOT MEASURE",
        Verdict::Interrupted => "INTERRUPTED",
    }
}

/// The verdict on a scenario in the middle of a sentence.
pub(super) const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Regression => "regression",
        Verdict::Inconclusive => "not decided",
        Verdict::Accepted => "accepted",
        Verdict::New => "new",
        Verdict::NotAffected => "not affected",
        Verdict::NoBaseline => "no baseline",
        Verdict::Incompatible => "baseline not comparable",
        Verdict::Invalid => "could not measure",
        Verdict::Interrupted => "interrupted",
    }
}

/// The verdict on a metric.
pub(super) const fn metric_verdict(verdict: MetricVerdict) -> &'static str {
    match verdict {
        MetricVerdict::Pass => "pass",
        MetricVerdict::Regression => "REGRESSION",
        MetricVerdict::Inconclusive => "not decided",
        MetricVerdict::Improvement => "improvement",
    }
}

/// `limit +10 %`, `limit <= 25.0 ms`.
pub(super) fn limit(metric: &MetricResult) -> String {
    match (metric.threshold, metric.limit) {
        (Some(threshold), _) => format::threshold(threshold),
        (None, Some(limit)) => format::limit(metric.metric, limit),
        (None, None) => format::UNKNOWN.to_owned(),
    }
}

/// `P99 +18.2 % (limit +10 %)`, or the value where the limit is an absolute one.
pub(super) fn metric_change(metric: &MetricResult) -> String {
    let amount = match (metric.threshold, metric.change) {
        (Some(_), Some(change)) => format::change(change),
        _ => metric.candidate.map_or_else(
            || format::UNKNOWN.to_owned(),
            |value| format::value(metric.metric, value),
        ),
    };
    format!("{} {amount} (limit {})", metric.label(), limit(metric))
}

/// What an undecided metric leaves open.
pub(super) fn not_ruled_out(metric: &MetricResult) -> String {
    let label = metric.label();
    let (worse, word) = match metric.metric.direction() {
        Direction::HigherIsBetter => (metric.interval[0], "fall"),
        Direction::LowerIsBetter => (metric.interval[1], "rise"),
    };
    let measured = metric
        .change
        .map_or_else(String::new, |change| format!(" {}", format::change(change)));
    let open = match (metric.threshold, worse) {
        (Some(threshold), Some(worse)) if beyond(metric.metric, worse, threshold) => Some(format!(
            "a {word} of {} cannot be ruled out (limit {})",
            format::percent(worse.abs()),
            format::threshold(threshold)
        )),
        (Some(threshold), None) if metric.change.is_some() => Some(format!(
            "a {word} beyond {} cannot be ruled out",
            format::threshold(threshold)
        )),
        (None, _) if metric.limit.is_some() => Some(format!(
            "too close to the limit of {} to call",
            limit(metric).trim_start_matches(['<', '>', '=', ' '])
        )),
        _ => None,
    };
    let note = metric.note.as_deref().map(|note| clean(note, MESSAGE));
    match (open, note) {
        (Some(open), Some(note)) => format!("{label}{measured}: {open}; {note}"),
        (Some(open), None) => format!("{label}{measured}: {open}"),
        (None, Some(note)) => format!("{label}{measured}: {note}"),
        (None, None) => format!("{label}{measured}: the evidence does not decide"),
    }
}

/// Whether a change is worse than a threshold, both signed.
fn beyond(metric: Metric, change: f64, threshold: f64) -> bool {
    match metric.direction() {
        Direction::HigherIsBetter => change < threshold,
        Direction::LowerIsBetter => change > threshold,
    }
}

/// Why the exit code is not the one that the verdict suggests; none where it is.
pub(super) fn exit_effect(scenario: &ScenarioResult) -> Option<String> {
    let code = scenario.exit_code;
    match scenario.verdict {
        Verdict::Regression | Verdict::Inconclusive if scenario.advisory && code == 0 => {
            Some("advisory (mode = \"advise\"): it does not change the exit code".to_owned())
        }
        Verdict::Inconclusive if code == 0 => {
            Some("on_inconclusive = \"pass\": a warning, exit 0".to_owned())
        }
        Verdict::Inconclusive if code == 1 => {
            Some("on_inconclusive = \"fail\": counted as a regression".to_owned())
        }
        Verdict::NoBaseline if code == 0 => {
            Some("on_missing = \"new\": measured, compared with nothing".to_owned())
        }
        _ => None,
    }
}

/// What differs between the two subjects, one phrase a difference; the scenario is named only
/// where it differs in some scenarios and not in others.
pub(super) fn subject_changes(result: &CheckResult) -> Vec<String> {
    let mut phrases: Vec<(String, Vec<&str>)> = Vec::new();
    for SubjectChange {
        scenario,
        difference,
    } in &result.subject_changes
    {
        let phrase = difference_text(difference);
        match phrases.iter_mut().find(|(known, _)| *known == phrase) {
            Some((_, scenarios)) => scenarios.push(scenario),
            None => phrases.push((phrase, vec![scenario])),
        }
    }
    phrases
        .into_iter()
        .map(|(phrase, scenarios)| {
            if scenarios.len() >= result.scenarios.len() {
                return phrase;
            }
            let more = scenarios.len() - 1;
            let first = clean(scenarios.first().copied().unwrap_or_default(), NAME);
            if more == 0 {
                format!("{phrase} ({first})")
            } else {
                format!("{phrase} ({first} and {more} more)")
            }
        })
        .collect()
}

/// `instance_group.count 2 -> 1`.
pub(super) fn difference_text(difference: &Difference) -> String {
    let side = |value: &Option<String>| {
        value
            .as_deref()
            .map_or_else(|| "(absent)".to_owned(), |value| clean(value, VALUE))
    };
    format!(
        "{} {} -> {}",
        clean(&difference.field, NAME),
        side(&difference.baseline),
        side(&difference.candidate)
    )
}

/// What the numbers were compared with.
pub(super) fn baseline(scenario: &ScenarioResult) -> Option<String> {
    let used = scenario.baseline.as_ref()?;
    let source = clean(&used.source, VALUE);
    Some(match used.kind {
        BaselineKind::Reference => format!("live reference {source}"),
        BaselineKind::Stored => {
            let mut text = format!(
                "{}, {}",
                format::counted(u64::from(used.sessions), "stored session"),
                format::counted(u64::from(used.blocks), "block")
            );
            if let Some(newest) = &used.newest {
                text.push_str(", newest ");
                text.push_str(&clean(newest, NAME));
            }
            if let Some(commit) = &used.commit {
                text.push_str(" at commit ");
                text.push_str(&clean(commit, NAME));
            }
            format!("{text} ({source})")
        }
    })
}

/// What was measured; none where nothing was.
pub(super) fn measured(scenario: &ScenarioResult) -> Option<String> {
    if scenario.blocks == 0 && scenario.requests == 0 && scenario.errors.is_empty() {
        return None;
    }
    let mut parts = vec![format::counted(u64::from(scenario.blocks), "block")];
    if scenario.pairs > 0 {
        parts.push(format::counted(u64::from(scenario.pairs), "pair"));
    }
    let counted = scenario.requests > 0 || !scenario.errors.is_empty();
    if !counted && scenario.seconds <= 0.0 {
        // A file of another tool.
        parts.push("requests and length not in the file".to_owned());
        return Some(parts.join(", "));
    }
    parts.push(format::duration(scenario.seconds));
    parts.push(format::counted(scenario.requests, "request"));
    parts.push(
        by_kind(&scenario.errors, |total| {
            format!("{} failed", format::count(total))
        })
        .unwrap_or_else(|| "no errors".to_owned()),
    );
    let discarded: BTreeMap<String, u64> = scenario
        .discarded
        .iter()
        .map(|(reason, blocks)| (reason.clone(), u64::from(*blocks)))
        .collect();
    parts.extend(by_kind(&discarded, |total| {
        format!("{} discarded", format::counted(total, "block"))
    }));
    if scenario.looks > 1 {
        parts.push(format::counted(u64::from(scenario.looks), "look"));
    }
    Some(parts.join(", "))
}

/// `12 failed (timeout 10, connection 2)`; none without any.
fn by_kind(counts: &BTreeMap<String, u64>, what: impl Fn(u64) -> String) -> Option<String> {
    let total: u64 = counts
        .values()
        .fold(0, |sum, count| sum.saturating_add(*count));
    if total == 0 {
        return None;
    }
    let kinds: Vec<String> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| format!("{} {}", clean(kind, NAME), format::count(*count)))
        .collect();
    Some(format!("{} ({})", what(total), kinds.join(", ")))
}

/// What is said where the noise between sessions was not measured.
pub(super) fn assumed_noise(scenario: &ScenarioResult) -> Option<&'static str> {
    match scenario.assumed_noise.as_deref()? {
        "partly_assumed" => Some(
            "the noise between sessions is partly assumed: few baseline sessions; record more to \
             rest the verdict on measured noise",
        ),
        _ => Some(
            "the noise between sessions is assumed, not measured: too few baseline sessions; \
             record more to rest the verdict on measured noise",
        ),
    }
}

/// The GPUs: what each side used of them.
pub(super) fn gpu(scenario: &ScenarioResult) -> Option<String> {
    let used = scenario.gpu.as_ref()?;
    let before = used.baseline.unwrap_or_default();
    let now = &used.candidate;
    let parts: Vec<String> = [
        (
            "utilisation",
            before.utilisation,
            now.utilisation,
            100.0,
            "%",
        ),
        ("power", before.power_w, now.power_w, 1.0, "W"),
        ("SM clock", before.clock_mhz, now.clock_mhz, 1.0, "MHz"),
        (
            "memory",
            before.memory_bytes,
            now.memory_bytes,
            1.0 / f64::from(1 << 20),
            "MiB",
        ),
    ]
    .into_iter()
    .filter_map(|(name, before, now, scale, unit)| {
        let now = format!("{:.0}", now? * scale);
        let before = before.map(|before| format!("{:.0}", before * scale));
        Some(match before {
            Some(before) if before != now => format!("{name} {before} -> {now} {unit}"),
            _ => format!("{name} {now} {unit}"),
        })
    })
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Where the time went, in one sentence. The parts are means over all requests, so they explain
/// the mean latency; a percentile that changed is named beside it, not taken apart.
pub(super) fn breakdown(scenario: &ScenarioResult) -> Option<String> {
    let parts = scenario.breakdown.as_ref()?;
    let candidate = parts.candidate.as_ref()?;
    let Some(baseline) = &parts.baseline else {
        return Some(one_side(candidate));
    };
    let total = candidate.latency_us - baseline.latency_us;
    if !total.is_finite() {
        return None;
    }
    let lead = scenario
        .metrics
        .iter()
        // The breakdown is against the baseline itself.
        .filter(|metric| metric.pin.is_none() && metric.metric.quantile().is_some())
        .find_map(|metric| match (metric.verdict, metric.change) {
            (MetricVerdict::Regression | MetricVerdict::Improvement, Some(change)) => {
                let way = if change < 0.0 { "fell" } else { "rose" };
                let size = format::percent(change.abs());
                Some(format!("{} {way} {size}; ", metric.metric.label()))
            }
            _ => None,
        })
        .unwrap_or_default();
    let batch = match (baseline.executed_batch, candidate.executed_batch) {
        (Some(before), Some(now)) if (now - before).abs() >= 0.05 * before => format!(
            "; executed batch {} -> {}",
            format::trimmed(before, 2),
            format::trimmed(now, 2)
        ),
        _ => String::new(),
    };
    // Below this a difference of two means says nothing.
    if total.abs() < 0.01 * baseline.latency_us {
        return Some(format!(
            "{lead}mean latency unchanged ({}){batch}",
            format::latency(candidate.latency_us)
        ));
    }
    let deltas: Vec<String> = sides(candidate)
        .into_iter()
        .zip(sides(baseline))
        .map(|((name, now), (_, before))| {
            let delta = now - before;
            let share = delta / total;
            if share.abs() < 0.05 {
                format!("{name} unchanged")
            } else if share > 0.0 {
                format!(
                    "{name} {} ({:.0} % of the change)",
                    format::latency_change(delta),
                    share * 100.0
                )
            } else {
                format!("{name} {}", format::latency_change(delta))
            }
        })
        .collect();
    Some(format!(
        "{lead}mean latency {} -> {} ({}): {}{batch}",
        format::latency(baseline.latency_us),
        format::latency(candidate.latency_us),
        format::latency_change(total),
        deltas.join(", ")
    ))
}

fn one_side(side: &SideBreakdown) -> String {
    let parts: Vec<String> = sides(side)
        .into_iter()
        .map(|(name, amount)| {
            let share = amount / side.latency_us;
            if share.is_finite() {
                format!(
                    "{name} {} ({:.0} %)",
                    format::latency(amount),
                    share * 100.0
                )
            } else {
                format!("{name} {}", format::latency(amount))
            }
        })
        .collect();
    format!(
        "mean latency {}: {}",
        format::latency(side.latency_us),
        parts.join(", ")
    )
}

fn sides(side: &SideBreakdown) -> [(&'static str, f64); 4] {
    [
        ("queueing", side.queue_us),
        (
            "compute",
            side.compute_input_us + side.compute_infer_us + side.compute_output_us,
        ),
        ("server overhead", side.overhead_us),
        ("network and client", side.network_us),
    ]
}

/// The environment in one line: its name and the facts that most often explain a difference.
pub(super) fn environment(result: &CheckResult) -> String {
    const SHOWN: usize = 6;
    let name = clean(&result.environment_name, NAME);
    let mut facts: Vec<(&String, &String)> = result
        .environment
        .0
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    // Hardware before the rest; the map's order within.
    facts.sort_by_key(|(field, _)| {
        ["gpu.", "cpu.", "server.", "triton"]
            .iter()
            .position(|start| field.starts_with(start))
            .unwrap_or(usize::MAX)
    });
    let mut parts: Vec<String> = facts
        .iter()
        .take(SHOWN)
        .map(|(field, value)| format!("{} {}", clean(field, 40), clean(value, 60)))
        .collect();
    if facts.len() > SHOWN {
        parts.push(format!("{} more", facts.len() - SHOWN));
    }
    match (name.is_empty(), parts.is_empty()) {
        (true, true) => "unknown".to_owned(),
        (false, true) => name,
        (true, false) => parts.join(", "),
        (false, false) => format!("{name} ({})", parts.join(", ")),
    }
}

/// What wrote the report.
pub(super) fn tool(result: &CheckResult) -> String {
    let mut text = format!("triton-gate {}", clean(&result.tool.version, 40));
    let commit = clean(&result.tool.commit, 40);
    if !commit.is_empty() {
        let _ = write!(text, " ({commit})");
    }
    if !result.started_at.is_empty() {
        let _ = write!(text, ", {}", clean(&result.started_at, 40));
    }
    text
}

/// What to do next for the whole check: for the scenario that weighs most.
pub(super) fn next_step(result: &CheckResult) -> Option<String> {
    result
        .scenarios
        .iter()
        .min_by_key(|scenario| super::rows::rank(scenario))
        .and_then(next)
}

/// What to do next for a scenario: its own words, else what its verdict suggests.
pub(super) fn next(scenario: &ScenarioResult) -> Option<String> {
    let own = scenario
        .reason
        .as_ref()
        .map(|reason| clean(&reason.next, MESSAGE))
        .filter(|next| !next.is_empty());
    let suggested = match scenario.verdict {
        Verdict::Regression => {
            "find what changed; if it is intended, record a new baseline with `triton-gate baseline record`"
        }
        Verdict::Inconclusive => {
            "run it again with a larger budget, or record more baseline sessions"
        }
        Verdict::NoBaseline | Verdict::Incompatible => {
            "record a baseline in this environment with `triton-gate baseline record`"
        }
        Verdict::Invalid => "mend what the reason names and run the check again",
        Verdict::Interrupted => "run the check again",
        Verdict::New => "record a baseline with `triton-gate baseline record`",
        Verdict::Pass | Verdict::Accepted | Verdict::NotAffected => "",
    };
    own.or_else(|| (!suggested.is_empty()).then(|| suggested.to_owned()))
}

#[cfg(test)]
mod tests;
