//! The real Lab: one scenario on a live Triton, and the rules by which its measurement is valid.

mod launch;
mod validity;

pub use launch::{LaunchError, Launched};
pub use validity::{Observed, assess};
