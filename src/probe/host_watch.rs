use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::steal::{Ticks, read};

/// Time between two readings.
const PERIOD: Duration = Duration::from_millis(100);
/// A watch that wakes up so much later than it wanted to was stopped, or its machine was.
const STALL: Duration = Duration::from_secs(1);

/// Watches this machine beside a load: CPU time that the hypervisor took away, and moments in
/// which the machine or this process stood still.
#[derive(Debug)]
pub struct HostWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// This machine between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostPeriod {
    /// Share of all CPU time that the hypervisor took away, 0 to 1; none where the kernel does not
    /// say.
    pub steal: Option<f64>,
    /// The machine was suspended, or this process was stopped.
    pub stalled: bool,
}

#[derive(Debug, Default)]
struct Shared {
    readings: Mutex<VecDeque<Reading>>,
    ended: Mutex<bool>,
    end: Condvar,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    ticks: Option<Ticks>,
    /// Time that the machine has slept since it started.
    slept: Duration,
}

impl Reading {
    fn now() -> Self {
        Self {
            ticks: read(),
            slept: slept(),
            at: Instant::now(),
        }
    }
}

impl HostWatch {
    /// Starts watching. Without a thread to spare only the edges of a period are seen.
    pub fn start() -> Self {
        let shared = Arc::new(Shared::default());
        shared.take();
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("host-watch".to_owned())
            .spawn(move || theirs.watch())
            .ok();
        Self { shared, thread }
    }

    /// What happened between two moments, as exact as the readings around them.
    pub fn during(&self, from: Instant, to: Instant) -> HostPeriod {
        self.shared.take();
        let readings = lock(&self.shared.readings);
        let first = readings.partition_point(|reading| reading.at <= from);
        let last = readings.partition_point(|reading| reading.at < to);
        let end = readings.len().min(last + 1);
        period(readings.range(first.saturating_sub(1)..end).copied())
    }

    /// Reads now, so that a period that begins or ends here is exact.
    pub fn mark(&self) {
        self.shared.take();
    }

    /// Forgets what was before a moment, so that memory does not grow with a long load.
    pub fn forget_before(&self, moment: Instant) {
        let mut readings = lock(&self.shared.readings);
        let first = readings.partition_point(|reading| reading.at <= moment);
        readings.drain(..first.saturating_sub(1));
    }
}

impl Drop for HostWatch {
    fn drop(&mut self) {
        *lock(&self.shared.ended) = true;
        self.shared.end.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn take(&self) {
        // Under the lock, so that readings stay in order.
        let mut readings = lock(&self.readings);
        readings.push_back(Reading::now());
    }

    fn watch(&self) {
        let mut ended = lock(&self.ended);
        while !*ended {
            ended = self
                .end
                .wait_timeout(ended, PERIOD)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            self.take();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn period(readings: impl Iterator<Item = Reading>) -> HostPeriod {
    let readings: Vec<Reading> = readings.collect();
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return HostPeriod::default();
    };
    let steal = match (first.ticks, last.ticks) {
        (Some(before), Some(after)) => before.stolen_until(after),
        _ => None,
    };
    let still = readings.windows(2).any(|two| match two {
        [one, next] => next.at.saturating_duration_since(one.at) > PERIOD + STALL,
        _ => false,
    });
    let asleep = last.slept.saturating_sub(first.slept) > STALL;
    HostPeriod {
        steal,
        stalled: still || asleep,
    }
}

/// Both clocks count from the start of the machine; only one goes on while it sleeps.
fn slept() -> Duration {
    let of = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    of(ClockId::Boottime).saturating_sub(of(ClockId::Monotonic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(start: Instant, at_ms: u64, steal: u64, all: u64, slept_s: u64) -> Reading {
        Reading {
            at: start + Duration::from_millis(at_ms),
            ticks: Some(Ticks { steal, all }),
            slept: Duration::from_secs(slept_s),
        }
    }

    #[test]
    fn steal_and_standstill_come_from_the_readings_of_a_period() {
        let start = Instant::now();
        let of = |rows: &[(u64, u64, u64, u64)]| {
            let readings: Vec<Reading> = rows
                .iter()
                .map(|(at, steal, all, slept)| reading(start, *at, *steal, *all, *slept))
                .collect();
            let period = period(readings.into_iter());
            (
                period.steal.map(|share| (share * 100.0).round()),
                period.stalled,
            )
        };
        assert_eq!(of(&[(0, 0, 0, 0), (100, 5, 20, 0)]), (Some(25.0), false));
        assert_eq!(
            of(&[(0, 0, 0, 0), (1200, 0, 9, 0)]),
            (Some(0.0), true),
            "stopped"
        );
        assert_eq!(
            of(&[(0, 0, 0, 0), (100, 0, 9, 60)]),
            (Some(0.0), true),
            "suspended"
        );
        assert_eq!(
            of(&[(0, 0, 7, 0), (100, 0, 7, 0)]),
            (None, false),
            "no tick went by"
        );
        assert_eq!(of(&[]), (None, false));
    }

    #[test]
    fn a_period_reaches_to_the_readings_around_it_and_old_ones_are_forgotten() {
        let watch = HostWatch::start();
        let from = Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        watch.mark();
        let to = Instant::now();
        assert!(!watch.during(from, to).stalled);
        let before = lock(&watch.shared.readings).len();
        assert!(before >= 3, "{before}");
        watch.forget_before(Instant::now());
        assert_eq!(lock(&watch.shared.readings).len(), 1);
    }
}
