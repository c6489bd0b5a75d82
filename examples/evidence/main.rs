//! Measures what the decision rules are worth, in virtual time.
//!
//! `cargo run --release --example evidence -- --same 2000 --changed 400` prints the tables of
//! docs/evidence.md. Every figure follows from the seed.

mod gates;
mod limit;
mod many;
mod tally;

use std::fmt::Write as _;

use clap::Parser;
use triton_gate::data::Metric;
use triton_gate::run::virtual_lab::{Effect, World};

use gates::{GATES, Gate, LONG_GAP, SHORT_GAP, live};
use limit::at_the_limit;
use many::many_models;
use tally::tally;

/// Counts verdicts of the decision rules over virtual servers.
#[derive(Parser, Clone)]
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
    /// Only whole checks of thirty models, over this many checks.
    #[arg(long, default_value_t = 0)]
    many: u64,
    /// Only a model with about ten requests a second.
    #[arg(long)]
    slow: bool,
    /// Only rules whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Worker threads; 0 takes one for each core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

const EFFECTS: [(&str, Effect); 7] = [
    ("thr -3", drop(0.03)),
    ("thr -5", drop(0.05)),
    ("thr -8", drop(0.08)),
    ("thr -10", drop(0.10)),
    ("P99 +10", Effect::tail(1.10)),
    ("P99 +15", Effect::tail(1.15)),
    ("P99 +20", Effect::tail(1.20)),
];

const fn drop(fraction: f64) -> Effect {
    Effect::throughput_drop(fraction)
}

fn main() -> Result<(), String> {
    let arguments = Arguments::parse();
    if arguments.limit > 0 {
        return at_the_limit(&arguments);
    }
    if arguments.many > 0 {
        return many_models(&arguments);
    }
    if arguments.slow {
        return slow_model(&arguments);
    }
    let chosen: Vec<Gate> = GATES
        .into_iter()
        .filter(|gate| gate.name.contains(&arguments.only))
        .collect();
    table(&arguments, &chosen, &EFFECTS)?;
    if arguments.only.is_empty() || "live, reloads".contains(&arguments.only) {
        reloads(&arguments)?;
    }
    Ok(())
}

/// One row a world and gate: identical code, then each change.
fn table(arguments: &Arguments, gates: &[Gate], effects: &[(&str, Effect)]) -> Result<(), String> {
    let names: Vec<String> = effects
        .iter()
        .map(|(name, _)| format!(" {name} |"))
        .collect();
    println!(
        "| world | gate | same: fail | same: pass | same: s |{}",
        names.concat()
    );
    println!("|---|---|---|---|---|{}", "---|".repeat(effects.len()));
    for world in World::ALL {
        for gate in gates {
            let same = tally(arguments, gate, world, Effect::NONE, arguments.same)?;
            let mut line = format!(
                "| {} | {} | {:.1} | {:.1} | {:.0} |",
                world.name,
                gate.name,
                same.share(&same.failed),
                same.share(&same.passed),
                same.mean_seconds(arguments.same)
            );
            for (_, effect) in effects {
                let found = tally(arguments, gate, world, *effect, arguments.changed)?;
                let (failed, open) = (found.share(&found.failed), found.share(&found.open));
                let _ = write!(line, " {failed:.0} ({open:.0}) |");
            }
            println!("{line}");
        }
    }
    Ok(())
}

/// Few requests: about ten a second, so that P99 is out of reach and P50 is gated instead.
fn slow_model(arguments: &Arguments) -> Result<(), String> {
    let gates = [
        Gate {
            slower: 100.0,
            metrics: &[Metric::Throughput, Metric::P50],
            ..live("live, throughput and P50", SHORT_GAP, 0.0)
        },
        Gate {
            slower: 100.0,
            ..live("live, throughput and P99", SHORT_GAP, 0.0)
        },
    ];
    let effects = [
        ("thr -5", drop(0.05)),
        ("thr -8", drop(0.08)),
        ("thr -10", drop(0.10)),
        ("thr -15", drop(0.15)),
        ("thr -20", drop(0.20)),
    ];
    table(arguments, &gates, &effects)
}

/// Loads that differ, which no number of pairs averages out.
fn reloads(arguments: &Arguments) -> Result<(), String> {
    println!("\n| spread of a load | same: fail | same: pass | thr -8 |\n|---|---|---|---|");
    for load_spread in [0.005, 0.01, 0.02, 0.03] {
        let gate = live("live, reloads", LONG_GAP, load_spread);
        let same = tally(arguments, &gate, World::QUIET, Effect::NONE, arguments.same)?;
        let found = tally(
            arguments,
            &gate,
            World::QUIET,
            drop(0.08),
            arguments.changed,
        )?;
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
