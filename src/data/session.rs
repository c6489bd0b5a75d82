use serde::{Deserialize, Serialize};

use super::{Block, Facts};

/// The schema number of session files that this version writes.
pub const SESSION_SCHEMA: u32 = 1;

/// One life of a server process or of a loaded model, seen through its blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Unique: UTC time, short commit, random (`20260131T120000Z-1a2b3c4-9f8e7d`).
    pub id: String,
    /// When recording began, RFC 3339, UTC.
    pub recorded_at: String,
    /// The commit that was checked out, if any.
    pub commit: Option<String>,
    /// The branch that was checked out, if any.
    pub branch: Option<String>,
    /// Whether the work tree had changes.
    pub dirty: Option<bool>,
    /// The version of triton-gate that measured.
    pub tool_version: String,
    /// The scenario's name.
    pub scenario: String,
    /// The model's name.
    pub model: String,
    /// The version that answered.
    pub model_version: String,
    /// What was asked of the server.
    pub load: LoadIdentity,
    /// What must be equal for numbers to be comparable.
    pub environment: Facts,
    /// What was under test; empty where only its hash is known.
    pub subject: Facts,
    /// The hash of `subject`.
    pub subject_hash: String,
    /// What identifies this life of the server: visits with the same mark that continue each
    /// other's `ModelStatistics` are one session. None where unknown.
    pub life: Option<String>,
    /// Successful requests that the server had counted for the model when the session ended. A
    /// later visit that begins at or above it is the same life of the server. None where unknown.
    pub server_requests: Option<u64>,
    /// Counts the shifts that were accepted for good before this session: a baseline's level is
    /// that of its newest epoch, its spread that within all of them. 0 from the start.
    pub epoch: u32,
    /// False where recording was interrupted.
    pub complete: bool,
    /// The blocks, in order.
    pub blocks: Vec<Block>,
}

/// What must be equal for two measurements to have been asked the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadIdentity {
    /// Requests in flight (closed loop); none for an open loop.
    pub concurrency: Option<u32>,
    /// Requests per second x 1000 (open loop); none for a closed loop.
    pub rate_milli: Option<u64>,
    /// Inferences per request.
    pub batch: u32,
    /// Connections to the server.
    pub connections: u32,
    /// Worker threads of the client.
    pub workers: u32,
    /// Length of a block, nanoseconds.
    pub block_ns: u64,
    /// Hash of the payloads that are sent.
    pub payload: String,
    /// The measuring engine's number, raised when a change of ours moves numbers.
    pub engine: u32,
}

impl LoadIdentity {
    /// The same as readable facts (`load.concurrency`, `load.batch` ...).
    pub fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        if let Some(concurrency) = self.concurrency {
            facts.set("load.concurrency", concurrency.to_string());
        }
        if let Some(rate) = self.rate_milli {
            facts.set("load.rate", format!("{}", rate as f64 / 1000.0));
        }
        facts.set("load.batch", self.batch.to_string());
        facts.set("load.connections", self.connections.to_string());
        facts.set("load.workers", self.workers.to_string());
        facts.set("load.block_ms", format!("{}", self.block_ns as f64 / 1e6));
        facts.set("load.payload", self.payload.clone());
        facts.set("load.engine", self.engine.to_string());
        facts
    }
}
