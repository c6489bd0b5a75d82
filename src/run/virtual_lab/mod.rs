//! A lab in virtual time: requests drawn from a model of a server on a noisy machine.
//!
//! It exists to measure what the decision rules are worth. docs/evidence.md has the figures.

mod lab;
mod world;

pub use lab::{Effect, VirtualLab};
pub use world::{Spread, World};
