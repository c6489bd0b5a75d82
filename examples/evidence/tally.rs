//! Counting decisions over all threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use triton_gate::data::Verdict;
use triton_gate::run::virtual_lab::{Effect, World};

use crate::Arguments;
use crate::gates::{Gate, decide};

/// Counts over many decisions.
#[derive(Default)]
pub struct Tally {
    pub failed: AtomicU64,
    pub passed: AtomicU64,
    pub open: AtomicU64,
    milliseconds: AtomicU64,
}

impl Tally {
    /// Percentage of all decisions.
    pub fn share(&self, count: &AtomicU64) -> f64 {
        let all: u64 = [&self.failed, &self.passed, &self.open]
            .map(|c| c.load(Ordering::Relaxed))
            .iter()
            .sum();
        100.0 * count.load(Ordering::Relaxed) as f64 / all.max(1) as f64
    }

    /// Mean time of a decision, seconds.
    pub fn mean_seconds(&self, runs: u64) -> f64 {
        self.milliseconds.load(Ordering::Relaxed) as f64 / 1000.0 / runs.max(1) as f64
    }
}

/// Many decisions over all threads. Seeds of different decisions do not overlap.
pub fn tally(
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
