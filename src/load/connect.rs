use std::time::Duration;

use tonic::transport::Channel;

use super::LoadError;
use super::status::causes;
use crate::data::ServerSpec;
use crate::triton::Endpoint;

const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Opens one connection, driven by the calling runtime.
pub(crate) async fn connect(
    server: &ServerSpec,
    request_timeout: Duration,
) -> Result<Channel, LoadError> {
    let endpoint = Endpoint::new(server)?;
    endpoint
        .tonic()
        .clone()
        .connect_timeout(request_timeout.min(LONGEST_WAIT))
        .connect()
        .await
        .map_err(|error| LoadError::Connect {
            address: endpoint.address(),
            cause: causes(&error),
        })
}
