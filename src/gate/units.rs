use hdrhistogram::Histogram;

use crate::data::{Block, ClientSide, ErrorCounts, GpuSample, Latency, ServerMeans, Side};
use crate::stats::histogram_quantile;

/// What the live decision counts: neighbouring pairs merged, enough time and requests a side.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Pairs in it.
    pub pairs: u32,
    /// All its baseline blocks as one.
    pub baseline: Block,
    /// All its candidate blocks as one.
    pub candidate: Block,
}

impl Unit {
    /// Merges whole pairs, which are the blocks of both sides with the same index. A block without
    /// its partner is left out; none where no pair is whole.
    pub fn pool(blocks: &[Block], index: u32) -> Option<Self> {
        let (mut baseline, mut candidate) = (Vec::new(), Vec::new());
        for block in blocks.iter().filter(|block| block.side == Side::Baseline) {
            let partner = blocks
                .iter()
                .find(|other| other.side == Side::Candidate && other.index == block.index);
            if let Some(partner) = partner {
                baseline.push(block);
                candidate.push(partner);
            }
        }
        Some(Self {
            pairs: baseline.len() as u32,
            baseline: merge(&baseline, index)?,
            candidate: merge(&candidate, index)?,
        })
    }

    /// Blocks of one side alone as one; none without a block.
    pub fn of_one_side(blocks: &[Block]) -> Option<Block> {
        merge(&blocks.iter().collect::<Vec<_>>(), 0)
    }

    /// Both sides, for the file of a session: the baseline first.
    pub fn into_blocks(self) -> [Block; 2] {
        [self.baseline, self.candidate]
    }
}

/// Blocks of one side as one: counts and times add up, percentiles come from all latencies
/// together and are unknown where one block has no histogram.
fn merge(blocks: &[&Block], index: u32) -> Option<Block> {
    let first = blocks.first()?;
    let requests: u64 = blocks.iter().map(|block| block.requests).sum();
    let mut errors = ErrorCounts::default();
    for block in blocks {
        errors.merge(&block.errors);
    }
    let histogram = pooled(blocks.iter().copied());
    let by_requests = |value: fn(&Block) -> Option<f64>| weighted(blocks, value);
    let latency = Latency {
        mean: by_requests(|block| block.latency.mean),
        max: maximum(blocks, |block| block.latency.max),
        ..percentiles(histogram.as_ref())
    };
    Some(Block {
        side: first.side,
        index,
        duration_ns: blocks.iter().map(|block| block.duration_ns).sum(),
        batch: first.batch,
        requests,
        errors,
        latency,
        histogram,
        client: ClientSide {
            send_us: by_requests(|block| block.client.send_us),
            receive_us: by_requests(|block| block.client.receive_us),
            cpu: by_requests(|block| block.client.cpu),
            little: by_requests(|block| block.client.little),
        },
        server: server_means(blocks),
        gpu: gpu_means(blocks),
        steal: by_requests(|block| block.steal),
        stated_throughput: None,
    })
}

/// All latencies of some blocks; none unless every block has its histogram.
pub(crate) fn pooled<'a>(blocks: impl Iterator<Item = &'a Block>) -> Option<Histogram<u64>> {
    let mut pooled: Option<Histogram<u64>> = None;
    for block in blocks {
        let histogram = block.histogram.as_ref()?;
        match &mut pooled {
            None => {
                let mut first = histogram.clone();
                first.auto(true);
                pooled = Some(first);
            }
            Some(pooled) => pooled.add(histogram).ok()?,
        }
    }
    pooled
}

/// Percentiles in microseconds of a histogram in nanoseconds.
fn percentiles(histogram: Option<&Histogram<u64>>) -> Latency {
    let at = |p: f64| {
        histogram
            .and_then(|histogram| histogram_quantile(histogram, p).ok())
            .map(|ns| ns / 1000.0)
    };
    Latency {
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        mean: None,
        max: None,
    }
}

/// The mean by requests; none where a block does not know it or nothing completed.
fn weighted(blocks: &[&Block], value: impl Fn(&Block) -> Option<f64>) -> Option<f64> {
    let (mut sum, mut weight) = (0.0, 0.0);
    for block in blocks {
        if block.requests > 0 {
            sum += value(block)? * block.requests as f64;
            weight += block.requests as f64;
        }
    }
    (weight > 0.0).then(|| sum / weight)
}

fn maximum(blocks: &[&Block], value: fn(&Block) -> Option<f64>) -> Option<f64> {
    blocks
        .iter()
        .filter_map(|block| value(block))
        .reduce(f64::max)
}

fn server_means(blocks: &[&Block]) -> Option<ServerMeans> {
    let mean = |part: fn(&ServerMeans) -> f64| weighted(blocks, |b| b.server.as_ref().map(part));
    Some(ServerMeans {
        queue_us: mean(|server| server.queue_us)?,
        compute_input_us: mean(|server| server.compute_input_us)?,
        compute_infer_us: mean(|server| server.compute_infer_us)?,
        compute_output_us: mean(|server| server.compute_output_us)?,
        total_us: mean(|server| server.total_us)?,
        executed_batch: weighted(blocks, |b| {
            b.server.and_then(|server| server.executed_batch)
        }),
    })
}

fn gpu_means(blocks: &[&Block]) -> Option<GpuSample> {
    blocks.iter().any(|block| block.gpu.is_some()).then(|| {
        let mean = |part: fn(&GpuSample) -> Option<f64>| {
            let known: Vec<f64> = blocks
                .iter()
                .filter_map(|b| b.gpu.as_ref().and_then(part))
                .collect();
            crate::stats::mean(&known).ok()
        };
        GpuSample {
            utilisation: mean(|gpu| gpu.utilisation),
            power_w: mean(|gpu| gpu.power_w),
            memory_bytes: mean(|gpu| gpu.memory_bytes),
            clock_mhz: mean(|gpu| gpu.clock_mhz),
            // Any block that was held down marks the unit.
            throttle: blocks
                .iter()
                .filter_map(|b| b.gpu.and_then(|gpu| gpu.throttle))
                .reduce(|one, other| one | other),
        }
    })
}
