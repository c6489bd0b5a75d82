//! One scenario against a reference where only one of both servers runs at a time: each session is
//! a new start, and the sides take turns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::explain::explain;
use super::live::{comparable, describe, reference_scenario, subject_changes};
use super::observer::Observer;
use super::outcome::{add_flags, empty, flag, measured, not_measured, settle};
use super::pins::Pinned;
use super::scenario::{Bench, Checked};
use super::servers::Servers;
use super::session::{Surroundings, Visit};
use super::unjudged::{nanos, new_life};
use crate::config::ReferenceSpec;
use crate::data::{BaselineKind, BaselineUsed, Block, Reason, Scenario, Side, Verdict};
use crate::gate::{Design, Stage};
use crate::lab::{Described, SideLab, Totals, TritonLab};
use crate::load::Gauge;
use crate::run::{
    Lab, LabError, MeasurePlan, Measured, ScenarioOutcome, SessionSettings, WarmUp, run_sessions,
};

/// Judges a scenario by sessions of both sides in turn. `stage` says whether a stored stage came
/// before, and `time` what that left.
pub(super) fn check_in_turns(
    bench: &Bench<'_>,
    scenario: &Scenario,
    spec: &ReferenceSpec,
    (stage, time): (Stage, Duration),
    servers: &mut Servers,
    surroundings: &Surroundings,
    observer: &mut dyn Observer,
) -> Checked {
    let design = Design::new(&scenario.gate, bench.gated_metrics, 1, false)
        .map(|design| design.for_stage(stage));
    let design = match design {
        Ok(design) => design,
        Err(error) => {
            let reason = Reason {
                code: "cannot_decide".to_owned(),
                text: error.to_string(),
                next: "correct the thresholds".to_owned(),
            };
            return Checked::only(not_measured(scenario, reason));
        }
    };
    let observer = RefCell::new(observer);
    let mut lab = TurnsLab {
        bench,
        surroundings,
        servers,
        scenarios: [reference_scenario(scenario, spec), scenario.clone()],
        watch: &|gauges| observer.borrow_mut().watch(gauges),
        block: Duration::from_secs(2),
        running: None,
        epoch: Instant::now(),
        described: BTreeMap::new(),
        visits: Vec::new(),
        totals: Totals::default(),
    };
    let settings = SessionSettings {
        time,
        block: scenario.measure.block,
        seed: scenario.measure.seed,
    };
    let outcome = run_sessions(&mut lab, &design, &settings, &mut |progress| {
        observer.borrow_mut().progress(&scenario.name, progress);
    });
    let ended = lab.end();
    let mut checked = finish(scenario, &lab, &outcome);
    if let Err(reason) = ended {
        add_flags(&mut checked.result, [flag("not_stopped", reason.text)]);
    }
    checked
}

/// The side that runs.
struct Running {
    side: Side,
    lab: TritonLab,
}

/// What is kept of one session beside its blocks.
struct Visited {
    visit: Visit,
    life: Option<String>,
    server_requests: Option<u64>,
}

/// A lab whose two servers are never up at once.
struct TurnsLab<'a> {
    bench: &'a Bench<'a>,
    surroundings: &'a Surroundings,
    servers: &'a mut Servers,
    /// As the reference and as the candidate run it.
    scenarios: [Scenario; 2],
    watch: &'a dyn Fn(Vec<Gauge>),
    /// Length of a block, once it is known.
    block: Duration,
    running: Option<Running>,
    epoch: Instant,
    /// Each side as it was at its first start.
    described: BTreeMap<Side, Described>,
    /// One a start.
    visits: Vec<Visited>,
    /// Of the candidate, over all its sessions.
    totals: Totals,
}

impl TurnsLab<'_> {
    fn scenario(&self, side: Side) -> &Scenario {
        let [reference, candidate] = &self.scenarios;
        match side {
            Side::Baseline => reference,
            Side::Candidate => candidate,
        }
    }

    /// Ends the side that runs, its server included.
    fn end(&mut self) -> Result<(), Reason> {
        if let Some(Running { side, lab }) = self.running.take() {
            let totals = lab.totals(side);
            if let Some(visited) = self.visits.last_mut() {
                visited.server_requests = totals.server_requests;
            }
            if side == Side::Candidate {
                self.totals.add(totals);
            }
        }
        self.servers.stop_launched().map_or(Ok(()), |text| {
            Err(Reason {
                code: "launch".to_owned(),
                text,
                next: "correct the stop command".to_owned(),
            })
        })
    }

    fn start(&mut self, side: Side) -> Result<Running, Reason> {
        self.end()?;
        let scenario = self.scenario(side).clone();
        let target = self.servers.target(&scenario)?;
        let described = target.described();
        if let Some(first) = self.described.get(&side) {
            unchanged(side, first, &described)?;
        } else {
            self.described.insert(side, described);
            if let (Some(candidate), Some(baseline)) = (
                self.described.get(&Side::Candidate),
                self.described.get(&Side::Baseline),
            ) {
                comparable(candidate, baseline)?;
            }
        }
        let opened = SideLab::open(&scenario, target)?;
        (self.watch)(vec![opened.gauge()]);
        self.visits.push(Visited {
            visit: Visit::begin(self.surroundings, &scenario, &opened, 0),
            life: new_life(),
            server_requests: None,
        });
        let lab = TritonLab::new(
            self.bench.runtime.clone(),
            self.bench.stop.clone(),
            self.block,
            [(side, opened)],
        );
        Ok(Running { side, lab })
    }

    fn lab(&mut self) -> Result<&mut TritonLab, LabError> {
        match &mut self.running {
            Some(running) => Ok(&mut running.lab),
            None => Err(LabError::Failed(Reason {
                code: "no_side".to_owned(),
                text: "no server runs".to_owned(),
                next: "report this".to_owned(),
            })),
        }
    }
}

impl Lab for TurnsLab<'_> {
    fn warm_up(&mut self, side: Side) -> Result<WarmUp, LabError> {
        self.lab()?.warm_up(side)
    }

    fn measure(&mut self, plan: &MeasurePlan) -> Result<Measured, LabError> {
        self.lab()?.measure(plan)
    }

    fn set_block(&mut self, block: Duration) {
        self.block = block;
        if let Some(running) = &mut self.running {
            running.lab.set_block(block);
        }
    }

    fn reload(&mut self, side: Side) -> Result<bool, LabError> {
        match self.start(side) {
            Ok(running) => self.running = Some(running),
            Err(reason) if reason.code == "interrupted" => return Err(LabError::Interrupted),
            Err(mut reason) => {
                if side == Side::Baseline {
                    reason.text = format!("the reference: {}", reason.text);
                }
                return Err(LabError::Failed(reason));
            }
        }
        Ok(true)
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

/// A side that is another thing at a later start than at its first is no side.
fn unchanged(side: Side, first: &Described, now: &Described) -> Result<(), Reason> {
    let differences = first.subject.differences(&now.subject);
    if differences.is_empty() && first.address == now.address {
        return Ok(());
    }
    Err(Reason {
        code: "changed_between_sessions".to_owned(),
        text: format!(
            "the {} changed between two of its sessions: {}",
            match side {
                Side::Baseline => "reference",
                Side::Candidate => "candidate",
            },
            super::compatible::sentence(&differences)
        ),
        next: "leave models and servers alone while a check runs".to_owned(),
    })
}

fn finish(scenario: &Scenario, lab: &TurnsLab<'_>, outcome: &ScenarioOutcome) -> Checked {
    let incompatible = outcome
        .reason
        .as_ref()
        .is_some_and(|reason| reason.code == "reference_signature");
    let verdict = if incompatible {
        Verdict::Incompatible
    } else {
        outcome.verdict
    };
    let mut result = empty(scenario, verdict);
    result.reason.clone_from(&outcome.reason);
    result.seconds = outcome.seconds;
    result.discarded.clone_from(&outcome.discarded);
    if let Some(candidate) = lab.described.get(&Side::Candidate) {
        result.model_version.clone_from(&candidate.version);
    }
    measured(&mut result, &lab.totals, &outcome.blocks);
    let of = |side: Side| -> Vec<&Block> {
        let own = outcome.blocks.iter();
        own.filter(|block| block.side == side).collect()
    };
    let whole = |side: Side| {
        let sessions = outcome.sessions.iter();
        sessions
            .filter(|session| session.complete && session.side == side)
            .count() as u32
    };
    if let Some(baseline) = lab.described.get(&Side::Baseline) {
        result.baseline = Some(BaselineUsed {
            kind: BaselineKind::Reference,
            sessions: whole(Side::Baseline),
            blocks: of(Side::Baseline).len() as u32,
            newest: None,
            commit: None,
            source: describe(baseline),
        });
    }
    explain(&mut result, &of(Side::Baseline), &of(Side::Candidate));
    if let Some(decision) = &outcome.decision {
        result.metrics.clone_from(&decision.metrics);
        result.looks = decision.looks;
        add_flags(&mut result, decision.flags.clone());
    }
    add_flags(&mut result, outcome.flags.clone());
    if !outcome.sessions.is_empty() {
        let text = format!(
            "{} sessions of the reference and {} of the candidate in turn, each a new start of its \
             server",
            whole(Side::Baseline),
            whole(Side::Candidate)
        );
        add_flags(&mut result, [flag("alternating", text)]);
    }
    settle(scenario, &mut result);
    let mut sessions = Vec::new();
    for (range, visited) in outcome.sessions.iter().zip(&lab.visits) {
        if range.side != Side::Candidate {
            continue;
        }
        let blocks = outcome.blocks.get(range.blocks.clone()).unwrap_or_default();
        let mut visit = visited.visit.clone();
        visit.load.block_ns = nanos(lab.block);
        let session = visit.session(
            lab.surroundings,
            scenario,
            blocks.to_vec(),
            range.complete,
            visited.life.clone(),
            visited.server_requests,
        );
        sessions.extend(session);
    }
    let changes = match (
        lab.described.get(&Side::Baseline),
        lab.described.get(&Side::Candidate),
    ) {
        (Some(baseline), Some(candidate)) => subject_changes(scenario, baseline, candidate),
        _ => Vec::new(),
    };
    Checked {
        result,
        sessions,
        subject_changes: changes,
        allowed: Vec::new(),
        pinned: Pinned::default(),
    }
}
