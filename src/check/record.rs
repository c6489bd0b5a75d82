//! Recording a baseline: sessions, each a new life of the server where the gate can bring one
//! about.

use std::path::PathBuf;
use std::time::Duration;

use super::compatible::select;
use super::observer::Observer;
use super::servers::Servers;
use super::session::{Surroundings, Visit};
use super::unjudged::{empty_blocks, measure_session, nanos, new_life};
use crate::baseline::{Store, continued};
use crate::data::{Bound, Limit, MetricResult, MetricVerdict, Reason, Scenario, Session, Side};
use crate::gate::{Design, compare};
use crate::lab::{SideLab, TritonLab};
use crate::load::Stop;

/// How sessions are recorded.
#[derive(Debug)]
pub struct RecordPlan<'a> {
    /// Where they go.
    pub store: &'a Store,
    /// Where a session that is refused is kept.
    pub results: &'a Store,
    /// The environment's name.
    pub environment: &'a str,
    /// Length of a session; none is as long as a first look takes.
    pub duration: Option<Duration>,
    /// Metrics gated over all scenarios: the false-alarm level of the refusal is shared by them.
    pub gated_metrics: u32,
    /// Take a session that regresses, as the first of a new epoch.
    pub accept: bool,
    /// Sessions of a scenario that stay.
    pub keep: u32,
}

/// What became of recording one session of one scenario.
#[derive(Debug)]
pub struct Recorded {
    /// The scenario.
    pub scenario: String,
    /// The new file, or why there is none.
    pub file: Result<PathBuf, Reason>,
    /// True where the server's counters continue those of the newest stored session: the same
    /// life of the server, so both count as one session.
    pub same_life: bool,
    /// True where the session regressed and was accepted: the baseline's level starts anew.
    pub new_epoch: bool,
    /// Older sessions that were deleted.
    pub pruned: Vec<PathBuf>,
}

impl Recorded {
    fn failed(scenario: &Scenario, reason: Reason) -> Self {
        Self {
            scenario: scenario.name.clone(),
            file: Err(reason),
            same_life: false,
            new_epoch: false,
            pruned: Vec::new(),
        }
    }
}

/// Records one session of a scenario.
///
/// A session that itself regresses against the baseline is not appended unless the plan accepts it:
/// it goes to the results, and the reason says so (`regression`).
pub fn record(
    runtime: &tokio::runtime::Handle,
    stop: &Stop,
    plan: &RecordPlan<'_>,
    scenario: &Scenario,
    servers: &mut Servers,
    surroundings: &Surroundings,
    observer: &mut dyn Observer,
) -> Recorded {
    let earlier = match plan.store.all_sessions(plan.environment, &scenario.name) {
        Ok(earlier) => earlier,
        Err(error) => return Recorded::failed(scenario, store_reason(&error)),
    };
    let opened = servers
        .target(scenario)
        .and_then(|target| SideLab::open(scenario, target));
    let side = match opened {
        Ok(side) => side,
        Err(reason) => return Recorded::failed(scenario, reason),
    };
    observer.watch(vec![side.gauge()]);
    let mut lab = TritonLab::new(
        runtime.clone(),
        stop.clone(),
        Duration::from_secs(2),
        [(Side::Candidate, side)],
    );
    let counted = lab.server_requests(Side::Candidate);
    let life = continued(earlier.last(), counted);
    let same_life = life.is_some();
    let measured = measure_session(&mut lab, scenario, plan.duration, observer);
    let Some(side) = lab.side(Side::Candidate) else {
        let reason = Reason {
            code: "no_side".to_owned(),
            text: "nothing was measured".to_owned(),
            next: "record again".to_owned(),
        };
        return Recorded::failed(scenario, reason);
    };
    let visit = Visit::begin(surroundings, scenario, side, nanos(measured.block));
    let session = visit.session(
        surroundings,
        scenario,
        measured.blocks,
        measured.ended.is_ok(),
        life.or_else(new_life),
        lab.totals(Side::Candidate).server_requests,
    );
    servers.release(scenario);
    let mut recorded = match session {
        Ok(session) => append(
            plan,
            scenario,
            earlier,
            session,
            measured.ended,
            surroundings,
        ),
        Err(error) => Recorded::failed(
            scenario,
            Reason {
                code: "session_id".to_owned(),
                text: format!("failed to name the session: {error}"),
                next: "record again".to_owned(),
            },
        ),
    };
    recorded.same_life = same_life;
    recorded
}

/// Puts a session where it belongs: into the store, or among the results where it is refused.
fn append(
    plan: &RecordPlan<'_>,
    scenario: &Scenario,
    earlier: Vec<Session>,
    mut session: Session,
    ended: Result<(), Reason>,
    surroundings: &Surroundings,
) -> Recorded {
    session.epoch = earlier
        .iter()
        .map(|earlier| earlier.epoch)
        .max()
        .unwrap_or_default();
    if let Err(reason) = ended {
        // What was measured before an interruption is kept, marked incomplete.
        if !session.blocks.is_empty()
            && let Err(error) = plan.store.append(plan.environment, &session)
        {
            return Recorded::failed(scenario, store_reason(&error));
        }
        return Recorded::failed(scenario, reason);
    }
    if let Some(reason) = empty_blocks(&session.blocks) {
        return Recorded::failed(scenario, reason);
    }
    let locked = surroundings.hardware.get("gpu.clocks_locked") == Some("Active");
    let worse = regressed(scenario, plan.gated_metrics, locked, earlier, &session);
    let new_epoch = !worse.is_empty() && plan.accept;
    if new_epoch {
        session.epoch += 1;
    } else if !worse.is_empty() {
        let kept = plan.results.append(plan.environment, &session);
        return Recorded::failed(scenario, refused(&worse, kept));
    }
    let file = match plan.store.append(plan.environment, &session) {
        Ok(file) => file,
        Err(error) => return Recorded::failed(scenario, store_reason(&error)),
    };
    let pruned = plan
        .store
        .prune_scenario(plan.environment, &scenario.name, plan.keep as usize);
    let mut recorded = Recorded::failed(scenario, Reason::default());
    recorded.new_epoch = new_epoch;
    recorded.file = match pruned {
        Ok(pruned) => {
            recorded.pruned = pruned;
            Ok(file)
        }
        Err(error) => Err(store_reason(&error)),
    };
    recorded
}

/// The relative limits that a session proves to be broken against the sessions before it.
fn regressed(
    scenario: &Scenario,
    gated: u32,
    locked_clocks: bool,
    earlier: Vec<Session>,
    session: &Session,
) -> Vec<MetricResult> {
    let mut spec = scenario.gate.clone();
    spec.limits
        .retain(|limit: &Limit| matches!(limit.bound, Bound::Relative(_)));
    let complete = earlier
        .into_iter()
        .filter(|session| session.complete)
        .collect();
    let selection = select(complete, &session.environment, &session.load, &[]);
    if selection.sessions.is_empty() || spec.limits.is_empty() {
        return Vec::new();
    }
    let decision = Design::new(&spec, gated, session.blocks.len() as u32, locked_clocks)
        .and_then(|design| compare(&design, &selection.sessions, std::slice::from_ref(session)));
    // What cannot be judged is not proven to be worse.
    decision.map_or_else(
        |_| Vec::new(),
        |decision| {
            decision
                .metrics
                .into_iter()
                .filter(|row| row.verdict == MetricVerdict::Regression)
                .collect()
        },
    )
}

fn refused(worse: &[MetricResult], kept: Result<PathBuf, crate::baseline::StoreError>) -> Reason {
    let changes: Vec<String> = worse
        .iter()
        .map(|row| {
            let change = row
                .change
                .map_or_else(String::new, |change| format!(" {:+.1} %", change * 100.0));
            format!("{}{change}", row.label())
        })
        .collect();
    let (place, next) = match kept {
        Ok(file) => (
            format!("kept as {}", file.display()),
            format!(
                "find out what slowed it down; where it is wanted, `triton-gate baseline accept \
                 {}`",
                file.display()
            ),
        ),
        Err(error) => (
            format!("and could not be kept: {error}"),
            "find out what slowed it down; where it is wanted, record again with --accept"
                .to_owned(),
        ),
    };
    Reason {
        code: "regression".to_owned(),
        text: format!(
            "the session regresses against the baseline ({}): not appended, {place}",
            changes.join(", ")
        ),
        next,
    }
}

fn store_reason(error: &crate::baseline::StoreError) -> Reason {
    Reason {
        code: "store".to_owned(),
        text: error.to_string(),
        next: "mend or remove the file that is named, or choose another --baselines".to_owned(),
    }
}
