use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Fraction, InputData, InputFile, Limit, Value};

/// One thing that is gated, every value resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Unique name, also the name of its folder in the store.
    pub name: String,
    /// The model.
    pub model: String,
    /// The version; none leaves the choice to the server.
    pub version: Option<String>,
    /// How it is loaded.
    pub load: Load,
    /// Inferences per request.
    pub batch: u32,
    /// What is said about its inputs, in the file's order.
    pub inputs: Vec<InputSpec>,
    /// Inputs of one request after another from a file or folder; those that it does not hold
    /// come from `inputs`.
    pub input_data: Option<Arc<InputData>>,
    /// Where it is measured.
    pub server: ServerSpec,
    /// How it is judged.
    pub gate: GateSpec,
    /// How it is measured.
    pub measure: MeasureSpec,
    /// Files whose change affects it (globs), for `--changed-since`.
    pub paths: Vec<String>,
    /// The file that defined it.
    pub file: PathBuf,
    /// The files and folders that its inputs come from.
    pub input_files: Vec<PathBuf>,
}

/// How requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// A fixed number of requests in flight.
    Closed {
        /// Requests in flight.
        concurrency: u32,
    },
}

/// What is said about one input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputSpec {
    /// The input's name.
    pub name: String,
    /// Shape without the batch dimension; none takes the model's.
    pub shape: Option<Vec<i64>>,
    /// Where its data comes from.
    pub data: DataSource,
}

/// Where the data of an input comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum DataSource {
    /// All zeros, empty strings.
    Zero,
    /// Seeded random values of the input's datatype.
    Random {
        /// Smallest and largest value of numeric types; none takes the datatype's default.
        range: Option<(f64, f64)>,
        /// Length in characters of each BYTES element; none is 16.
        length: Option<u32>,
    },
    /// Values as written, flat or nested; checked against datatype and shape.
    Literal(Vec<Value>),
    /// A file's content; several rows make several requests, sent in turn.
    File(Arc<InputFile>),
}

/// Where Triton is and how to get there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerSpec {
    /// gRPC address as written (`localhost:8001`).
    pub url: String,
    /// Prometheus endpoint, if any.
    pub metrics_url: Option<String>,
    /// TLS, if any.
    pub tls: Option<Tls>,
    /// gRPC metadata sent with every call.
    pub metadata: Vec<(String, Secret)>,
    /// Command that starts a server, awaited and stopped by the gate; empty for none.
    pub launch: Vec<String>,
    /// Command that ends the launched server; empty to end the process that was started.
    pub stop: Vec<String>,
    /// Whether models are loaded before their scenarios and unloaded after.
    pub explicit_models: bool,
}

/// TLS files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// CA certificates, PEM.
    pub ca: Option<PathBuf>,
    /// Client certificate, PEM.
    pub cert: Option<PathBuf>,
    /// Client key, PEM.
    pub key: Option<PathBuf>,
    /// Name to verify instead of the address.
    pub domain: Option<String>,
}

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the wire only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// How a scenario is judged.
#[derive(Debug, Clone, PartialEq)]
pub struct GateSpec {
    /// Enforce, or only advise.
    pub mode: Mode,
    /// The gated metrics.
    pub limits: Vec<Limit>,
    /// Probability of a false alarm over all gated metrics of the check.
    pub false_alarm: Fraction,
    /// Probability of passing a true regression, a metric.
    pub missed_regression: Fraction,
    /// Time for the measurement of this scenario.
    pub budget: Duration,
    /// What an undecided scenario means for the exit code.
    pub on_inconclusive: OnInconclusive,
    /// What a missing baseline means.
    pub on_missing: OnMissing,
    /// Evidence or bare comparison.
    pub rule: Rule,
    /// How sure a change must be to fail.
    pub policy: Policy,
    /// Assumed spread between sessions (standard deviation of the logarithm) of throughput and
    /// of latency; none takes the default.
    pub assumed_noise: Option<(f64, f64)>,
    /// An improvement beyond this is flagged.
    pub suspicious_gain: Fraction,
}

/// Whether a regression changes the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It does.
    Enforce,
    /// The true verdict is shown, exit 0.
    Advise,
}

/// What an undecided scenario means for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInconclusive {
    /// Exit 4.
    Report,
    /// Exit 1.
    Fail,
    /// Exit 0 with a warning.
    Pass,
}

/// What a missing baseline means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// Exit 5.
    Fail,
    /// Measured and shown as new, does not fail.
    New,
}

/// How the verdict is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The statistics of docs/statistics.md.
    Evidence,
    /// Medians against the threshold, nothing else.
    Point,
}

/// How sure a change must be to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Proven worse and estimated beyond the threshold.
    Enforce,
    /// Proven worse and estimated beyond half the threshold.
    Detect,
}

/// A value, or the tool's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auto<T> {
    /// The tool chooses.
    Auto,
    /// As given.
    Fixed(T),
}

/// How a scenario is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasureSpec {
    /// Length of the warm-up.
    pub warmup: Auto<Duration>,
    /// Length of a block.
    pub block: Auto<Duration>,
    /// Connections to the server.
    pub connections: Auto<u32>,
    /// Worker threads of the client.
    pub workers: Auto<u32>,
    /// Deadline of one request.
    pub request_timeout: Duration,
    /// Share of failed requests up to which a measurement is valid.
    pub max_error_rate: Fraction,
    /// Accept a client that is at its limit.
    pub allow_saturated: bool,
    /// Seed of random inputs and orders.
    pub seed: u64,
}
