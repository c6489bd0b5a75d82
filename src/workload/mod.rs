//! From what a scenario says about its inputs to the bytes that are sent: checked against the
//! model before any load, the same bytes for the same seed on every machine.

mod error;
mod join;
mod literal;
mod payloads;
mod random;
mod resolve;
mod rows;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;

pub use error::{Problem, WorkloadError};
pub use payloads::{Payloads, WorkloadSpec};
