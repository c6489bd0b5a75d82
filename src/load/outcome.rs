use std::collections::{BTreeMap, BTreeSet};

use super::Counting;
use super::plan::Plan;
use super::record::{FINEST_NS, Mean, Part, histogram, latency};
use super::worker::Report;
use crate::data::{Block, ClientSide, ErrorClass, ErrorCounts, Side};

/// What one stretch of load brought.
#[derive(Debug, Clone, PartialEq)]
pub struct StretchOutcome {
    /// The blocks that are whole, in order. `server`, `gpu`, and `steal` are unknown here.
    pub blocks: Vec<Block>,
    /// When each of these blocks began and ended, nanoseconds since the engine's epoch.
    pub times_ns: Vec<(u64, u64)>,
    /// Requests sent, ramp and drain included: completed + failed + abandoned.
    pub sent: u64,
    /// Requests that ended well, ramp and drain included.
    pub completed: u64,
    /// Requests that failed, by class, ramp and drain included.
    pub errors: ErrorCounts,
    /// Requests given up because the stretch was, without a verdict on them.
    pub abandoned: u64,
    /// The first message of each class of error, one clean line each.
    pub examples: BTreeMap<ErrorClass, String>,
    /// The model versions that answered (at most 16 a worker).
    pub model_versions: BTreeSet<String>,
    /// Completed requests whose answer held no output bytes.
    pub empty_outputs: u64,
    /// Output bytes of all completed requests.
    pub output_bytes: u64,
    /// Whether it ended early because stopping was asked for.
    pub interrupted: bool,
    /// Whether it ended early because of its deadline.
    pub past_deadline: bool,
    /// When it began, nanoseconds since the engine's epoch.
    pub started_ns: u64,
    /// When nothing was in flight any more, nanoseconds since the engine's epoch.
    pub ended_ns: u64,
}

impl StretchOutcome {
    pub(crate) fn new(started_ns: u64) -> Self {
        Self {
            blocks: Vec::new(),
            times_ns: Vec::new(),
            sent: 0,
            completed: 0,
            errors: ErrorCounts::default(),
            abandoned: 0,
            examples: BTreeMap::new(),
            model_versions: BTreeSet::new(),
            empty_outputs: 0,
            output_bytes: 0,
            interrupted: false,
            past_deadline: false,
            started_ns,
            ended_ns: started_ns,
        }
    }

    /// Requests that failed, ramp and drain included.
    pub fn failed(&self) -> u64 {
        self.errors.total()
    }

    pub(crate) fn add_totals(&mut self, reports: &[Report]) {
        for report in reports {
            let totals = &report.totals;
            self.sent += totals.sent;
            self.completed += totals.completed;
            self.abandoned += totals.abandoned;
            self.errors.merge(&totals.errors);
            for (class, message) in &totals.examples {
                self.examples
                    .entry(*class)
                    .or_insert_with(|| message.clone());
            }
            self.model_versions.extend(
                totals
                    .versions
                    .iter()
                    .map(|version| String::from_utf8_lossy(version).into_owned()),
            );
            self.empty_outputs += totals.empty_outputs;
            self.output_bytes += totals.output_bytes;
            self.interrupted |= report.interrupted;
            self.past_deadline |= report.past_deadline;
            self.ended_ns = self.ended_ns.max(totals.ended_ns);
        }
    }

    /// Joins the workers' parts into blocks; only blocks that every worker finished count.
    pub(crate) fn add_blocks(
        &mut self,
        plan: &Plan,
        reports: &[Report],
        side: Side,
        first_index: u32,
        batch: u32,
        concurrency: u32,
    ) {
        let whole = reports
            .iter()
            .map(|report| report.parts.len())
            .min()
            .unwrap_or(0);
        for position in 0..whole {
            let parts: Vec<&Part> = reports
                .iter()
                .filter_map(|report| report.parts.get(position))
                .collect();
            let duration_ns = match plan.counting {
                Counting::Contiguous => plan.block_ns,
                Counting::Sent => parts
                    .iter()
                    .map(|part| part.last_end_ns)
                    .max()
                    .unwrap_or(0)
                    .saturating_sub(plan.start()),
            };
            let began_ns = match plan.counting {
                Counting::Contiguous => plan.start() + plan.block_ns * position as u64,
                Counting::Sent => plan.start(),
            };
            self.times_ns
                .push((began_ns, began_ns.saturating_add(duration_ns)));
            let index = first_index.saturating_add(position as u32);
            self.blocks
                .push(join(&parts, side, index, duration_ns, batch, concurrency));
        }
    }
}

fn join(
    parts: &[&Part],
    side: Side,
    index: u32,
    duration_ns: u64,
    batch: u32,
    concurrency: u32,
) -> Block {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut requests, mut sum_ns, mut max_ns) = (0, 0, 0);
    let mut errors = ErrorCounts::default();
    let (mut send, mut receive) = (Mean::default(), Mean::default());
    let mut cpu: Option<f64> = None;
    for part in parts {
        for (value, count) in &part.counts {
            *counts.entry(*value).or_default() += count;
        }
        requests += part.requests;
        sum_ns += part.sum_ns;
        max_ns = max_ns.max(part.max_ns);
        errors.merge(&part.errors);
        send.merge(part.send);
        receive.merge(part.receive);
        cpu = part.cpu.map_or(cpu, |share| {
            Some(cpu.map_or(share, |busiest| busiest.max(share)))
        });
    }
    let counts: Vec<(u64, u64)> = counts.into_iter().collect();
    let latency = latency(&counts, requests, sum_ns, max_ns);
    let seconds = duration_ns as f64 / 1e9;
    let little = latency
        .mean
        .filter(|mean| *mean > 0.0 && seconds > 0.0)
        .map(|mean| f64::from(concurrency) / (requests as f64 / seconds) / (mean / 1e6));
    Block {
        side,
        index,
        duration_ns,
        batch,
        requests,
        errors,
        latency,
        histogram: whole_histogram(&counts),
        client: ClientSide {
            send_us: send.micros(),
            receive_us: receive.micros(),
            cpu,
            little,
        },
        server: None,
        gpu: None,
        steal: None,
        stated_throughput: None,
    }
}

/// A histogram no larger than its largest value needs: a check keeps many of them. It grows when
/// a slower block is added to it.
fn whole_histogram(counts: &[(u64, u64)]) -> Option<hdrhistogram::Histogram<u64>> {
    let largest = counts.last().map_or(FINEST_NS, |(value, _)| *value);
    let mut whole = histogram(largest).ok()?;
    whole.auto(true);
    for (value, count) in counts {
        whole.record_n(*value, *count).ok()?;
    }
    Some(whole)
}
