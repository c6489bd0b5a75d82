//! One side of a measurement: a model on a server and the engine that loads it.

use std::collections::{BTreeMap, BTreeSet};

use super::target::Target;
use crate::data::{ErrorClass, ErrorCounts, Load, MeasureSpec, Reason, Scenario};
use crate::load::{Engine, Gauge, LoadSpec, Shape};

/// One side: a model on a server, and the engine that loads it.
#[derive(Debug)]
pub struct SideLab {
    pub(super) target: Target,
    pub(super) engine: Engine,
    pub(super) concurrency: u32,
    pub(super) measure: MeasureSpec,
    pub(super) explicit_models: bool,
    pub(super) metrics_url: Option<String>,
}

impl SideLab {
    /// Opens the connections of a scenario's load.
    pub fn open(scenario: &Scenario, target: Target) -> Result<Self, Reason> {
        let Load::Closed { concurrency } = scenario.load;
        let spec = LoadSpec {
            server: scenario.server.clone(),
            frames: target.payloads.frames.clone(),
            batch: scenario.batch,
            concurrency,
            workers: scenario.measure.workers,
            connections: scenario.measure.connections,
            request_timeout: scenario.measure.request_timeout,
        };
        let engine = Engine::start(&spec).map_err(|error| Reason {
            code: "load".to_owned(),
            text: error.to_string(),
            next: String::new(),
        })?;
        Ok(Self {
            target,
            engine,
            concurrency,
            measure: scenario.measure,
            explicit_models: scenario.server.explicit_models,
            metrics_url: scenario.server.metrics_url.clone(),
        })
    }

    /// What the load completes, for a display.
    pub fn gauge(&self) -> Gauge {
        self.engine.gauge()
    }

    /// Workers and connections of the load.
    pub fn shape(&self) -> Shape {
        self.engine.shape()
    }

    /// The model that is measured.
    pub const fn target(&self) -> &Target {
        &self.target
    }
}

/// What a stretch of load showed beside its blocks, over the life of a lab.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that failed, by class.
    pub errors: ErrorCounts,
    /// The first message of each class.
    pub examples: BTreeMap<ErrorClass, String>,
    /// The versions that answered.
    pub model_versions: BTreeSet<String>,
    /// Requests that the server counted when the last stretch had drained.
    pub server_requests: Option<u64>,
}

impl Totals {
    /// Adds what another lab of the same side saw later.
    pub fn add(&mut self, later: Self) {
        self.completed += later.completed;
        self.errors.merge(&later.errors);
        for (class, example) in later.examples {
            self.examples.entry(class).or_insert(example);
        }
        self.model_versions.extend(later.model_versions);
        self.server_requests = later.server_requests;
    }
}
