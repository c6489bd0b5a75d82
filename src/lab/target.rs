//! One model on one server, ready to be measured.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::data::{Facts, Reason, Scenario, ServerSpec};
use crate::probe::memory_available;
use crate::triton::{Client, ClientError, ModelSignature, ServerInfo, config_facts};
use crate::workload::{Payloads, WorkloadSpec};

/// Deadline of connecting and of every call that is not an inference.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a model may take to load.
pub const LOAD_TIMEOUT: Duration = Duration::from_mins(10);

/// One model on one server: connected, described, and its requests encoded.
#[derive(Debug)]
pub struct Target {
    /// For questions to the server.
    pub client: Client,
    /// What the server says of itself.
    pub server: ServerInfo,
    /// What requests look like.
    pub signature: ModelSignature,
    /// The version that is expected to answer.
    pub version: String,
    /// What is under test: configuration, versions of model and server.
    pub subject: Facts,
    /// The encoded requests.
    pub payloads: Payloads,
}

/// What a side of a comparison is, without a connection to it.
#[derive(Debug, Clone)]
pub struct Described {
    /// Where its server is, `host:port`.
    pub address: String,
    /// What requests look like.
    pub signature: ModelSignature,
    /// The version that answers.
    pub version: String,
    /// Configuration, versions of model and server.
    pub subject: Facts,
    /// Fingerprint of the requests.
    pub payload: String,
}

impl Target {
    /// What it is.
    pub fn described(&self) -> Described {
        Described {
            address: self.client.endpoint().address(),
            signature: self.signature.clone(),
            version: self.version.clone(),
            subject: self.subject.clone(),
            payload: self.payloads.fingerprint.clone(),
        }
    }

    /// Connects, asks for the model, and encodes the scenario's requests. Nothing is sent to the
    /// model.
    pub fn prepare(runtime: &Handle, scenario: &Scenario) -> Result<Self, Reason> {
        let (client, server) = connect(runtime, &scenario.server)?;
        Self::describe(runtime, scenario, client, server)
    }

    /// The same over a connection that is there.
    pub fn describe(
        runtime: &Handle,
        scenario: &Scenario,
        mut client: Client,
        server: ServerInfo,
    ) -> Result<Self, Reason> {
        let version = scenario.version.as_deref();
        let (signature, config) = runtime
            .block_on(client.describe(&scenario.model, version))
            .map_err(|error| client_reason(&error))?;
        let payloads = Payloads::build(
            &signature,
            WorkloadSpec {
                inputs: &scenario.inputs,
                data: scenario.input_data.as_deref(),
                batch: scenario.batch,
                seed: scenario.measure.seed,
                memory: memory_available(),
            },
        )
        .map_err(|error| Reason {
            code: "workload".to_owned(),
            text: error.to_string(),
            next: format!(
                "correct scenario {:?} in {}",
                scenario.name,
                scenario.file.display()
            ),
        })?;
        let version = match version {
            Some(version) => version.to_owned(),
            None => newest(&signature.versions),
        };
        let mut subject = config_facts(&config);
        subject.set("model.version", version.clone());
        subject.set("triton.version", server.version.clone());
        Ok(Self {
            client,
            server,
            signature,
            version,
            subject,
            payloads,
        })
    }
}

/// Connects and asks the server for its name and version.
pub fn connect(runtime: &Handle, server: &ServerSpec) -> Result<(Client, ServerInfo), Reason> {
    runtime
        .block_on(async {
            let mut client = Client::connect(server, CALL_TIMEOUT).await?;
            let info = client.server_metadata().await?;
            Ok((client, info))
        })
        .map_err(|error: ClientError| client_reason(&error))
}

/// A client's error as a reason; its message already says what to do.
pub fn client_reason(error: &ClientError) -> Reason {
    let text = error.to_string();
    let (what, next) = split_advice(&text);
    Reason {
        code: error.code().to_owned(),
        text: what,
        next,
    }
}

/// Messages of the client end in advice after a semicolon or colon; reports show it apart.
fn split_advice(text: &str) -> (String, String) {
    match text.rsplit_once("; ") {
        Some((what, next)) if !next.is_empty() => (what.to_owned(), next.to_owned()),
        _ => (text.to_owned(), String::new()),
    }
}

/// The version that a server chooses where none is asked for: the highest number.
fn newest(versions: &[String]) -> String {
    versions
        .iter()
        .max_by_key(|version| version.parse::<u64>().unwrap_or_default())
        .cloned()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_number_is_the_newest_version() {
        let versions = ["2", "10", "9"].map(str::to_owned);
        assert_eq!(newest(&versions), "10");
        assert_eq!(newest(&[]), "");
    }

    #[test]
    fn advice_is_taken_from_the_end_of_a_message() {
        let (what, next) = split_advice("it broke; look; mend it");
        assert_eq!(
            (what.as_str(), next.as_str()),
            ("it broke; look", "mend it")
        );
        assert_eq!(split_advice("it broke").1, "");
    }
}
