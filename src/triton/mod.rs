//! The protocol.
pub mod proto;
