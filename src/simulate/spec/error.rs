use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the simulated server could not be described, started, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The file is not TOML, has an unknown key, or a value of the wrong type.
    #[error("failed to read {file}, line {line}: {message}")]
    Syntax {
        /// The file as the caller named it.
        file: String,
        /// Line from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// A value in a file makes no sense.
    #[error("failed to use {file}, line {line}: `{key}` {message}")]
    Value {
        /// The file as the caller named it.
        file: String,
        /// Line from 1.
        line: usize,
        /// Path of the key, such as `model[0].instances`.
        key: String,
        /// What was expected.
        message: String,
    },
    /// A value of a description built in code makes no sense.
    #[error("failed to use the description of the simulated server: `{key}` {message}")]
    Spec {
        /// Path of the key, such as `model[0].instances`.
        key: String,
        /// What was expected.
        message: String,
    },
    /// The address could not be listened on.
    #[error(
        "failed to listen on {address}: {source}; choose another with `listen`, or port 0 for a free one"
    )]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The request log could not be created.
    #[error(
        "failed to create the request log {path}: {source}; its folder must exist and be writable"
    )]
    Log {
        /// The file asked for.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file of the TLS settings could not be used.
    #[error("failed to use the TLS file {path}: {reason}; it must be readable and in PEM format")]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A thread or the runtime could not be started.
    #[error("failed to start {what}: {source}")]
    Thread {
        /// Which part.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The server ended by itself.
    #[error("failed while serving: {message}")]
    Serve {
        /// The transport's reason.
        message: String,
    },
}
