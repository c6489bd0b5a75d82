use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::super::core::Core;
use super::super::texts;
use crate::triton::proto::health::health_check_response::ServingStatus;
use crate::triton::proto::health::health_server::Health;
use crate::triton::proto::health::{HealthCheckRequest, HealthCheckResponse};

/// `grpc.health.v1.Health`, as Triton serves it: the service's name is not looked at.
pub(crate) struct HealthService(pub(crate) Arc<Core>);

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        _request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if self.0.is_stopping() {
            return Err(texts::server_exiting().into());
        }
        let status = if self.0.is_ready() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        Ok(Response::new(HealthCheckResponse {
            status: status.into(),
        }))
    }
}
