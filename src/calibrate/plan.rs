//! Which block lengths are tried, and which of them the time allows.

use std::time::Duration;

use crate::data::Auto;
use crate::gate::{Design, GateError, PairPlan, SideFigures};
use crate::stats::histogram_quantile;

/// Block lengths that are worth a try, from the finest that servers allow to that of stored
/// sessions.
const LENGTHS: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];
/// Median request times that a block holds at least.
const MEDIANS: f64 = 3.0;
/// Lengths within this factor of the tool's own choice are not tried beside it.
const NEAR: f64 = 1.5;
/// Units of each length below which its noise is not worth stating.
const UNITS: f64 = 8.0;

/// A block length and how a check with it would measure.
#[derive(Debug, Clone, PartialEq)]
pub struct LengthPlan {
    /// What a check would do.
    pub plan: PairPlan,
    /// True for the length that the thresholds say, or that the tool would choose.
    pub chosen: bool,
}

/// The lengths that suit a model: the one that a check would take, and others of a wide range that
/// hold at least three median requests. `budget` is the time of a check after its warm-up.
pub fn block_lengths(
    design: &Design,
    sides: [&SideFigures; 2],
    block: Auto<Duration>,
    budget: Duration,
) -> Result<Vec<LengthPlan>, GateError> {
    let own = PairPlan::new(design, sides, block, budget)?;
    let median = sides
        .iter()
        .filter_map(|side| side.histogram.as_ref())
        .filter_map(|histogram| histogram_quantile(histogram, 0.5).ok())
        .fold(0.0, f64::max)
        / 1e9;
    let mut lengths = Vec::new();
    for length in LENGTHS {
        let ratio = length.as_secs_f64() / own.block.as_secs_f64();
        let near = (1.0 / NEAR..=NEAR).contains(&ratio);
        if near || length.as_secs_f64() < MEDIANS * median {
            continue;
        }
        lengths.push(LengthPlan {
            plan: PairPlan::new(design, sides, Auto::Fixed(length), budget)?,
            chosen: false,
        });
    }
    lengths.push(LengthPlan {
        plan: own,
        chosen: true,
    });
    lengths.sort_by_key(|length| length.plan.block);
    Ok(lengths)
}

/// As many of the lengths as this time holds often enough, `extra` being lost in every turn. The
/// chosen one stays in any case; of the others those nearest to it go first, as they tell least.
pub fn fitting(lengths: Vec<LengthPlan>, time: Duration, extra: Duration) -> Vec<LengthPlan> {
    let mut kept = lengths;
    loop {
        let turn: f64 = kept
            .iter()
            .map(|length| length.plan.unit_seconds)
            .sum::<f64>()
            + extra.as_secs_f64();
        if kept.len() < 2 || turn * UNITS <= time.as_secs_f64() {
            return kept;
        }
        let Some(own) = kept
            .iter()
            .find(|length| length.chosen)
            .map(|length| length.plan.block.as_secs_f64())
        else {
            return kept;
        };
        let nearest = kept
            .iter()
            .enumerate()
            .filter(|(_, length)| !length.chosen)
            .map(|(index, length)| (index, (length.plan.block.as_secs_f64() / own).ln().abs()))
            .min_by(|(_, one), (_, other)| one.total_cmp(other));
        let Some((index, _)) = nearest else {
            return kept;
        };
        kept.remove(index);
    }
}
