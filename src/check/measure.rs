//! The same measurement without a verdict.

use std::time::Duration;

use tokio::runtime::Handle;

use super::explain::explain;
use super::observer::Observer;
use super::outcome::{empty, measured, not_measured, settle};
use super::servers::Servers;
use super::session::{Surroundings, Visit};
use super::unjudged::{measure_session, nanos, new_life};
use super::whole::{blank, conclude};
use crate::config::Config;
use crate::data::{Block, CheckResult, Scenario, ScenarioResult, Session, Side, Verdict};
use crate::lab::{SideLab, TritonLab};
use crate::load::Stop;

/// Measures every scenario for about `duration`, the warm-up aside.
///
/// What was measured before an interruption comes back too, marked incomplete.
#[expect(
    clippy::too_many_arguments,
    reason = "what a measurement needs, each once"
)]
pub fn measure(
    runtime: &Handle,
    stop: &Stop,
    config: &Config,
    environment: &str,
    duration: Duration,
    surroundings: &Surroundings,
    servers: &mut Servers,
    observer: &mut dyn Observer,
) -> (CheckResult, Vec<Session>) {
    let mut result = blank(config, environment, surroundings);
    "measure".clone_into(&mut result.command);
    let mut sessions = Vec::new();
    for scenario in &config.scenarios {
        if stop.is_set() {
            let mut skipped = empty(scenario, Verdict::Interrupted);
            settle(scenario, &mut skipped);
            result.scenarios.push(skipped);
            continue;
        }
        let (row, session) = one(
            runtime,
            stop,
            scenario,
            duration,
            surroundings,
            servers,
            observer,
        );
        result.scenarios.push(row);
        sessions.extend(session);
    }
    if let Some(complaint) = servers.stop_launched() {
        observer.note(&format!("warning: {complaint}"));
    }
    conclude(&mut result);
    (result, sessions)
}

fn one(
    runtime: &Handle,
    stop: &Stop,
    scenario: &Scenario,
    duration: Duration,
    surroundings: &Surroundings,
    servers: &mut Servers,
    observer: &mut dyn Observer,
) -> (ScenarioResult, Option<Session>) {
    let opened = servers
        .target(scenario)
        .and_then(|target| SideLab::open(scenario, target));
    let side = match opened {
        Ok(side) => side,
        Err(reason) => return (not_measured(scenario, reason), None),
    };
    observer.watch(vec![side.gauge()]);
    let mut lab = TritonLab::new(
        runtime.clone(),
        stop.clone(),
        Duration::from_secs(2),
        [(Side::Candidate, side)],
    );
    let brought = measure_session(&mut lab, scenario, Some(duration), observer);
    servers.release(scenario);
    let Some(side) = lab.side(Side::Candidate) else {
        return (empty(scenario, Verdict::Invalid), None);
    };
    let visit = Visit::begin(surroundings, scenario, side, nanos(brought.block));
    let complete = brought.ended.is_ok();
    let mut row = match brought.ended {
        Ok(()) => empty(scenario, Verdict::New),
        Err(reason) => not_measured(scenario, reason),
    };
    row.model_version.clone_from(&visit.model_version);
    measured(&mut row, &lab.totals(Side::Candidate), &brought.blocks);
    row.seconds = brought
        .blocks
        .iter()
        .map(|block| block.duration_ns as f64 / 1e9)
        .sum();
    let all: Vec<&Block> = brought.blocks.iter().collect();
    explain(&mut row, &[], &all);
    row.metrics = crate::gate::describe(&scenario.gate.limits, &brought.blocks);
    row.flags.extend(brought.flags);
    settle(scenario, &mut row);
    if brought.blocks.is_empty() {
        return (row, None);
    }
    let requests = lab.totals(Side::Candidate).server_requests;
    let session = visit
        .session(
            surroundings,
            scenario,
            brought.blocks,
            complete,
            new_life(),
            requests,
        )
        .ok();
    (row, session)
}
