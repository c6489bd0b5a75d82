use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::clock::Clock;
use super::gauge::Gauge;
use super::outcome::StretchOutcome;
use super::plan::Plan;
use super::worker::{Brief, Report, Said, live};
use super::{Counting, LoadError, LoadSpec, Shape, Stop, Stretch};

/// A closed loop of requests against one model: worker threads with open connections that wait
/// between stretches.
#[derive(Debug)]
pub struct Engine {
    clock: Clock,
    shape: Shape,
    batch: u32,
    concurrency: u32,
    workers: Vec<Worker>,
    reports: Receiver<(usize, Said)>,
    gauge: Gauge,
}

#[derive(Debug)]
struct Worker {
    /// None once the worker is asked to end.
    plans: Option<UnboundedSender<Arc<Plan>>>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts the workers and opens their connections; nothing is sent yet.
    pub fn start(spec: &LoadSpec) -> Result<Self, LoadError> {
        let shape = spec.shape()?;
        let clock = Clock::start();
        let (say, reports) = channel();
        let mut engine = Self {
            clock,
            shape,
            batch: spec.batch,
            concurrency: spec.concurrency,
            workers: Vec::new(),
            reports,
            gauge: Gauge::default(),
        };
        for (worker, connections) in split(spec.concurrency, shape).into_iter().enumerate() {
            let brief = Brief {
                worker,
                clock,
                server: spec.server.clone(),
                frames: spec.frames.clone(),
                connections,
                request_timeout: spec.request_timeout,
                gauge: engine.gauge.clone(),
            };
            let (plans, mut obeyed) = unbounded_channel();
            let say = say.clone();
            let thread = thread::Builder::new()
                .name(format!("load-{worker}"))
                .spawn(move || live(&brief, &mut obeyed, &say))
                .map_err(|error| LoadError::Start {
                    worker,
                    cause: error.to_string(),
                })?;
            engine.workers.push(Worker {
                plans: Some(plans),
                thread: Some(thread),
            });
        }
        // With the last sender in the workers, a worker that dies is noticed.
        drop(say);
        for _ in 0..engine.workers.len() {
            match engine.hear()? {
                (_, Said::Started(started)) => started?,
                (worker, Said::Done(_)) => return Err(LoadError::Worker { worker }),
            }
        }
        Ok(engine)
    }

    /// Workers and connections, part of the load's identity.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// What is completed, readable from another thread while [`Engine::run`] runs.
    pub fn gauge(&self) -> Gauge {
        self.gauge.clone()
    }

    /// Nanoseconds since the engine's epoch, in which outcomes tell their times.
    pub fn now_ns(&self) -> u64 {
        self.clock.now()
    }

    /// The moment of a time since the engine's epoch.
    pub fn instant(&self, since_epoch_ns: u64) -> Instant {
        self.clock
            .instant(since_epoch_ns)
            .unwrap_or_else(Instant::now)
    }

    /// Makes one stretch of load and waits for its end; nothing is in flight before and after.
    ///
    /// Failed requests are part of the outcome, not errors. It ends at the latest one request
    /// timeout after the last block, at the deadline, or 2 s after `stop` is set.
    pub fn run(&mut self, stretch: &Stretch, stop: &Stop) -> Result<StretchOutcome, LoadError> {
        if stretch.block.is_zero() && stretch.blocks > 0 {
            return Err(LoadError::Invalid {
                what: "the length of a block is 0".to_owned(),
                next: "it must be longer",
            });
        }
        let mut outcome = StretchOutcome::new(self.clock.now());
        let (rounds, blocks) = match stretch.counting {
            Counting::Contiguous => (1, stretch.blocks),
            // Each of these has its own drain, over all workers.
            Counting::Sent => (stretch.blocks, 1),
        };
        for round in 0..rounds {
            let deadline_ns = stretch
                .deadline
                .map_or(u64::MAX, |deadline| self.clock.offset(deadline));
            let plan = Arc::new(Plan::new(
                stretch,
                blocks,
                self.concurrency,
                self.shape.workers,
                deadline_ns,
                stop.clone(),
            ));
            let reports = self.obeyed(&plan)?;
            outcome.add_totals(&reports);
            outcome.add_blocks(
                &plan,
                &reports,
                stretch.side,
                stretch.first_index.saturating_add(round),
                self.batch,
                self.concurrency,
            );
            if outcome.interrupted || outcome.past_deadline {
                break;
            }
        }
        Ok(outcome)
    }

    fn obeyed(&self, plan: &Arc<Plan>) -> Result<Vec<Report>, LoadError> {
        for (worker, thread) in self.workers.iter().enumerate() {
            thread
                .plans
                .as_ref()
                .and_then(|plans| plans.send(Arc::clone(plan)).ok())
                .ok_or(LoadError::Worker { worker })?;
        }
        let mut reports = Vec::with_capacity(self.workers.len());
        while reports.len() < self.workers.len() {
            match self.hear()? {
                (_, Said::Done(report)) => reports.push(*report),
                (worker, Said::Started(_)) => return Err(LoadError::Worker { worker }),
            }
        }
        Ok(reports)
    }

    /// What a worker says next; an error where one has died instead.
    fn hear(&self) -> Result<(usize, Said), LoadError> {
        /// A dead worker says nothing, while the others keep the channel open.
        const LOOK: Duration = Duration::from_millis(500);
        loop {
            if let Ok(said) = self.reports.recv_timeout(LOOK) {
                return Ok(said);
            }
            let dead = self
                .workers
                .iter()
                .position(|worker| worker.thread.as_ref().is_none_or(JoinHandle::is_finished));
            if let Some(worker) = dead {
                // It may have spoken just before.
                return self
                    .reports
                    .try_recv()
                    .map_err(|_| LoadError::Worker { worker });
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.plans = None;
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A panic was reported where it mattered.
                let _ = thread.join();
            }
        }
    }
}

/// Shares the requests in flight evenly among connections, and these among workers: for each
/// worker the requests in flight on each of its connections.
fn split(concurrency: u32, shape: Shape) -> Vec<Vec<u32>> {
    let mut workers = vec![Vec::new(); shape.workers as usize];
    let connections = shape.connections.max(1);
    for connection in 0..connections {
        let extra = u32::from(connection < concurrency % connections);
        let worker = connection % shape.workers.max(1);
        if let Some(own) = workers.get_mut(worker as usize) {
            own.push(concurrency / connections + extra);
        }
    }
    workers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_split_is_complete_and_even(
            concurrency in 1_u32..500,
            connections in 1_u32..80,
            workers in 1_u32..20,
        ) {
            let connections = connections.min(concurrency);
            let workers = workers.min(connections);
            let split = split(concurrency, Shape { workers, connections });
            prop_assert_eq!(split.len(), workers as usize);
            let all: Vec<u32> = split.iter().flatten().copied().collect();
            prop_assert_eq!(all.len(), connections as usize);
            prop_assert_eq!(all.iter().sum::<u32>(), concurrency);
            prop_assert!(all.iter().max().unwrap() - all.iter().min().unwrap() <= 1);
            let owned: Vec<usize> = split.iter().map(Vec::len).collect();
            prop_assert!(owned.iter().max().unwrap() - owned.iter().min().unwrap() <= 1);
        }
    }
}
