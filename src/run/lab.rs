use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::data::{Block, Flag, Reason, Side};

/// Where measurements come from.
pub trait Lab {
    /// Brings a side to its steady state, once, before its first measurement and after a reload.
    fn warm_up(&mut self, side: Side) -> Result<WarmUp, LabError>;

    /// Measures what the plan asks for. What was measured before a failure or an interruption comes
    /// back in [`Measured`]; an error means that there is nothing.
    fn measure(&mut self, plan: &MeasurePlan) -> Result<Measured, LabError>;

    /// Sets the length of contiguous blocks, once a warm-up has shown the model's pace.
    fn set_block(&mut self, block: Duration);

    /// Loads the model of a side anew, or restarts its server. False where that is not possible.
    fn reload(&mut self, side: Side) -> Result<bool, LabError>;

    /// A monotonic clock; only differences mean anything.
    fn now(&self) -> Duration;
}

/// What a warm-up showed.
#[derive(Debug, Clone, PartialEq)]
pub struct WarmUp {
    /// False where the series still moved at the end.
    pub settled: bool,
    /// How long it took, seconds.
    pub seconds: f64,
    /// Requests a second in the settled part.
    pub request_rate: f64,
    /// Standard deviation of the ln throughput of one second of load, from the settled part; none
    /// where it was too short or too slow to say.
    pub rate_spread: Option<f64>,
    /// Latencies of the settled part, nanoseconds.
    pub histogram: Option<Histogram<u64>>,
    /// What a stretch of load costs beyond its blocks: ramp and drain.
    pub overhead: Duration,
}

/// What to measure next.
#[derive(Debug, Clone, PartialEq)]
pub enum MeasurePlan {
    /// One stretch of load on one side: a ramp, then contiguous blocks.
    Blocks {
        /// The side under load.
        side: Side,
        /// Index of the first block.
        first_index: u32,
        /// How many, at least 1.
        blocks: u32,
        /// When to stop at the latest, on the lab's clock.
        deadline: Duration,
    },
    /// Pairs of short blocks, one of each side, each with its own drain. Both blocks of pair i come
    /// back with index i, in the order in which they were measured.
    Pairs {
        /// Index of the first pair.
        first_index: u32,
        /// One entry a pair: true where the candidate is measured first.
        candidate_first: Vec<bool>,
        /// Time in which requests are sent, for each block.
        block: Duration,
        /// When to stop at the latest, on the lab's clock.
        deadline: Duration,
    },
}

/// What came of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Blocks that count, in the order in which they were measured.
    pub blocks: Vec<Block>,
    /// How it ended.
    pub ended: Ended,
    /// Blocks or pairs discarded, by reason.
    pub discarded: BTreeMap<String, u32>,
    /// Things that a reader should know.
    pub flags: Vec<Flag>,
}

/// How a measurement ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// As planned.
    Complete,
    /// The deadline came first.
    Deadline,
    /// The user stopped it.
    Interrupted,
    /// It failed or turned out to be invalid.
    Failed(Reason),
}

/// Nothing could be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabError {
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// It failed or turned out to be invalid.
    #[error("{}", .0.text)]
    Failed(Reason),
}

impl From<LabError> for Ended {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Interrupted => Self::Interrupted,
            LabError::Failed(reason) => Self::Failed(reason),
        }
    }
}
