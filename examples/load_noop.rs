//! How fast and how cheap the load engine is: requests per second and CPU time per request at
//! several concurrencies, against a server that does nothing.
//!
//! `cargo run --release --example load_noop -- [--url HOST:PORT] [--model NAME] [--bytes N]
//! [--seconds S]`; without `--url` a server is started in this process, on its own threads.
//! With `--serve` it only serves, for other clients, and prints its address.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Parser;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body as _, Frame};
use tonic::body::Body;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use triton_gate::data::{Auto, ServerSpec, Side};
use triton_gate::load::{Counting, Engine, LoadSpec, Ramp, Stop, Stretch};
use triton_gate::triton::proto::inference::model_infer_request::InferInputTensor;
use triton_gate::triton::proto::inference::{ModelInferRequest, ModelInferResponse};

#[derive(Parser)]
struct Options {
    /// A server to load instead of one in this process.
    #[arg(long)]
    url: Option<String>,
    /// The model to ask.
    #[arg(long, default_value = "noop")]
    model: String,
    /// Bytes of the one input.
    #[arg(long, default_value_t = 64)]
    bytes: u32,
    /// Seconds of load at each concurrency.
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Requests in flight.
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64")]
    concurrency: Vec<u32>,
    /// Worker threads; none lets the engine choose.
    #[arg(long)]
    workers: Option<u32>,
    /// Connections; none lets the engine choose.
    #[arg(long)]
    connections: Option<u32>,
    /// Writes the request to a file, for other clients.
    #[arg(long)]
    dump: Option<std::path::PathBuf>,
    /// Only serve.
    #[arg(long)]
    serve: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let frame = framed(&ModelInferRequest {
        model_name: options.model.clone(),
        inputs: vec![InferInputTensor {
            name: "IN".to_owned(),
            datatype: "UINT8".to_owned(),
            shape: vec![i64::from(options.bytes)],
            ..InferInputTensor::default()
        }],
        raw_input_contents: vec![vec![0; options.bytes as usize].into()],
        ..ModelInferRequest::default()
    });
    if let Some(path) = &options.dump {
        std::fs::write(path, &frame).with_context(|| format!("writing {}", path.display()))?;
    }
    let url = match &options.url {
        Some(url) => url.clone(),
        None => serve()?.to_string(),
    };
    if options.serve {
        println!("{url}");
        loop {
            std::thread::park();
        }
    }
    println!(
        "concurrency  connections  workers  req/s  CPU us/request  p50 us  p99 us  CPU  errors"
    );
    for concurrency in &options.concurrency {
        measure(&options, &url, &frame, *concurrency)?;
    }
    Ok(())
}

fn measure(options: &Options, url: &str, frame: &Bytes, concurrency: u32) -> anyhow::Result<()> {
    let fixed = |value: Option<u32>| value.map_or(Auto::Auto, Auto::Fixed);
    let mut engine = Engine::start(&LoadSpec {
        server: ServerSpec {
            url: url.to_owned(),
            metrics_url: None,
            tls: None,
            metadata: Vec::new(),
            launch: Vec::new(),
            stop: Vec::new(),
            explicit_models: false,
        },
        frames: vec![frame.clone()],
        batch: 1,
        concurrency,
        workers: fixed(options.workers),
        connections: fixed(options.connections),
        request_timeout: Duration::from_secs(10),
    })?;
    let outcome = engine.run(
        &Stretch {
            side: Side::Candidate,
            first_index: 0,
            ramp: Ramp::Standard,
            blocks: 1,
            block: Duration::from_secs(options.seconds.into()),
            counting: Counting::Contiguous,
            deadline: None,
        },
        &Stop::new(),
    )?;
    let shape = engine.shape();
    let block = outcome.blocks.first().context("no block was completed")?;
    // Exact with one worker; an upper bound with several.
    let cpu = block.client.cpu.unwrap_or(f64::NAN);
    let per_request = cpu * f64::from(shape.workers) * block.duration_ns as f64
        / 1e3
        / block.requests.max(1) as f64;
    println!(
        "{concurrency:>11}  {:>11}  {:>7}  {:>5.0}  {per_request:>14.1}  {:>6.0}  {:>6.0}  {cpu:>3.2}  {}",
        shape.connections,
        shape.workers,
        block.throughput(),
        block.latency.p50.unwrap_or(f64::NAN),
        block.latency.p99.unwrap_or(f64::NAN),
        outcome.failed(),
    );
    for (class, example) in &outcome.examples {
        println!("  {class}: {example}");
    }
    Ok(())
}

fn framed(message: &impl prost::Message) -> Bytes {
    let body = message.encode_to_vec();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut framed = vec![0];
    framed.extend(length.to_be_bytes());
    framed.extend(body);
    framed.into()
}

fn serve() -> anyhow::Result<SocketAddr> {
    let (tell, told) = std::sync::mpsc::channel();
    let answer = framed(&ModelInferResponse {
        model_name: "noop".to_owned(),
        model_version: "1".to_owned(),
        raw_output_contents: vec![vec![0; 64].into()],
        ..ModelInferResponse::default()
    });
    std::thread::spawn(move || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            tell.send(listener.local_addr()?)?;
            Server::builder()
                .initial_stream_window_size(4 << 20)
                .initial_connection_window_size(4 << 20)
                .max_frame_size(4 << 20)
                .add_service(Noop { answer })
                .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
                .await?;
            Ok(())
        })
    });
    told.recv().context("the server did not start")
}

/// Reads a request to its end and answers with the same bytes always.
#[derive(Clone)]
struct Noop {
    answer: Bytes,
}

impl tonic::server::NamedService for Noop {
    const NAME: &'static str = "inference.GRPCInferenceService";
}

impl tower_service::Service<Request<Body>> for Noop {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.answer.clone();
        Box::pin(async move {
            let mut body = request.into_body();
            while let Some(Ok(_)) =
                std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
            {
            }
            Ok(Response::new(Body::new(Answer(Some(answer), false))))
        })
    }
}

struct Answer(Option<Bytes>, bool);

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(answer) = self.0.take() {
            return Poll::Ready(Some(Ok(Frame::data(answer))));
        }
        if std::mem::replace(&mut self.1, true) {
            return Poll::Ready(None);
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}
