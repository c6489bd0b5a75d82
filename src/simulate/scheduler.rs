//! The queue, the dynamic batcher, and the instances of one model version.
//!
//! An instance that is busy without a break starts its next execution at the planned end of the
//! previous one, not at the moment the wake-up came: the pacer's lateness does not add up, and
//! throughput at saturation is exact.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::counters::{Compute, Counters};
use super::latency::Sampler;
use super::pacer::Pacer;
use super::spec::{LatencySpec, ModelSpec};
use super::texts::{self, Refusal};

/// When a request ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// How a request left the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finished {
    Ran(Times),
    TimedOut,
}

/// A request on its way into the scheduler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) arrival: Instant,
    pub(crate) batch: u32,
    /// Count it as failed when it has run.
    pub(crate) fails: bool,
    /// The response cache did not know it.
    pub(crate) cache_missed: bool,
}

/// What became of a submitted request.
#[derive(Debug)]
pub(crate) enum Submitted {
    /// It has run already: there is no latency to wait for.
    Ran(Times),
    /// The answer comes through here; dropping the receiver cancels the request in the queue.
    Waiting(oneshot::Receiver<Finished>),
}

#[derive(Debug)]
struct Job {
    task: Task,
    life: u64,
    done: oneshot::Sender<Finished>,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Job>,
    /// One entry for each idle instance: since when it is idle.
    idle: Vec<Instant>,
    sampler: Sampler,
    /// Spans in which no execution makes progress.
    stalls: Vec<(Instant, Instant)>,
    /// The batch delay for which the pacer will call.
    armed: Option<Instant>,
}

struct Limits {
    batch: u32,
    /// None without a dynamic batcher.
    delay: Option<Duration>,
    queue: usize,
    timeout: Option<Duration>,
}

/// What sets one version apart from another of the same model.
pub(crate) struct Setup<'a> {
    pub(crate) latency: &'a LatencySpec,
    pub(crate) seed: u64,
    /// Stalls that are planned by time.
    pub(crate) stalls: Vec<(Instant, Instant)>,
    /// Whether any stall can come.
    pub(crate) can_stall: bool,
}

/// A handle; clones share the queue.
#[derive(Clone)]
pub(crate) struct Scheduler(Arc<Inner>);

struct Inner {
    limits: Limits,
    inline: bool,
    epoch: Instant,
    pacer: Pacer,
    counters: Arc<Counters>,
    state: Mutex<State>,
}

struct Execution {
    jobs: Vec<Job>,
    batch: u32,
    compute: Compute,
    times: Times,
}

impl Scheduler {
    pub(crate) fn new(
        model: &ModelSpec,
        setup: Setup<'_>,
        epoch: Instant,
        pacer: Pacer,
        counters: Arc<Counters>,
    ) -> Self {
        let Setup {
            latency,
            seed,
            stalls,
            can_stall,
        } = setup;
        Self(Arc::new(Inner {
            limits: Limits {
                batch: model.max_batch_size.max(1),
                delay: model
                    .dynamic_batching
                    .as_ref()
                    .map(|batching| batching.max_queue_delay),
                queue: model.max_queue_size as usize,
                timeout: (!model.queue_timeout.is_zero()).then_some(model.queue_timeout),
            },
            inline: latency.is_zero() && !can_stall,
            epoch,
            pacer,
            counters,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                idle: vec![epoch; model.instances as usize],
                sampler: Sampler::new(latency.clone(), seed),
                stalls,
                armed: None,
            }),
        }))
    }

    /// Lets a request in, unless the queue is full.
    pub(crate) fn submit(&self, task: Task) -> Result<Submitted, Refusal> {
        let inner = &self.0;
        let life = inner.counters.life();
        if inner.inline {
            let times = Times {
                start: task.arrival,
                end: task.arrival,
            };
            let compute = Compute::split(Duration::ZERO);
            inner.counters.execution(life, task.batch, compute);
            inner.count(&task, life, times, compute);
            return Ok(Submitted::Ran(times));
        }
        let (done, waiting) = oneshot::channel();
        let mut state = inner.lock();
        if inner.limits.queue > 0 && state.queue.len() >= inner.limits.queue {
            return Err(texts::queue_full());
        }
        state.queue.push_back(Job { task, life, done });
        self.dispatch(&mut state, Instant::now());
        drop(state);
        if let Some(timeout) = inner.limits.timeout {
            self.call_at(task.arrival + timeout);
        }
        Ok(Submitted::Waiting(waiting))
    }

    /// Stops all progress for a span of time.
    pub(crate) fn stall(&self, from: Instant, length: Duration) {
        self.0.lock().stalls.push((from, from + length));
    }

    /// Looks at the queue again at an instant.
    fn call_at(&self, due: Instant) {
        let scheduler = self.clone();
        self.0.pacer.at(due, move || {
            let mut state = scheduler.0.lock();
            scheduler.dispatch(&mut state, Instant::now());
        });
    }

    /// Starts what can start.
    fn dispatch(&self, state: &mut State, now: Instant) {
        let inner = &self.0;
        inner.sweep(state, now);
        while !state.idle.is_empty() {
            let Some(oldest) = state.queue.front().map(|job| job.task.arrival) else {
                return;
            };
            let (count, batch) = inner.next_batch(&state.queue);
            let mut not_before = oldest;
            if let Some(delay) = inner.limits.delay
                && !delay.is_zero()
                && batch < inner.limits.batch
                && count == state.queue.len()
            {
                let due = oldest + delay;
                if due > now {
                    if state.armed != Some(due) {
                        state.armed = Some(due);
                        self.call_at(due);
                    }
                    return;
                }
                not_before = due;
            }
            let Some(idle_since) = take_earliest(&mut state.idle) else {
                return;
            };
            let jobs: Vec<Job> = state.queue.drain(..count).collect();
            let newest = jobs.iter().map(|job| job.task.arrival).max().unwrap_or(now);
            let start = idle_since.max(newest).max(not_before);
            let service = state
                .sampler
                .draw(start.saturating_duration_since(inner.epoch), batch);
            state.stalls.retain(|(_, until)| *until > start);
            let end = stretched(&mut state.stalls, start, service);
            let execution = Execution {
                jobs,
                batch,
                compute: Compute::split(service),
                times: Times { start, end },
            };
            let scheduler = self.clone();
            inner.pacer.at(end, move || scheduler.finish(execution));
        }
    }

    /// Answers a batch and gives its instance the next one.
    fn finish(&self, execution: Execution) {
        let inner = &self.0;
        let Execution {
            jobs,
            batch,
            compute,
            times,
        } = execution;
        // Counted before the answer leaves: who has the answer finds it counted.
        if let Some(first) = jobs.first() {
            inner.counters.execution(first.life, batch, compute);
        }
        for job in jobs {
            inner.count(&job.task, job.life, times, compute);
            // The client may have gone.
            let _ = job.done.send(Finished::Ran(times));
        }
        let mut state = inner.lock();
        state.idle.push(times.end);
        self.dispatch(&mut state, Instant::now());
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, task: &Task, life: u64, times: Times, compute: Compute) {
        let total = Instant::now().saturating_duration_since(task.arrival);
        if task.fails {
            self.counters.failure(life, total);
            return;
        }
        let queued = times.start.saturating_duration_since(task.arrival);
        self.counters
            .success(life, task.batch, queued, total, compute, task.cache_missed);
    }

    /// Takes out of the queue what was cancelled or waited too long.
    fn sweep(&self, state: &mut State, now: Instant) {
        let late = |job: &Job| {
            self.limits
                .timeout
                .is_some_and(|t| now >= job.task.arrival + t)
        };
        if !state
            .queue
            .iter()
            .any(|job| job.done.is_closed() || late(job))
        {
            return;
        }
        for job in std::mem::take(&mut state.queue) {
            if !job.done.is_closed() && !late(&job) {
                state.queue.push_back(job);
                continue;
            }
            self.counters
                .failure(job.life, now.saturating_duration_since(job.task.arrival));
            let _ = job.done.send(Finished::TimedOut);
        }
    }

    /// How many requests go into the next execution, and their batch together.
    fn next_batch(&self, queue: &VecDeque<Job>) -> (usize, u32) {
        let first = queue.front().map_or(1, |job| job.task.batch);
        if self.limits.delay.is_none() {
            return (1, first);
        }
        let (mut count, mut batch) = (1, first);
        for job in queue.iter().skip(1) {
            if batch + job.task.batch > self.limits.batch {
                break;
            }
            batch += job.task.batch;
            count += 1;
        }
        (count, batch)
    }
}

/// The instance that has been idle longest.
fn take_earliest(idle: &mut Vec<Instant>) -> Option<Instant> {
    let (index, _) = idle.iter().enumerate().min_by_key(|(_, since)| **since)?;
    Some(idle.swap_remove(index))
}

/// The end of an execution that makes no progress during stalls.
fn stretched(stalls: &mut [(Instant, Instant)], start: Instant, service: Duration) -> Instant {
    stalls.sort_unstable();
    let mut at = start;
    let mut left = service;
    for (from, until) in stalls.iter() {
        if *until <= at {
            continue;
        }
        if *from > at + left {
            break;
        }
        left -= from.saturating_duration_since(at).min(left);
        at = *until;
    }
    at + left
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_stall_stretches_what_runs_into_it() {
        let zero = Instant::now();
        let at = |ms: u32| zero + MS * ms;
        let table = [
            (0, 10, vec![], 10),
            (0, 10, vec![(20, 30)], 10),
            (0, 10, vec![(5, 25)], 30),
            (7, 10, vec![(5, 25)], 35),
            (0, 10, vec![(5, 25), (20, 40)], 45),
            (0, 10, vec![(26, 30), (5, 25)], 34),
            (25, 10, vec![(5, 25)], 35),
            (5, 0, vec![(5, 25)], 25),
        ];
        for (start, service, stalls, end) in table {
            let mut spans: Vec<_> = stalls
                .iter()
                .map(|(from, until)| (at(*from), at(*until)))
                .collect();
            let found = stretched(&mut spans, at(start), MS * service);
            assert_eq!(found, at(end), "{start} + {service} with {stalls:?}");
        }
    }
}
