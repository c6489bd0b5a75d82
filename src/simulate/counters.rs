//! The statistics of one model version, counted as Triton counts them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::triton::proto::inference::{
    InferBatchStatistics, InferStatistics, ModelStatistics, StatisticDuration,
};

/// A count with the nanoseconds summed over it.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    ns: u64,
}

impl Sum {
    fn add(&mut self, time: Duration) {
        self.count += 1;
        self.ns += time.as_nanos() as u64;
    }

    fn message(self) -> StatisticDuration {
        StatisticDuration {
            count: self.count,
            ns: self.ns,
        }
    }
}

#[derive(Debug, Default)]
struct Sums {
    /// How often the model was loaded: what began before a reload is not counted after it.
    life: u64,
    last_inference_ms: u64,
    inference_count: u64,
    execution_count: u64,
    success: Sum,
    fail: Sum,
    queue: Sum,
    compute_input: Sum,
    compute_infer: Sum,
    compute_output: Sum,
    cache_hit: Sum,
    cache_miss: Sum,
    batches: BTreeMap<u32, [Sum; 3]>,
}

/// How an execution's time is split: input and output take 1 % each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compute {
    pub(crate) input: Duration,
    pub(crate) infer: Duration,
    pub(crate) output: Duration,
}

impl Compute {
    pub(crate) fn split(service: Duration) -> Self {
        let edge = service / 100;
        Self {
            input: edge,
            infer: service.saturating_sub(edge * 2),
            output: edge,
        }
    }
}

/// Cumulative statistics of one version since it was loaded.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Sums>);

impl Counters {
    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sums of this life of the model, unless it was reloaded since.
    fn of_life(&self, life: u64) -> Option<MutexGuard<'_, Sums>> {
        let sums = self.lock();
        (sums.life == life).then_some(sums)
    }

    /// Which life of the model this is.
    pub(crate) fn life(&self) -> u64 {
        self.lock().life
    }

    /// Restarts at zero, as a load does.
    pub(crate) fn restart(&self) {
        let mut sums = self.lock();
        *sums = Sums {
            life: sums.life + 1,
            ..Sums::default()
        };
    }

    /// One execution of a batch, whether its requests succeed or not.
    pub(crate) fn execution(&self, life: u64, batch: u32, compute: Compute) {
        let Some(mut sums) = self.of_life(life) else {
            return;
        };
        sums.execution_count += 1;
        sums.last_inference_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64);
        let [input, infer, output] = sums.batches.entry(batch).or_default();
        input.add(compute.input);
        infer.add(compute.infer);
        output.add(compute.output);
    }

    /// A request that completed without error; it is charged the whole time of its execution.
    pub(crate) fn success(
        &self,
        life: u64,
        batch: u32,
        queued: Duration,
        total: Duration,
        compute: Compute,
        cache_missed: bool,
    ) {
        let Some(mut sums) = self.of_life(life) else {
            return;
        };
        sums.success.add(total);
        sums.queue.add(queued);
        sums.compute_input.add(compute.input);
        sums.compute_infer.add(compute.infer);
        sums.compute_output.add(compute.output);
        sums.inference_count += u64::from(batch.max(1));
        if cache_missed {
            // A look-up and an insertion take no time here, and counts are what matters.
            sums.cache_miss.add(Duration::ZERO);
        }
    }

    /// A request that the cache answered.
    pub(crate) fn cache_hit(&self, life: u64, total: Duration) {
        let Some(mut sums) = self.of_life(life) else {
            return;
        };
        sums.success.add(total);
        sums.queue.add(Duration::ZERO);
        sums.cache_hit.add(total);
    }

    /// A request that failed after it had entered the scheduler.
    pub(crate) fn failure(&self, life: u64, total: Duration) {
        if let Some(mut sums) = self.of_life(life) {
            sums.fail.add(total);
        }
    }

    /// As the protocol gives them.
    pub(crate) fn message(&self, model: &str, version: &str) -> ModelStatistics {
        let sums = self.lock();
        let sum = |sum: Sum| Some(sum.message());
        ModelStatistics {
            name: model.to_owned(),
            version: version.to_owned(),
            last_inference: sums.last_inference_ms,
            inference_count: sums.inference_count,
            execution_count: sums.execution_count,
            inference_stats: Some(InferStatistics {
                success: sum(sums.success),
                fail: sum(sums.fail),
                queue: sum(sums.queue),
                compute_input: sum(sums.compute_input),
                compute_infer: sum(sums.compute_infer),
                compute_output: sum(sums.compute_output),
                cache_hit: sum(sums.cache_hit),
                cache_miss: sum(sums.cache_miss),
            }),
            batch_stats: sums
                .batches
                .iter()
                .map(|(batch, [input, infer, output])| InferBatchStatistics {
                    batch_size: u64::from(*batch),
                    compute_input: sum(*input),
                    compute_infer: sum(*infer),
                    compute_output: sum(*output),
                })
                .collect(),
            ..ModelStatistics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn every_request_of_a_batch_is_charged_its_whole_execution() {
        let counters = Counters::default();
        let compute = Compute::split(MS * 10);
        counters.execution(0, 3, compute);
        for batch in [1, 2] {
            counters.success(0, batch, MS, MS * 12, compute, false);
        }
        let message = counters.message("m", "1");
        let stats = message.inference_stats.expect("always set");
        let infer = stats.compute_infer.expect("always set");
        assert_eq!((message.inference_count, message.execution_count), (3, 1));
        assert_eq!(
            infer,
            StatisticDuration {
                count: 2,
                ns: 2 * 9_800_000
            }
        );
        assert_eq!(
            stats.queue,
            Some(StatisticDuration {
                count: 2,
                ns: 2_000_000
            })
        );
        assert_eq!(message.batch_stats.len(), 1);
        assert_eq!(message.batch_stats[0].batch_size, 3);
        assert_eq!(
            message.batch_stats[0].compute_infer,
            Some(StatisticDuration {
                count: 1,
                ns: 9_800_000
            })
        );
    }

    #[test]
    fn what_began_before_a_reload_is_not_counted_after_it() {
        let counters = Counters::default();
        let before = counters.life();
        counters.failure(before, MS);
        counters.restart();
        counters.failure(before, MS);
        counters.execution(before, 1, Compute::split(MS));
        let message = counters.message("m", "1");
        assert_eq!(message.execution_count, 0);
        let stats = message.inference_stats.expect("always set");
        assert_eq!(stats.fail, Some(StatisticDuration::default()));
    }

    #[test]
    fn parts_of_an_execution_add_up() {
        for service in [Duration::ZERO, Duration::from_nanos(7), MS, MS * 500] {
            let compute = Compute::split(service);
            assert_eq!(compute.input + compute.infer + compute.output, service);
        }
    }
}
