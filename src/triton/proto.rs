//! Code generated from `proto/` by build.rs.
#![allow(missing_docs, clippy::all, clippy::pedantic)]

/// Triton's inference protocol (package `inference`).
pub mod inference {
    tonic::include_proto!("inference");
}

/// The standard gRPC health protocol.
pub mod health {
    tonic::include_proto!("grpc.health.v1");
}
