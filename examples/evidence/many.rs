//! Whole checks of thirty models.

use std::sync::atomic::Ordering;

use triton_gate::run::virtual_lab::{Effect, World};

use crate::Arguments;
use crate::gates::{Gate, SHORT_GAP, live};
use crate::tally::tally;

/// Models in a check, two metrics each.
const MODELS: u32 = 30;

/// False alarms and undecided scenarios over all thirty models of a check, each on a host and with
/// a live reference of its own, and what becomes of one model that is slower.
pub fn many_models(arguments: &Arguments) -> Result<(), String> {
    println!(
        "| world | gate | same: checks with a failure | same: checks all decided | same: scenarios \
         undecided | thr -8 in one | P99 +15 in one |\n|---|---|---|---|---|---|---|"
    );
    for world in World::ALL {
        let gate = Gate {
            gated: MODELS * 2,
            ..live("live, short blocks, enforce", SHORT_GAP, 0.0)
        };
        let (mut failed, mut decided, mut open) = (0, 0, 0);
        for check in 0..arguments.many {
            // Seeds of different checks do not overlap.
            let own = Arguments {
                seed: arguments.seed + check * u64::from(MODELS),
                ..arguments.clone()
            };
            let all = tally(&own, &gate, world, Effect::NONE, u64::from(MODELS))?;
            failed += u64::from(all.failed.load(Ordering::Relaxed) > 0);
            decided += u64::from(all.open.load(Ordering::Relaxed) == 0);
            open += all.open.load(Ordering::Relaxed);
        }
        let share = |count: u64, of: u64| 100.0 * count as f64 / of.max(1) as f64;
        let changed = |effect| tally(arguments, &gate, world, effect, arguments.changed);
        let slower = changed(Effect::throughput_drop(0.08))?;
        let tail = changed(Effect::tail(1.15))?;
        println!(
            "| {} | {} | {:.1} | {:.1} | {:.1} | {:.0} ({:.0}) | {:.0} ({:.0}) |",
            world.name,
            gate.name,
            share(failed, arguments.many),
            share(decided, arguments.many),
            share(open, arguments.many * u64::from(MODELS)),
            slower.share(&slower.failed),
            slower.share(&slower.open),
            tail.share(&tail.failed),
            tail.share(&tail.open)
        );
    }
    Ok(())
}
