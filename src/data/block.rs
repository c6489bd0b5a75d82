use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Metric;

/// Which of the two is under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// What the candidate is compared with.
    Baseline,
    /// What is under test.
    Candidate,
}

/// A short stretch of steady load on one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Which side was under load.
    pub side: Side,
    /// Position within its session, from 0.
    pub index: u32,
    /// Exact length in nanoseconds.
    pub duration_ns: u64,
    /// Inferences per request.
    pub batch: u32,
    /// Requests that completed without error within the block.
    pub requests: u64,
    /// Requests that failed within the block, by class.
    pub errors: ErrorCounts,
    /// Latency of the completed requests.
    pub latency: Latency,
    /// The latencies themselves, in nanoseconds; none where the block was read from a file.
    pub histogram: Option<Histogram<u64>>,
    /// What the client saw of itself.
    pub client: ClientSide,
    /// Means from the server's statistics over the stretch of load that holds this block.
    pub server: Option<ServerMeans>,
    /// The GPU beside the load.
    pub gpu: Option<GpuSample>,
    /// Share of CPU time that the hypervisor took from this machine during the block.
    pub steal: Option<f64>,
    /// Inferences per second as another tool's file states them, where neither requests nor
    /// length are known; counts only where `duration_ns` is 0.
    pub stated_throughput: Option<f64>,
}

/// Percentiles and mean of latency, all in microseconds; none where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// 50th percentile.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// The slowest request.
    pub max: Option<f64>,
}

/// The client's own share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientSide {
    /// Mean time to hand a request to the connection, microseconds.
    pub send_us: Option<f64>,
    /// Mean time to take a response apart, microseconds.
    pub receive_us: Option<f64>,
    /// Share of one core that the busiest worker thread used.
    pub cpu: Option<f64>,
    /// Mean of Little's law: concurrency / throughput over mean latency, 1 where it holds.
    pub little: Option<f64>,
}

/// Means per request from `ModelStatistics`, microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerMeans {
    /// Waiting in the scheduler's queue.
    pub queue_us: f64,
    /// Preparing inputs.
    pub compute_input_us: f64,
    /// Running the model.
    pub compute_infer_us: f64,
    /// Extracting outputs.
    pub compute_output_us: f64,
    /// From arrival in the server's core to completion.
    pub total_us: f64,
    /// Mean executed batch (inferences per execution); none without executions.
    pub executed_batch: Option<f64>,
}

impl ServerMeans {
    /// Input, infer and output together.
    pub fn compute_us(&self) -> f64 {
        self.compute_input_us + self.compute_infer_us + self.compute_output_us
    }

    /// What the server spent outside queue and compute, floored at 0.
    pub fn overhead_us(&self) -> f64 {
        (self.total_us - self.queue_us - self.compute_us()).max(0.0)
    }
}

/// The GPU during a block; none where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    /// Utilisation, 0 to 1.
    pub utilisation: Option<f64>,
    /// Power, watts.
    pub power_w: Option<f64>,
    /// Memory in use, bytes.
    pub memory_bytes: Option<f64>,
    /// SM clock, MHz.
    pub clock_mhz: Option<f64>,
    /// Bit mask of the reasons for which clocks were held down.
    pub throttle: Option<u64>,
}

/// Why a request failed, as far as a user acts differently on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The connection broke or could not be made.
    Connection,
    /// No answer within the request's deadline.
    Timeout,
    /// The server's queue was full.
    QueueFull,
    /// The request waited too long in the server's queue.
    QueueTimeout,
    /// The request itself was refused (shape, datatype, name).
    InvalidRequest,
    /// The model or version is not there or not ready.
    ModelUnavailable,
    /// The server is shutting down or not ready.
    ServerUnavailable,
    /// A rate limiter in front of the server.
    RateLimited,
    /// Credentials missing or refused.
    Unauthorized,
    /// The model failed while it ran.
    Execution,
    /// A message larger than a limit.
    MessageTooLarge,
    /// The answer was not a valid response.
    Protocol,
    /// Anything else.
    Other,
}

impl ErrorClass {
    /// A few words for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Connection => "connection broken",
            Self::Timeout => "no answer in time",
            Self::QueueFull => "server queue full",
            Self::QueueTimeout => "timed out in the server's queue",
            Self::InvalidRequest => "request refused",
            Self::ModelUnavailable => "model not available",
            Self::ServerUnavailable => "server not available",
            Self::RateLimited => "rate limited",
            Self::Unauthorized => "not authorised",
            Self::Execution => "model failed",
            Self::MessageTooLarge => "message too large",
            Self::Protocol => "invalid response",
            Self::Other => "other error",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Failed requests by class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCounts(pub BTreeMap<ErrorClass, u64>);

impl ErrorCounts {
    /// Counts one more.
    pub fn add(&mut self, class: ErrorClass) {
        *self.0.entry(class).or_default() += 1;
    }

    /// All classes together.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Adds another count.
    pub fn merge(&mut self, other: &Self) {
        for (class, count) in &other.0 {
            *self.0.entry(*class).or_default() += count;
        }
    }
}

impl Block {
    /// Completed inferences per second; 0 where unknown.
    pub fn throughput(&self) -> f64 {
        if self.duration_ns == 0 {
            return self.stated_throughput.unwrap_or(0.0);
        }
        self.requests as f64 * f64::from(self.batch) / (self.duration_ns as f64 / 1e9)
    }

    /// The value of a metric in its unit; none where this block does not know it.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Throughput => {
                if self.duration_ns > 0 {
                    Some(self.throughput())
                } else {
                    self.stated_throughput
                }
            }
            Metric::P50 => self.latency.p50,
            Metric::P90 => self.latency.p90,
            Metric::P95 => self.latency.p95,
            Metric::P99 => self.latency.p99,
            Metric::P999 => self.latency.p999,
            Metric::Mean => self.latency.mean,
            Metric::ErrorRate => {
                let failed = self.errors.total();
                let all = failed + self.requests;
                (all > 0).then(|| failed as f64 / all as f64)
            }
            Metric::ServerQueue => self.server.map(|server| server.queue_us),
            Metric::ServerCompute => self.server.map(|server| server.compute_us()),
        }
    }
}
