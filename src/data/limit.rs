use serde::{Deserialize, Serialize};

use super::{Fraction, Metric};

/// A gated metric and how far it may go.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// What is gated.
    pub metric: Metric,
    /// How far it may go.
    pub bound: Bound,
}

/// The two kinds of limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The largest accepted change for the worse against the baseline (`throughput_drop`,
    /// `p99_rise`), positive.
    Relative(Fraction),
    /// The worst accepted value in the metric's unit (`p99_max`, `throughput_min`).
    Absolute(f64),
}
