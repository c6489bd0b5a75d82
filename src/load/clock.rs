use std::time::{Duration, Instant};

/// Monotonic nanoseconds since the start of an engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that starts at 0 now.
    pub(crate) fn start() -> Self {
        Self {
            epoch: Instant::now(),
        }
    }

    /// Nanoseconds since the epoch.
    pub(crate) fn now(&self) -> u64 {
        nanos(self.epoch.elapsed())
    }

    /// The instant of an offset; none where it is beyond what the platform can name.
    pub(crate) fn instant(&self, offset_ns: u64) -> Option<Instant> {
        self.epoch.checked_add(Duration::from_nanos(offset_ns))
    }

    /// The offset of an instant; 0 for instants before the epoch.
    pub(crate) fn offset(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.epoch))
    }
}

/// Nanoseconds of a duration, clamped to what fits (584 years).
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// CPU time that the calling thread has used, nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
