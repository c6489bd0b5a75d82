use std::path::PathBuf;

/// Why a server's address, TLS files or metadata cannot be used. Never holds a secret value.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Nothing written.
    #[error("the server's url is empty: expected HOST:PORT, like localhost:8001")]
    Empty,
    /// A scheme that is not gRPC's.
    #[error(
        "url `{url}` has the scheme `{scheme}`: expected HOST:PORT, grpc://, http://, grpcs:// or https://"
    )]
    Scheme {
        /// As written.
        url: String,
        /// What stands before `://`.
        scheme: String,
    },
    /// A user name or password in the address.
    #[error(
        "the server's url holds a user name or password: leave it out and send credentials as metadata, [server] metadata = {{ authorization = \"Bearer ${{TOKEN}}\" }}"
    )]
    Credentials,
    /// A path, query or fragment.
    #[error(
        "url `{url}` has a path, query or fragment after the port: gRPC needs HOST:PORT alone, write `{instead}`"
    )]
    Path {
        /// As written.
        url: String,
        /// The same without.
        instead: String,
    },
    /// No host before the port.
    #[error("url `{url}` has no host: expected HOST:PORT, like localhost:8001")]
    NoHost {
        /// As written.
        url: String,
    },
    /// A host with characters that no host has.
    #[error("url `{url}`: `{host}` is not a host name or address")]
    Host {
        /// As written.
        url: String,
        /// The part that is wrong.
        host: String,
    },
    /// IPv6 without brackets, or brackets around something else.
    #[error("url `{url}`: an IPv6 address stands in brackets before the port, like [::1]:8001")]
    Brackets {
        /// As written.
        url: String,
    },
    /// Not a port.
    #[error("url `{url}`: `{port}` is not a port: expected a number from 1 to 65535")]
    Port {
        /// As written.
        url: String,
        /// What stands after the colon.
        port: String,
    },
    /// A TLS file that cannot be read.
    #[error("cannot read tls.{key} = {path:?}: {source}")]
    TlsFile {
        /// `ca`, `cert` or `key`.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A TLS file that is not PEM.
    #[error(
        "tls.{key} = {path:?} holds no `{expected}`: expected a PEM file (convert DER with `openssl x509 -inform der` or `openssl pkey -inform der`)"
    )]
    NotPem {
        /// `ca`, `cert` or `key`.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What such a file holds.
        expected: &'static str,
    },
    /// A certificate without its key, or the reverse.
    #[error("tls.{given} is set without tls.{missing}: a client certificate needs both")]
    HalfIdentity {
        /// What is set.
        given: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// TLS settings that do not work together.
    #[error("the tls settings cannot be used: {reason}")]
    Tls {
        /// What the TLS library said.
        reason: String,
    },
    /// A metadata key that may not be sent.
    #[error("metadata key `{key}` cannot be sent: {reason}")]
    MetadataKey {
        /// The key.
        key: String,
        /// Why.
        reason: &'static str,
    },
    /// A metadata value that may not be sent; the value itself is not shown.
    #[error("the value of metadata key `{key}` cannot be sent: {reason}")]
    MetadataValue {
        /// The key.
        key: String,
        /// Why.
        reason: &'static str,
    },
}
