//! A small server for tests that answers as it is told.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use prost::Message as _;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::data::{Auto, ServerSpec};
use crate::load::LoadSpec;
use crate::triton::proto::inference::{
    ModelInferRequest, ModelInferResponse, model_infer_request::InferInputTensor,
    model_infer_response::InferOutputTensor,
};

/// What the server does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A good response with so many output bytes.
    Good { bytes: usize },
    /// The same, later.
    Late { after: Duration },
    /// A gRPC error.
    Error { code: i32, message: &'static str },
    /// An answer from something that is no gRPC server.
    Http(u16),
    /// This body, then status 0.
    Raw(Vec<u8>),
    /// A body and no trailers.
    NoStatus,
    /// No answer ever.
    Never,
}

/// What the server saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) undecodable: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) most_in_flight: AtomicU64,
    pub(crate) with_metadata: AtomicU64,
}

impl Seen {
    pub(crate) fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::SeqCst)
    }
}

/// Counts a request as in flight until its answer is handed over or dropped.
struct Present(Arc<Seen>);

impl Present {
    fn new(seen: &Arc<Seen>) -> Self {
        let now = seen.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most_in_flight.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(seen))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

type Script = Arc<dyn Fn(u64) -> Reply + Send + Sync>;

#[derive(Clone)]
struct Service {
    script: Script,
    seen: Arc<Seen>,
}

impl tonic::server::NamedService for Service {
    const NAME: &'static str = "inference.GRPCInferenceService";
}

impl tower_service::Service<Request<Body>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (script, seen) = (Arc::clone(&self.script), Arc::clone(&self.seen));
        Box::pin(async move { Ok(answer(request, script, seen).await) })
    }
}

async fn answer(request: Request<Body>, script: Script, seen: Arc<Seen>) -> Response<Body> {
    let present = Present::new(&seen);
    let number = seen.requests.fetch_add(1, Ordering::SeqCst);
    if request.headers().contains_key("authorization") {
        seen.with_metadata.fetch_add(1, Ordering::SeqCst);
    }
    let Ok(body) = request.into_body().collect().await else {
        std::future::pending::<()>().await;
        unreachable!("a request that broke off is dropped");
    };
    let body = body.to_bytes();
    seen.bytes.fetch_add(body.len() as u64, Ordering::SeqCst);
    if body.len() < 5 || ModelInferRequest::decode(body.slice(5..)).is_err() {
        seen.undecodable.fetch_add(1, Ordering::SeqCst);
    }
    let ok = [("grpc-status", "0".to_owned())];
    let (frames, trailers): (Vec<Bytes>, Vec<(&str, String)>) = match script(number) {
        Reply::Good { bytes } => (vec![frame(&response(bytes))], ok.into()),
        Reply::Late { after } => {
            tokio::time::sleep(after).await;
            (vec![frame(&response(8))], ok.into())
        }
        Reply::Error { code, message } => (
            vec![],
            vec![
                ("grpc-status", code.to_string()),
                ("grpc-message", message.to_owned()),
            ],
        ),
        Reply::Raw(body) => (vec![body.into()], ok.into()),
        Reply::NoStatus => (vec![frame(&response(8))], vec![]),
        Reply::Http(status) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = status.try_into().unwrap();
            return response;
        }
        Reply::Never => {
            std::future::pending::<()>().await;
            unreachable!("never is never over");
        }
    };
    let headers: HeaderMap = trailers
        .into_iter()
        .map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_str(&value).unwrap(),
            )
        })
        .collect();
    if frames.is_empty() {
        let mut response = Response::new(Body::empty());
        *response.headers_mut() = headers;
        return response;
    }
    let mut frames: Vec<Frame<Bytes>> = frames.into_iter().map(Frame::data).collect();
    if !headers.is_empty() {
        frames.push(Frame::trailers(headers));
    }
    frames.reverse();
    Response::new(Body::new(Frames {
        frames,
        _present: present,
    }))
}

struct Frames {
    /// The next one last.
    frames: Vec<Frame<Bytes>>,
    _present: Present,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.frames.pop().map(Ok))
    }
}

/// A message with its gRPC prefix.
pub(crate) fn frame(message: &impl prost::Message) -> Bytes {
    let body = message.encode_to_vec();
    let mut framed = vec![0];
    framed.extend((body.len() as u32).to_be_bytes());
    framed.extend(body);
    framed.into()
}

/// A response with one output.
pub(crate) fn response(bytes: usize) -> ModelInferResponse {
    ModelInferResponse {
        model_name: "m".into(),
        model_version: "3".into(),
        outputs: vec![InferOutputTensor {
            name: "OUT".into(),
            datatype: "UINT8".into(),
            shape: vec![i64::try_from(bytes).unwrap()],
            ..InferOutputTensor::default()
        }],
        raw_output_contents: vec![vec![7; bytes].into()],
        ..ModelInferResponse::default()
    }
}

/// A request with one input.
pub(crate) fn request(bytes: usize) -> Bytes {
    frame(&ModelInferRequest {
        model_name: "m".into(),
        inputs: vec![InferInputTensor {
            name: "IN".into(),
            datatype: "UINT8".into(),
            shape: vec![i64::try_from(bytes).unwrap()],
            ..InferInputTensor::default()
        }],
        raw_input_contents: vec![vec![5; bytes].into()],
        ..ModelInferRequest::default()
    })
}

/// A running server; dropping it breaks its connections.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    runtime: Option<Runtime>,
}

impl TestServer {
    pub(crate) fn start(script: impl Fn(u64) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0".parse().unwrap(), script)
    }

    pub(crate) fn start_on(
        address: SocketAddr,
        script: impl Fn(u64) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let seen = Arc::new(Seen::default());
        let service = Service {
            script: Arc::new(script),
            seen: Arc::clone(&seen),
        };
        let address = runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            socket.bind(address).unwrap();
            let listener = socket.listen(64).unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(
                Server::builder()
                    .initial_stream_window_size(4 << 20)
                    .initial_connection_window_size(4 << 20)
                    .add_service(service)
                    .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true))),
            );
            address
        });
        Self {
            address,
            seen,
            runtime: Some(runtime),
        }
    }

    /// A load of small requests against this server.
    pub(crate) fn load(&self, concurrency: u32) -> LoadSpec {
        load(self.address, concurrency)
    }

    /// Waits until the server too has noticed that nothing is in flight.
    pub(crate) fn settles(&self) -> bool {
        (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            Seen::get(&self.seen.in_flight) == 0
        })
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A load of small requests.
pub(crate) fn load(address: SocketAddr, concurrency: u32) -> LoadSpec {
    LoadSpec {
        server: ServerSpec {
            url: address.to_string(),
            metrics_url: None,
            tls: None,
            metadata: Vec::new(),
            launch: Vec::new(),
            stop: Vec::new(),
            explicit_models: false,
        },
        frames: vec![request(64)],
        batch: 1,
        concurrency,
        workers: Auto::Auto,
        connections: Auto::Auto,
        request_timeout: Duration::from_secs(5),
    }
}
