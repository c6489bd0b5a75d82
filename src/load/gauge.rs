use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an engine has completed so far, readable while it runs. For a display only: the workers
/// tell it every few hundredths of a second, not with each request.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    completed: AtomicU64,
    latency_ns: AtomicU64,
}

impl Gauge {
    /// Completed requests, and the sum of their latencies in nanoseconds, since the engine began.
    pub fn read(&self) -> (u64, u64) {
        (
            self.0.completed.load(Ordering::Relaxed),
            self.0.latency_ns.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn add(&self, completed: u64, latency_ns: u64) {
        self.0.completed.fetch_add(completed, Ordering::Relaxed);
        self.0.latency_ns.fetch_add(latency_ns, Ordering::Relaxed);
    }
}
