//! The decision: a pure state machine that says how much to measure and, at planned looks, whether
//! the evidence decides. No clock, no network, no files.

mod absolute;
mod compare;
mod decision;
mod describe;
mod design;
mod error;
mod point;
mod reason;
mod relative;
mod series;
mod stored;
#[cfg(test)]
mod tests;

pub use compare::compare;
pub use decision::Decision;
pub use describe::describe;
pub use design::{Design, Stage};
pub use error::GateError;
pub use stored::{Step, StoredGate};
