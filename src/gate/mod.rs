//! The decision: a pure state machine that says how much to measure and, at planned looks, whether
//! the evidence decides. No clock, no network, no files.

mod absolute;
mod compare;
mod decision;
mod describe;
mod design;
#[cfg(test)]
mod epoch_tests;
mod error;
mod outliers;
mod paired;
mod pairs;
mod pin;
mod point;
mod reason;
mod relative;
mod search;
mod series;
mod sessions;
mod stored;
#[cfg(test)]
mod tests;
mod units;

pub use compare::compare;
pub use decision::Decision;
pub use describe::describe;
pub use design::{Design, Stage, limit_on_log_scale};
pub use error::GateError;
pub use outliers::{Outlier, outliers};
pub use paired::{PairedGate, PairedStep};
pub use pairs::{PairPlan, PercentilePlan, SideFigures};
pub use pin::against_pin;
pub use series::Life;
pub use sessions::{FEWEST_SESSIONS, SessionGate, SessionStep};
pub use stored::{Step, StoredGate};
pub use units::Unit;
