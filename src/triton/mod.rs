//! The protocol: connection, models and their inputs, error classes, server statistics.

mod client;
mod client_error;
mod config_facts;
mod datatype;
mod diagnose;
mod endpoint;
mod endpoint_error;
mod errors;
mod frame;
mod port_probe;
pub mod proto;
mod signature;
pub mod statistics;

#[cfg(test)]
mod client_tests;
#[cfg(test)]
#[path = "../../tests/support/pbtxt.rs"]
mod pbtxt;
#[cfg(test)]
mod signature_tests;

pub use client::{Client, IndexEntry, ServerInfo};
pub use client_error::ClientError;
pub use config_facts::config_facts;
pub use datatype::{Datatype, UnknownDatatype};
pub(crate) use diagnose::nearest;
pub use endpoint::{DEFAULT_PORT, Endpoint};
pub use endpoint_error::EndpointError;
pub use errors::classify;
pub use frame::{FrameError, MAX_MESSAGE_BYTES, encode};
pub use port_probe::{PortKind, probe_port};
pub use signature::{ModelSignature, SignatureError, TensorSpec};
