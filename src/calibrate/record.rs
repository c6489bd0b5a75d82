//! Recording: pairs at several block lengths in turns, over several loads of the model.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::plan::LengthPlan;
use crate::data::{Block, Flag, Reason, Side};
use crate::gate::{PairPlan, Unit};
use crate::run::{Ended, Lab, LabError, MeasurePlan, Measured};

/// Units in a row without enough pairs after which measuring makes no sense.
const EMPTY_UNITS: u32 = 3;

/// What is recorded.
#[derive(Debug, Clone)]
pub struct RecordPlan {
    /// The block lengths that take turns.
    pub lengths: Vec<LengthPlan>,
    /// Blocks of one side alone in one stretch, once a turn; 0 for none.
    pub alone: u32,
    /// When to end, on the lab's clock.
    pub until: Duration,
    /// Loads of the model over that time, the present one included; 1 for no reload.
    pub loads: u32,
    /// Seed of the orders.
    pub seed: u64,
}

/// One unit as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The pairs, pooled.
    pub unit: Unit,
    /// The turn, from 0.
    pub turn: u32,
    /// The load of the model, from 0.
    pub load: u32,
    /// Seconds that it took.
    pub seconds: f64,
}

/// What was recorded at one block length.
#[derive(Debug, Clone, PartialEq)]
pub struct LengthRecord {
    /// How it was measured.
    pub plan: PairPlan,
    /// True for the length that a check would take.
    pub chosen: bool,
    /// The units, in order.
    pub units: Vec<Recorded>,
}

/// Everything that was recorded.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// By block length, in the plan's order.
    pub lengths: Vec<LengthRecord>,
    /// One side alone in one stretch: turn and block.
    pub alone: Vec<(u32, Block)>,
    /// Loads of the model that were seen.
    pub loads: u32,
    /// True where the model could be loaded anew.
    pub reloadable: bool,
    /// Blocks, pairs or units that do not count, by reason.
    pub discarded: BTreeMap<String, u32>,
    /// Things that a reader should know.
    pub flags: Vec<Flag>,
    /// Turns begun so far; a later recording goes on from here.
    pub(super) turns: u32,
    pub(super) next_pair: u32,
}

impl Recording {
    /// The units of one block length without where they came from.
    pub fn units(&self, length: usize) -> Vec<&Unit> {
        self.lengths.get(length).map_or_else(Vec::new, |record| {
            record.units.iter().map(|recorded| &recorded.unit).collect()
        })
    }

    fn measured(&mut self, measured: Measured) -> (Vec<Block>, Ended) {
        for (reason, count) in measured.discarded {
            *self.discarded.entry(reason).or_default() += count;
        }
        for flag in measured.flags {
            if !self.flags.contains(&flag) {
                self.flags.push(flag);
            }
        }
        (measured.blocks, measured.ended)
    }
}

/// Records into `recording` until the plan's time is over. What was measured before a failure or an
/// interruption stays in it. `told` hears of every load: its number and units so far.
pub fn record(
    lab: &mut dyn Lab,
    plan: &RecordPlan,
    recording: &mut Recording,
    told: &mut dyn FnMut(u32, usize),
) -> Result<(), LabError> {
    let begun = lab.now();
    let span = plan.until.saturating_sub(begun);
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    for length in &plan.lengths {
        if !recording
            .lengths
            .iter()
            .any(|record| record.plan.block == length.plan.block)
        {
            recording.lengths.push(LengthRecord {
                plan: length.plan.clone(),
                chosen: length.chosen,
                units: Vec::new(),
            });
        }
    }
    let first_load = recording.loads.max(1);
    recording.loads = first_load;
    told(first_load, 0);
    let mut empty = 0;
    'turns: while lab.now() < plan.until {
        let own_loads = recording.loads - first_load + 1;
        let due = begun + span * own_loads / plan.loads.max(1);
        if own_loads < plan.loads && lab.now() >= due {
            if !reload(lab)? {
                // Asked once: a server that cannot will not learn it meanwhile.
                return record_rest(lab, plan, recording, told);
            }
            recording.reloadable = true;
            recording.loads += 1;
            told(
                recording.loads,
                recording.lengths.iter().map(|one| one.units.len()).sum(),
            );
        }
        let turn = recording.turns;
        recording.turns += 1;
        let mut order: Vec<usize> = (0..plan.lengths.len()).collect();
        order.shuffle(&mut rng);
        for index in order {
            let Some(length) = plan.lengths.get(index) else {
                continue;
            };
            let rest = plan.until.saturating_sub(lab.now()).as_secs_f64();
            if rest < length.plan.unit_seconds * 0.5 {
                break 'turns;
            }
            if one_unit(lab, plan, &length.plan, turn, recording, &mut rng)? {
                empty = 0;
            } else {
                empty += 1;
                if empty >= EMPTY_UNITS {
                    return Err(LabError::Failed(Reason {
                        code: "incomplete_units".to_owned(),
                        text: format!(
                            "{EMPTY_UNITS} units in a row had too few whole pairs to count"
                        ),
                        next: "lengthen [measure] block, or look at the server's log".to_owned(),
                    }));
                }
            }
        }
        if plan.alone > 0 {
            let measured = lab.measure(&MeasurePlan::Blocks {
                side: Side::Candidate,
                first_index: 0,
                blocks: plan.alone,
                deadline: plan.until + Duration::from_mins(1),
            })?;
            let (blocks, ended) = recording.measured(measured);
            recording
                .alone
                .extend(Unit::of_one_side(&blocks).map(|block| (turn, block)));
            stop_at(ended)?;
        }
    }
    Ok(())
}

/// The same plan without reloads.
fn record_rest(
    lab: &mut dyn Lab,
    plan: &RecordPlan,
    recording: &mut Recording,
    told: &mut dyn FnMut(u32, usize),
) -> Result<(), LabError> {
    let rest = RecordPlan {
        loads: 1,
        seed: plan.seed.wrapping_add(1),
        ..plan.clone()
    };
    record(lab, &rest, recording, told)
}

/// Loads the model anew and warms it up; false where that is not possible. Both sides are the same
/// model, so that once is enough.
fn reload(lab: &mut dyn Lab) -> Result<bool, LabError> {
    if !lab.reload(Side::Candidate)? {
        return Ok(false);
    }
    lab.warm_up(Side::Candidate)?;
    Ok(true)
}

/// Measures one unit; false where it held too few whole pairs to count.
fn one_unit(
    lab: &mut dyn Lab,
    plan: &RecordPlan,
    length: &PairPlan,
    turn: u32,
    recording: &mut Recording,
    rng: &mut ChaCha8Rng,
) -> Result<bool, LabError> {
    let begun = lab.now();
    let measured = lab.measure(&MeasurePlan::Pairs {
        first_index: recording.next_pair,
        candidate_first: (0..length.pairs_per_unit)
            .map(|_| rng.random::<bool>())
            .collect(),
        block: length.block,
        deadline: plan.until + Duration::from_secs_f64(length.unit_seconds.max(60.0)),
    })?;
    let seconds = lab.now().saturating_sub(begun).as_secs_f64();
    recording.next_pair = recording.next_pair.wrapping_add(length.pairs_per_unit);
    let (blocks, ended) = recording.measured(measured);
    let whole = Unit::pool(&blocks, turn).filter(|unit| unit.pairs * 2 >= length.pairs_per_unit);
    let counts = whole.is_some();
    let load = recording.loads - 1;
    let record = recording
        .lengths
        .iter_mut()
        .find(|record| record.plan.block == length.block);
    match (whole, record) {
        (Some(unit), Some(record)) => record.units.push(Recorded {
            unit,
            turn,
            load,
            seconds,
        }),
        _ => {
            *recording
                .discarded
                .entry("incomplete_unit".to_owned())
                .or_default() += 1;
        }
    }
    stop_at(ended)?;
    Ok(counts)
}

fn stop_at(ended: Ended) -> Result<(), LabError> {
    match ended {
        Ended::Complete | Ended::Deadline => Ok(()),
        Ended::Interrupted => Err(LabError::Interrupted),
        Ended::Failed(reason) => Err(LabError::Failed(reason)),
    }
}
