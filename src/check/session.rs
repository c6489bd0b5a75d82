//! Visits to a server become sessions of the store.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::baseline::session_id;
use crate::data::{Block, Facts, Load, LoadIdentity, Scenario, Session, Side};
use crate::lab::SideLab;
use crate::load::ENGINE_NUMBER;
use crate::probe::Repository;

/// What surrounds every visit of one run of the program.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The repository that the program runs in.
    pub repository: Repository,
    /// Hardware behind the server, and this client.
    pub hardware: Facts,
    /// Version of this program.
    pub tool_version: String,
}

/// One visit to a model: what it was asked, and what it is.
#[derive(Debug, Clone)]
pub struct Visit {
    /// When it began.
    pub begun: DateTime<Utc>,
    /// Environment facts, the load aside.
    pub environment: Facts,
    /// What was asked.
    pub load: LoadIdentity,
    /// What was under test.
    pub subject: Facts,
    /// The version that answered.
    pub model_version: String,
}

impl Visit {
    /// Before the first block; `block_ns` is the length of a block.
    pub fn begin(
        surroundings: &Surroundings,
        scenario: &Scenario,
        side: &SideLab,
        block_ns: u64,
    ) -> Self {
        let Load::Closed { concurrency } = scenario.load;
        let shape = side.shape();
        let target = side.target();
        let mut environment = surroundings.hardware.clone();
        environment
            .0
            .extend(crate::lab::signature_facts(&target.signature).0);
        Self {
            begun: Utc::now(),
            environment,
            load: LoadIdentity {
                concurrency: Some(concurrency),
                rate_milli: None,
                batch: scenario.batch,
                connections: shape.connections,
                workers: shape.workers,
                block_ns,
                payload: target.payloads.fingerprint.clone(),
                engine: ENGINE_NUMBER,
            },
            subject: target.subject.clone(),
            model_version: target.version.clone(),
        }
    }

    /// The session that the visit amounts to. `life` marks the life of the server, and
    /// `server_requests` what it had counted at the end.
    pub fn session(
        &self,
        surroundings: &Surroundings,
        scenario: &Scenario,
        blocks: Vec<Block>,
        complete: bool,
        life: Option<String>,
        server_requests: Option<u64>,
    ) -> std::io::Result<Session> {
        let repository = &surroundings.repository;
        Ok(Session {
            id: session_id(self.begun, repository.commit.as_deref())?,
            recorded_at: self.begun.to_rfc3339_opts(SecondsFormat::Secs, true),
            commit: repository.commit.clone(),
            branch: repository.branch.clone(),
            dirty: repository.dirty,
            tool_version: surroundings.tool_version.clone(),
            scenario: scenario.name.clone(),
            model: scenario.model.clone(),
            model_version: self.model_version.clone(),
            load: self.load.clone(),
            environment: self.environment.clone(),
            subject_hash: self.subject.hash(),
            subject: self.subject.clone(),
            life,
            server_requests,
            epoch: 0,
            complete,
            blocks: blocks
                .into_iter()
                .filter(|block| block.side == Side::Candidate)
                .collect(),
        })
    }
}
