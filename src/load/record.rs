use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hdrhistogram::{CreationError, Histogram};

use super::Counting;
use super::clock::{nanos, thread_cpu};
use super::plan::Plan;
use super::skim::Summary;
use super::status::{Failure, sanitize};
use crate::data::{ErrorClass, ErrorCounts, Latency};

/// The finest step of a recorded latency, nanoseconds; 3 digits are exact from 64 us on.
pub(crate) const FINEST_NS: u64 = 64;
const DIGITS: u8 = 3;
/// More versions than this within a stretch say nothing new.
const MOST_VERSIONS: usize = 16;

/// An empty histogram for latencies up to `longest_ns`; longer ones count at its top.
pub(crate) fn histogram(longest_ns: u64) -> Result<Histogram<u64>, CreationError> {
    Histogram::new_with_bounds(FINEST_NS, longest_ns.max(4 * FINEST_NS), DIGITS)
}

/// A histogram as ascending (value, count), each value the middle of its bin.
pub fn counts(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    histogram
        .iter_recorded()
        .map(|bin| {
            (
                histogram.median_equivalent(bin.value_iterated_to()),
                bin.count_at_value(),
            )
        })
        .collect()
}

/// The quantile of type 8 (Hyndman and Fan 1996) of ascending (value, count): with n values,
/// h = (n + 1/3) p + 1/3 clamped to [1, n], linear between the order statistics around h. None
/// of nothing. The unit is that of the values.
///
/// Nearest rank would jump: at n = 100 against 95 it alone moves a P99 by several percent.
pub fn quantile(counts: &[(u64, u64)], p: f64) -> Option<f64> {
    let n: u64 = counts.iter().map(|(_, count)| count).sum();
    if n == 0 {
        return None;
    }
    let h = ((n as f64 + 1.0 / 3.0) * p + 1.0 / 3.0).clamp(1.0, n as f64);
    let rank = h.floor() as u64;
    let low = order_statistic(counts, rank)?;
    let high = order_statistic(counts, (rank + 1).min(n))?;
    Some(low + (h - h.floor()) * (high - low))
}

fn order_statistic(counts: &[(u64, u64)], rank: u64) -> Option<f64> {
    let mut seen = 0;
    counts.iter().find_map(|(value, count)| {
        seen += count;
        (seen >= rank).then_some(*value as f64)
    })
}

/// Latency in microseconds from counts in nanoseconds, the exact sum, and the exact maximum.
pub(crate) fn latency(counts: &[(u64, u64)], requests: u64, sum_ns: u64, max_ns: u64) -> Latency {
    if requests == 0 {
        return Latency::default();
    }
    let at = |p| quantile(counts, p).map(|value| value.min(max_ns as f64) / 1e3);
    Latency {
        p50: at(0.50),
        p90: at(0.90),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        mean: Some(sum_ns as f64 / requests as f64 / 1e3),
        max: Some(max_ns as f64 / 1e3),
    }
}

/// A sum and how many made it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mean {
    pub(crate) sum: u64,
    pub(crate) count: u64,
}

impl Mean {
    fn add(&mut self, value: u64) {
        self.sum += value;
        self.count += 1;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// The mean in microseconds of a sum in nanoseconds.
    pub(crate) fn micros(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e3)
    }
}

/// One worker's part of one block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) requests: u64,
    pub(crate) errors: ErrorCounts,
    pub(crate) counts: Vec<(u64, u64)>,
    pub(crate) sum_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) send: Mean,
    pub(crate) receive: Mean,
    /// Share of a core that the worker used.
    pub(crate) cpu: Option<f64>,
    /// End of the last request that counts.
    pub(crate) last_end_ns: u64,
}

/// Everything of a worker's stretch, its ramp and drain included.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    pub(crate) sent: u64,
    pub(crate) completed: u64,
    pub(crate) abandoned: u64,
    pub(crate) errors: ErrorCounts,
    pub(crate) examples: BTreeMap<ErrorClass, String>,
    pub(crate) versions: BTreeSet<Vec<u8>>,
    pub(crate) empty_outputs: u64,
    pub(crate) output_bytes: u64,
    /// Latencies of all completed requests together.
    pub(crate) latency_ns: u64,
    pub(crate) ended_ns: u64,
}

/// The moments of one completed request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) sent_ns: u64,
    pub(crate) ended_ns: u64,
    /// Handed to the transport, head of the answer there; sampled.
    pub(crate) marks: Option<(u64, u64)>,
}

/// Counts what ends, block by block. One a worker; nothing is shared.
#[derive(Debug)]
pub(crate) struct Recorder {
    histogram: Histogram<u64>,
    /// The block that is being counted; none during the ramp, the number of blocks afterwards.
    open: Option<u32>,
    part: Part,
    parts: Vec<Part>,
    totals: Totals,
    last_version: Vec<u8>,
    /// Completed requests and their latencies that a display was told.
    told: (u64, u64),
    mark_ns: u64,
    mark_cpu_ns: u64,
}

impl Recorder {
    pub(crate) fn new(request_timeout: Duration) -> Result<Self, CreationError> {
        Ok(Self {
            // An answer may be there a moment after its deadline.
            histogram: histogram(nanos(request_timeout).saturating_mul(2).max(1_000_000_000))?,
            open: None,
            part: Part::default(),
            parts: Vec::new(),
            totals: Totals::default(),
            last_version: Vec::new(),
            told: (0, 0),
            mark_ns: 0,
            mark_cpu_ns: 0,
        })
    }

    /// Completed requests and the sum of their latencies since this was last asked.
    pub(crate) fn news(&mut self) -> (u64, u64) {
        let (completed, latency_ns) = (self.totals.completed, self.totals.latency_ns);
        let news = (
            completed.saturating_sub(self.told.0),
            latency_ns.saturating_sub(self.told.1),
        );
        self.told = (completed, latency_ns);
        news
    }

    /// One request is on its way.
    pub(crate) fn sent(&mut self) {
        self.totals.sent += 1;
    }

    /// One request ended well.
    pub(crate) fn completed(&mut self, plan: &Plan, times: Times, summary: &Summary) {
        let latency = times.ended_ns.saturating_sub(times.sent_ns);
        self.totals.completed += 1;
        self.totals.latency_ns += latency;
        self.totals.output_bytes += summary.output_bytes;
        if summary.output_bytes == 0 {
            self.totals.empty_outputs += 1;
        }
        let version = summary.version.as_bytes();
        if !version.is_empty() && version != self.last_version {
            self.last_version = version.to_vec();
            if self.totals.versions.len() < MOST_VERSIONS {
                self.totals.versions.insert(version.to_vec());
            }
        }
        if !self.counts_for_block(plan, times.sent_ns, times.ended_ns) {
            return;
        }
        self.histogram.saturating_record(latency);
        self.part.requests += 1;
        self.part.sum_ns += latency;
        self.part.max_ns = self.part.max_ns.max(latency);
        self.part.last_end_ns = times.ended_ns;
        if let Some((handed, answered)) = times.marks {
            self.part.send.add(handed.saturating_sub(times.sent_ns));
            self.part
                .receive
                .add(times.ended_ns.saturating_sub(answered));
        }
    }

    /// One request failed.
    pub(crate) fn failed(&mut self, plan: &Plan, sent_ns: u64, ended_ns: u64, failure: &Failure) {
        self.totals.errors.add(failure.class);
        self.totals
            .examples
            .entry(failure.class)
            .or_insert_with(|| sanitize(&failure.message));
        if self.counts_for_block(plan, sent_ns, ended_ns) {
            self.part.errors.add(failure.class);
            self.part.last_end_ns = ended_ns;
        }
    }

    /// One request was given up because the stretch was.
    pub(crate) fn abandoned(&mut self) {
        self.totals.abandoned += 1;
    }

    fn counts_for_block(&mut self, plan: &Plan, sent_ns: u64, ended_ns: u64) -> bool {
        self.roll(plan, ended_ns);
        match self.open {
            None => {
                plan.count_ramp(ended_ns);
                false
            }
            Some(block) => match plan.counting {
                Counting::Contiguous => block < plan.blocks,
                Counting::Sent => sent_ns >= plan.start(),
            },
        }
    }

    /// Closes the blocks that are over. Called at every end of a request and now and then.
    pub(crate) fn roll(&mut self, plan: &Plan, now: u64) {
        if now < plan.start() {
            return;
        }
        let mut open = if let Some(open) = self.open {
            open
        } else {
            self.mark(now);
            0
        };
        if plan.counting == Counting::Contiguous {
            while open < plan.blocks && now >= plan.edge(open + 1) {
                self.close(now);
                open += 1;
            }
        }
        self.open = Some(open);
    }

    fn mark(&mut self, now: u64) {
        self.mark_ns = now;
        self.mark_cpu_ns = thread_cpu();
    }

    fn close(&mut self, now: u64) {
        let mut part = std::mem::take(&mut self.part);
        part.counts = counts(&self.histogram);
        self.histogram.reset();
        let (from, cpu) = (self.mark_ns, self.mark_cpu_ns);
        self.mark(now);
        // The edge is noticed a little late, so the share is over the time between the readings.
        let time = now.saturating_sub(from);
        part.cpu = (time > 0).then(|| self.mark_cpu_ns.saturating_sub(cpu) as f64 / time as f64);
        self.parts.push(part);
    }

    /// Ends the stretch: nothing is in flight. `halted_ns` is when sending was given up.
    pub(crate) fn finish(
        &mut self,
        plan: &Plan,
        now: u64,
        halted_ns: Option<u64>,
    ) -> (Vec<Part>, Totals) {
        match plan.counting {
            Counting::Contiguous => {
                self.roll(plan, now);
                // The block in which sending was given up is no whole one, nor is any later one.
                if let Some(halted) = halted_ns {
                    let whole = (0..plan.blocks)
                        .take_while(|block| plan.edge(block + 1) <= halted)
                        .count();
                    self.parts.truncate(whole);
                }
            }
            Counting::Sent => {
                self.roll(plan, now);
                let whole = halted_ns.is_none_or(|halted| halted >= plan.end())
                    && self.totals.abandoned == 0;
                if whole && self.open.is_some() {
                    self.close(now);
                }
            }
        }
        self.open = None;
        self.part = Part::default();
        self.histogram.reset();
        self.last_version.clear();
        self.told = (0, 0);
        self.totals.ended_ns = now;
        (
            std::mem::take(&mut self.parts),
            std::mem::take(&mut self.totals),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::load::Ramp;

    #[test]
    fn quantiles_of_type_8_match_worked_examples() {
        // By hand from the definition; R's quantile(x, p, type = 8) gives the same.
        let ten: Vec<(u64, u64)> = (1..=10).map(|value| (value, 1)).collect();
        for (p, expected) in [
            (0.0, 1.0),
            (0.25, 2.916_666_666_666_667),
            (0.5, 5.5),
            (0.9, 9.633_333_333_333_333),
            (1.0, 10.0),
        ] {
            let got = quantile(&ten, p).unwrap();
            assert!((got - expected).abs() < 1e-9, "{p}: {got}");
        }
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[(7, 1)], 0.99), Some(7.0));
        assert_eq!(quantile(&[(7, 3), (9, 1)], 0.5), Some(7.0));
    }

    proptest! {
        #[test]
        fn counts_are_but_a_shorter_way_to_write_values(
            mut values in proptest::collection::vec(1_u64..50, 1..200),
            p in 0.0_f64..=1.0,
        ) {
            values.sort_unstable();
            let singles: Vec<(u64, u64)> = values.iter().map(|value| (*value, 1)).collect();
            let mut grouped: Vec<(u64, u64)> = Vec::new();
            for value in &values {
                match grouped.last_mut() {
                    Some((last, count)) if last == value => *count += 1,
                    _ => grouped.push((*value, 1)),
                }
            }
            prop_assert_eq!(quantile(&singles, p), quantile(&grouped, p));
        }

        #[test]
        fn recorded_values_keep_three_digits(value in 64_000_u64..20_000_000_000) {
            let mut recorded = histogram(20_000_000_000).unwrap();
            recorded.saturating_record(value);
            let (kept, count) = counts(&recorded)[0];
            prop_assert_eq!(count, 1);
            prop_assert!(kept.abs_diff(value) as f64 <= value as f64 * 1e-3);
        }
    }

    fn plan(counting: Counting, ramp: Ramp, blocks: u32) -> Plan {
        Plan::begun(counting, ramp, blocks, 1_000_000)
    }

    fn recorder() -> Recorder {
        Recorder::new(Duration::from_secs(1)).unwrap()
    }

    fn times(sent_ns: u64, ended_ns: u64) -> Times {
        Times {
            sent_ns,
            ended_ns,
            marks: None,
        }
    }

    fn requests(parts: &[Part]) -> Vec<u64> {
        parts.iter().map(|part| part.requests).collect()
    }

    #[test]
    fn contiguous_blocks_count_what_ends_within() {
        let plan = plan(
            Counting::Contiguous,
            Ramp::Fixed(Duration::from_millis(1)),
            3,
        );
        let mut recorder = recorder();
        let summary = Summary::default();
        for ended in [
            999_999, 1_000_000, 1_999_999, 2_000_000, 3_999_999, 4_000_000,
        ] {
            recorder.sent();
            recorder.completed(&plan, times(0, ended), &summary);
        }
        let (parts, totals) = recorder.finish(&plan, 4_500_000, None);
        assert_eq!(requests(&parts), [2, 1, 1]);
        assert_eq!((totals.sent, totals.completed), (6, 6));
        assert_eq!(parts[0].max_ns, 1_999_999);
    }

    #[test]
    fn blocks_without_any_answer_are_there_and_empty() {
        let plan = plan(Counting::Contiguous, Ramp::None, 4);
        let mut recorder = recorder();
        recorder.completed(&plan, times(0, 2_500_000), &Summary::default());
        let (parts, _) = recorder.finish(&plan, 9_000_000, None);
        assert_eq!(requests(&parts), [0, 0, 1, 0]);
    }

    #[test]
    fn a_stretch_that_is_given_up_keeps_whole_blocks_only() {
        let plan = plan(Counting::Contiguous, Ramp::None, 4);
        let mut recorder = recorder();
        for ended in [500_000, 1_500_000, 2_500_000, 3_100_000] {
            recorder.completed(&plan, times(0, ended), &Summary::default());
        }
        let (parts, totals) = recorder.finish(&plan, 3_500_000, Some(2_600_000));
        assert_eq!(requests(&parts), [1, 1]);
        assert_eq!(totals.completed, 4);
    }

    #[test]
    fn sent_counting_takes_the_drain_and_leaves_the_ramp() {
        let plan = plan(Counting::Sent, Ramp::Fixed(Duration::from_millis(1)), 1);
        let mut recorder = recorder();
        let summary = Summary::default();
        recorder.completed(&plan, times(0, 900_000), &summary);
        recorder.completed(&plan, times(900_000, 1_200_000), &summary);
        recorder.completed(&plan, times(1_200_000, 1_900_000), &summary);
        recorder.completed(&plan, times(1_900_000, 7_000_000), &summary);
        let failure = Failure::protocol("x\ny");
        recorder.failed(&plan, 1_950_000, 7_100_000, &failure);
        let (parts, totals) = recorder.finish(&plan, 7_200_000, None);
        assert_eq!(requests(&parts), [2]);
        assert_eq!(parts[0].last_end_ns, 7_100_000);
        assert_eq!(parts[0].errors.total(), 1);
        assert_eq!(totals.completed, 4);
        assert_eq!(totals.examples[&ErrorClass::Protocol], "x y");
    }

    #[test]
    fn a_sent_block_that_lost_requests_does_not_count() {
        for (halted, abandoned, whole) in [
            (None, 0, true),
            (Some(500_000), 0, false),
            (Some(1_100_000), 0, true),
            (Some(1_100_000), 1, false),
        ] {
            let plan = plan(Counting::Sent, Ramp::None, 1);
            let mut recorder = recorder();
            recorder.completed(&plan, times(0, 400_000), &Summary::default());
            for _ in 0..abandoned {
                recorder.abandoned();
            }
            let (parts, _) = recorder.finish(&plan, 2_000_000, halted);
            assert_eq!(parts.len(), usize::from(whole), "{halted:?} {abandoned}");
        }
    }

    #[test]
    fn a_recorder_starts_anew_with_every_stretch() {
        let mut recorder = recorder();
        for _ in 0..2 {
            let plan = plan(Counting::Contiguous, Ramp::None, 1);
            recorder.completed(&plan, times(0, 400_000), &Summary::default());
            recorder.completed(&plan, times(0, 1_400_000), &Summary::default());
            let (parts, totals) = recorder.finish(&plan, 2_000_000, None);
            assert_eq!(requests(&parts), [1]);
            assert_eq!(totals.completed, 2);
            assert_eq!(parts[0].counts.len(), 1);
        }
    }
}
