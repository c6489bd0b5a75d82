//! Measures what the decision rules are worth, in virtual time.
//!
//! `cargo run --release --example evidence -- --same 2000 --changed 400` prints the tables of
//! docs/evidence.md. Every figure follows from the seed.

use std::fmt::Write as _;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use triton_gate::data::{
    Auto, Bound, Fraction, Limit, Metric, Policy, Rule, Session, Side, Verdict,
};
use triton_gate::gate::{Design, Stage, StoredGate, Unit};
use triton_gate::run::virtual_lab::{Effect, VirtualLab, World};
use triton_gate::run::{Budget, Lab, MeasurePlan, PairSettings, run_paired, run_stored};
use triton_gate::stats::median;

/// Block of stored measurements.
const BLOCK: Duration = Duration::from_secs(2);
/// Blocks of a stored session.
const SESSION_BLOCKS: u32 = 12;

/// Counts verdicts of the decision rules over virtual servers.
#[derive(Parser)]
struct Arguments {
    /// Decisions on identical code, for each world and rule.
    #[arg(long, default_value_t = 1000)]
    same: u64,
    /// Decisions for each changed candidate.
    #[arg(long, default_value_t = 200)]
    changed: u64,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only what a true P99 rise of exactly the limit becomes, over this many live decisions.
    #[arg(long, default_value_t = 0)]
    limit: u64,
    /// Only rules whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Worker threads; 0 takes one for each core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// How a verdict is reached.
#[derive(Clone, Copy)]
enum Kind {
    /// Medians of ten blocks against those of one stored session.
    Point,
    /// Stored sessions, with this assumed noise.
    Stored { sessions: u32, noise: (f64, f64) },
    /// A live reference: gap between blocks, spread of a load.
    Paired { gap: Duration, load_spread: f64 },
}

#[derive(Clone, Copy)]
struct Gate {
    name: &'static str,
    kind: Kind,
    policy: Policy,
    /// Gate P99 alone.
    p99_alone: bool,
}

const LOCKED: (f64, f64) = (0.01, 0.03);
const ELSEWHERE: (f64, f64) = (0.07, 0.13);
const LONG_GAP: Duration = Duration::from_millis(500);
const SHORT_GAP: Duration = Duration::from_millis(20);

const GATES: [Gate; 8] = [
    Gate {
        name: "point, 1 session",
        kind: Kind::Point,
        policy: Policy::Enforce,
        p99_alone: false,
    },
    Gate {
        name: "stored, 1 session, noise assumed 1 % / 3 %",
        kind: Kind::Stored {
            sessions: 1,
            noise: LOCKED,
        },
        policy: Policy::Enforce,
        p99_alone: false,
    },
    Gate {
        name: "stored, 3 sessions, noise assumed 1 % / 3 %",
        kind: Kind::Stored {
            sessions: 3,
            noise: LOCKED,
        },
        policy: Policy::Enforce,
        p99_alone: false,
    },
    Gate {
        name: "stored, 3 sessions, noise assumed 7 % / 13 %",
        kind: Kind::Stored {
            sessions: 3,
            noise: ELSEWHERE,
        },
        policy: Policy::Enforce,
        p99_alone: false,
    },
    Gate {
        name: "stored, 12 sessions",
        kind: Kind::Stored {
            sessions: 12,
            noise: ELSEWHERE,
        },
        policy: Policy::Enforce,
        p99_alone: false,
    },
    Gate {
        name: "live, 2 s blocks, enforce",
        kind: Kind::Paired {
            gap: LONG_GAP,
            load_spread: 0.0,
        },
        policy: Policy::Enforce,
        p99_alone: false,
    },
    Gate {
        name: "live, 2 s blocks, detect",
        kind: Kind::Paired {
            gap: LONG_GAP,
            load_spread: 0.0,
        },
        policy: Policy::Detect,
        p99_alone: false,
    },
    Gate {
        name: "live, short blocks, enforce",
        kind: Kind::Paired {
            gap: SHORT_GAP,
            load_spread: 0.0,
        },
        policy: Policy::Enforce,
        p99_alone: false,
    },
];

/// Counts over many decisions.
#[derive(Default)]
struct Tally {
    failed: AtomicU64,
    passed: AtomicU64,
    open: AtomicU64,
    milliseconds: AtomicU64,
}

impl Tally {
    fn share(&self, count: &AtomicU64) -> f64 {
        let all: u64 = [&self.failed, &self.passed, &self.open]
            .map(|c| c.load(Ordering::Relaxed))
            .iter()
            .sum();
        100.0 * count.load(Ordering::Relaxed) as f64 / all.max(1) as f64
    }

    fn mean_seconds(&self, runs: u64) -> f64 {
        self.milliseconds.load(Ordering::Relaxed) as f64 / 1000.0 / runs.max(1) as f64
    }
}

fn design(gate: &Gate) -> Design {
    let relative = |metric, fraction| Limit {
        metric,
        bound: Bound::Relative(Fraction::new(fraction)),
    };
    let (rule, noise, max_samples) = match gate.kind {
        Kind::Point => (Rule::Point, LOCKED, 10),
        Kind::Stored { noise, .. } => (Rule::Evidence, noise, 54),
        Kind::Paired { .. } => (Rule::Evidence, LOCKED, 54),
    };
    let mut limits = vec![
        relative(Metric::Throughput, 0.05),
        relative(Metric::P99, 0.10),
    ];
    if gate.p99_alone {
        limits.remove(0);
    }
    Design {
        limits,
        gated: 2,
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

fn sessions(world: World, count: u32, seed: u64) -> Vec<Session> {
    (0..count)
        .map(|index| VirtualLab::session(world, SESSION_BLOCKS, BLOCK, seed + 1 + u64::from(index)))
        .collect()
}

/// One decision: verdict and seconds of measurement.
fn decide(gate: &Gate, world: World, effect: Effect, seed: u64) -> Result<(Verdict, f64), String> {
    let mut lab = VirtualLab::new(world, effect, seed);
    let outcome = match gate.kind {
        Kind::Point | Kind::Stored { .. } => {
            let count = if let Kind::Stored { sessions, .. } = gate.kind {
                sessions
            } else {
                1
            };
            let mut stored = StoredGate::new(design(gate), &sessions(world, count, seed))
                .map_err(|error| error.to_string())?;
            let budget = Budget {
                time: Duration::from_secs(270),
                block: BLOCK,
            };
            run_stored(&mut lab, &mut stored, &budget, &mut |_| {})
        }
        Kind::Paired { gap, load_spread } => {
            lab = lab.gap(gap).load_spread(load_spread);
            let settings = PairSettings {
                time: Duration::from_secs(270),
                confirm_time: Duration::from_secs(270),
                block: Auto::Auto,
                seed,
            };
            run_paired(&mut lab, &design(gate), &settings, &mut |_| {})
        }
    };
    Ok((outcome.verdict, outcome.seconds))
}

/// Many decisions over all threads. Seeds of different decisions do not overlap.
fn tally(
    arguments: &Arguments,
    gate: &Gate,
    world: World,
    effect: Effect,
    runs: u64,
) -> Result<Tally, String> {
    let tally = Tally::default();
    let next = AtomicU64::new(0);
    let threads = match arguments.threads {
        0 => thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    };
    let work = || -> Result<(), String> {
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs {
                return Ok(());
            }
            let seed = (arguments.seed + run) * 1_000;
            let (verdict, seconds) = decide(gate, world, effect, seed)?;
            let count = match verdict {
                Verdict::Regression => &tally.failed,
                Verdict::Pass => &tally.passed,
                _ => &tally.open,
            };
            count.fetch_add(1, Ordering::Relaxed);
            tally
                .milliseconds
                .fetch_add((seconds * 1000.0) as u64, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    Ok(tally)
}

/// What "P99 +10" truly changes: the median over many units of the change of a unit's P99.
fn true_rise(world: World, gap: Duration, effect: Effect, seed: u64) -> Result<f64, String> {
    let block = if gap == LONG_GAP {
        BLOCK
    } else {
        Duration::from_millis(85)
    };
    let pairs = BLOCK.as_millis().div_ceil(block.as_millis()) as usize;
    let mut changes = Vec::new();
    for host in 0..100 {
        let mut lab = VirtualLab::new(world, effect, seed + host).gap(gap);
        for unit in 0..50 {
            let measured = lab
                .measure(&MeasurePlan::Pairs {
                    first_index: 0,
                    // Taking turns: the order has no effect in this world.
                    candidate_first: (0..pairs).map(|pair| (pair + unit) % 2 == 0).collect(),
                    block,
                    deadline: Duration::MAX,
                })
                .map_err(|error| error.to_string())?;
            let unit = Unit::pool(&measured.blocks, 0).ok_or("no unit")?;
            let ln = |side: Side| {
                let block = if side == Side::Baseline {
                    &unit.baseline
                } else {
                    &unit.candidate
                };
                block.value(Metric::P99).map(f64::ln)
            };
            changes.extend(
                ln(Side::Candidate)
                    .zip(ln(Side::Baseline))
                    .map(|(c, b)| c - b),
            );
        }
    }
    let middle = median(&changes).map_err(|error| error.to_string())?;
    Ok(middle.exp_m1())
}

/// What becomes of a rise at the limit itself: of the slow path by 10 %, and of every latency by
/// 10 %, which is a true rise of P99 by exactly 10 % whatever the noise.
fn at_the_limit(arguments: &Arguments) -> Result<(), String> {
    println!(
        "| world | gate | slow path x 1.1: true rise of P99 | pass | every latency x 1.1: true rise of \
         P99 | pass |\n|---|---|---|---|---|---|"
    );
    for world in World::ALL {
        for gate in GATES {
            let Kind::Paired { gap, .. } = gate.kind else {
                continue;
            };
            if gate.policy != Policy::Enforce {
                continue;
            }
            let gate = Gate {
                p99_alone: true,
                ..gate
            };
            let mut line = format!("| {} | {} |", world.name, gate.name);
            let exact = Effect {
                latency: 1.1,
                tail: 1.0,
            };
            for effect in [Effect::tail(1.1), exact] {
                let rise = true_rise(world, gap, effect, arguments.seed)?;
                let found = tally(arguments, &gate, world, effect, arguments.limit)?;
                let _ = write!(
                    line,
                    " {:+.2} % | {:.1} |",
                    rise * 100.0,
                    found.share(&found.passed)
                );
            }
            println!("{line}");
        }
    }
    Ok(())
}

fn main() -> Result<(), String> {
    let arguments = Arguments::parse();
    if arguments.limit > 0 {
        return at_the_limit(&arguments);
    }
    let effects = [
        ("thr -3", Effect::throughput_drop(0.03)),
        ("thr -5", Effect::throughput_drop(0.05)),
        ("thr -8", Effect::throughput_drop(0.08)),
        ("thr -10", Effect::throughput_drop(0.10)),
        ("P99 +10", Effect::tail(1.10)),
        ("P99 +15", Effect::tail(1.15)),
        ("P99 +20", Effect::tail(1.20)),
    ];
    let chosen = || {
        GATES
            .iter()
            .filter(|gate| gate.name.contains(&arguments.only))
    };
    println!("| world | gate | same: fail | same: pass | same: s |{}", {
        effects.map(|(name, _)| format!(" {name} |")).concat()
    });
    println!("|---|---|---|---|---|{}", effects.map(|_| "---|").concat());
    for world in World::ALL {
        for gate in chosen() {
            let same = tally(&arguments, gate, world, Effect::NONE, arguments.same)?;
            let mut line = format!(
                "| {} | {} | {:.1} | {:.1} | {:.0} |",
                world.name,
                gate.name,
                same.share(&same.failed),
                same.share(&same.passed),
                same.mean_seconds(arguments.same)
            );
            for (_, effect) in effects {
                let found = tally(&arguments, gate, world, effect, arguments.changed)?;
                let (failed, open) = (found.share(&found.failed), found.share(&found.open));
                let _ = write!(line, " {failed:.0} ({open:.0}) |");
            }
            println!("{line}");
        }
    }
    if !arguments.only.is_empty() && !"live, reloads".contains(&arguments.only) {
        return Ok(());
    }
    println!("\n| spread of a load | same: fail | same: pass | thr -8 |\n|---|---|---|---|");
    for load_spread in [0.005, 0.01, 0.02, 0.03] {
        let kind = Kind::Paired {
            gap: LONG_GAP,
            load_spread,
        };
        let gate = Gate {
            name: "live, reloads",
            kind,
            policy: Policy::Enforce,
            p99_alone: false,
        };
        let same = tally(
            &arguments,
            &gate,
            World::QUIET,
            Effect::NONE,
            arguments.same,
        )?;
        let slow = Effect::throughput_drop(0.08);
        let found = tally(&arguments, &gate, World::QUIET, slow, arguments.changed)?;
        println!(
            "| {:.1} % | {:.1} | {:.1} | {:.0} ({:.0}) |",
            load_spread * 100.0,
            same.share(&same.failed),
            same.share(&same.passed),
            found.share(&found.failed),
            found.share(&found.open)
        );
    }
    Ok(())
}
