//! The real Lab: one scenario on a live Triton, and the rules by which its measurement is valid.

mod conditions;
mod environment;
mod launch;
mod pairs;
mod real;
mod side;
mod target;
mod validity;
mod warm_up;

pub use environment::{environment, hardware, lock_name, signature_facts};
pub use launch::{LaunchError, Launched};
pub use real::TritonLab;
pub use side::{SideLab, Totals};
pub use target::{CALL_TIMEOUT, Described, LOAD_TIMEOUT, Target, client_reason, connect};
pub use validity::{Observed, assess};
