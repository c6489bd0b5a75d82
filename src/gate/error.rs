use crate::data::Metric;
use crate::stats::StatsError;

/// Why no decision can be prepared or taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GateError {
    /// Nothing is gated.
    #[error("no metric is gated: set at least one limit, such as throughput_drop = \"5%\"")]
    NoLimits,
    /// The same limit twice.
    #[error("{0} has two limits of the same kind: keep one")]
    DuplicateLimit(Metric),
    /// A threshold that no change could reach, or that is not a number.
    #[error("the limit of {metric} is {value}, expected {expected}")]
    BadLimit {
        /// The metric.
        metric: Metric,
        /// As given.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// An error level outside (0, 1).
    #[error("{name} is {value}, expected a percentage above 0% and below 50%")]
    BadLevel {
        /// `false_alarm` or `missed_regression`.
        name: &'static str,
        /// As given, a fraction.
        value: f64,
    },
    /// A relative limit without a stored session.
    #[error("no stored session with blocks: record a baseline first")]
    NoSessions,
    /// A decision was asked for without measurements.
    #[error("no blocks of the candidate were measured")]
    NoBlocks,
    /// A number that cannot be judged.
    #[error("failed to judge {metric}: {source}")]
    Stats {
        /// The metric.
        metric: Metric,
        /// What was wrong with its numbers.
        source: StatsError,
    },
    /// A plan that cannot be made.
    #[error("failed to plan the looks: {0}")]
    Plan(StatsError),
}
