use std::fmt;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::{ClientTlsConfig, Endpoint};

use super::endpoint::{authority, error_chain};

/// What answers at a port, found by asking in several languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortKind {
    /// Triton's HTTP endpoint (port 8000 by default).
    TritonHttp,
    /// A Prometheus endpoint (port 8002 by default).
    Metrics,
    /// Some other HTTP/1 server.
    OtherHttp,
    /// TLS.
    Tls,
    /// HTTP/2 without TLS, as gRPC needs it.
    PlainHttp2,
    /// Nothing of these, or no answer.
    Unknown,
}

impl fmt::Display for PortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TritonHttp => "Triton's HTTP endpoint",
            Self::Metrics => "a metrics endpoint",
            Self::OtherHttp => "an HTTP/1 server",
            Self::Tls => "a TLS endpoint",
            Self::PlainHttp2 => "an HTTP/2 endpoint without TLS",
            Self::Unknown => "an unknown endpoint",
        })
    }
}

/// HTTP/2's connection preface and an empty SETTINGS frame.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The least TLS 1.2 greeting: one cipher suite, no extensions. A TLS server answers with a
/// greeting or an alert; either is enough to know it.
const TLS_HELLO: [u8; 50] = {
    let mut hello = [0x5a; 50];
    let head = [
        0x16, 0x03, 0x01, 0x00, 0x2d, // record: handshake, 45 bytes
        0x01, 0x00, 0x00, 0x29, // client hello, 41 bytes
        0x03, 0x03, // TLS 1.2; 32 bytes of random follow
    ];
    let tail = [
        0x00, // no session
        0x00, 0x02, 0xc0, 0x2f, // ECDHE-RSA-AES128-GCM-SHA256
        0x01, 0x00, // no compression
    ];
    let mut at = 0;
    while at < head.len() {
        hello[at] = head[at];
        at += 1;
    }
    let mut at = 0;
    while at < tail.len() {
        hello[43 + at] = tail[at];
        at += 1;
    }
    hello
};

/// Finds out what a port is, after gRPC failed on it. Each question is a connection of its own
/// and takes at most `patience`.
pub async fn probe_port(host: &str, port: u16, patience: Duration) -> PortKind {
    let address = authority(host, port);
    let get =
        |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let health = ask(host, port, get("/v2/health/ready").as_bytes(), patience).await;
    if is_tls(&health) {
        return PortKind::Tls;
    }
    if is_http2(&health) {
        return PortKind::PlainHttp2;
    }
    if let Some(status) = http_status(&health) {
        if mentions_tls(&health) {
            return PortKind::Tls;
        }
        // Triton's metrics endpoint answers 200 with nothing to every other path, so it is asked
        // for first, and a healthy answer alone proves no HTTP endpoint.
        let metrics = ask(host, port, get("/metrics").as_bytes(), patience).await;
        let exposition = [&b"# HELP"[..], b"# TYPE", b"nv_"]
            .iter()
            .any(|mark| contains(&metrics, mark));
        if http_status(&metrics) == Some(200) && exposition {
            return PortKind::Metrics;
        }
        // 200: ready; 400: not ready; 503: exiting. Its metadata tells it from other servers.
        if matches!(status, 200 | 400 | 503) {
            let metadata = ask(host, port, get("/v2").as_bytes(), patience).await;
            if contains(&metadata, b"\"extensions\"") {
                return PortKind::TritonHttp;
            }
        }
        return PortKind::OtherHttp;
    }
    if is_http2(&ask(host, port, HTTP2_PREFACE, patience).await) {
        return PortKind::PlainHttp2;
    }
    if is_tls(&ask(host, port, &TLS_HELLO, patience).await)
        || shakes_hands(&address, patience).await
    {
        return PortKind::Tls;
    }
    PortKind::Unknown
}

/// Whether a whole handshake gets as far as a certificate or an alert. Triton's own TLS endpoint
/// closes without a word on a greeting too small for it.
async fn shakes_hands(address: &str, patience: Duration) -> bool {
    let endpoint = Endpoint::from_shared(format!("https://{address}")).and_then(|endpoint| {
        endpoint
            .connect_timeout(patience)
            .tls_config(ClientTlsConfig::new().with_native_roots())
    });
    let Ok(endpoint) = endpoint else {
        return false;
    };
    match timeout(patience, endpoint.connect()).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => {
            let said = error_chain(&error);
            said.contains("certificate") || said.contains("alert")
        }
        Err(_) => false,
    }
}

/// The first bytes of the answer; empty where there is none.
async fn ask(host: &str, port: u16, question: &[u8], patience: Duration) -> Vec<u8> {
    let mut answer = Vec::new();
    let talk = async {
        let mut stream = TcpStream::connect((host, port)).await?;
        stream.write_all(question).await?;
        let mut part = [0; 1024];
        // Enough for headers and the first lines of a metrics page.
        while answer.len() < 4096 {
            let count = stream.read(&mut part).await?;
            if count == 0 {
                break;
            }
            answer.extend_from_slice(part.get(..count).unwrap_or_default());
            if is_tls(&answer) || is_http2(&answer) {
                break;
            }
        }
        Ok::<(), std::io::Error>(())
    };
    // An answer cut short by an error or the clock still tells what it is.
    let _ = timeout(patience, talk).await;
    answer
}

/// A TLS record: an alert or a handshake.
fn is_tls(answer: &[u8]) -> bool {
    matches!(answer, [0x15 | 0x16, 0x03, ..])
}

/// An HTTP/2 SETTINGS or GOAWAY frame on the connection itself.
fn is_http2(answer: &[u8]) -> bool {
    matches!(
        answer,
        [0, _, _, 4, 0 | 1, 0, 0, 0, 0, ..] | [0, _, _, 7, 0, 0, 0, 0, 0, ..]
    )
}

/// The status of an HTTP/1 answer.
fn http_status(answer: &[u8]) -> Option<u16> {
    let rest = answer.strip_prefix(b"HTTP/1.")?;
    let digits = rest.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Web servers answer plain text on their TLS port with a page that says so.
fn mentions_tls(answer: &[u8]) -> bool {
    contains(answer, b"HTTPS port") || contains(answer, b"HTTP request to an HTTPS server")
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Starts of questions, and the answers to them.
    type Script = &'static [(&'static [u8], &'static [u8])];

    /// Answers every connection by the first entry of `script` whose start matches the question.
    async fn serve(script: Script) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
        let port = listener.local_addr().expect("address").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut question = [0; 1024];
                let count = stream.read(&mut question).await.unwrap_or(0);
                let matching = script
                    .iter()
                    .find(|(start, _)| question[..count].starts_with(start));
                if let Some((_, answer)) = matching {
                    let _ = stream.write_all(answer).await;
                }
            }
        });
        port
    }

    const METADATA: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n{\"name\":\"triton\",\"extensions\":[]}";
    const METRICS: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n# HELP nv_inference_count x\n";
    const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

    #[tokio::test]
    async fn ports_are_told_apart() {
        let table: &[(Script, PortKind)] = &[
            (
                &[
                    (b"GET /v2/health/ready", b"HTTP/1.1 200 OK\r\n\r\n"),
                    (b"GET /v2 ", METADATA),
                    (b"GET", NOT_FOUND),
                ],
                PortKind::TritonHttp,
            ),
            (
                &[
                    (b"GET /v2/health/ready", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
                    (b"GET /v2 ", METADATA),
                    (b"GET", NOT_FOUND),
                ],
                PortKind::TritonHttp,
            ),
            // As Triton's metrics endpoint does.
            (&[(b"GET /metrics", METRICS), (b"GET", EMPTY)], PortKind::Metrics),
            (&[(b"GET /metrics", METRICS), (b"GET", NOT_FOUND)], PortKind::Metrics),
            (&[(b"GET", EMPTY)], PortKind::OtherHttp),
            (&[(b"GET", b"HTTP/1.1 503 Service Unavailable\r\n\r\n")], PortKind::OtherHttp),
            (&[(b"GET", b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\x40\0\0")], PortKind::PlainHttp2),
            (&[(b"GET", NOT_FOUND)], PortKind::OtherHttp),
            (&[(b"GET", b"\x15\x03\x01\0\x02\x02\x0a")], PortKind::Tls),
            (
                &[(b"GET", b"HTTP/1.1 400 Bad Request\r\n\r\nThe plain HTTP request was sent to HTTPS port")],
                PortKind::Tls,
            ),
            (&[(b"\x16\x03\x01", b"\x15\x03\x03\0\x02\x02\x28")], PortKind::Tls),
            (&[(b"PRI", b"\0\0\0\x04\0\0\0\0\0")], PortKind::PlainHttp2),
            (&[(b"GET", b"SSH-2.0-x\r\n")], PortKind::Unknown),
            (&[], PortKind::Unknown),
        ];
        for (script, kind) in table {
            let port = serve(script).await;
            assert_eq!(
                probe_port("127.0.0.1", port, Duration::from_secs(5)).await,
                *kind
            );
        }
    }

    #[tokio::test]
    async fn a_closed_port_is_unknown() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
        let port = listener.local_addr().expect("address").port();
        drop(listener);
        assert_eq!(
            probe_port("127.0.0.1", port, Duration::from_secs(5)).await,
            PortKind::Unknown
        );
    }

    #[test]
    fn the_greeting_is_well_formed() {
        let record = u16::from_be_bytes([TLS_HELLO[3], TLS_HELLO[4]]);
        assert_eq!(usize::from(record), TLS_HELLO.len() - 5);
        let body = u32::from_be_bytes([0, TLS_HELLO[6], TLS_HELLO[7], TLS_HELLO[8]]);
        assert_eq!(body as usize, TLS_HELLO.len() - 9);
        assert_eq!(TLS_HELLO[43..], [0, 0, 2, 0xc0, 0x2f, 1, 0]);
    }
}
