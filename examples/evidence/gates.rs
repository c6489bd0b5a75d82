//! The gates that are tried, and one decision of each.

use std::time::Duration;

use triton_gate::data::{Auto, Bound, Fraction, Limit, Metric, Policy, Rule, Session, Verdict};
use triton_gate::gate::{Design, Stage, StoredGate};
use triton_gate::run::virtual_lab::{Effect, VirtualLab, World};
use triton_gate::run::{
    Budget, PairSettings, ScenarioOutcome, SessionSettings, run_paired, run_sessions, run_stored,
};

/// Block of stored measurements.
pub const BLOCK: Duration = Duration::from_secs(2);
/// Blocks of a stored session.
const SESSION_BLOCKS: u32 = 12;
/// Time for a decision on one host.
const TIME: Duration = Duration::from_secs(270);
/// Time for sessions of both sides in turn.
const TURNS_TIME: Duration = Duration::from_mins(10);

/// Noise assumed where clocks are locked: throughput, P99.
const LOCKED: (f64, f64) = (0.01, 0.03);
/// Noise assumed elsewhere.
const ELSEWHERE: (f64, f64) = (0.07, 0.13);
pub const LONG_GAP: Duration = Duration::from_millis(500);
pub const SHORT_GAP: Duration = Duration::from_millis(20);

/// How a verdict is reached.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Medians of ten blocks against those of one stored session.
    Point,
    /// Stored sessions, with this assumed noise. `former` sessions more are of an epoch before,
    /// which was 10 % faster.
    Stored {
        sessions: u32,
        former: u32,
        noise: (f64, f64),
    },
    /// A live reference: gap between blocks, spread of a load.
    Paired { gap: Duration, load_spread: f64 },
    /// A live reference whose server takes turns with the candidate's; spread of a start.
    Turns { load_spread: f64 },
}

/// A rule with its settings.
#[derive(Clone, Copy)]
pub struct Gate {
    pub name: &'static str,
    pub kind: Kind,
    pub policy: Policy,
    /// What is gated: throughput -5 %, and this percentile +10 %.
    pub metrics: &'static [Metric],
    /// Metrics gated over the whole check.
    pub gated: u32,
    /// Requests take so many times as long as the usual model's.
    pub slower: f64,
}

const fn stored(name: &'static str, sessions: u32, former: u32, noise: (f64, f64)) -> Gate {
    Gate {
        name,
        kind: Kind::Stored {
            sessions,
            former,
            noise,
        },
        ..PLAIN
    }
}

pub const fn live(name: &'static str, gap: Duration, load_spread: f64) -> Gate {
    Gate {
        name,
        kind: Kind::Paired { gap, load_spread },
        ..PLAIN
    }
}

const PLAIN: Gate = Gate {
    name: "point, 1 session",
    kind: Kind::Point,
    policy: Policy::Enforce,
    metrics: &[Metric::Throughput, Metric::P99],
    gated: 2,
    slower: 1.0,
};

/// The rows of the main table.
pub const GATES: [Gate; 10] = [
    PLAIN,
    stored("stored, 1 session, noise assumed 1 % / 3 %", 1, 0, LOCKED),
    stored("stored, 3 sessions, noise assumed 1 % / 3 %", 3, 0, LOCKED),
    stored(
        "stored, 3 sessions, noise assumed 7 % / 13 %",
        3,
        0,
        ELSEWHERE,
    ),
    stored("stored, 12 sessions", 12, 0, ELSEWHERE),
    stored(
        "stored, 6 sessions and 6 of an epoch before",
        6,
        6,
        ELSEWHERE,
    ),
    live("live, 2 s blocks, enforce", LONG_GAP, 0.0),
    Gate {
        policy: Policy::Detect,
        ..live("live, 2 s blocks, detect", LONG_GAP, 0.0)
    },
    live("live, short blocks, enforce", SHORT_GAP, 0.0),
    Gate {
        kind: Kind::Turns { load_spread: 0.0 },
        name: "servers in turn",
        ..PLAIN
    },
];

fn design(gate: &Gate) -> Design {
    let limits = gate.metrics.iter().map(|metric| Limit {
        metric: *metric,
        bound: Bound::Relative(Fraction::new(match metric {
            Metric::Throughput => 0.05,
            _ => 0.10,
        })),
    });
    let (rule, noise, max_samples) = match gate.kind {
        Kind::Point => (Rule::Point, LOCKED, 10),
        Kind::Stored { noise, .. } => (Rule::Evidence, noise, 54),
        Kind::Paired { .. } | Kind::Turns { .. } => (Rule::Evidence, LOCKED, 54),
    };
    Design {
        limits: limits.collect(),
        gated: gate.gated,
        false_alarm: 0.01,
        missed_regression: 0.05,
        policy: gate.policy,
        rule,
        max_samples,
        assumed_noise: noise,
        suspicious_gain: 0.0,
        stage: Stage::Only,
    }
}

/// Stored sessions, each of a host of its own: those of the epoch before come first.
fn sessions(world: World, count: u32, former: u32, slower: f64, seed: u64) -> Vec<Session> {
    (0..former + count)
        .map(|index| {
            let seed = seed + 1 + u64::from(index);
            let effect = if index < former {
                Effect {
                    latency: 0.9,
                    tail: 1.0,
                }
            } else {
                Effect::NONE
            };
            let mut session = VirtualLab::new(world, effect, seed)
                .slower(slower)
                .block(BLOCK)
                .into_session(SESSION_BLOCKS, seed);
            session.epoch = u32::from(index >= former && former > 0);
            session
        })
        .collect()
}

/// One decision: verdict and seconds of measurement.
pub fn decide(
    gate: &Gate,
    world: World,
    effect: Effect,
    seed: u64,
) -> Result<(Verdict, f64), String> {
    let lab = VirtualLab::new(world, effect, seed).slower(gate.slower);
    let outcome = match gate.kind {
        Kind::Point => run_against(lab, gate, &sessions(world, 1, 0, gate.slower, seed))?,
        Kind::Stored {
            sessions: count,
            former,
            ..
        } => {
            let stored = sessions(world, count, former, gate.slower, seed);
            run_against(lab, gate, &stored)?
        }
        Kind::Paired { gap, load_spread } => {
            let mut lab = lab.gap(gap).load_spread(load_spread);
            let settings = PairSettings {
                time: TIME,
                confirm_time: TIME,
                block: Auto::Auto,
                seed,
            };
            run_paired(&mut lab, &design(gate), &settings, &mut |_| {})
        }
        Kind::Turns { load_spread } => {
            let mut lab = lab.load_spread(load_spread);
            let settings = SessionSettings {
                time: TURNS_TIME,
                block: Auto::Auto,
                seed,
            };
            run_sessions(&mut lab, &design(gate), &settings, &mut |_| {})
        }
    };
    Ok((outcome.verdict, outcome.seconds))
}

fn run_against(
    mut lab: VirtualLab,
    gate: &Gate,
    sessions: &[Session],
) -> Result<ScenarioOutcome, String> {
    let mut stored = StoredGate::new(design(gate), sessions).map_err(|error| error.to_string())?;
    let budget = Budget {
        time: TIME,
        block: BLOCK,
    };
    Ok(run_stored(&mut lab, &mut stored, &budget, &mut |_| {}))
}
