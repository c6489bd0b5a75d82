use std::time::Duration;

use super::endpoint_error::EndpointError;
use super::port_probe::PortKind;
use super::signature::SignatureError;
use crate::data::ErrorClass;

/// Why Triton could not be reached or asked; every message says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address, TLS files or metadata.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The host has no address.
    #[error(
        "cannot resolve `{host}`: {reason}; check the spelling of [server] url, or use an IP address"
    )]
    NotResolved {
        /// The host.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// Nothing listens there.
    #[error(
        "nothing listens at {address}: Triton is not running there or is still loading its models (its ports open after that); start it, or set [server] url or --url"
    )]
    Refused {
        /// `host:port`.
        address: String,
    },
    /// No answer in time.
    #[error(
        "no answer from {address} within {waited:?} ({doing}): check the address, firewalls, and whether the server hangs"
    )]
    Timeout {
        /// `host:port`.
        address: String,
        /// The deadline.
        waited: Duration,
        /// What was waited for: `connecting`, or a method.
        doing: &'static str,
    },
    /// Another of Triton's ports, or another server.
    #[error("{address} is {kind}, not Triton's gRPC endpoint: {next}")]
    WrongPort {
        /// `host:port`.
        address: String,
        /// What answers there.
        kind: PortKind,
        /// What to try.
        next: String,
    },
    /// TLS spoken to in plain text.
    #[error(
        "{address} is a TLS endpoint, spoken to in plain text: write grpcs://{address}, and [server] tls = {{ ca = \"ca.pem\" }} for a private authority"
    )]
    NeedsTls {
        /// `host:port`.
        address: String,
    },
    /// Plain text spoken to in TLS.
    #[error(
        "{address} does not speak TLS: write grpc://{address} and remove [server] tls if plain text is meant"
    )]
    NotTls {
        /// `host:port`.
        address: String,
    },
    /// The TLS handshake failed.
    #[error(
        "the TLS handshake with {address} failed: {reason}; check tls.ca (who signed the server), tls.domain (the name in its certificate), tls.cert and tls.key"
    )]
    Handshake {
        /// `host:port`.
        address: String,
        /// What the TLS library said.
        reason: String,
    },
    /// The connection could not be made or broke.
    #[error("the connection to {address} failed: {reason}; look at the server's log")]
    Connection {
        /// `host:port`.
        address: String,
        /// What happened.
        reason: String,
    },
    /// A gRPC server that is not Triton.
    #[error(
        "{address} speaks gRPC but not Triton's protocol ({reason}): is another service on this port? Triton's gRPC port is 8001 by default"
    )]
    NotTriton {
        /// `host:port`.
        address: String,
        /// What it said.
        reason: String,
    },
    /// Credentials missing or refused.
    #[error(
        "{address} refuses {method}: {message}; set the header that it expects under [server] metadata"
    )]
    Unauthorized {
        /// `host:port`.
        address: String,
        /// The method.
        method: &'static str,
        /// The server's words.
        message: String,
    },
    /// A model that the server does not have.
    #[error("model `{model}` is not on {address}: {}", known_models(.loaded, .nearest.as_deref()))]
    UnknownModel {
        /// `host:port`.
        address: String,
        /// The model asked for.
        model: String,
        /// The models that are ready.
        loaded: Vec<String>,
        /// The ready model whose name is most like it.
        nearest: Option<String>,
    },
    /// A version that the server does not have.
    #[error(
        "model `{model}` has no version `{version}` on {address}: {}", known_versions(.versions)
    )]
    UnknownVersion {
        /// `host:port`.
        address: String,
        /// The model.
        model: String,
        /// The version asked for.
        version: String,
        /// The versions that are ready.
        versions: Vec<String>,
    },
    /// A model that is there and not ready.
    #[error(
        "model `{model}` on {address} is {state}{}: wait until it is loaded, or look at the server's log", reason_text(.reason)
    )]
    ModelNotReady {
        /// `host:port`.
        address: String,
        /// The model.
        model: String,
        /// Its state in the repository index.
        state: String,
        /// Why, in the server's words; may be empty.
        reason: String,
    },
    /// Loading or unloading is not allowed on this server.
    #[error(
        "{address} does not allow loading models ({message}): start Triton with --model-control-mode=explicit, or remove [server] model_control"
    )]
    NotExplicit {
        /// `host:port`.
        address: String,
        /// The server's words.
        message: String,
    },
    /// The server's answer to a call was an error of another kind.
    #[error("{method} on {address} failed ({class}): {message}")]
    Call {
        /// `host:port`.
        address: String,
        /// The method.
        method: &'static str,
        /// The class.
        class: ErrorClass,
        /// The server's words.
        message: String,
    },
    /// The model cannot be described.
    #[error(transparent)]
    Signature(#[from] SignatureError),
}

impl ClientError {
    /// A stable word for machines.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Endpoint(_) => "server_address",
            Self::NotResolved { .. } => "server_not_resolved",
            Self::Refused { .. } => "server_refused",
            Self::Timeout { .. } => "server_timeout",
            Self::WrongPort { .. } => "server_wrong_port",
            Self::NeedsTls { .. } | Self::NotTls { .. } | Self::Handshake { .. } => "server_tls",
            Self::Connection { .. } => "server_connection",
            Self::NotTriton { .. } => "server_not_triton",
            Self::Unauthorized { .. } => "server_unauthorized",
            Self::UnknownModel { .. } => "model_unknown",
            Self::UnknownVersion { .. } => "model_version_unknown",
            Self::ModelNotReady { .. } => "model_not_ready",
            Self::NotExplicit { .. } => "model_control",
            Self::Call { .. } => "server_error",
            Self::Signature(_) => "model_signature",
        }
    }
}

fn known_models(loaded: &[String], nearest: Option<&str>) -> String {
    if loaded.is_empty() {
        return "no model is loaded; look at the server's log and its --model-repository"
            .to_owned();
    }
    let hint = nearest.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    format!("{hint}loaded: {}", loaded.join(", "))
}

fn known_versions(versions: &[String]) -> String {
    if versions.is_empty() {
        "no version is ready; look at the server's log".to_owned()
    } else {
        format!(
            "ready: {}; set one of them, or leave `version` out",
            versions.join(", ")
        )
    }
}

fn reason_text(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(" ({})", reason.trim_end())
    }
}
