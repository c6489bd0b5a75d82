use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What is gated. Serialised by its short name (`p99`, `throughput`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Completed inferences per second (requests x batch).
    Throughput,
    /// Median latency of a request, microseconds.
    P50,
    /// 90th percentile of latency, microseconds.
    P90,
    /// 95th percentile of latency, microseconds.
    P95,
    /// 99th percentile of latency, microseconds.
    P99,
    /// 99.9th percentile of latency, microseconds.
    P999,
    /// Mean latency, microseconds.
    Mean,
    /// Share of requests that failed.
    ErrorRate,
    /// Mean time in the server's queue per request, microseconds.
    ServerQueue,
    /// Mean compute time (input + infer + output) per request, microseconds.
    ServerCompute,
}

/// Which way is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// A fall is a regression (throughput).
    HigherIsBetter,
    /// A rise is a regression (latencies, errors).
    LowerIsBetter,
}

impl Metric {
    /// Every metric, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::Throughput,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Mean,
        Self::ErrorRate,
        Self::ServerQueue,
        Self::ServerCompute,
    ];

    /// The short name of files and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Mean => "mean",
            Self::ErrorRate => "error_rate",
            Self::ServerQueue => "server_queue",
            Self::ServerCompute => "server_compute",
        }
    }

    /// The name for people: "P99", "throughput".
    pub const fn label(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P50 => "P50",
            Self::P90 => "P90",
            Self::P95 => "P95",
            Self::P99 => "P99",
            Self::P999 => "P99.9",
            Self::Mean => "mean latency",
            Self::ErrorRate => "error rate",
            Self::ServerQueue => "server queue",
            Self::ServerCompute => "server compute",
        }
    }

    /// `infer/s`, `us`, or `fraction`.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "infer/s",
            Self::ErrorRate => "fraction",
            _ => "us",
        }
    }

    /// Which way is worse.
    pub const fn direction(self) -> Direction {
        match self {
            Self::Throughput => Direction::HigherIsBetter,
            _ => Direction::LowerIsBetter,
        }
    }

    /// The quantile in (0, 1) of a percentile metric.
    pub const fn quantile(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.50),
            Self::P90 => Some(0.90),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            _ => None,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|metric| metric.name() == text)
            .ok_or_else(|| format!("unknown metric {text:?}"))
    }
}
