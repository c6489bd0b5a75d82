//! A client against a small server in this process, and against what is not one.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

use super::proto::inference::grpc_inference_service_server::{
    GrpcInferenceService, GrpcInferenceServiceServer,
};
use super::proto::inference::model_config::SchedulingChoice;
use super::proto::inference::model_ensembling::Step;
use super::proto::inference::model_metadata_response::TensorMetadata;
use super::proto::inference::repository_index_response::ModelIndex;
use super::proto::inference::*;
use super::{Client, ClientError, PortKind};
use crate::data::{Secret, ServerSpec, Tls};

const TIMEOUT: Duration = Duration::from_secs(20);

type Answer<T> = Result<Response<T>, Status>;

/// Has `resnet` 1 and 3 (2 failed to load), the ensemble `pipeline` of it, and `idle`, which was
/// never loaded. Its statistics are larger than tonic's default limit.
#[derive(Default)]
struct Fake {
    token: Option<&'static str>,
}

impl Fake {
    fn unknown(name: &str, version: &str) -> Status {
        let version = if version.is_empty() {
            String::new()
        } else {
            format!(" version {version}")
        };
        Status::not_found(format!(
            "Request for unknown model: '{name}'{version} is not found"
        ))
    }

    fn find(name: &str, version: &str) -> Result<(), Status> {
        match (name, version) {
            ("resnet", "" | "1" | "3") | ("pipeline", "" | "1") => Ok(()),
            ("resnet", "2") => Err(Status::unavailable(
                "Request for unknown model: 'resnet' version 2 is not at ready state",
            )),
            _ => Err(Self::unknown(name, version)),
        }
    }
}

#[tonic::async_trait]
impl GrpcInferenceService for Fake {
    async fn server_live(&self, request: Request<ServerLiveRequest>) -> Answer<ServerLiveResponse> {
        let given = request.metadata().get("authorization");
        match self.token {
            Some(token) if given.is_none_or(|given| given != token) => {
                Err(Status::unauthenticated("token missing"))
            }
            _ => Ok(Response::new(ServerLiveResponse { live: true })),
        }
    }

    async fn server_ready(&self, _: Request<ServerReadyRequest>) -> Answer<ServerReadyResponse> {
        Err(Status::unavailable("Server exiting"))
    }

    async fn model_ready(&self, request: Request<ModelReadyRequest>) -> Answer<ModelReadyResponse> {
        let request = request.into_inner();
        // As newer servers do.
        Self::find(&request.name, &request.version)?;
        Ok(Response::new(ModelReadyResponse { ready: true }))
    }

    async fn server_metadata(
        &self,
        _: Request<ServerMetadataRequest>,
    ) -> Answer<ServerMetadataResponse> {
        Ok(Response::new(ServerMetadataResponse {
            name: "triton".to_owned(),
            version: "2.51.0".to_owned(),
            extensions: vec!["statistics".to_owned()],
        }))
    }

    async fn model_metadata(
        &self,
        request: Request<ModelMetadataRequest>,
    ) -> Answer<ModelMetadataResponse> {
        let request = request.into_inner();
        Self::find(&request.name, &request.version)?;
        Ok(Response::new(ModelMetadataResponse {
            name: request.name,
            versions: vec!["1".to_owned(), "3".to_owned()],
            platform: "python".to_owned(),
            inputs: vec![TensorMetadata {
                name: "x".to_owned(),
                datatype: "FP32".to_owned(),
                shape: vec![-1, 4],
            }],
            outputs: Vec::new(),
        }))
    }

    async fn model_config(
        &self,
        request: Request<ModelConfigRequest>,
    ) -> Answer<ModelConfigResponse> {
        let request = request.into_inner();
        Self::find(&request.name, &request.version)?;
        let ensemble = ModelEnsembling {
            step: vec![Step {
                model_name: "resnet".to_owned(),
                model_version: -1,
                ..Step::default()
            }],
            max_inflight_requests: 0,
        };
        let scheduling =
            (request.name == "pipeline").then_some(SchedulingChoice::EnsembleScheduling(ensemble));
        let config = ModelConfig {
            name: request.name,
            max_batch_size: 8,
            scheduling_choice: scheduling,
            ..ModelConfig::default()
        };
        Ok(Response::new(ModelConfigResponse {
            config: Some(config),
        }))
    }

    async fn model_infer(&self, _: Request<ModelInferRequest>) -> Answer<ModelInferResponse> {
        Err(Status::unimplemented(""))
    }

    type ModelStreamInferStream =
        tonic::codegen::tokio_stream::Empty<Result<ModelStreamInferResponse, Status>>;

    async fn model_stream_infer(
        &self,
        _: Request<tonic::Streaming<ModelInferRequest>>,
    ) -> Answer<Self::ModelStreamInferStream> {
        Err(Status::unimplemented(""))
    }

    async fn model_statistics(
        &self,
        request: Request<ModelStatisticsRequest>,
    ) -> Answer<ModelStatisticsResponse> {
        let request = request.into_inner();
        Self::find(&request.name, "").map_err(|_| {
            Status::invalid_argument(format!(
                "requested model '{}' is not available",
                request.name
            ))
        })?;
        let memory = MemoryUsage {
            r#type: "x".repeat(5 << 20),
            ..MemoryUsage::default()
        };
        Ok(Response::new(ModelStatisticsResponse {
            model_stats: vec![ModelStatistics {
                name: request.name,
                version: "3".to_owned(),
                inference_count: 7,
                memory_usage: vec![memory],
                ..ModelStatistics::default()
            }],
        }))
    }

    async fn repository_index(
        &self,
        _: Request<RepositoryIndexRequest>,
    ) -> Answer<RepositoryIndexResponse> {
        let entry = |name: &str, version: &str, state: &str, reason: &str| ModelIndex {
            name: name.to_owned(),
            version: version.to_owned(),
            state: state.to_owned(),
            reason: reason.to_owned(),
        };
        Ok(Response::new(RepositoryIndexResponse {
            models: vec![
                entry("resnet", "1", "READY", ""),
                entry("resnet", "2", "UNAVAILABLE", "no such file"),
                entry("resnet", "3", "READY", ""),
                entry("pipeline", "1", "READY", ""),
                entry("idle", "", "", ""),
            ],
        }))
    }

    async fn repository_model_load(
        &self,
        request: Request<RepositoryModelLoadRequest>,
    ) -> Answer<RepositoryModelLoadResponse> {
        match request.into_inner().model_name.as_str() {
            "slow" => {
                std::future::pending::<()>().await;
                Err(Status::internal("unreachable"))
            }
            "broken" => Err(Status::invalid_argument(
                "load failed for model 'broken': version 1 is at UNAVAILABLE state: no such file;\n",
            )),
            _ => Ok(Response::new(RepositoryModelLoadResponse {})),
        }
    }

    async fn repository_model_unload(
        &self,
        _: Request<RepositoryModelUnloadRequest>,
    ) -> Answer<RepositoryModelUnloadResponse> {
        Err(Status::unavailable(
            "explicit model load / unload is not allowed if polling is enabled",
        ))
    }
}

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = listener.local_addr().expect("address").port();
    (listener, port)
}

async fn serve(fake: Fake) -> u16 {
    let (listener, port) = listener().await;
    let service = GrpcInferenceServiceServer::new(fake);
    let incoming = TcpIncoming::from(listener);
    tokio::spawn(
        Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming),
    );
    port
}

/// A server with TLS, and the certificate that vouches for it.
async fn serve_tls() -> (u16, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let cert = CertificateParams::new(vec!["triton.test".to_owned()])
        .and_then(|params| params.signed_by(&key, &issuer))
        .expect("a certificate");
    let (listener, port) = listener().await;
    let identity = Identity::from_pem(cert.pem(), key.serialize_pem());
    let server = Server::builder()
        .tls_config(ServerTlsConfig::new().identity(identity))
        .expect("a tls configuration")
        .add_service(GrpcInferenceServiceServer::new(Fake::default()));
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    (port, issuer.pem())
}

fn spec(url: String) -> ServerSpec {
    ServerSpec {
        url,
        metrics_url: None,
        tls: None,
        metadata: Vec::new(),
        launch: Vec::new(),
        stop: Vec::new(),
        explicit_models: false,
    }
}

async fn connect(port: u16) -> Client {
    Client::connect(&spec(format!("127.0.0.1:{port}")), TIMEOUT)
        .await
        .expect("connected")
}

async fn refused(spec: &ServerSpec) -> ClientError {
    Client::connect(spec, TIMEOUT).await.expect_err("refused")
}

#[tokio::test]
async fn a_server_answers_every_question() {
    let mut client = connect(serve(Fake::default()).await).await;
    assert!(client.live().await.expect("answered"));
    // Shutting down is "no", not an error.
    assert!(!client.ready().await.expect("answered"));
    assert!(client.model_ready("resnet", None).await.expect("answered"));
    assert!(!client.model_ready("nothing", None).await.expect("answered"));
    let info = client.server_metadata().await.expect("answered");
    assert_eq!(
        (info.name.as_str(), info.version.as_str()),
        ("triton", "2.51.0")
    );
    let signature = client.signature("resnet", Some("3")).await.expect("found");
    assert_eq!(signature.inputs[0].dims, [4]);
    assert_eq!(signature.version, "3");
    assert_eq!(signature.versions, ["1", "3"]);
    assert_eq!(client.index().await.expect("answered").len(), 5);
    let statistics = client.statistics("resnet").await.expect("5 MiB fit");
    assert_eq!(statistics[0].inference_count, 7);
    client.load("resnet", TIMEOUT).await.expect("loaded");
}

#[tokio::test]
async fn a_snapshot_of_an_ensemble_holds_its_steps() {
    let mut client = connect(serve(Fake::default()).await).await;
    let pipeline = client.signature("pipeline", None).await.expect("found");
    assert_eq!(pipeline.ensemble_steps, ["resnet"]);
    let snapshot = client.snapshot(&pipeline).await.expect("answered");
    assert!(snapshot.has("pipeline") && snapshot.has("resnet"));
}

#[tokio::test]
async fn missing_models_and_versions_name_those_that_are_there() {
    let mut client = connect(serve(Fake::default()).await).await;
    let table = [
        (
            "resnet50",
            None,
            &["did you mean `resnet`?", "loaded: pipeline, resnet"][..],
        ),
        ("zzz", None, &["zzz", "loaded: pipeline, resnet"]),
        ("resnet", Some("9"), &["no version `9`", "ready: 1, 3"]),
        ("resnet", Some("2"), &["is UNAVAILABLE (no such file)"]),
        ("idle", None, &["in the repository but not loaded"]),
    ];
    for (model, version, parts) in table {
        let error = client.signature(model, version).await.expect_err("missing");
        for part in parts {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
    let error = client.statistics("resnet5").await.expect_err("missing");
    assert!(matches!(error, ClientError::UnknownModel { .. }), "{error}");
}

#[tokio::test]
async fn loading_has_its_own_errors_and_deadline() {
    let mut client = connect(serve(Fake::default()).await).await;
    let error = client.load("broken", TIMEOUT).await.expect_err("broken");
    assert!(error.to_string().contains("no such file"), "{error}");
    let error = client.unload("resnet").await.expect_err("not explicit");
    assert!(
        error.to_string().contains("--model-control-mode=explicit"),
        "{error}"
    );
    let patience = Duration::from_millis(50);
    let error = client.load("slow", patience).await.expect_err("too slow");
    assert!(matches!(error, ClientError::Timeout { waited, .. } if waited == patience));
}

#[tokio::test]
async fn metadata_is_sent_and_its_absence_is_told() {
    let port = serve(Fake {
        token: Some("Bearer t0ken"),
    })
    .await;
    let mut spec = spec(format!("127.0.0.1:{port}"));
    let error = refused(&spec).await;
    assert!(matches!(error, ClientError::Unauthorized { .. }), "{error}");
    assert!(error.to_string().contains("[server] metadata"), "{error}");
    spec.metadata = vec![("authorization".to_owned(), Secret::new("Bearer t0ken"))];
    let mut client = Client::connect(&spec, TIMEOUT).await.expect("let in");
    assert!(client.live().await.expect("answered"));
}

#[tokio::test]
async fn a_closed_port_is_refused() {
    let (listener, port) = listener().await;
    drop(listener);
    let error = refused(&spec(format!("127.0.0.1:{port}"))).await;
    assert!(matches!(error, ClientError::Refused { .. }), "{error}");
    assert!(
        error.to_string().contains("still loading its models"),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_without_an_address_is_told() {
    let error = refused(&spec("triton.invalid:8001".to_owned())).await;
    assert!(matches!(error, ClientError::NotResolved { .. }), "{error}");
}

#[tokio::test]
async fn a_silent_server_is_a_timeout() {
    let (_listener, port) = listener().await;
    let spec = spec(format!("127.0.0.1:{port}"));
    let patience = Duration::from_millis(200);
    let error = Client::connect(&spec, patience).await.expect_err("silent");
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn tritons_other_ports_are_recognised() {
    let table = [
        ("GET /v2", r#"{"extensions":[]}"#, PortKind::TritonHttp, 1),
        ("GET /metrics", "# HELP nv_x y\n", PortKind::Metrics, -1),
    ];
    for (start, body, kind, step) in table {
        let (listener, port) = listener().await;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 512];
                let count = tokio::io::AsyncReadExt::read(&mut stream, &mut request).await;
                let request = &request[..count.unwrap_or(0)];
                let body = if request.starts_with(start.as_bytes()) {
                    body
                } else {
                    ""
                };
                let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let error = refused(&spec(format!("127.0.0.1:{port}"))).await;
        assert!(
            matches!(error, ClientError::WrongPort { kind: found, .. } if found == kind),
            "{error}"
        );
        let other = i32::from(port) + step;
        assert!(
            error
                .to_string()
                .contains(&format!("try 127.0.0.1:{other}")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn grpc_that_is_not_triton_is_told() {
    let (listener, port) = listener().await;
    // A server without any service answers UNIMPLEMENTED to everything.
    let server = Server::builder().add_routes(tonic::service::Routes::default());
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let error = refused(&spec(format!("127.0.0.1:{port}"))).await;
    assert!(matches!(error, ClientError::NotTriton { .. }), "{error}");
}

#[tokio::test]
async fn tls_works_and_its_absence_or_surplus_is_told() {
    let (port, ca) = serve_tls().await;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, ca).expect("written");
    let tls = Tls {
        ca: Some(path.clone()),
        domain: Some("triton.test".to_owned()),
        ..Tls::default()
    };
    let mut spec = spec(format!("127.0.0.1:{port}"));
    spec.tls = Some(tls.clone());
    let mut client = Client::connect(&spec, TIMEOUT).await.expect("trusted");
    assert!(client.live().await.expect("answered"));

    spec.tls = Some(Tls {
        domain: Some("other.test".to_owned()),
        ..tls.clone()
    });
    let error = refused(&spec).await;
    assert!(matches!(error, ClientError::Handshake { .. }), "{error}");
    assert!(error.to_string().contains("tls.domain"), "{error}");

    spec.tls = None;
    let error = refused(&spec).await;
    assert!(matches!(error, ClientError::NeedsTls { .. }), "{error}");

    spec.url = format!("127.0.0.1:{}", serve(Fake::default()).await);
    spec.tls = Some(tls);
    let error = refused(&spec).await;
    assert!(matches!(error, ClientError::NotTls { .. }), "{error}");
}
