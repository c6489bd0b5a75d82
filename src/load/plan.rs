use std::sync::atomic::{AtomicU64, Ordering};

use super::clock::nanos;
use super::{Counting, Ramp, Stop, Stretch};

const STANDARD_RAMP_NS: u64 = 200_000_000;
/// So far ahead is the end of a ramp set that ends by completions: every worker learns of it
/// before it passes.
const NOTICE_NS: u64 = 1_000_000;

/// One stretch as all its workers see it. Times are nanoseconds of the engine's clock.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) counting: Counting,
    pub(crate) blocks: u32,
    pub(crate) block_ns: u64,
    pub(crate) deadline_ns: u64,
    pub(crate) stop: Stop,
    ramp_ns: u64,
    ramp_completions: u64,
    notice_ns: u64,
    /// Start of the first block; `u64::MAX` until a worker has begun. It only ever moves to an
    /// earlier moment that is still to come, so that whoever has passed it sees it fixed.
    start_ns: AtomicU64,
    completions: AtomicU64,
}

impl Plan {
    /// `blocks` of the stretch's, without a gap.
    pub(crate) fn new(
        stretch: &Stretch,
        blocks: u32,
        concurrency: u32,
        workers: u32,
        deadline_ns: u64,
        stop: Stop,
    ) -> Self {
        let (ramp_ns, ramp_completions) = match stretch.ramp {
            Ramp::None => (0, u64::MAX),
            Ramp::Standard => (STANDARD_RAMP_NS, 2 * u64::from(concurrency)),
            Ramp::Fixed(length) => (nanos(length), u64::MAX),
        };
        Self {
            counting: stretch.counting,
            blocks,
            block_ns: nanos(stretch.block),
            deadline_ns,
            stop,
            ramp_ns,
            ramp_completions,
            notice_ns: if workers > 1 { NOTICE_NS } else { 0 },
            start_ns: AtomicU64::new(u64::MAX),
            completions: AtomicU64::new(0),
        }
    }

    /// A worker is about to send its first request.
    pub(crate) fn begin(&self, now: u64) {
        self.start_ns
            .fetch_min(now.saturating_add(self.ramp_ns), Ordering::Relaxed);
    }

    /// A request ended during the ramp.
    pub(crate) fn count_ramp(&self, now: u64) {
        if self.ramp_completions == u64::MAX {
            return;
        }
        let ended = self.completions.fetch_add(1, Ordering::Relaxed) + 1;
        if ended == self.ramp_completions {
            self.start_ns
                .fetch_min(now.saturating_add(self.notice_ns), Ordering::Relaxed);
        }
    }

    /// When the first block starts.
    pub(crate) fn start(&self) -> u64 {
        self.start_ns.load(Ordering::Relaxed)
    }

    /// When sending ends.
    pub(crate) fn end(&self) -> u64 {
        self.edge(self.blocks)
    }

    /// The start of a block, which is the end of the one before.
    pub(crate) fn edge(&self, block: u32) -> u64 {
        self.start()
            .saturating_add(self.block_ns.saturating_mul(u64::from(block)))
    }
}

#[cfg(test)]
impl Plan {
    /// A plan for two requests in flight, begun at 0.
    pub(crate) fn begun(counting: Counting, ramp: Ramp, blocks: u32, block_ns: u64) -> Self {
        let plan = Self::unbegun(counting, ramp, blocks, block_ns, 2, 1);
        plan.begin(0);
        plan
    }

    fn unbegun(
        counting: Counting,
        ramp: Ramp,
        blocks: u32,
        block_ns: u64,
        concurrency: u32,
        workers: u32,
    ) -> Self {
        let stretch = Stretch {
            side: crate::data::Side::Candidate,
            first_index: 0,
            ramp,
            blocks,
            block: std::time::Duration::from_nanos(block_ns),
            counting,
            deadline: None,
        };
        Self::new(
            &stretch,
            blocks,
            concurrency,
            workers,
            u64::MAX,
            Stop::new(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn plan(ramp: Ramp, workers: u32) -> Plan {
        Plan::unbegun(Counting::Contiguous, ramp, 3, 1_000, 4, workers)
    }

    #[test]
    fn the_standard_ramp_ends_with_time_or_completions() {
        let by_time = plan(Ramp::Standard, 1);
        by_time.begin(100);
        assert_eq!(by_time.start(), 100 + STANDARD_RAMP_NS);
        for now in 1..=7 {
            by_time.count_ramp(1000 + now);
            assert_eq!(by_time.start(), 100 + STANDARD_RAMP_NS);
        }
        by_time.count_ramp(2000);
        assert_eq!(by_time.start(), 2000);
        by_time.count_ramp(2001);
        assert_eq!(by_time.start(), 2000);
    }

    #[test]
    fn several_workers_learn_of_the_start_beforehand() {
        let plan = plan(Ramp::Standard, 2);
        plan.begin(100);
        for _ in 0..8 {
            plan.count_ramp(5_000);
        }
        assert_eq!(plan.start(), 5_000 + NOTICE_NS);
    }

    #[test]
    fn a_fixed_ramp_is_exact_and_edges_follow() {
        let plan = plan(Ramp::Fixed(Duration::from_nanos(500)), 1);
        assert_eq!(plan.end(), u64::MAX);
        plan.begin(100);
        plan.begin(130);
        for _ in 0..20 {
            plan.count_ramp(110);
        }
        assert_eq!(
            (plan.start(), plan.edge(1), plan.end()),
            (600, 1_600, 3_600)
        );
    }
}
