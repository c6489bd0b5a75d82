//! The two gRPC services.

mod admin;
mod health;
mod rpc;
mod stream;

pub(crate) use health::HealthService;
pub(crate) use rpc::InferenceService;
