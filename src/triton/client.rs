use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

use super::client_error::ClientError;
use super::diagnose::{broken, check_reachable, look_into, missing_model};
use super::endpoint::{Endpoint, error_chain};
use super::errors::classify;
use super::proto::inference::grpc_inference_service_client::GrpcInferenceServiceClient;
use super::proto::inference::{
    ModelConfig, ModelConfigRequest, ModelMetadataRequest, ModelMetadataResponse,
    ModelReadyRequest, ModelStatistics, ModelStatisticsRequest, RepositoryIndexRequest,
    RepositoryModelLoadRequest, RepositoryModelUnloadRequest, ServerLiveRequest,
    ServerMetadataRequest, ServerReadyRequest,
};
use super::signature::ModelSignature;
use super::statistics::Snapshot;
use crate::data::{ErrorClass, ServerSpec};

/// The largest message of gRPC; tonic's own limit is 4 MiB.
const DECODE_LIMIT: usize = i32::MAX as usize;

/// Asks a server about itself and its models, and loads and unloads them. Inference goes through
/// the load engine instead.
#[derive(Debug, Clone)]
pub struct Client {
    grpc: GrpcInferenceServiceClient<Channel>,
    endpoint: Endpoint,
    timeout: Duration,
}

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name: `triton`.
    pub name: String,
    /// Its version: `2.51.0`.
    pub version: String,
    /// The protocol extensions that it serves.
    pub extensions: Vec<String>,
}

/// One model version in a server's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The model.
    pub name: String,
    /// The version; empty for a model that was never loaded.
    pub version: String,
    /// `READY`, `UNAVAILABLE`, `LOADING`, `UNLOADING`, `UNKNOWN` or empty.
    pub state: String,
    /// Why it is not ready, in the server's words.
    pub reason: String,
}

impl Client {
    /// Connects and asks for life. `timeout` is the deadline of connecting, and of every call
    /// that is made with this client.
    ///
    /// A failure is looked into: the error says whether nothing listens, the name is unknown, the
    /// port is another one of Triton's, or TLS is missing or surplus.
    pub async fn connect(spec: &ServerSpec, timeout: Duration) -> Result<Self, ClientError> {
        let endpoint = Endpoint::new(spec)?;
        let Some(opened) = within(timeout, Self::open(endpoint.clone(), timeout)).await else {
            let silent = ClientError::Timeout {
                address: endpoint.address(),
                waited: timeout,
                doing: "connecting",
            };
            return Err(look_into(&endpoint, timeout, silent).await);
        };
        let mut client = opened?;
        match client.ask_live().await {
            Ok(_) => Ok(client),
            Err(error) => Err(client.explain(error).await),
        }
    }

    /// Where this client is connected to.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether the server lives; an error status such as that of a shutdown is "no".
    pub async fn live(&mut self) -> Result<bool, ClientError> {
        yes_or_no(self.ask_live().await)
    }

    /// Whether the server is ready; an error status is "no".
    pub async fn ready(&mut self) -> Result<bool, ClientError> {
        let mut grpc = self.grpc.clone();
        let request = self.request(ServerReadyRequest {});
        let answer = self
            .call("ServerReady", self.timeout, grpc.server_ready(request))
            .await;
        yes_or_no(answer.map(|response| response.ready))
    }

    /// Whether a model is ready, in the given version or any; an error status is "no" (newer
    /// servers answer with one for a model that they do not have).
    pub async fn model_ready(
        &mut self,
        model: &str,
        version: Option<&str>,
    ) -> Result<bool, ClientError> {
        let mut grpc = self.grpc.clone();
        let request = self.request(ModelReadyRequest {
            name: model.to_owned(),
            version: version.unwrap_or_default().to_owned(),
        });
        let answer = self
            .call("ModelReady", self.timeout, grpc.model_ready(request))
            .await;
        yes_or_no(answer.map(|response| response.ready))
    }

    /// The server's name, version and extensions.
    pub async fn server_metadata(&mut self) -> Result<ServerInfo, ClientError> {
        let mut grpc = self.grpc.clone();
        let request = self.request(ServerMetadataRequest {});
        let answer = self
            .call(
                "ServerMetadata",
                self.timeout,
                grpc.server_metadata(request),
            )
            .await?;
        Ok(ServerInfo {
            name: answer.name,
            version: answer.version,
            extensions: answer.extensions,
        })
    }

    /// What a request to the model must look like. An unknown model or version is an error that
    /// names those that are there.
    pub async fn signature(
        &mut self,
        model: &str,
        version: Option<&str>,
    ) -> Result<ModelSignature, ClientError> {
        Ok(self.describe(model, version).await?.0)
    }

    /// The signature and the configuration that it was read from.
    pub async fn describe(
        &mut self,
        model: &str,
        version: Option<&str>,
    ) -> Result<(ModelSignature, ModelConfig), ClientError> {
        let metadata = self.model_metadata(model, version).await?;
        let config = self.model_config(model, version).await?;
        let signature = ModelSignature::new(&config, &metadata, version.unwrap_or_default())?;
        Ok((signature, config))
    }

    /// The model's configuration as the server completed it.
    pub async fn model_config(
        &mut self,
        model: &str,
        version: Option<&str>,
    ) -> Result<ModelConfig, ClientError> {
        let mut grpc = self.grpc.clone();
        let request = self.request(ModelConfigRequest {
            name: model.to_owned(),
            version: version.unwrap_or_default().to_owned(),
        });
        match self
            .call("ModelConfig", self.timeout, grpc.model_config(request))
            .await
        {
            Ok(answer) => Ok(answer.config.unwrap_or_default()),
            Err(error) => Err(self.explain_model(error, model, version).await),
        }
    }

    async fn model_metadata(
        &mut self,
        model: &str,
        version: Option<&str>,
    ) -> Result<ModelMetadataResponse, ClientError> {
        let mut grpc = self.grpc.clone();
        let request = self.request(ModelMetadataRequest {
            name: model.to_owned(),
            version: version.unwrap_or_default().to_owned(),
        });
        match self
            .call("ModelMetadata", self.timeout, grpc.model_metadata(request))
            .await
        {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.explain_model(error, model, version).await),
        }
    }

    /// The statistics of all ready versions of a model.
    pub async fn statistics(&mut self, model: &str) -> Result<Vec<ModelStatistics>, ClientError> {
        let mut grpc = self.grpc.clone();
        let request = self.request(ModelStatisticsRequest {
            name: model.to_owned(),
            version: String::new(),
        });
        match self
            .call(
                "ModelStatistics",
                self.timeout,
                grpc.model_statistics(request),
            )
            .await
        {
            Ok(answer) => Ok(answer.model_stats),
            Err(error) => Err(self.explain_model(error, model, None).await),
        }
    }

    /// The statistics of a model and, for an ensemble, of every model that it calls, however
    /// deep.
    ///
    /// Requests in flight must have drained: counters move when a request completes.
    pub async fn snapshot(&mut self, model: &ModelSignature) -> Result<Snapshot, ClientError> {
        let mut snapshot = Snapshot::default();
        snapshot.add(&self.statistics(&model.name).await?);
        let mut steps = model.ensemble_steps.clone();
        while let Some(step) = steps.pop() {
            if snapshot.has(&step) {
                continue;
            }
            snapshot.add(&self.statistics(&step).await?);
            let inner = self.signature(&step, None).await?;
            steps.extend(inner.ensemble_steps);
        }
        Ok(snapshot)
    }

    /// Every model version in the server's repositories.
    pub async fn index(&mut self) -> Result<Vec<IndexEntry>, ClientError> {
        let mut grpc = self.grpc.clone();
        let request = self.request(RepositoryIndexRequest::default());
        let answer = self
            .call(
                "RepositoryIndex",
                self.timeout,
                grpc.repository_index(request),
            )
            .await?;
        Ok(answer
            .models
            .into_iter()
            .map(|model| IndexEntry {
                name: model.name,
                version: model.version,
                state: model.state,
                reason: model.reason,
            })
            .collect())
    }

    /// Loads a model and waits until that is done, at most `patience`.
    pub async fn load(&mut self, model: &str, patience: Duration) -> Result<(), ClientError> {
        let mut grpc = self.grpc.clone();
        let request = self.request(RepositoryModelLoadRequest {
            model_name: model.to_owned(),
            ..RepositoryModelLoadRequest::default()
        });
        match self
            .call(
                "RepositoryModelLoad",
                patience,
                grpc.repository_model_load(request),
            )
            .await
        {
            Ok(_) => Ok(()),
            Err(error) => Err(self.explain_control(error)),
        }
    }

    /// Unloads a model. The server answers at once, while requests in flight still complete.
    pub async fn unload(&mut self, model: &str) -> Result<(), ClientError> {
        let mut grpc = self.grpc.clone();
        let request = self.request(RepositoryModelUnloadRequest {
            model_name: model.to_owned(),
            ..RepositoryModelUnloadRequest::default()
        });
        match self
            .call(
                "RepositoryModelUnload",
                self.timeout,
                grpc.repository_model_unload(request),
            )
            .await
        {
            Ok(_) => Ok(()),
            Err(error) => Err(self.explain_control(error)),
        }
    }

    async fn open(endpoint: Endpoint, timeout: Duration) -> Result<Self, ClientError> {
        check_reachable(&endpoint).await?;
        let channel = match endpoint.tonic().connect().await {
            Ok(channel) => channel,
            Err(error) => {
                let broken = broken(&endpoint, error_chain(&error));
                return Err(look_into(&endpoint, timeout, broken).await);
            }
        };
        let grpc = GrpcInferenceServiceClient::new(channel)
            .max_decoding_message_size(DECODE_LIMIT)
            .max_encoding_message_size(DECODE_LIMIT);
        Ok(Self {
            grpc,
            endpoint,
            timeout,
        })
    }

    async fn ask_live(&mut self) -> Result<bool, Failed> {
        let mut grpc = self.grpc.clone();
        let request = self.request(ServerLiveRequest {});
        self.call("ServerLive", self.timeout, grpc.server_live(request))
            .await
            .map(|response| response.live)
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let metadata: MetadataMap = self.endpoint.metadata().clone();
        Request::from_parts(metadata, tonic::Extensions::default(), message)
    }

    /// One call with a deadline; no `grpc-timeout` is sent, for the deadline is ours.
    async fn call<T>(
        &self,
        method: &'static str,
        deadline: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Failed> {
        let failed = |status| Failed {
            address: self.endpoint.address(),
            method,
            waited: deadline,
            status,
        };
        match within(deadline, call).await {
            Some(Ok(response)) => Ok(response.into_inner()),
            Some(Err(status)) => Err(failed(Some(status))),
            None => Err(failed(None)),
        }
    }

    /// Why the first call failed, found out by looking at the port.
    async fn explain(&self, failed: Failed) -> ClientError {
        match &failed.status {
            None => look_into(&self.endpoint, self.timeout, failed.into()).await,
            Some(status) if failed.made_here() => {
                let broken = broken(&self.endpoint, cause(status));
                look_into(&self.endpoint, self.timeout, broken).await
            }
            Some(status) if status.code() == Code::Unimplemented => ClientError::NotTriton {
                address: self.endpoint.address(),
                reason: if status.message().is_empty() {
                    "ServerLive is unknown to it".to_owned()
                } else {
                    status.message().to_owned()
                },
            },
            Some(_) => failed.into(),
        }
    }

    /// Names what is there instead of a model or version that is not.
    async fn explain_model(
        &mut self,
        failed: Failed,
        model: &str,
        version: Option<&str>,
    ) -> ClientError {
        let Some(status) = &failed.status else {
            return failed.into();
        };
        if classify(status.code(), status.message()) != ErrorClass::ModelUnavailable {
            return failed.into();
        }
        // Where the index is restricted, the server's own words must do.
        let Ok(index) = self.index().await else {
            return failed.into();
        };
        missing_model(&self.endpoint.address(), &index, model, version)
            .unwrap_or_else(|| failed.into())
    }

    fn explain_control(&self, failed: Failed) -> ClientError {
        match &failed.status {
            Some(status) if status.message().starts_with("explicit model load / unload") => {
                ClientError::NotExplicit {
                    address: self.endpoint.address(),
                    message: status.message().to_owned(),
                }
            }
            _ => failed.into(),
        }
    }
}

/// A call that got no answer, or a status that is an error.
struct Failed {
    address: String,
    method: &'static str,
    waited: Duration,
    /// None where the deadline passed.
    status: Option<Status>,
}

impl Failed {
    /// Whether the status was made here, from a broken connection, and not sent by a server.
    fn made_here(&self) -> bool {
        self.status
            .as_ref()
            .is_some_and(|status| status.source().is_some())
    }
}

impl From<Failed> for ClientError {
    fn from(failed: Failed) -> Self {
        let made_here = failed.made_here();
        let Failed {
            address,
            method,
            waited,
            status,
        } = failed;
        let Some(status) = status else {
            return Self::Timeout {
                address,
                waited,
                doing: method,
            };
        };
        if made_here {
            return Self::Connection {
                address,
                reason: cause(&status),
            };
        }
        let message = status.message().to_owned();
        match classify(status.code(), &message) {
            ErrorClass::Unauthorized => Self::Unauthorized {
                address,
                method,
                message,
            },
            class => Self::Call {
                address,
                method,
                class,
                message: if message.is_empty() {
                    status.code().description().to_owned()
                } else {
                    message
                },
            },
        }
    }
}

/// Why a call broke. A status that was made here shows itself with all its fields; only what it
/// rests on is for people.
fn cause(status: &Status) -> String {
    status
        .source()
        .map_or_else(|| status.message().to_owned(), error_chain)
}

/// Turns "the server answered with an error" into no, and keeps what is no answer at all.
fn yes_or_no(answer: Result<bool, Failed>) -> Result<bool, ClientError> {
    match answer {
        Ok(yes) => Ok(yes),
        Err(failed) if failed.status.is_some() && !failed.made_here() => {
            match ClientError::from(failed) {
                // Not a "no": waiting would not help.
                refused @ ClientError::Unauthorized { .. } => Err(refused),
                _ => Ok(false),
            }
        }
        Err(failed) => Err(failed.into()),
    }
}

async fn within<T>(deadline: Duration, work: impl Future<Output = T>) -> Option<T> {
    timeout(deadline, work).await.ok()
}
