use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

use super::client::IndexEntry;
use super::client_error::ClientError;
use super::endpoint::{DEFAULT_PORT, Endpoint, authority};
use super::port_probe::{PortKind, probe_port};

/// One question of the search for what a wrong port is.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// Resolves and connects by hand first: tonic's own error does not tell the two apart.
pub(super) async fn check_reachable(endpoint: &Endpoint) -> Result<(), ClientError> {
    let resolved = tokio::net::lookup_host((endpoint.host(), endpoint.port()))
        .await
        .map(Iterator::collect::<Vec<_>>);
    let addresses = match resolved {
        Ok(addresses) if !addresses.is_empty() => addresses,
        Ok(_) => {
            return Err(ClientError::NotResolved {
                host: endpoint.host().to_owned(),
                reason: "no address".to_owned(),
            });
        }
        Err(error) => {
            return Err(ClientError::NotResolved {
                host: endpoint.host().to_owned(),
                reason: error.to_string(),
            });
        }
    };
    match TcpStream::connect(addresses.as_slice()).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(ClientError::Refused {
                address: endpoint.address(),
            })
        }
        Err(error) => Err(ClientError::Connection {
            address: endpoint.address(),
            reason: error.to_string(),
        }),
    }
}

/// A failed connection before it is looked into.
pub(super) fn broken(endpoint: &Endpoint, reason: String) -> ClientError {
    let address = endpoint.address();
    if endpoint.tls() {
        ClientError::Handshake { address, reason }
    } else {
        ClientError::Connection { address, reason }
    }
}

/// Asks the port in other languages what it is; `otherwise` where that does not tell.
pub(super) async fn look_into(
    endpoint: &Endpoint,
    timeout: Duration,
    otherwise: ClientError,
) -> ClientError {
    // These are about the address and not about what answers there.
    if matches!(
        otherwise,
        ClientError::NotResolved { .. } | ClientError::Refused { .. }
    ) {
        return otherwise;
    }
    let address = endpoint.address();
    let (host, port) = (endpoint.host(), endpoint.port());
    let kind = probe_port(host, port, timeout.min(PROBE_PATIENCE)).await;
    let next = match kind {
        // Operators move the three ports together: 8000, 8001, 8002.
        PortKind::TritonHttp => try_port(host, port.checked_add(1)),
        PortKind::Metrics => try_port(host, port.checked_sub(1)),
        PortKind::OtherHttp => {
            "set [server] url to the port given with --grpc-port (8001 by default)".to_owned()
        }
        PortKind::Tls if !endpoint.tls() => return ClientError::NeedsTls { address },
        PortKind::PlainHttp2 if endpoint.tls() => return ClientError::NotTls { address },
        PortKind::Tls | PortKind::PlainHttp2 | PortKind::Unknown => return otherwise,
    };
    ClientError::WrongPort {
        address,
        kind,
        next,
    }
}

fn try_port(host: &str, port: Option<u16>) -> String {
    let port = port.unwrap_or(DEFAULT_PORT);
    format!(
        "try {}, the port given with --grpc-port",
        authority(host, port)
    )
}

/// Why a model or version is not there; none where the index says that it is.
pub(super) fn missing_model(
    address: &str,
    index: &[IndexEntry],
    model: &str,
    version: Option<&str>,
) -> Option<ClientError> {
    let ready = |entry: &&IndexEntry| entry.state == "READY";
    let own: Vec<&IndexEntry> = index.iter().filter(|entry| entry.name == model).collect();
    let versions: Vec<String> = own
        .iter()
        .copied()
        .filter(ready)
        .map(|entry| entry.version.clone())
        .collect();
    let wanted = version.unwrap_or_default();
    // The entry that was asked for, or any where the server was to choose.
    let asked = own
        .iter()
        .find(|entry| !entry.state.is_empty() && (wanted.is_empty() || entry.version == wanted));
    if versions.iter().any(|ready| ready == wanted) || (wanted.is_empty() && !versions.is_empty()) {
        return None;
    }
    if let Some(entry) = asked {
        return Some(ClientError::ModelNotReady {
            address: address.to_owned(),
            model: model.to_owned(),
            state: entry.state.clone(),
            reason: entry.reason.clone(),
        });
    }
    if !versions.is_empty() {
        return Some(ClientError::UnknownVersion {
            address: address.to_owned(),
            model: model.to_owned(),
            version: wanted.to_owned(),
            versions,
        });
    }
    if !own.is_empty() {
        return Some(ClientError::ModelNotReady {
            address: address.to_owned(),
            model: model.to_owned(),
            state: "in the repository but not loaded".to_owned(),
            reason: String::new(),
        });
    }
    let mut loaded: Vec<String> = index
        .iter()
        .filter(ready)
        .map(|entry| entry.name.clone())
        .collect();
    loaded.sort_unstable();
    loaded.dedup();
    Some(ClientError::UnknownModel {
        address: address.to_owned(),
        model: model.to_owned(),
        nearest: nearest(model, loaded.iter().map(String::as_str)).map(str::to_owned),
        loaded,
    })
}

/// The name most like `wanted`, if any is like it at all.
pub(crate) fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let lower = wanted.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&lower, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= 0.7)
        .max_by(|(one, _), (two, _)| one.total_cmp(two))
        .map(|(_, name)| name)
}
