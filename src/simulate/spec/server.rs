use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::{ModelSpec, duration};

/// The simulated server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimulateSpec {
    /// Version of this file's layout.
    pub schema: u32,
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Server name in `ServerMetadata`.
    pub name: String,
    /// Server version in `ServerMetadata`.
    pub version: String,
    /// Seed of every random draw: two servers with one seed draw the same latencies.
    pub seed: u64,
    /// Threads that serve requests.
    pub threads: u32,
    /// Whether models can be loaded and unloaded by clients.
    pub model_control: ModelControl,
    /// The server says that it is not ready for this long after its start.
    #[serde(deserialize_with = "duration::required")]
    pub ready_after: Duration,
    /// How long a shutdown waits for requests in flight.
    #[serde(deserialize_with = "duration::required")]
    pub shutdown_grace: Duration,
    /// CSV file of true times, one row a request.
    pub log: Option<PathBuf>,
    /// TLS; without it the port is plain text.
    pub tls: Option<TlsSpec>,
    /// The models.
    #[serde(rename = "model")]
    pub models: Vec<ModelSpec>,
}

/// The layout that this version reads and writes.
pub(super) const SCHEMA: u32 = 1;

/// How the server proves who it is, and whom it lets in. Files in PEM format.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// Its certificate, with those between it and the authority.
    pub cert: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
    /// Authority that must have signed a client's certificate; none lets everybody in.
    pub client_ca: Option<PathBuf>,
}

/// Who decides which models are loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelControl {
    /// The server alone: load and unload are refused.
    None,
    /// Clients too.
    #[default]
    Explicit,
}

impl Default for SimulateSpec {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8001)),
            name: "triton".to_owned(),
            version: "2.51.0".to_owned(),
            seed: 1,
            threads: 2,
            model_control: ModelControl::default(),
            ready_after: Duration::ZERO,
            shutdown_grace: Duration::from_secs(2),
            log: None,
            tls: None,
            models: Vec::new(),
        }
    }
}

impl SimulateSpec {
    /// A server without models on a free port of 127.0.0.1.
    pub fn on_free_port() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            ..Self::default()
        }
    }

    /// Adds a model.
    #[must_use]
    pub fn model(mut self, model: ModelSpec) -> Self {
        self.models.push(model);
        self
    }
}
