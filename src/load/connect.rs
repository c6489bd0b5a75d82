use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use super::LoadError;
use super::status::causes;
use crate::data::ServerSpec;

const STREAM_WINDOW: u32 = 8 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
/// The largest that HTTP/2 allows.
const FRAME: u32 = 16 * 1024 * 1024 - 1;
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Opens one connection, driven by the calling runtime.
///
/// HTTP/2's default windows of 64 KiB would make large responses crawl; keep-alive pings are off
/// because Triton answers frequent ones by closing the connection.
pub(crate) async fn connect(
    server: &ServerSpec,
    request_timeout: Duration,
) -> Result<Channel, LoadError> {
    let url = if server.url.contains("://") {
        server.url.clone()
    } else {
        format!("http://{}", server.url)
    };
    let endpoint = Endpoint::from_shared(url).map_err(|error| LoadError::Address {
        address: server.url.clone(),
        cause: causes(&error),
    })?;
    if server.tls.is_some() || endpoint.uri().scheme_str() != Some("http") {
        return Err(LoadError::Address {
            address: server.url.clone(),
            cause: "this transport speaks plain text only".to_owned(),
        });
    }
    endpoint
        .connect_timeout(request_timeout.min(LONGEST_WAIT))
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .http2_adaptive_window(false)
        .connect()
        .await
        .map_err(|error| LoadError::Connect {
            address: server.url.clone(),
            cause: causes(&error),
        })
}
