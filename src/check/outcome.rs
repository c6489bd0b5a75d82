//! From what a measurement and a decision brought to a scenario's result.

use crate::data::{
    BaselineKind, BaselineUsed, Block, Breakdown, Flag, Load, Reason, Scenario, ScenarioResult,
    Session, Side, SideBreakdown, Verdict,
};
use crate::lab::Totals;
use crate::report::ScenarioExit;

/// A result that holds nothing yet but the scenario and a verdict.
pub(super) fn empty(scenario: &Scenario, verdict: Verdict) -> ScenarioResult {
    let Load::Closed { concurrency } = scenario.load;
    let mut result = ScenarioResult::new(scenario.name.clone(), verdict);
    result.model.clone_from(&scenario.model);
    result.model_version = scenario.version.clone().unwrap_or_default();
    result.load = format!("concurrency {concurrency}, batch {}", scenario.batch);
    result.advisory = scenario.gate.mode == crate::data::Mode::Advise;
    settle(scenario, &mut result);
    result
}

/// Fills in the exit code that follows from the verdict; to be called last.
pub(super) fn settle(scenario: &Scenario, result: &mut ScenarioResult) {
    result.exit_code = ScenarioExit {
        verdict: result.verdict,
        advisory: result.advisory,
        on_inconclusive: scenario.gate.on_inconclusive,
        on_missing: scenario.gate.on_missing,
    }
    .exit()
    .code();
}

/// A result with a verdict and its reason, nothing measured.
pub fn reason_result(scenario: &Scenario, verdict: Verdict, reason: Reason) -> ScenarioResult {
    let mut result = empty(scenario, verdict);
    result.reason = Some(reason);
    result
}

/// A scenario that could not be measured; stopped by the user where the reason says so.
pub fn not_measured(scenario: &Scenario, reason: Reason) -> ScenarioResult {
    let verdict = if reason.code == "interrupted" {
        Verdict::Interrupted
    } else {
        Verdict::Invalid
    };
    reason_result(scenario, verdict, reason)
}

/// What the stored sessions were.
pub(super) fn stored(sessions: &[Session], lives: u32, source: String) -> BaselineUsed {
    let newest = sessions.last();
    BaselineUsed {
        kind: BaselineKind::Stored,
        sessions: lives,
        blocks: sessions
            .iter()
            .map(|session| session.blocks.len() as u32)
            .sum(),
        newest: newest.map(|session| session.recorded_at.clone()),
        commit: newest.and_then(|session| session.commit.clone()),
        source,
    }
}

/// Where the time went on both sides.
pub(super) fn breakdown(baseline: &[&Block], candidate: &[&Block]) -> Option<Breakdown> {
    let candidate = side_breakdown(candidate);
    let baseline = side_breakdown(baseline);
    candidate.as_ref()?;
    Some(Breakdown {
        baseline,
        candidate,
    })
}

/// Means over blocks, weighted by their requests; none where the server's part is unknown.
fn side_breakdown(blocks: &[&Block]) -> Option<SideBreakdown> {
    let known: Vec<_> = blocks
        .iter()
        .filter_map(|block| Some((block.server?, block.latency.mean?, block.requests as f64)))
        .filter(|(_, _, weight)| *weight > 0.0)
        .collect();
    let weight: f64 = known.iter().map(|(_, _, weight)| weight).sum();
    if weight <= 0.0 {
        return None;
    }
    let mean = |value: &dyn Fn(&crate::data::ServerMeans, f64) -> f64| {
        known
            .iter()
            .map(|(server, latency, w)| value(server, *latency) * w)
            .sum::<f64>()
            / weight
    };
    let latency_us = mean(&|_, latency| latency);
    let total_us = mean(&|server, _| server.total_us);
    Some(SideBreakdown {
        latency_us,
        queue_us: mean(&|server, _| server.queue_us),
        compute_input_us: mean(&|server, _| server.compute_input_us),
        compute_infer_us: mean(&|server, _| server.compute_infer_us),
        compute_output_us: mean(&|server, _| server.compute_output_us),
        overhead_us: mean(&|server, _| server.overhead_us()),
        network_us: (latency_us - total_us).max(0.0),
        executed_batch: {
            let batches: Vec<f64> = known
                .iter()
                .filter_map(|(server, _, _)| server.executed_batch)
                .collect();
            (!batches.is_empty()).then(|| batches.iter().sum::<f64>() / batches.len() as f64)
        },
    })
}

/// Counts of the load.
pub(super) fn measured(result: &mut ScenarioResult, totals: &Totals, blocks: &[Block]) {
    let own = blocks.iter().filter(|block| block.side == Side::Candidate);
    result.blocks = own.clone().count() as u32;
    result.requests = own.map(|block| block.requests).sum();
    for (class, count) in &totals.errors.0 {
        let name = serde_json::to_value(class)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default();
        result.errors.insert(name, *count);
    }
    // The server's answer is the truth about which version was measured.
    if totals.model_versions.len() == 1
        && let Some(version) = totals.model_versions.first()
    {
        result.model_version.clone_from(version);
    }
}

/// Adds flags that are not there yet.
pub(super) fn add_flags(result: &mut ScenarioResult, flags: impl IntoIterator<Item = Flag>) {
    for flag in flags {
        if !result.flags.contains(&flag) {
            result.flags.push(flag);
        }
    }
}

/// One flag.
pub(super) fn flag(code: &str, text: impl Into<String>) -> Flag {
    Flag {
        code: code.to_owned(),
        text: text.into(),
    }
}
