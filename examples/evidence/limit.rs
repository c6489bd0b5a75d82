//! What becomes of a P99 rise of exactly the limit.

use std::fmt::Write as _;
use std::time::Duration;

use triton_gate::data::{Metric, Policy, Side};
use triton_gate::gate::Unit;
use triton_gate::run::virtual_lab::{Effect, VirtualLab, World};
use triton_gate::run::{Lab, MeasurePlan};
use triton_gate::stats::median;

use crate::Arguments;
use crate::gates::{BLOCK, GATES, Gate, Kind, LONG_GAP};
use crate::tally::tally;

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
pub fn at_the_limit(arguments: &Arguments) -> Result<(), String> {
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
                metrics: &[Metric::P99],
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
