//! Pairs of short blocks: one side after the other, in the order that the gate drew.

use std::collections::BTreeMap;
use std::time::Duration;

use super::real::{Seen, TritonLab, load_reason};
use crate::data::{Flag, Side};
use crate::load::{Counting, Ramp, Stretch, StretchOutcome};
use crate::run::{Ended, Lab, LabError, Measured};

impl TritonLab {
    /// Measures pairs between one pair of snapshots a side. Every request that is sent in a block
    /// counts for it, and the other side starts when nothing is in flight any more.
    pub(super) fn measure_pairs(
        &mut self,
        first_index: u32,
        candidate_first: &[bool],
        block: Duration,
        deadline: Duration,
    ) -> Result<Measured, LabError> {
        let sides = [Side::Baseline, Side::Candidate];
        let processes = self.conditions.processes();
        let mut before = BTreeMap::new();
        for side in sides {
            before.insert(side, self.snapshot(side).map_err(LabError::Failed)?);
        }
        let mut sums: BTreeMap<Side, StretchOutcome> = BTreeMap::new();
        let mut ended = Ended::Complete;
        'pairs: for (position, candidate_first) in candidate_first.iter().enumerate() {
            let pair = if *candidate_first {
                [Side::Candidate, Side::Baseline]
            } else {
                [Side::Baseline, Side::Candidate]
            };
            if self.now() >= deadline {
                ended = Ended::Deadline;
                break;
            }
            for side in pair {
                let outcome =
                    self.short_block(side, first_index + position as u32, block, deadline)?;
                let (interrupted, late) = (outcome.interrupted, outcome.past_deadline);
                let failed = outcome.failed() > 0;
                match sums.get_mut(&side) {
                    Some(sum) => add(sum, outcome),
                    None => {
                        sums.insert(side, outcome);
                    }
                }
                if interrupted {
                    ended = Ended::Interrupted;
                    break 'pairs;
                }
                if late {
                    ended = Ended::Deadline;
                    break 'pairs;
                }
                // Whether failures are accepted is judged below; a dead server must not be
                // loaded pair after pair.
                if failed {
                    break 'pairs;
                }
            }
        }
        let all_spoiled = self.conditions.processes() != processes;
        let mut seen_sides: Vec<(Side, Seen)> = Vec::new();
        let mut spoiled: BTreeMap<u32, &'static str> = BTreeMap::new();
        let twins = self.twins();
        let completed: BTreeMap<Side, u64> = sums
            .iter()
            .map(|(side, outcome)| (*side, outcome.completed))
            .collect();
        for (side, outcome) in sums {
            let Some(before) = before.get(&side) else {
                continue;
            };
            let mut seen = self.close(side, before, outcome)?;
            if twins && let Ok(server) = &mut seen.server {
                // One model counts for both: the other side's requests are not foreign.
                let others: u64 = completed
                    .iter()
                    .filter(|(other, _)| **other != side)
                    .map(|(_, count)| *count)
                    .sum();
                server.requests = server.requests.saturating_sub(others);
            }
            spoiled.append(&mut seen.spoiled(all_spoiled));
            seen_sides.push((side, seen));
        }
        let mut blocks = Vec::new();
        let mut flags: Vec<Flag> = Vec::new();
        let mut discarded = BTreeMap::new();
        for (side, mut seen) in seen_sides {
            // A pair is one thing: what spoils one of its blocks spoils both.
            seen.discard(&spoiled, &mut discarded);
            if ended != Ended::Interrupted {
                match self.assess(side, &seen) {
                    Ok(more) => flags.extend(more),
                    Err(reason) if matches!(ended, Ended::Failed(_)) => drop(reason),
                    Err(reason) => ended = Ended::Failed(named(side, reason)),
                }
            }
            blocks.extend(seen.outcome.blocks);
        }
        // Back in the order in which they were measured: pair by pair.
        blocks.sort_by_key(|block| block.index);
        Ok(Measured {
            blocks,
            ended,
            discarded,
            flags,
        })
    }

    /// Both sides load the same version of the same model on the same server.
    fn twins(&self) -> bool {
        let same = |side: Side| {
            let target = &self.sides.get(&side)?.target;
            Some((
                target.client.endpoint().address(),
                target.signature.name.clone(),
                target.version.clone(),
            ))
        };
        let (baseline, candidate) = (same(Side::Baseline), same(Side::Candidate));
        baseline.is_some() && baseline == candidate
    }

    fn short_block(
        &mut self,
        side: Side,
        index: u32,
        block: Duration,
        deadline: Duration,
    ) -> Result<StretchOutcome, LabError> {
        self.conditions.mark();
        let slack = self.lab(side)?.measure.request_timeout;
        let stop = self.stop.clone();
        let stretch = Stretch {
            side,
            first_index: index,
            ramp: Ramp::None,
            blocks: 1,
            block,
            counting: Counting::Sent,
            deadline: Some(self.epoch + deadline + slack),
        };
        let mut outcome = self
            .lab(side)?
            .engine
            .run(&stretch, &stop)
            .map_err(|error| LabError::Failed(load_reason(&error)))?;
        self.conditions.mark();
        for block in &mut outcome.blocks {
            // A block with its own drain does not hold the concurrency at its edges.
            block.client.little = None;
        }
        Ok(outcome)
    }
}

/// Failures of the reference are not failures of the candidate, and the reader must know which.
fn named(side: Side, mut reason: crate::data::Reason) -> crate::data::Reason {
    if side == Side::Baseline {
        reason.text = format!("the reference: {}", reason.text);
    }
    reason
}

/// Adds what a further block brought.
fn add(sum: &mut StretchOutcome, more: StretchOutcome) {
    sum.blocks.extend(more.blocks);
    sum.times_ns.extend(more.times_ns);
    sum.sent += more.sent;
    sum.completed += more.completed;
    sum.errors.merge(&more.errors);
    sum.abandoned += more.abandoned;
    for (class, text) in more.examples {
        sum.examples.entry(class).or_insert(text);
    }
    sum.model_versions.extend(more.model_versions);
    sum.empty_outputs += more.empty_outputs;
    sum.output_bytes += more.output_bytes;
    sum.interrupted |= more.interrupted;
    sum.past_deadline |= more.past_deadline;
    sum.ended_ns = more.ended_ns;
}
