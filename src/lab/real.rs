//! The real Lab: obeys a measuring plan on a live Triton.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::conditions::Conditions;
use super::side::{SideLab, Totals};
use super::target::{LOAD_TIMEOUT, client_reason};
use super::validity::{Observed, assess};
use super::warm_up::{Judgement, judge, next_windows, rate_spread};
use crate::data::{Block, ErrorClass, Reason, ServerMeans, Side};
use crate::load::{Counting, Ramp, Stop, Stretch, StretchOutcome};
use crate::run::{Ended, Lab, LabError, MeasurePlan, Measured, WarmUp};
use crate::triton::ModelSignature;
use crate::triton::statistics::{Delta, Snapshot, difference};

/// Longest fixed cost of a stretch beyond its blocks, the drain aside.
const RAMP: Duration = Duration::from_millis(200);

/// The real Lab: drives a live Triton.
pub struct TritonLab {
    runtime: Handle,
    pub(super) stop: Stop,
    pub(super) epoch: Instant,
    block: Duration,
    pub(super) sides: BTreeMap<Side, SideLab>,
    totals: BTreeMap<Side, Totals>,
    /// Requests that each side's server had not counted yet when it was last asked.
    late: BTreeMap<Side, u64>,
    pub(super) conditions: Conditions,
}

impl TritonLab {
    /// A lab over one or two sides; `block` is the length of contiguous blocks.
    pub fn new(
        runtime: Handle,
        stop: Stop,
        block: Duration,
        sides: impl IntoIterator<Item = (Side, SideLab)>,
    ) -> Self {
        let sides = sides.into_iter().collect();
        Self {
            conditions: Conditions::watch(&runtime, &sides),
            runtime,
            stop,
            epoch: Instant::now(),
            block,
            sides,
            totals: BTreeMap::new(),
            late: BTreeMap::new(),
        }
    }

    /// One side's model and load.
    pub fn side(&self, side: Side) -> Option<&SideLab> {
        self.sides.get(&side)
    }

    /// What was seen of one side so far.
    pub fn totals(&self, side: Side) -> Totals {
        self.totals.get(&side).cloned().unwrap_or_default()
    }

    /// Successful requests that the server has counted for a side's model so far; none where it
    /// does not say.
    pub fn server_requests(&mut self, side: Side) -> Option<u64> {
        let snapshot = self.snapshot(side).ok()?;
        counted(&snapshot, &self.sides.get(&side)?.target.signature)
    }

    pub(super) fn lab(&mut self, side: Side) -> Result<&mut SideLab, LabError> {
        self.sides.get_mut(&side).ok_or_else(|| {
            LabError::Failed(Reason {
                code: "no_side".to_owned(),
                text: format!("there is no {side:?} to measure"),
                next: "report this".to_owned(),
            })
        })
    }

    pub(super) fn snapshot(&mut self, side: Side) -> Result<Snapshot, Reason> {
        let runtime = self.runtime.clone();
        let lab = self.lab(side).map_err(|error| match error {
            LabError::Failed(reason) => reason,
            LabError::Interrupted => interrupted(),
        })?;
        let signature = lab.target.signature.clone();
        runtime
            .block_on(lab.target.client.snapshot(&signature))
            .map_err(|error| client_reason(&error))
    }

    /// One stretch of load between two snapshots.
    fn stretch(&mut self, side: Side, stretch: &Stretch) -> Result<Seen, LabError> {
        let before = self.snapshot(side).map_err(LabError::Failed)?;
        let stop = self.stop.clone();
        let outcome = self
            .lab(side)?
            .engine
            .run(stretch, &stop)
            .map_err(|error| LabError::Failed(load_reason(&error)))?;
        self.close(side, &before, outcome)
    }

    /// Reads the server's counters after the load has drained, and adds up what was seen.
    pub(super) fn close(
        &mut self,
        side: Side,
        before: &Snapshot,
        mut outcome: StretchOutcome,
    ) -> Result<Seen, LabError> {
        let after = self.snapshot(side);
        let delta = after.and_then(|after| {
            difference(before, &after)
                .map(|delta| (delta, after))
                .map_err(|error| Reason {
                    code: "model_reloaded".to_owned(),
                    text: error.to_string(),
                    next: "keep deployments away from the server while it is measured, then \
                           measure again"
                        .to_owned(),
                })
        });
        let version = self.alone(side);
        let signature = self.lab(side)?.target.signature.clone();
        let server = delta.map(|(delta, after)| {
            Server::read(
                &narrowed(delta, &signature, version.as_deref()),
                &after,
                &signature,
            )
        });
        let means = server.as_ref().ok().and_then(|server| server.means);
        for block in &mut outcome.blocks {
            block.server = means;
        }
        let totals = self.totals.entry(side).or_default();
        totals.completed += outcome.completed;
        totals.errors.merge(&outcome.errors);
        for (class, text) in &outcome.examples {
            totals
                .examples
                .entry(*class)
                .or_insert_with(|| text.clone());
        }
        totals
            .model_versions
            .extend(outcome.model_versions.iter().cloned());
        if let Ok(server) = &server {
            totals.server_requests = server.total;
        }
        let in_flight = u64::from(self.lab(side)?.concurrency);
        let late = self.late.entry(side).or_default();
        let before = *late;
        let given_up = outcome.abandoned
            + outcome
                .errors
                .0
                .get(&ErrorClass::Timeout)
                .copied()
                .unwrap_or(0);
        *late = server.as_ref().map_or(0, |server| {
            (before + outcome.completed + given_up)
                .saturating_sub(server.requests)
                .min(in_flight + given_up)
        });
        let engine = &self.lab(side)?.engine;
        let times: Vec<(Instant, Instant)> = outcome
            .times_ns
            .iter()
            .map(|(from, to)| (engine.instant(*from), engine.instant(*to)))
            .collect();
        let spoiled = self.conditions.describe(side, &mut outcome.blocks, &times);
        Ok(Seen {
            outcome,
            server,
            late: before + given_up,
            spoiled,
            discarded: 0,
        })
    }

    /// The version that a side's counters are narrowed to: its own, where the other side loads
    /// another version of the same model.
    fn alone(&self, side: Side) -> Option<String> {
        let own = &self.sides.get(&side)?.target;
        let shared = self.sides.iter().any(|(other, lab)| {
            *other != side
                && lab.target.signature.name == own.signature.name
                && lab.target.version != own.version
        });
        shared.then(|| own.version.clone())
    }

    /// Whether what was seen may be judged. Failures of requests come first: they explain a
    /// server that cannot be asked any more.
    pub(super) fn assess(&self, side: Side, seen: &Seen) -> Result<Vec<crate::data::Flag>, Reason> {
        let Some(lab) = self.sides.get(&side) else {
            return Ok(Vec::new());
        };
        let outcome = &seen.outcome;
        let server = seen.server.as_ref().ok();
        let mut observed = Observed {
            blocks: &outcome.blocks,
            discarded: seen.discarded,
            errors: outcome.errors.clone(),
            completed: outcome.completed,
            examples: outcome.examples.clone(),
            model_versions: self.totals(side).model_versions,
            empty_outputs: outcome.completed > 0 && outcome.empty_outputs == outcome.completed,
            server_requests: server.map(|server| server.requests),
            late: seen.late,
            cache_hits: server.map_or(0, |server| server.cache_hits),
            reloaded: false,
            concurrency: lab.concurrency,
            max_error_rate: lab.measure.max_error_rate,
            allow_saturated: lab.measure.allow_saturated,
        };
        if !expects_data(lab) {
            observed.empty_outputs = false;
        }
        let flags = assess(&observed)?;
        match &seen.server {
            Ok(_) => Ok(flags),
            Err(reason) => Err(reason.clone()),
        }
    }

    fn measure_blocks(
        &mut self,
        side: Side,
        first_index: u32,
        blocks: u32,
        deadline: Duration,
    ) -> Result<Measured, LabError> {
        let block = self.block;
        let slack = self.lab(side)?.measure.request_timeout;
        let stretch = Stretch {
            side,
            first_index,
            ramp: Ramp::Standard,
            blocks,
            block,
            counting: Counting::Contiguous,
            deadline: Some(self.epoch + deadline + slack),
        };
        let processes = self.conditions.processes();
        let mut seen = self.stretch(side, &stretch)?;
        let spoiled = seen.spoiled(self.conditions.processes() != processes);
        let mut discarded = BTreeMap::new();
        seen.discard(&spoiled, &mut discarded);
        let judged = if seen.outcome.interrupted {
            Ok(Vec::new())
        } else {
            self.assess(side, &seen)
        };
        let (flags, ended) = match judged {
            Ok(flags) if seen.outcome.interrupted => (flags, Ended::Interrupted),
            Ok(flags) if seen.outcome.past_deadline => (flags, Ended::Deadline),
            Ok(flags) => (flags, Ended::Complete),
            Err(reason) => (Vec::new(), Ended::Failed(reason)),
        };
        Ok(Measured {
            blocks: seen.outcome.blocks,
            ended,
            discarded,
            flags,
        })
    }
}

impl TritonLab {
    /// In the warm-up only failures of requests matter.
    fn assess_errors(&self, side: Side, seen: &Seen) -> Result<(), LabError> {
        let Some(lab) = self.sides.get(&side) else {
            return Ok(());
        };
        let failed = seen.outcome.errors.total();
        let rate = lab.measure.max_error_rate.get();
        if failed as f64 > rate * (failed + seen.outcome.completed) as f64 {
            let observed = Observed {
                errors: seen.outcome.errors.clone(),
                completed: seen.outcome.completed,
                examples: seen.outcome.examples.clone(),
                max_error_rate: lab.measure.max_error_rate,
                ..Observed::default()
            };
            if let Err(reason) = assess(&observed) {
                return Err(LabError::Failed(reason));
            }
        }
        match &seen.server {
            Ok(_) => Ok(()),
            Err(reason) => Err(LabError::Failed(reason.clone())),
        }
    }
}

impl Lab for TritonLab {
    fn warm_up(&mut self, side: Side) -> Result<WarmUp, LabError> {
        let begun = Instant::now();
        let length = self.lab(side)?.measure.warmup;
        let mut windows: Vec<Block> = Vec::new();
        while let Some(next) = next_windows(length, &windows) {
            let stretch = Stretch {
                side,
                first_index: windows.len() as u32,
                ramp: Ramp::None,
                blocks: next.count,
                block: next.length,
                counting: Counting::Contiguous,
                deadline: None,
            };
            let seen = self.stretch(side, &stretch)?;
            if seen.outcome.interrupted {
                return Err(LabError::Interrupted);
            }
            let warm = Seen {
                outcome: StretchOutcome {
                    blocks: Vec::new(),
                    ..seen.outcome.clone()
                },
                server: seen.server,
                late: seen.late,
                spoiled: BTreeMap::new(),
                discarded: 0,
            };
            self.assess_errors(side, &warm)?;
            windows.extend(seen.outcome.blocks);
        }
        let Judgement { settled, from } = judge(length, &windows);
        let kept = windows.get(from..).unwrap_or_default();
        let completed: u64 = kept.iter().map(|block| block.requests).sum();
        let seconds: f64 = kept
            .iter()
            .map(|block| block.duration_ns as f64 / 1e9)
            .sum();
        let slowest = kept
            .iter()
            .filter_map(|block| block.latency.max)
            .fold(0.0, f64::max);
        Ok(WarmUp {
            settled,
            seconds: begun.elapsed().as_secs_f64(),
            request_rate: if seconds > 0.0 {
                completed as f64 / seconds
            } else {
                0.0
            },
            rate_spread: rate_spread(kept),
            histogram: merged(kept),
            overhead: if self.sides.len() > 1 {
                // Pairs have no ramp; their drain waits for the requests in flight.
                drain(kept)
            } else {
                RAMP + Duration::from_secs_f64(slowest / 1e6)
            },
        })
    }

    fn measure(&mut self, plan: &MeasurePlan) -> Result<Measured, LabError> {
        match plan {
            MeasurePlan::Blocks {
                side,
                first_index,
                blocks,
                deadline,
            } => self.measure_blocks(*side, *first_index, *blocks, *deadline),
            MeasurePlan::Pairs {
                first_index,
                candidate_first,
                block,
                deadline,
            } => self.measure_pairs(*first_index, candidate_first, *block, *deadline),
        }
    }

    fn set_block(&mut self, block: Duration) {
        self.block = block;
    }

    fn reload(&mut self, side: Side) -> Result<bool, LabError> {
        let runtime = self.runtime.clone();
        let lab = self.lab(side)?;
        if !lab.explicit_models {
            return Ok(false);
        }
        let model = lab.target.signature.name.clone();
        let client = &mut lab.target.client;
        // Triton answers a request to load what is loaded and unchanged without loading it anew.
        runtime
            .block_on(async {
                client.unload(&model).await?;
                client.load(&model, LOAD_TIMEOUT).await
            })
            .map_err(|error| LabError::Failed(client_reason(&error)))?;
        Ok(true)
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

/// A stretch of load and what the server said of it.
pub(super) struct Seen {
    pub(super) outcome: StretchOutcome,
    pub(super) server: Result<Server, Reason>,
    /// Requests from before that the server may have counted in it.
    late: u64,
    /// Positions of blocks that do not count, with the reason.
    spoiled: BTreeMap<usize, &'static str>,
    /// How many of them were taken out.
    discarded: u32,
}

impl Seen {
    /// Indices of the blocks that do not count, with the reason; every one where processes came to
    /// the GPU or left it.
    pub(super) fn spoiled(&self, processes_changed: bool) -> BTreeMap<u32, &'static str> {
        let blocks = self.outcome.blocks.iter().enumerate();
        blocks
            .filter_map(|(position, block)| {
                let reason = if processes_changed {
                    Some("gpu_processes")
                } else {
                    self.spoiled.get(&position).copied()
                };
                Some((block.index, reason?))
            })
            .collect()
    }

    /// Takes out the blocks with these indices, and counts them.
    pub(super) fn discard(
        &mut self,
        spoiled: &BTreeMap<u32, &'static str>,
        discarded: &mut BTreeMap<String, u32>,
    ) {
        let before = self.outcome.blocks.len();
        self.outcome.blocks.retain(|block| {
            let reason = spoiled.get(&block.index);
            if let Some(reason) = reason {
                *discarded.entry((*reason).to_owned()).or_default() += 1;
            }
            reason.is_none()
        });
        self.discarded = (before - self.outcome.blocks.len()) as u32;
    }
}

/// The server's side of a stretch.
pub(super) struct Server {
    pub(super) requests: u64,
    cache_hits: u64,
    pub(super) means: Option<ServerMeans>,
    total: Option<u64>,
}

impl Server {
    fn read(delta: &Delta, after: &Snapshot, signature: &ModelSignature) -> Self {
        Self {
            requests: delta
                .model(&signature.name)
                .map_or(0, |counts| counts.success.count),
            cache_hits: delta.cache_hits(),
            means: delta.means(signature).ok().flatten(),
            total: counted(after, signature),
        }
    }
}

/// What one version counted, where only that one is to be looked at.
fn narrowed(delta: Delta, signature: &ModelSignature, version: Option<&str>) -> Delta {
    match version {
        Some(version) => delta.of_version(&signature.name, version),
        None => delta,
    }
}

/// Successful requests over all versions of a model.
fn counted(snapshot: &Snapshot, signature: &ModelSignature) -> Option<u64> {
    signature
        .versions
        .iter()
        .filter_map(|version| snapshot.version(&signature.name, version))
        .map(|counts| counts.success.count)
        .reduce(u64::saturating_add)
}

/// Whether responses without data would be odd: the model has an output of a fixed, non-empty
/// shape.
fn expects_data(lab: &SideLab) -> bool {
    lab.target
        .signature
        .outputs
        .iter()
        .any(|output| output.dims.iter().all(|dim| *dim > 0))
}

/// How long the requests in flight at the end of a block take: about the P99 of a request.
fn drain(blocks: &[Block]) -> Duration {
    merged(blocks).map_or(Duration::ZERO, |histogram| {
        Duration::from_nanos(histogram.value_at_quantile(0.99))
    })
}

fn merged(blocks: &[Block]) -> Option<hdrhistogram::Histogram<u64>> {
    let mut histograms = blocks.iter().filter_map(|block| block.histogram.as_ref());
    let mut sum = histograms.next()?.clone();
    sum.auto(true);
    for histogram in histograms {
        sum.add(histogram).ok()?;
    }
    Some(sum)
}

pub(super) fn load_reason(error: &crate::load::LoadError) -> Reason {
    Reason {
        code: "load".to_owned(),
        text: error.to_string(),
        next: String::new(),
    }
}

fn interrupted() -> Reason {
    Reason {
        code: "interrupted".to_owned(),
        text: "stopped".to_owned(),
        next: "start the check again".to_owned(),
    }
}
