use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::{Spread, World};
use crate::data::{Block, ClientSide, ErrorCounts, Facts, Latency, LoadIdentity, Session, Side};
use crate::run::{Ended, Lab, LabError, MeasurePlan, Measured, WarmUp};
use crate::stats::{StatsError, quantile_of_counts};

/// Requests in flight.
const CONCURRENCY: f64 = 8.0;
/// Latency of a request of the usual model without noise or slow path, seconds.
const BASE_S: f64 = 0.008;
/// Sigma of the log-normal body.
const BODY: f64 = 0.15;
/// Share of requests on the slow path, usually and in a burst.
const SLOW: (f64, f64) = (0.025, 0.05);
/// The slow path multiplies by 1 + this times a standard exponential.
const SLOW_SCALE: f64 = 0.9;
/// Correlation time of the machine's state, seconds.
const TAU_S: f64 = 20.0;
/// Time over which the machine's state is held still, seconds.
const SLICE_S: f64 = 0.1;
/// Time under load after which a side's run effect is drawn anew, seconds: in one long stretch, and
/// where the sides alternate, so that neither keeps a state of its own for longer than a unit.
const RUN_S: (f64, f64) = (20.0, 2.0);
/// Entries of the table of the body's quantiles, a power of two.
const TABLE: usize = 1 << 12;

/// How the candidate differs from the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Every latency times this.
    pub latency: f64,
    /// The slow path's excess times this, on top.
    pub tail: f64,
}

impl Effect {
    /// Identical code.
    pub const NONE: Self = Self {
        latency: 1.0,
        tail: 1.0,
    };

    /// A candidate whose throughput falls by this fraction; its percentiles rise with it.
    pub const fn throughput_drop(fraction: f64) -> Self {
        Self {
            latency: 1.0 / (1.0 - fraction),
            tail: 1.0,
        }
    }

    /// A candidate whose slow path alone takes longer, by this factor.
    pub const fn tail(factor: f64) -> Self {
        Self {
            latency: 1.0,
            tail: factor,
        }
    }
}

/// Offsets on the log scale.
#[derive(Debug, Clone, Copy, Default)]
struct Offset {
    level: f64,
    tail: f64,
}

impl Offset {
    fn draw(rng: &mut ChaCha8Rng, spread: Spread) -> Self {
        let mut normal = || rng.sample::<f64, _>(StandardNormal);
        Self {
            level: spread.level * normal(),
            tail: spread.tail * normal(),
        }
    }
}

/// One side's part of the noise.
#[derive(Debug, Clone, Copy)]
struct SideState {
    load: Offset,
    run: Offset,
    run_left: f64,
}

/// A server and its client in virtual time, one host for both sides.
#[derive(Debug, Clone)]
pub struct VirtualLab {
    world: World,
    effect: Effect,
    rng: ChaCha8Rng,
    clock: f64,
    host: Offset,
    machine: Offset,
    burst_until: f64,
    next_burst: f64,
    sides: [SideState; 2],
    load_spread: f64,
    /// Latency of a request without noise or slow path, seconds.
    base_s: f64,
    block_s: f64,
    gap_s: f64,
    run_s: f64,
    histograms: bool,
    body: Vec<f64>,
}

impl VirtualLab {
    /// A new host in this world. Everything follows from the seed.
    pub fn new(world: World, effect: Effect, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut host = Offset::draw(&mut rng, world.session);
        if rng.random::<f64>() < world.slow_host.0 {
            host.level += world.slow_host.1.level;
            host.tail += world.slow_host.1.tail;
        }
        let machine = Offset::draw(&mut rng, world.machine);
        let next_burst = exponential(&mut rng) / world.bursts;
        let side = SideState {
            load: Offset::default(),
            run: Offset::default(),
            run_left: 0.0,
        };
        // The middle of each of the table's equal shares of probability.
        let body = (0..TABLE)
            .map(|index| {
                let p = (index as f64 + 0.5) / TABLE as f64;
                crate::stats::normal_quantile(p).map_or(1.0, |z| (BODY * z).exp())
            })
            .collect();
        Self {
            world,
            effect,
            rng,
            clock: 0.0,
            host,
            machine,
            burst_until: 0.0,
            next_burst,
            sides: [side; 2],
            load_spread: 0.0,
            base_s: BASE_S,
            block_s: 2.0,
            gap_s: 0.5,
            run_s: RUN_S.0,
            histograms: false,
            body,
        }
    }

    /// Length of a contiguous block.
    #[must_use]
    pub fn block(mut self, block: Duration) -> Self {
        self.block_s = block.as_secs_f64();
        self
    }

    /// A model whose requests take so many times as long.
    #[must_use]
    pub fn slower(mut self, factor: f64) -> Self {
        self.base_s = BASE_S * factor;
        self
    }

    /// Changes what the candidate is from here on.
    pub const fn set_effect(&mut self, effect: Effect) {
        self.effect = effect;
    }

    /// Time lost between two blocks of different sides, and before a stretch.
    #[must_use]
    pub fn gap(mut self, gap: Duration) -> Self {
        self.gap_s = gap.as_secs_f64();
        self
    }

    /// Standard deviation of the offset that each load of a model has of its own.
    #[must_use]
    pub fn load_spread(mut self, spread: f64) -> Self {
        self.load_spread = spread;
        for index in 0..2 {
            self.draw_load(index);
        }
        self
    }

    /// A stored session: a host of its own, measured for this many blocks.
    pub fn session(world: World, blocks: u32, block: Duration, seed: u64) -> Session {
        Self::new(world, Effect::NONE, seed)
            .block(block)
            .into_session(blocks, seed)
    }

    /// What a lab measures of its candidate, as a stored session of so many blocks.
    pub fn into_session(self, blocks: u32, seed: u64) -> Session {
        let mut lab = self;
        let block = Duration::from_secs_f64(lab.block_s);
        let blocks =
            (0..blocks).map(|index| lab.measure_block(Side::Candidate, index, lab.block_s));
        let blocks: Vec<Block> = blocks.collect();
        Session {
            id: format!("virtual-{seed}"),
            recorded_at: String::new(),
            commit: None,
            branch: None,
            dirty: None,
            tool_version: String::new(),
            scenario: "virtual".to_owned(),
            model: "virtual".to_owned(),
            model_version: "1".to_owned(),
            load: LoadIdentity {
                concurrency: Some(CONCURRENCY as u32),
                rate_milli: None,
                batch: 1,
                connections: 1,
                workers: 1,
                block_ns: block.as_nanos() as u64,
                payload: String::new(),
                engine: 1,
            },
            environment: Facts::default(),
            subject: Facts::default(),
            subject_hash: String::new(),
            life: None,
            server_requests: None,
            epoch: 0,
            complete: true,
            blocks,
        }
    }

    fn draw_load(&mut self, index: usize) {
        let spread = Spread {
            level: self.load_spread,
            tail: self.load_spread,
        };
        if let Some(side) = self.sides.get_mut(index) {
            side.load = Offset::draw(&mut self.rng, spread);
        }
    }

    /// Lets virtual time pass: the machine's state moves, bursts come and go.
    fn pass(&mut self, seconds: f64) {
        self.clock += seconds;
        let keep = (-seconds / TAU_S).exp();
        let fresh = (1.0 - keep * keep).sqrt();
        let drawn = Offset::draw(&mut self.rng, self.world.machine);
        self.machine.level = keep * self.machine.level + fresh * drawn.level;
        self.machine.tail = keep * self.machine.tail + fresh * drawn.tail;
        while self.next_burst <= self.clock {
            self.burst_until = self.next_burst + self.rng.random_range(0.25..0.75);
            self.next_burst += exponential(&mut self.rng) / self.world.bursts;
        }
    }

    /// One block: concurrency keeps the server busy, so that the latencies of all requests add up
    /// to concurrency times the length.
    fn measure_block(&mut self, side: Side, index: u32, seconds: f64) -> Block {
        let which = usize::from(side == Side::Candidate);
        let effect = if side == Side::Candidate {
            self.effect
        } else {
            Effect::NONE
        };
        let mut latencies: Vec<f64> = Vec::with_capacity((seconds * 1200.0) as usize + 16);
        let mut elapsed = 0.0;
        while elapsed < seconds {
            let slice = SLICE_S.min(seconds - elapsed);
            self.pass(slice);
            if self.sides[which].run_left <= 0.0 {
                self.sides[which].run = Offset::draw(&mut self.rng, self.world.run);
                self.sides[which].run_left = self.run_s;
            }
            self.sides[which].run_left -= slice;
            let state = self.sides[which];
            let burst = self.clock < self.burst_until;
            let level = self.host.level + self.machine.level + state.load.level + state.run.level;
            let tail = self.host.tail + self.machine.tail + state.load.tail + state.run.tail;
            let mut scale = self.base_s * effect.latency * level.exp();
            if burst {
                scale *= self.world.burst_factor;
            }
            let slow = effect.tail * tail.exp();
            let share = if burst { SLOW.1 } else { SLOW.0 };
            let mut busy = 0.0;
            while busy < CONCURRENCY * slice {
                let bits: u64 = self.rng.random();
                let body = self.body[bits as usize & (TABLE - 1)];
                let mut latency = scale * body;
                // The upper bits are independent of those that chose the body.
                if ((bits >> 12) as f64) < share * (1_u64 << 52) as f64 {
                    latency *= slow * (1.0 + SLOW_SCALE * exponential(&mut self.rng));
                }
                busy += latency;
                latencies.push(latency);
            }
            elapsed += busy / CONCURRENCY;
        }
        self.summarise(side, index, elapsed, latencies)
    }

    fn summarise(&self, side: Side, index: u32, elapsed: f64, mut latencies: Vec<f64>) -> Block {
        let count = latencies.len();
        let mean = latencies.iter().sum::<f64>() / count as f64;
        let histogram = self.histograms.then(|| histogram(&latencies)).flatten();
        latencies.sort_unstable_by(f64::total_cmp);
        let at = |p: f64| -> Option<f64> { sorted_quantile(&latencies, p).ok().map(|s| s * 1e6) };
        Block {
            side,
            index,
            duration_ns: (elapsed * 1e9) as u64,
            batch: 1,
            requests: count as u64,
            errors: ErrorCounts::default(),
            latency: Latency {
                p50: at(0.5),
                p90: at(0.9),
                p95: at(0.95),
                p99: at(0.99),
                p999: at(0.999),
                mean: Some(mean * 1e6),
                max: latencies.last().map(|s| s * 1e6),
            },
            histogram,
            client: ClientSide::default(),
            server: None,
            gpu: None,
            steal: None,
            stated_throughput: None,
        }
    }

    fn complete(blocks: Vec<Block>, ended: Ended) -> Measured {
        Measured {
            blocks,
            ended,
            discarded: BTreeMap::new(),
            flags: Vec::new(),
        }
    }
}

/// The quantile around one rank of a sorted sample, without walking over all of it.
fn sorted_quantile(sorted: &[f64], p: f64) -> Result<f64, StatsError> {
    let n = sorted.len();
    if n < 100 {
        return quantile_of_counts(sorted.iter().map(|value| (*value, 1)), p);
    }
    let h = ((n as f64 + 1.0 / 3.0) * p + 1.0 / 3.0).clamp(1.0, n as f64);
    let below = h.floor() as usize;
    let low = sorted[below - 1];
    let high = sorted[below.min(n - 1)];
    Ok(low + (h - h.floor()) * (high - low))
}

fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -(1.0 - rng.random::<f64>()).ln()
}

/// Nanoseconds with three digits from 4 ms up to 4 s. A lowest value of 1 ms would make bins of
/// half a millisecond, whose upper edges shrink every ratio of two percentiles.
fn histogram(latencies: &[f64]) -> Option<Histogram<u64>> {
    let mut histogram = Histogram::new_with_bounds(4_000, 4_000_000_000, 3).ok()?;
    for latency in latencies {
        histogram.saturating_record((latency * 1e9) as u64);
    }
    Some(histogram)
}

impl Lab for VirtualLab {
    fn warm_up(&mut self, side: Side) -> Result<WarmUp, LabError> {
        let kept = std::mem::replace(&mut self.histograms, true);
        let block = self.measure_block(side, 0, 2.0);
        self.histograms = kept;
        Ok(WarmUp {
            settled: true,
            seconds: 2.0,
            request_rate: block.requests as f64 / 2.0,
            histogram: block.histogram,
            rate_spread: None,
            overhead: Duration::from_secs_f64(self.gap_s),
        })
    }

    fn measure(&mut self, plan: &MeasurePlan) -> Result<Measured, LabError> {
        let mut blocks = Vec::new();
        match plan {
            MeasurePlan::Blocks {
                side,
                first_index,
                blocks: count,
                deadline,
            } => {
                self.pass(self.gap_s);
                for index in 0..*count {
                    if self.clock + self.block_s > deadline.as_secs_f64() + 0.5 {
                        return Ok(Self::complete(blocks, Ended::Deadline));
                    }
                    blocks.push(self.measure_block(*side, first_index + index, self.block_s));
                }
            }
            MeasurePlan::Pairs {
                first_index,
                candidate_first,
                block,
                deadline,
            } => {
                let kept = std::mem::replace(&mut self.histograms, true);
                self.run_s = RUN_S.1;
                for side in &mut self.sides {
                    // What a warm-up drew for a long stretch ends here.
                    side.run_left = side.run_left.min(RUN_S.1);
                }
                let mut ended = Ended::Complete;
                for (index, candidate_first) in candidate_first.iter().enumerate() {
                    if self.clock > deadline.as_secs_f64() {
                        ended = Ended::Deadline;
                        break;
                    }
                    let order = if *candidate_first {
                        [Side::Candidate, Side::Baseline]
                    } else {
                        [Side::Baseline, Side::Candidate]
                    };
                    for side in order {
                        self.pass(self.gap_s);
                        let index = first_index + index as u32;
                        blocks.push(self.measure_block(side, index, block.as_secs_f64()));
                    }
                }
                self.histograms = kept;
                return Ok(Self::complete(blocks, ended));
            }
        }
        Ok(Self::complete(blocks, Ended::Complete))
    }

    fn set_block(&mut self, block: Duration) {
        self.block_s = block.as_secs_f64();
    }

    fn reload(&mut self, side: Side) -> Result<bool, LabError> {
        self.draw_load(usize::from(side == Side::Candidate));
        self.pass(1.0);
        Ok(true)
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.clock)
    }
}
