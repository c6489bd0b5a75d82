use std::fmt;
use std::net::Ipv6Addr;
use std::path::Path;
use std::time::Duration;

use http::HeaderMap;
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use super::endpoint_error::EndpointError;
use crate::data::{Secret, ServerSpec, Tls};

/// The port of Triton's gRPC endpoint unless the operator moved it.
pub const DEFAULT_PORT: u16 = 8001;

/// HTTP/2's own default of 64 KiB throttles every response larger than that; Triton announces
/// 4 MiB itself. 16 MiB holds a batch of images per stream without a round trip.
const WINDOW_BYTES: u32 = 16 << 20;

/// Fewer, larger frames; HTTP/2 allows one byte less than 16 MiB.
const FRAME_BYTES: u32 = 4 << 20;

/// Time for a TCP connection, and for the TLS handshake on it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a PEM file of certificates holds.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// What a PEM file of a key holds, whatever the key's kind.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// A server's address, checked, with everything that a connection to it needs.
#[derive(Clone)]
pub struct Endpoint {
    host: String,
    port: u16,
    tls: bool,
    tonic: tonic::transport::Endpoint,
    metadata: MetadataMap,
}

impl Endpoint {
    /// Checks the address and metadata of `spec` and reads its TLS files; connects to nothing.
    ///
    /// `host:port`, `grpc://` and `http://` are plain text unless TLS is set; `grpcs://` and
    /// `https://` are TLS. Without a port it is 8001.
    pub fn new(spec: &ServerSpec) -> Result<Self, EndpointError> {
        let address = Address::parse(&spec.url)?;
        let tls = address.secure || spec.tls.is_some();
        let metadata = metadata(&spec.metadata)?;
        let scheme = if tls { "https" } else { "http" };
        let uri = format!("{scheme}://{}", authority(&address.host, address.port));
        let mut tonic = tonic::transport::Endpoint::from_shared(uri)
            .and_then(|endpoint| {
                endpoint.user_agent(concat!("triton-gate/", env!("CARGO_PKG_VERSION")))
            })
            .map_err(|_| EndpointError::Host {
                url: spec.url.trim().to_owned(),
                host: address.host.clone(),
            })?
            .tcp_nodelay(true)
            .connect_timeout(CONNECT_TIMEOUT)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES);
        // No keepalive pings: Triton answers frequent ones by closing the connection.
        if tls {
            let config = tls_config(spec.tls.as_ref().unwrap_or(&Tls::default()))?;
            tonic = tonic
                .tls_config(config)
                .map_err(|error| EndpointError::Tls {
                    reason: error_chain(&error),
                })?;
        }
        Ok(Self {
            host: address.host,
            port: address.port,
            tls,
            tonic,
            metadata,
        })
    }

    /// Host name or address, IPv6 without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether the connection is encrypted.
    pub const fn tls(&self) -> bool {
        self.tls
    }

    /// `host:port`, IPv6 in brackets: for people, and as the name of the lock on this server.
    pub fn address(&self) -> String {
        authority(&self.host, self.port)
    }

    /// Opens channels, tuned for large tensors. Each channel belongs to the runtime that opened
    /// it.
    pub const fn tonic(&self) -> &tonic::transport::Endpoint {
        &self.tonic
    }

    /// Sent with every call.
    pub const fn metadata(&self) -> &MetadataMap {
        &self.metadata
    }

    /// The same as HTTP headers, marked as sensitive.
    pub fn headers(&self) -> HeaderMap {
        self.metadata.clone().into_headers()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address())
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// An error and its causes in one line.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = next.source();
    }
    text
}

/// `host:port`, an IPv6 host in brackets.
pub(super) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
    secure: bool,
}

impl Address {
    fn parse(text: &str) -> Result<Self, EndpointError> {
        let url = text.trim();
        if url.is_empty() {
            return Err(EndpointError::Empty);
        }
        // First of all, so that no later message can show a password.
        if url.contains('@') {
            return Err(EndpointError::Credentials);
        }
        let (secure, rest) = match url.split_once("://") {
            None => (false, url),
            Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
                "grpc" | "http" => (false, rest),
                "grpcs" | "https" => (true, rest),
                _ => {
                    return Err(EndpointError::Scheme {
                        url: url.to_owned(),
                        scheme: scheme.to_owned(),
                    });
                }
            },
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if let Some(end) = rest.find(['/', '?', '#']) {
            let scheme = if secure { "grpcs://" } else { "" };
            return Err(EndpointError::Path {
                url: url.to_owned(),
                instead: format!("{scheme}{}", rest.get(..end).unwrap_or_default()),
            });
        }
        let (host, port) = split_port(url, rest)?;
        Ok(Self { host, port, secure })
    }
}

fn split_port(url: &str, rest: &str) -> Result<(String, u16), EndpointError> {
    let brackets = || EndpointError::Brackets {
        url: url.to_owned(),
    };
    if let Some(inside) = rest.strip_prefix('[') {
        let (host, after) = inside.split_once(']').ok_or_else(brackets)?;
        host.parse::<Ipv6Addr>().map_err(|_| brackets())?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((host.to_owned(), parse_port(url, port)?)),
            None if after.is_empty() => Ok((host.to_owned(), DEFAULT_PORT)),
            None => Err(brackets()),
        };
    }
    let (host, port) = match rest.split_once(':') {
        None => (rest, DEFAULT_PORT),
        Some((_, after)) if after.contains(':') => return Err(brackets()),
        Some((host, port)) => (host, parse_port(url, port)?),
    };
    if host.is_empty() {
        return Err(EndpointError::NoHost {
            url: url.to_owned(),
        });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if !host.chars().all(allowed) {
        return Err(EndpointError::Host {
            url: url.to_owned(),
            host: host.to_owned(),
        });
    }
    Ok((host.to_owned(), port))
}

fn parse_port(url: &str, port: &str) -> Result<u16, EndpointError> {
    // `parse` alone would take a sign.
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse()
        .ok()
        .filter(|number| digits && *number != 0)
        .ok_or_else(|| EndpointError::Port {
            url: url.to_owned(),
            port: port.to_owned(),
        })
}

fn tls_config(tls: &Tls) -> Result<ClientTlsConfig, EndpointError> {
    let mut config = ClientTlsConfig::new();
    config = match &tls.ca {
        // A named authority is the only one that is trusted.
        Some(path) => {
            config.ca_certificate(Certificate::from_pem(read_pem("ca", path, CERTIFICATE)?))
        }
        None => config.with_native_roots(),
    };
    match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => {
            let cert = read_pem("cert", cert, CERTIFICATE)?;
            config = config.identity(Identity::from_pem(cert, read_pem("key", key, PRIVATE_KEY)?));
        }
        (Some(_), None) => {
            return Err(EndpointError::HalfIdentity {
                given: "cert",
                missing: "key",
            });
        }
        (None, Some(_)) => {
            return Err(EndpointError::HalfIdentity {
                given: "key",
                missing: "cert",
            });
        }
        (None, None) => {}
    }
    if let Some(domain) = &tls.domain {
        config = config.domain_name(domain);
    }
    Ok(config)
}

fn read_pem(
    key: &'static str,
    path: &Path,
    expected: &'static str,
) -> Result<Vec<u8>, EndpointError> {
    let content = std::fs::read(path).map_err(|source| EndpointError::TlsFile {
        key,
        path: path.to_owned(),
        source,
    })?;
    if content
        .windows(expected.len())
        .any(|window| window == expected.as_bytes())
    {
        Ok(content)
    } else {
        Err(EndpointError::NotPem {
            key,
            path: path.to_owned(),
            expected,
        })
    }
}

fn metadata(pairs: &[(String, Secret)]) -> Result<MetadataMap, EndpointError> {
    let mut map = MetadataMap::with_capacity(pairs.len());
    for (key, value) in pairs {
        let refuse = |reason| EndpointError::MetadataKey {
            key: key.clone(),
            reason,
        };
        let lower = key.to_ascii_lowercase();
        if matches!(
            lower.as_str(),
            "te" | "content-type" | "host" | "user-agent"
        ) || lower.starts_with("grpc-")
        {
            return Err(refuse("gRPC sets it itself"));
        }
        if lower.ends_with("-bin") {
            return Err(refuse("binary metadata is not supported"));
        }
        let name = MetadataKey::<Ascii>::from_bytes(lower.as_bytes())
            .map_err(|_| refuse("expected letters, digits, `-`, `_` and `.` only"))?;
        map.append(name, metadata_value(key, value)?);
    }
    Ok(map)
}

fn metadata_value(key: &str, value: &Secret) -> Result<MetadataValue<Ascii>, EndpointError> {
    let text = value.expose();
    let refuse = |reason| EndpointError::MetadataValue {
        key: key.to_owned(),
        reason,
    };
    if text.contains(['\r', '\n']) {
        return Err(refuse(
            "it holds a line break (a secret read from a file often ends with one)",
        ));
    }
    if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err(refuse("it holds a character that is not printable ASCII"));
    }
    let mut value: MetadataValue<Ascii> = text
        .parse()
        .map_err(|_| refuse("it is not printable ASCII"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(url: &str) -> ServerSpec {
        ServerSpec {
            url: url.to_owned(),
            metrics_url: None,
            tls: None,
            metadata: Vec::new(),
            launch: Vec::new(),
            stop: Vec::new(),
            explicit_models: false,
        }
    }

    fn message(spec: &ServerSpec) -> String {
        Endpoint::new(spec).expect_err("refused").to_string()
    }

    #[test]
    fn addresses_are_read() {
        let table = [
            ("localhost:8001", "localhost", 8001, false),
            ("localhost", "localhost", 8001, false),
            (" 10.0.0.1:9 ", "10.0.0.1", 9, false),
            ("grpc://triton_a.example:80", "triton_a.example", 80, false),
            ("http://a:8001/", "a", 8001, false),
            ("HTTPS://a", "a", 8001, true),
            ("grpcs://a:443", "a", 443, true),
            ("[::1]:8002", "::1", 8002, false),
            ("https://[fe80::1]", "fe80::1", 8001, true),
        ];
        for (url, host, port, secure) in table {
            let expected = Address {
                host: host.to_owned(),
                port,
                secure,
            };
            assert_eq!(Address::parse(url).expect(url), expected, "{url}");
        }
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        let table = [
            ("", "empty"),
            ("ftp://a:1", "scheme `ftp`"),
            ("a:8001/v2", "write `a:8001`"),
            ("https://a:8001/v2", "write `grpcs://a:8001`"),
            (":8001", "no host"),
            ("a:", "`` is not a port"),
            ("a:0", "`0` is not a port"),
            ("a:65536", "`65536` is not a port"),
            ("a:+1", "`+1` is not a port"),
            ("::1", "in brackets"),
            ("[::1", "in brackets"),
            ("[a]:1", "in brackets"),
            ("[::1]8001", "in brackets"),
            ("a b:1", "`a b` is not a host"),
        ];
        for (url, part) in table {
            let text = message(&spec(url));
            assert!(text.contains(part), "{url}: {text}");
        }
    }

    #[test]
    fn a_password_in_the_address_is_never_shown() {
        let text = message(&spec("http://me:hunter2@a:1"));
        assert!(text.contains("metadata"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn tls_is_on_where_it_is_asked_for_and_never_dropped() {
        let mut spec = spec("http://localhost:8001");
        assert!(!Endpoint::new(&spec).expect("plain").tls());
        spec.tls = Some(Tls {
            ca: Some("/no/such/ca.pem".into()),
            ..Tls::default()
        });
        let text = message(&spec);
        assert!(text.contains("tls.ca"), "{text}");
        assert!(text.contains("/no/such/ca.pem"), "{text}");
    }

    #[test]
    fn tls_files_are_checked() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("ca.der");
        std::fs::write(&path, [0x30, 0x82]).expect("written");
        let mut spec = spec("grpcs://localhost");
        spec.tls = Some(Tls {
            ca: Some(path.clone()),
            ..Tls::default()
        });
        assert!(message(&spec).contains("-----BEGIN CERTIFICATE"));
        let cert = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(&path, cert).expect("written");
        let mut tls = Tls {
            cert: Some(path.clone()),
            ..Tls::default()
        };
        spec.tls = Some(tls.clone());
        assert!(message(&spec).contains("tls.cert is set without tls.key"));
        tls.key = Some(path);
        spec.tls = Some(tls.clone());
        assert!(message(&spec).contains("no `PRIVATE KEY-----`"));
        let key = folder.path().join("key.pem");
        std::fs::write(
            &key,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        )
        .expect("written");
        tls.key = Some(key);
        spec.tls = Some(tls);
        assert!(message(&spec).contains("tls settings cannot be used"));
    }

    #[test]
    fn metadata_is_checked_without_showing_values() {
        let with = |key: &str, value: &str| {
            let mut spec = spec("a:1");
            spec.metadata = vec![(key.to_owned(), Secret::new(value))];
            spec
        };
        let endpoint = Endpoint::new(&with("Authorization", "Bearer t0ken")).expect("fine");
        let headers = endpoint.headers();
        let value = headers.get("authorization").expect("sent");
        assert_eq!(value, "Bearer t0ken");
        assert!(value.is_sensitive());
        assert!(!format!("{endpoint:?}").contains("t0ken"));
        let table = [
            ("authorization", "t0ken\n", "line break"),
            ("authorization", "t0k\u{e9}n", "printable ASCII"),
            ("auth orization", "t0ken", "letters, digits"),
            ("", "t0ken", "letters, digits"),
            ("grpc-timeout", "t0ken", "itself"),
            ("Content-Type", "t0ken", "itself"),
            ("x-bin", "t0ken", "binary"),
        ];
        for (key, value, part) in table {
            let text = message(&with(key, value));
            assert!(text.contains(part), "{key}: {text}");
            assert!(!text.contains("t0k"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_address_breaks_it(url in ".{0,40}") {
            let _ = Endpoint::new(&spec(&url));
        }

        #[test]
        fn host_and_port_come_back(host in "[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", port in 1_u16..) {
            let endpoint = Endpoint::new(&spec(&format!("{host}:{port}"))).expect("valid");
            prop_assert_eq!(endpoint.host(), host.as_str());
            prop_assert_eq!(endpoint.port(), port);
        }
    }
}
