//! The embedded server that speaks Triton's protocol: a tool for tests and for trying the gate.
//! It never measures and never judges.

mod core;
mod counters;
mod datatype;
mod faults;
mod latency;
mod log;
mod pacer;
mod scheduler;
mod server;
mod service;
mod spec;
mod tensors;
mod texts;
mod validate;

#[cfg(test)]
mod tests;

pub use server::{Running, Server};
pub use spec::{
    Answer, Batching, Ending, ErrorKind, FaultKind, FaultSpec, LatencySpec, ModelControl,
    ModelSpec, ResponseSpec, SimulateError, SimulateSpec, TensorSpec, TlsSpec, VersionSpec, Wire,
};
