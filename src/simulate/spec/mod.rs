//! What the simulated server is to be: built in code or read from a TOML file.

mod builtin;
mod duration;
mod error;
mod example;
mod fault;
mod file;
mod latency;
mod model;
mod server;
mod validate;

pub use error::SimulateError;
pub use fault::{ErrorKind, FaultKind, FaultSpec};
pub use latency::LatencySpec;
pub use model::{Answer, Batching, Ending, ModelSpec, ResponseSpec, TensorSpec, VersionSpec};
pub use server::{ModelControl, SimulateSpec, TlsSpec};

pub use super::datatype::Wire;
pub(crate) use validate::check;
