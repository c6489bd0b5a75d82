//! Recording a baseline: sessions, each a new life of the server where the gate can bring one
//! about.

use std::path::PathBuf;
use std::time::Duration;

use super::observer::Observer;
use super::servers::Servers;
use super::session::{Surroundings, Visit};
use super::unjudged::{measure_session, nanos, new_life};
use crate::baseline::Store;
use crate::data::{Reason, Scenario, Session, Side};
use crate::lab::{SideLab, TritonLab};
use crate::load::Stop;

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
}

/// Records one session of a scenario, `duration` long or as long as a first look takes.
#[expect(
    clippy::too_many_arguments,
    reason = "what a recording needs, each once"
)]
pub fn record(
    runtime: &tokio::runtime::Handle,
    stop: &Stop,
    store: &Store,
    environment: &str,
    scenario: &Scenario,
    duration: Option<Duration>,
    servers: &mut Servers,
    surroundings: &Surroundings,
    observer: &mut dyn Observer,
) -> Recorded {
    let mut recorded = Recorded {
        scenario: scenario.name.clone(),
        file: Err(Reason {
            code: String::new(),
            text: String::new(),
            next: String::new(),
        }),
        same_life: false,
    };
    let earlier = match store.all_sessions(environment, &scenario.name) {
        Ok(earlier) => earlier,
        Err(error) => {
            recorded.file = Err(store_reason(&error));
            return recorded;
        }
    };
    let opened = servers
        .target(scenario)
        .and_then(|target| SideLab::open(scenario, target));
    let side = match opened {
        Ok(side) => side,
        Err(reason) => {
            recorded.file = Err(reason);
            return recorded;
        }
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
    recorded.same_life = life.is_some();
    let measured = measure_session(&mut lab, scenario, duration, observer);
    let Some(side) = lab.side(Side::Candidate) else {
        return recorded;
    };
    let visit = Visit::begin(surroundings, scenario, side, nanos(measured.block));
    let complete = measured.ended.is_ok();
    let session = visit.session(
        surroundings,
        scenario,
        measured.blocks,
        complete,
        life.or_else(new_life),
        lab.totals(Side::Candidate).server_requests,
    );
    servers.release(scenario);
    recorded.file = match (session, measured.ended) {
        (Err(error), _) => Err(Reason {
            code: "session_id".to_owned(),
            text: format!("failed to name the session: {error}"),
            next: String::new(),
        }),
        (Ok(session), ended) => {
            // What was measured before an interruption is kept, marked incomplete.
            let kept = if session.blocks.is_empty() {
                Ok(PathBuf::new())
            } else {
                store.append(environment, &session)
            };
            match (kept, ended) {
                (_, Err(reason)) => Err(reason),
                (Err(error), Ok(())) => Err(store_reason(&error)),
                (Ok(file), Ok(())) => Ok(file),
            }
        }
    };
    recorded
}

/// The life of the newest session, where the server's counters continue it.
fn continued(newest: Option<&Session>, counted: Option<u64>) -> Option<String> {
    let newest = newest?;
    (counted? >= newest.server_requests?).then(|| newest.life.clone())?
}

fn store_reason(error: &crate::baseline::StoreError) -> Reason {
    Reason {
        code: "store".to_owned(),
        text: error.to_string(),
        next: "mend or remove the file that is named, or choose another --baselines".to_owned(),
    }
}
