use std::sync::Arc;

use tonic::{Code, Request, Response, Status, Streaming};

use super::super::core::{Client, Core, Way};
use super::super::server::Connection;
use super::super::texts;
use super::admin;
use super::stream::{self, Responses};
use crate::triton::proto::inference::grpc_inference_service_server::GrpcInferenceService;
use crate::triton::proto::inference::{
    ModelConfigRequest, ModelConfigResponse, ModelInferRequest, ModelInferResponse,
    ModelMetadataRequest, ModelMetadataResponse, ModelReadyRequest, ModelReadyResponse,
    ModelStatisticsRequest, ModelStatisticsResponse, RepositoryIndexRequest,
    RepositoryIndexResponse, RepositoryModelLoadRequest, RepositoryModelLoadResponse,
    RepositoryModelUnloadRequest, RepositoryModelUnloadResponse, ServerLiveRequest,
    ServerLiveResponse, ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest,
    ServerReadyResponse,
};

/// `inference.GRPCInferenceService`.
pub(crate) struct InferenceService(pub(crate) Arc<Core>);

/// A request that came over no connection that we know cannot lose it.
struct Unknown;

impl Client for Unknown {
    fn disconnect(&self) {}
}

fn client_of<T>(request: &Request<T>) -> Arc<dyn Client> {
    match request.extensions().get::<Arc<Connection>>() {
        Some(connection) => Arc::clone(connection) as Arc<dyn Client>,
        None => Arc::new(Unknown),
    }
}

#[tonic::async_trait]
impl GrpcInferenceService for InferenceService {
    type ModelStreamInferStream = Responses;

    async fn server_live(
        &self,
        _request: Request<ServerLiveRequest>,
    ) -> Result<Response<ServerLiveResponse>, Status> {
        if self.0.is_stopping() {
            return Err(texts::server_exiting().into());
        }
        Ok(Response::new(ServerLiveResponse { live: true }))
    }

    async fn server_ready(
        &self,
        _request: Request<ServerReadyRequest>,
    ) -> Result<Response<ServerReadyResponse>, Status> {
        if self.0.is_stopping() {
            return Err(texts::server_exiting().into());
        }
        Ok(Response::new(ServerReadyResponse {
            ready: self.0.is_ready(),
        }))
    }

    async fn model_ready(
        &self,
        request: Request<ModelReadyRequest>,
    ) -> Result<Response<ModelReadyResponse>, Status> {
        let ModelReadyRequest { name, version } = request.into_inner();
        admin::model_ready(&self.0, &name, &version).map(Response::new)
    }

    async fn server_metadata(
        &self,
        _request: Request<ServerMetadataRequest>,
    ) -> Result<Response<ServerMetadataResponse>, Status> {
        Ok(Response::new(admin::server_metadata(&self.0)))
    }

    async fn model_metadata(
        &self,
        request: Request<ModelMetadataRequest>,
    ) -> Result<Response<ModelMetadataResponse>, Status> {
        let ModelMetadataRequest { name, version } = request.into_inner();
        admin::model_metadata(&self.0, &name, &version).map(Response::new)
    }

    async fn model_config(
        &self,
        request: Request<ModelConfigRequest>,
    ) -> Result<Response<ModelConfigResponse>, Status> {
        let ModelConfigRequest { name, version } = request.into_inner();
        let config = Some(admin::model_config(&self.0, &name, &version)?);
        Ok(Response::new(ModelConfigResponse { config }))
    }

    async fn model_infer(
        &self,
        request: Request<ModelInferRequest>,
    ) -> Result<Response<ModelInferResponse>, Status> {
        let client = client_of(&request);
        let request = request.into_inner();
        let core = &self.0;
        let mut admitted = core.admit(&request, Way::Unary, client.as_ref())?;
        let ran = admitted.run(core).await?;
        let response = ModelInferResponse {
            model_name: request.model_name,
            model_version: admitted.version.clone(),
            id: request.id,
            outputs: ran.outputs.tensors,
            raw_output_contents: ran.outputs.raw,
            ..ModelInferResponse::default()
        };
        admitted.answered(Code::Ok);
        Ok(Response::new(response))
    }

    async fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> Result<Response<Responses>, Status> {
        let client = client_of(&request);
        let as_status = request
            .metadata()
            .get("triton_grpc_error")
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
        let responses = stream::serve(&self.0, client, request.into_inner(), as_status);
        Ok(Response::new(responses))
    }

    async fn model_statistics(
        &self,
        request: Request<ModelStatisticsRequest>,
    ) -> Result<Response<ModelStatisticsResponse>, Status> {
        let ModelStatisticsRequest { name, version } = request.into_inner();
        admin::statistics(&self.0, &name, &version).map(Response::new)
    }

    async fn repository_index(
        &self,
        request: Request<RepositoryIndexRequest>,
    ) -> Result<Response<RepositoryIndexResponse>, Status> {
        let RepositoryIndexRequest {
            repository_name,
            ready,
        } = request.into_inner();
        admin::index(&self.0, &repository_name, ready).map(Response::new)
    }

    async fn repository_model_load(
        &self,
        request: Request<RepositoryModelLoadRequest>,
    ) -> Result<Response<RepositoryModelLoadResponse>, Status> {
        let request = request.into_inner();
        admin::load(&self.0, &request.repository_name, &request.model_name)?;
        Ok(Response::new(RepositoryModelLoadResponse {}))
    }

    async fn repository_model_unload(
        &self,
        request: Request<RepositoryModelUnloadRequest>,
    ) -> Result<Response<RepositoryModelUnloadResponse>, Status> {
        let request = request.into_inner();
        admin::unload(&self.0, &request.repository_name, &request.model_name)?;
        Ok(Response::new(RepositoryModelUnloadResponse {}))
    }
}
