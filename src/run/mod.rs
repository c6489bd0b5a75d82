//! The loop that obeys the gate: it asks a [`Lab`] for measurements until the decision is taken.
//!
//! The lab is the only seam to the outside: a real one drives a server, a virtual one draws from
//! a model of noise in virtual time, so that the whole decision can be tried thousands of times.

mod block_length;
mod lab;
mod outcome;
mod paired;
mod sessions;
mod spoiled;
#[cfg(test)]
mod spoiled_tests;
mod stored;
#[cfg(test)]
mod tests;
pub mod virtual_lab;

pub use block_length::{short_of, stored_block};
pub use lab::{Ended, Lab, LabError, MeasurePlan, Measured, WarmUp};
pub use outcome::{Budget, Progress, ScenarioOutcome};
pub use paired::{PairSettings, run_paired};
pub use sessions::{RECORDED_BLOCKS, SessionRange, SessionSettings, run_sessions};
pub use spoiled::Spoiled;
pub use stored::run_stored;
