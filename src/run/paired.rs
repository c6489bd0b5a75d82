use std::time::Duration;

use crate::data::{Auto, Block, Flag, Side};
use crate::gate::{Decision, Design, PairPlan, PairedGate, PairedStep, SideFigures, Unit};

use super::outcome::Record;
use super::{Ended, Lab, MeasurePlan, Progress, ScenarioOutcome, WarmUp};

/// Units in a row without a whole pair after which measuring makes no sense.
const EMPTY_UNITS: u32 = 3;

/// How a live comparison is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairSettings {
    /// From the start of the warm-ups to the end of the last pair.
    pub time: Duration,
    /// Further time for confirming a regression after a reload.
    pub confirm_time: Duration,
    /// Length of a block.
    pub block: Auto<Duration>,
    /// Seed of the order within pairs.
    pub seed: u64,
}

/// Measures both sides until the live decision is taken or the time ends.
///
/// Always returns: an error or an interruption is part of the outcome, beside one block a unit and
/// side of everything measured so far.
pub fn run_paired(
    lab: &mut dyn Lab,
    design: &Design,
    settings: &PairSettings,
    progress: &mut dyn FnMut(&Progress),
) -> ScenarioOutcome {
    let start = lab.now();
    let mut pairing = Pairing {
        lab,
        record: Record::default(),
        units: Vec::new(),
        partial: Vec::new(),
        next_pair: 0,
        plan: None,
        deadline: start + settings.time,
        progress,
    };
    let result = pairing.decide(design, settings);
    let seconds = pairing.lab.now().saturating_sub(start).as_secs_f64();
    let Pairing {
        mut record,
        units,
        partial,
        plan,
        ..
    } = pairing;
    record.blocks = units
        .into_iter()
        .flat_map(Unit::into_blocks)
        .chain(partial)
        .collect();
    let mut outcome = match result {
        Ok(decision) => record.decided(decision, seconds),
        Err(ended) => record.ended(ended, seconds),
    };
    outcome.pair_plan = plan;
    outcome
}

struct Pairing<'a> {
    lab: &'a mut dyn Lab,
    record: Record,
    units: Vec<Unit>,
    /// What was measured of units that do not count.
    partial: Vec<Block>,
    next_pair: u32,
    plan: Option<PairPlan>,
    deadline: Duration,
    progress: &'a mut dyn FnMut(&Progress),
}

impl Pairing<'_> {
    fn decide(&mut self, design: &Design, settings: &PairSettings) -> Result<Decision, Ended> {
        let baseline = self.warm_up(Side::Baseline)?;
        let candidate = self.warm_up(Side::Candidate)?;
        let rest = self.deadline.saturating_sub(self.lab.now());
        let plan = PairPlan::new(design, [&baseline, &candidate], settings.block, rest)?;
        (self.progress)(&Progress::Planned { plan: plan.clone() });
        self.plan = Some(plan.clone());
        let mut gate = PairedGate::new(design.clone(), &plan, settings.seed)?;
        match self.search(&mut gate, &plan, settings) {
            // A regression that was found is not hidden by a failure to confirm it.
            Err(Ended::Failed(reason)) => match gate.abandon(&self.units) {
                Some(mut decision) => {
                    decision.flags.push(Flag {
                        code: reason.code,
                        text: format!("confirming failed: {}", reason.text),
                    });
                    Ok(decision)
                }
                None => Err(Ended::Failed(reason)),
            },
            result => result,
        }
    }

    fn search(
        &mut self,
        gate: &mut PairedGate,
        plan: &PairPlan,
        settings: &PairSettings,
    ) -> Result<Decision, Ended> {
        let mut step = gate.step(&self.units)?;
        loop {
            step = match step {
                PairedStep::Done(decision) => return Ok(*decision),
                PairedStep::Confirm => {
                    if let Some(decision) = self.reload(gate, settings)? {
                        return Ok(decision);
                    }
                    gate.step(&self.units)?
                }
                PairedStep::Measure { units } => {
                    let have = gate.own_units(self.units.len());
                    let last = gate.looks().last().copied().unwrap_or(have + units);
                    (self.progress)(&Progress::Measuring {
                        have,
                        next: have + units,
                        last,
                    });
                    if self.measure(gate, plan, units)? {
                        gate.step(&self.units)?
                    } else {
                        self.time_is_over(gate)?
                    }
                }
            };
        }
    }

    /// The last look when the time ends between two; units that complete a look take that look.
    fn time_is_over(&self, gate: &mut PairedGate) -> Result<PairedStep, Ended> {
        if self.units.is_empty() {
            return Err(Ended::Deadline);
        }
        match gate.step(&self.units)? {
            PairedStep::Measure { .. } => Ok(gate.finish(&self.units)?),
            step => Ok(step),
        }
    }

    fn warm_up(&mut self, side: Side) -> Result<SideFigures, Ended> {
        (self.progress)(&Progress::WarmingUp { side });
        let warm_up: WarmUp = self.lab.warm_up(side)?;
        let figures = SideFigures {
            request_rate: warm_up.request_rate,
            histogram: warm_up.histogram.clone(),
            rate_spread: warm_up.rate_spread,
            overhead: warm_up.overhead,
        };
        self.record.warm_up(side, warm_up);
        Ok(figures)
    }

    /// Loads both sides anew; a decision where that is not possible.
    fn reload(
        &mut self,
        gate: &mut PairedGate,
        settings: &PairSettings,
    ) -> Result<Option<Decision>, Ended> {
        (self.progress)(&Progress::Confirming);
        let reloaded = self.lab.reload(Side::Baseline)? && self.lab.reload(Side::Candidate)?;
        if reloaded {
            self.warm_up(Side::Baseline)?;
            self.warm_up(Side::Candidate)?;
            self.deadline = self.lab.now() + settings.confirm_time;
        }
        Ok(gate.confirm(reloaded, &self.units)?)
    }

    /// Measures units one by one, so that what is kept does not grow with the number of pairs.
    /// False where the time is over.
    fn measure(
        &mut self,
        gate: &mut PairedGate,
        plan: &PairPlan,
        units: u32,
    ) -> Result<bool, Ended> {
        let mut done = 0;
        let mut empty = 0;
        while done < units {
            let rest = self.deadline.saturating_sub(self.lab.now()).as_secs_f64();
            // A little more than the plan's time is forgiven: the last planned unit must not be
            // lost to a slow one before it.
            if rest < plan.unit_seconds * 0.5 {
                return Ok(false);
            }
            let order = gate.coins(plan.pairs_per_unit);
            let measured = self.lab.measure(&MeasurePlan::Pairs {
                first_index: self.next_pair,
                candidate_first: order,
                block: plan.block,
                deadline: self.deadline + Duration::from_secs_f64(plan.unit_seconds),
            })?;
            self.next_pair += plan.pairs_per_unit;
            let ended = self.record.measured(measured);
            let blocks = std::mem::take(&mut self.record.blocks);
            let unit = Unit::pool(&blocks, self.units.len() as u32);
            match unit {
                Some(unit) if unit.pairs * 2 >= plan.pairs_per_unit => {
                    self.units.push(unit);
                    done += 1;
                    empty = 0;
                }
                unit => {
                    // Too little to count, but not lost: it stays beside the units.
                    let partial = unit.map(Unit::into_blocks);
                    self.partial.extend(partial.into_iter().flatten());
                    *self
                        .record
                        .discarded
                        .entry("incomplete_unit".to_owned())
                        .or_default() += 1;
                    empty += 1;
                }
            }
            match ended {
                Ended::Complete if empty < EMPTY_UNITS => {}
                Ended::Complete | Ended::Deadline => return Ok(false),
                ended => return Err(ended),
            }
        }
        Ok(true)
    }
}
