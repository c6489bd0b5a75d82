use std::time::Duration;

use serde::Deserialize;

use super::duration;
use super::{FaultSpec, LatencySpec, Wire};

/// One simulated model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Name, as clients ask for it.
    pub name: String,
    /// Backend shown in metadata and configuration.
    #[serde(default = "default_backend")]
    pub backend: String,
    /// Whether it is loaded when the server starts.
    #[serde(default = "yes")]
    pub loaded: bool,
    /// Makes every load fail for this reason; the model is then never ready.
    #[serde(default)]
    pub load_error: Option<String>,
    /// Largest batch; 0 means that shapes have no batch dimension.
    #[serde(default)]
    pub max_batch_size: u32,
    /// Inputs, without the batch dimension.
    #[serde(default, rename = "input")]
    pub inputs: Vec<TensorSpec>,
    /// Outputs, without the batch dimension.
    #[serde(default, rename = "output")]
    pub outputs: Vec<TensorSpec>,
    /// What outputs hold.
    #[serde(default)]
    pub answer: Answer,
    /// Answers any number of times, and only through `ModelStreamInfer`.
    #[serde(default)]
    pub decoupled: bool,
    /// The responses of a decoupled model.
    #[serde(default, rename = "responses")]
    pub response: ResponseSpec,
    /// Executions at the same time, per version.
    #[serde(default = "one")]
    pub instances: u32,
    /// Joins waiting requests into batches; none runs each request alone.
    #[serde(default)]
    pub dynamic_batching: Option<Batching>,
    /// Requests that may wait, per version; 0 is unlimited.
    #[serde(default)]
    pub max_queue_size: u32,
    /// Longest wait in the queue; zero is unlimited.
    #[serde(default, deserialize_with = "duration::required")]
    pub queue_timeout: Duration,
    /// Answers repeated requests from a cache.
    #[serde(default)]
    pub response_cache: bool,
    /// Time of an execution.
    #[serde(default)]
    pub latency: LatencySpec,
    /// Versions served; none means version 1.
    #[serde(default, rename = "version")]
    pub versions: Vec<VersionSpec>,
    /// What goes wrong.
    #[serde(default, rename = "fault")]
    pub faults: Vec<FaultSpec>,
}

fn default_backend() -> String {
    "simulated".to_owned()
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

impl ModelSpec {
    /// A model with one version, no tensors, and no latency.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            backend: default_backend(),
            loaded: true,
            load_error: None,
            max_batch_size: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            answer: Answer::default(),
            decoupled: false,
            response: ResponseSpec::default(),
            instances: 1,
            dynamic_batching: None,
            max_queue_size: 0,
            queue_timeout: Duration::ZERO,
            response_cache: false,
            latency: LatencySpec::default(),
            versions: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Adds an input.
    #[must_use]
    pub fn input(mut self, name: &str, datatype: Wire, dims: &[i64]) -> Self {
        self.inputs.push(TensorSpec::new(name, datatype, dims));
        self
    }

    /// Adds an output.
    #[must_use]
    pub fn output(mut self, name: &str, datatype: Wire, dims: &[i64]) -> Self {
        self.outputs.push(TensorSpec::new(name, datatype, dims));
        self
    }

    /// Adds a version with its own latency; none uses the model's.
    #[must_use]
    pub fn version(mut self, number: u32, latency: Option<LatencySpec>) -> Self {
        self.versions.push(VersionSpec { number, latency });
        self
    }

    /// Sets the latency of versions without their own.
    #[must_use]
    pub fn latency(mut self, latency: LatencySpec) -> Self {
        self.latency = latency;
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn fault(mut self, fault: FaultSpec) -> Self {
        self.faults.push(fault);
        self
    }
}

/// A tensor as configured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorSpec {
    /// Name.
    pub name: String,
    /// Datatype on the wire.
    pub datatype: Wire,
    /// Shape without the batch dimension; -1 is variable.
    pub dims: Vec<i64>,
    /// Whether an input may be left out.
    #[serde(default)]
    pub optional: bool,
}

impl TensorSpec {
    /// A required tensor.
    pub fn new(name: &str, datatype: Wire, dims: &[i64]) -> Self {
        Self {
            name: name.to_owned(),
            datatype,
            dims: dims.to_vec(),
            optional: false,
        }
    }
}

/// One version of a model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionSpec {
    /// Number, from 1.
    pub number: u32,
    /// Time of an execution; none uses the model's.
    #[serde(default)]
    pub latency: Option<LatencySpec>,
}

/// The dynamic batcher.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Batching {
    /// How long an idle instance waits for a batch to fill.
    #[serde(deserialize_with = "duration::required")]
    pub max_queue_delay: Duration,
    /// Shown in the configuration; the simulated batcher does not prefer any size.
    pub preferred_batch_size: Vec<u32>,
}

/// What outputs hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Zeros; each element of a BYTES output is `tok`.
    #[default]
    Zeros,
    /// The data of an input with the same datatype and byte size, else as `Zeros`.
    Echo,
}

/// The responses of a decoupled model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseSpec {
    /// How many per request; 0 is allowed.
    pub count: u32,
    /// Time between two; the first comes after the model's latency.
    #[serde(deserialize_with = "duration::required")]
    pub delay: Duration,
    /// How the end is told.
    pub ending: Ending,
}

impl Default for ResponseSpec {
    fn default() -> Self {
        Self {
            count: 1,
            delay: Duration::ZERO,
            ending: Ending::default(),
        }
    }
}

/// How a decoupled model tells the end of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The last data response carries the final flag.
    #[default]
    LastData,
    /// The flag comes in an empty response of its own, delivered only to clients that set
    /// `triton_enable_empty_final_response`.
    Separate,
}
