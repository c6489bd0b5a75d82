use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use super::super::core::Core;
use super::super::log::Log;
use super::super::pacer::Pacer;
use super::super::service::{HealthService, InferenceService};
use super::super::spec::{SimulateError, SimulateSpec, TlsSpec, check};
use super::connection::Incoming;
use crate::triton::proto::health::health_server::HealthServer;
use crate::triton::proto::inference::grpc_inference_service_server::GrpcInferenceServiceServer;

/// What Triton 2.51 announces: windows and frames of 4 MiB, headers of 16 KiB, any number of
/// concurrent streams.
const WINDOW: u32 = 4 * 1024 * 1024;
const HEADERS: u32 = 16 * 1024;
/// The largest message, both ways.
const LARGEST_MESSAGE: usize = i32::MAX as usize;
/// How long open connections may take to end once requests have.
const CONNECTIONS_END: Duration = Duration::from_millis(250);
const DRAIN_POLL: Duration = Duration::from_millis(1);

/// Starts simulated servers.
#[derive(Debug)]
pub struct Server;

/// A server that is up, on threads of its own. Dropping it ends it without waiting for requests.
pub struct Running {
    addr: SocketAddr,
    core: Arc<Core>,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<Result<(), String>>>,
    pacer: Option<JoinHandle<()>>,
    log: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server; it answers when this returns.
    ///
    /// # Errors
    /// A value of the description that makes no sense, an address that cannot be listened on, a
    /// log that cannot be created, or a thread that cannot be started.
    pub fn start(spec: SimulateSpec) -> Result<Running, SimulateError> {
        check(&spec).map_err(|complaint| SimulateError::Spec {
            key: complaint.key(),
            message: complaint.message,
        })?;
        let bind = |source| SimulateError::Bind {
            address: spec.listen,
            source,
        };
        let mut builder = tonic::transport::Server::builder();
        if let Some(tls) = &spec.tls {
            builder = with_tls(builder, tls)?;
        }
        let listener = TcpListener::bind(spec.listen).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let addr = listener.local_addr().map_err(bind)?;
        let thread = |what| move |source| SimulateError::Thread { what, source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(spec.threads as usize)
            .thread_name("simulate-serve")
            .enable_all()
            .build()
            .map_err(thread("the server's runtime"))?;
        let epoch = Instant::now();
        let (log, log_thread) = match &spec.log {
            Some(path) => {
                let (log, thread) = Log::create(path, epoch)?;
                (Some(log), Some(thread))
            }
            None => (None, None),
        };
        let (pacer, pacer_thread) = Pacer::start().map_err(thread("the pacer"))?;
        let core = Arc::new(Core::new(spec, epoch, pacer, log));
        let (stop, stopped) = oneshot::channel();
        let mut running = Running {
            addr,
            core: Arc::clone(&core),
            stop: Some(stop),
            server: None,
            pacer: Some(pacer_thread),
            log: log_thread,
        };
        let server = std::thread::Builder::new()
            .name("simulate-main".to_owned())
            .spawn(move || serve(runtime, &core, listener, builder, stopped))
            .map_err(thread("the server"))?;
        running.server = Some(server);
        Ok(running)
    }

    /// Starts a server, tells its address, and ends it in order when `signal` resolves.
    ///
    /// # Errors
    /// As [`Server::start`], and a server that ended by itself.
    pub fn run_until(
        spec: SimulateSpec,
        started: impl FnOnce(SocketAddr),
        signal: impl Future<Output = ()>,
    ) -> Result<(), SimulateError> {
        let waiting = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| SimulateError::Thread {
                what: "the signal's runtime",
                source,
            })?;
        let running = Self::start(spec)?;
        started(running.addr());
        waiting.block_on(signal);
        running.shutdown()
    }
}

impl Running {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address as a client's URL takes it: `127.0.0.1:8001`.
    pub fn url(&self) -> String {
        self.addr.to_string()
    }

    /// How many requests of a model passed validation since the start; 0 for an unknown model.
    pub fn requests(&self, model: &str) -> u64 {
        self.core
            .models
            .get(model)
            .map_or(0, |model| model.requests())
    }

    /// Lets no further request in: from now on the server answers as one that is stopping.
    /// Requests in flight go on.
    pub fn begin_shutdown(&self) {
        self.core.stop();
    }

    /// Ends in order: no new requests, those in flight complete within the grace, then
    /// connections close. Blocks.
    ///
    /// # Errors
    /// A server that had ended by itself.
    pub fn shutdown(mut self) -> Result<(), SimulateError> {
        self.begin_shutdown();
        let latest = Instant::now() + self.core.spec.shutdown_grace;
        while self.core.in_flight() > 0 && Instant::now() < latest {
            std::thread::sleep(DRAIN_POLL);
        }
        self.end()
    }

    fn end(&mut self) -> Result<(), SimulateError> {
        self.core.stop();
        if let Some(stop) = self.stop.take() {
            // The server may have ended by itself; its thread says why.
            let _ = stop.send(());
        }
        let served = self.server.take().map(JoinHandle::join);
        self.core.pacer.stop();
        if let Some(pacer) = self.pacer.take() {
            let _ = pacer.join();
        }
        if let Some(log) = &self.core.log {
            log.close();
        }
        if let Some(log) = self.log.take() {
            let _ = log.join();
        }
        match served {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(message))) => Err(SimulateError::Serve { message }),
            Some(Err(_)) => Err(SimulateError::Serve {
                message: "the server's thread panicked".to_owned(),
            }),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.end();
    }
}

/// An error with its causes: tonic's own words are only "transport error".
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}

fn with_tls(
    builder: tonic::transport::Server,
    spec: &TlsSpec,
) -> Result<tonic::transport::Server, SimulateError> {
    let read = |path: &Path| {
        let wrong = |reason: String| SimulateError::Tls {
            path: path.to_owned(),
            reason,
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        if !text.contains("-----BEGIN ") {
            return Err(wrong("it holds no PEM block".to_owned()));
        }
        Ok(text)
    };
    let identity = Identity::from_pem(read(&spec.cert)?, read(&spec.key)?);
    let mut config = ServerTlsConfig::new().identity(identity);
    if let Some(path) = &spec.client_ca {
        config = config.client_ca_root(Certificate::from_pem(read(path)?));
    }
    builder
        .tls_config(config)
        .map_err(|error| SimulateError::Tls {
            path: spec.cert.clone(),
            reason: format!("with its key: {}", chain(&error)),
        })
}

/// The body of the server's thread.
fn serve(
    runtime: Runtime,
    core: &Arc<Core>,
    listener: TcpListener,
    builder: tonic::transport::Server,
    stopped: oneshot::Receiver<()>,
) -> Result<(), String> {
    let result = runtime.block_on(async {
        let listener =
            tokio::net::TcpListener::from_std(listener).map_err(|error| error.to_string())?;
        let inference = GrpcInferenceServiceServer::new(InferenceService(Arc::clone(core)))
            .max_decoding_message_size(LARGEST_MESSAGE)
            .max_encoding_message_size(LARGEST_MESSAGE);
        let health = HealthServer::new(HealthService(Arc::clone(core)));
        let (told, tell) = oneshot::channel();
        let serving = builder
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_frame_size(WINDOW)
            .http2_max_header_list_size(HEADERS)
            .add_service(inference)
            .add_service(health)
            .serve_with_incoming_shutdown(Incoming(listener), async move {
                // A dropped handle ends the server too.
                let _ = stopped.await;
                let _ = told.send(());
            });
        let overdue = async move {
            let _ = tell.await;
            tokio::time::sleep(CONNECTIONS_END).await;
        };
        tokio::select! {
            served = serving => served.map_err(|error| error.to_string()),
            () = overdue => Ok(()),
        }
    });
    runtime.shutdown_timeout(CONNECTIONS_END);
    result
}
