//! Checks of recorded units through the real gate.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::outcome::Rates;
use crate::data::{Bound, Rule, Side, Verdict};
use crate::gate::{Decision, Design, GateError, PairPlan, PairedGate, PairedStep, Unit};

/// How recorded units become checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resampling {
    /// How many checks.
    pub checks: u32,
    /// Seed of the starts and of the swaps.
    pub seed: u64,
    /// Swap the labels of each unit by a fair coin: with the same model on both sides that makes
    /// checks that might as well have been measured.
    pub swap: bool,
}

/// Plays checks over contiguous stretches of recorded units, from random starts; a stretch goes on
/// at the beginning where the recording ends. A regression is confirmed on another stretch, as
/// after a reload. Swapping labels where the sides differ would hide the difference: leave it out.
pub fn resample(
    design: &Design,
    plan: &PairPlan,
    units: &[&Unit],
    how: Resampling,
) -> Result<Rates, GateError> {
    if units.is_empty() {
        return Err(GateError::NoBlocks);
    }
    let slim: Vec<Unit> = units.iter().map(|unit| prepared(unit, design)).collect();
    let mut rates = Rates {
        checks: how.checks,
        stretches: units.len() as f64 / f64::from(plan.max_units.max(1)),
        ..Rates::default()
    };
    let mut seconds = 0.0;
    let (mut failed, mut passed) = (0_u32, 0_u32);
    for check in 0..how.checks {
        let mut rng = ChaCha8Rng::seed_from_u64(how.seed ^ (u64::from(check) << 20));
        let decision = one_check(design, plan, &slim, how.swap, &mut rng)?;
        seconds += f64::from(decision.units) * plan.unit_seconds;
        match decision.verdict {
            Verdict::Regression => failed += 1,
            Verdict::Pass => passed += 1,
            _ => {}
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(how.checks.max(1));
    rates.regression = share(failed);
    rates.pass = share(passed);
    rates.inconclusive = share(how.checks - failed - passed);
    rates.mean_seconds = seconds / f64::from(how.checks.max(1));
    Ok(rates)
}

fn one_check(
    design: &Design,
    plan: &PairPlan,
    units: &[Unit],
    swap: bool,
    rng: &mut ChaCha8Rng,
) -> Result<Decision, GateError> {
    let mut gate = PairedGate::new(design.clone(), plan, 0)?;
    let mut taken: Vec<Unit> = Vec::new();
    let mut at = rng.random_range(0..units.len());
    loop {
        match gate.step(&taken)? {
            PairedStep::Done(decision) => return Ok(*decision),
            PairedStep::Confirm => {
                at = rng.random_range(0..units.len());
                if let Some(decision) = gate.confirm(true, &taken)? {
                    return Ok(decision);
                }
            }
            PairedStep::Measure { units: wanted } => {
                for _ in 0..wanted {
                    let Some(unit) = units.get(at % units.len()) else {
                        return Err(GateError::NoBlocks);
                    };
                    at = (at + 1) % units.len();
                    taken.push(if swap && rng.random::<bool>() {
                        swapped(unit)
                    } else {
                        unit.clone()
                    });
                }
            }
        }
    }
}

/// A unit with its labels the other way round.
fn swapped(unit: &Unit) -> Unit {
    let mut swapped = Unit {
        pairs: unit.pairs,
        baseline: unit.candidate.clone(),
        candidate: unit.baseline.clone(),
    };
    swapped.baseline.side = Side::Baseline;
    swapped.candidate.side = Side::Candidate;
    swapped
}

/// Histograms are large; only limits on percentiles look at them.
fn prepared(unit: &Unit, design: &Design) -> Unit {
    let needed = design.rule == Rule::Evidence
        && design.limits.iter().any(|limit| {
            limit.metric.quantile().is_some() || matches!(limit.bound, Bound::Absolute(_))
        });
    let mut unit = unit.clone();
    if !needed {
        unit.baseline.histogram = None;
        unit.candidate.histogram = None;
    }
    unit
}
