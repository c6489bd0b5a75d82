use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Difference, Facts, GateChanges, GpuSample, Metric};

/// The schema number of the result JSON that this version writes.
pub const RESULT_SCHEMA: u32 = 1;

/// The answer of a check, as JSON (docs/result.schema.json).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The schema of this document.
    pub schema: u32,
    /// What wrote it.
    pub tool: Tool,
    /// The subcommand: `check`, `compare`, `measure`.
    pub command: String,
    /// The worst scenario's verdict.
    pub verdict: Verdict,
    /// The exit code, after `on_inconclusive` and `advise`.
    pub exit_code: u8,
    /// The one sentence for the first line.
    pub headline: String,
    /// When the check began, RFC 3339, UTC; empty for a comparison of files.
    pub started_at: String,
    /// The full commit hash of the work tree in which the check ran; none where git knows none.
    #[serde(default)]
    pub commit: Option<String>,
    /// Its branch; none on a detached head.
    #[serde(default)]
    pub branch: Option<String>,
    /// Whether tracked files differed from the commit.
    #[serde(default)]
    pub dirty: Option<bool>,
    /// The environment's name and facts.
    pub environment_name: String,
    /// What must be equal, soft facts and notes of this machine and server.
    pub environment: Facts,
    /// What differs in the subject, over all scenarios.
    pub subject_changes: Vec<SubjectChange>,
    /// Environment fields that `--allow` opened and that differ.
    pub allowed: Vec<Difference>,
    /// The thresholds files.
    pub configs: Vec<String>,
    /// Things that a reader should know of the check as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<Flag>,
    /// What the change under test alters in the gate itself; none where nobody asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gate_changes: Option<GateChanges>,
    /// One entry a scenario, in the file's order.
    pub scenarios: Vec<ScenarioResult>,
}

/// What wrote a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Version of triton-gate.
    pub version: String,
    /// Commit that it was built from.
    pub commit: String,
}

/// One difference in what is under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectChange {
    /// The scenario.
    pub scenario: String,
    /// What differs.
    #[serde(flatten)]
    pub difference: Difference,
}

/// The verdict on a scenario or a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No gated metric can have regressed by its threshold.
    Pass,
    /// At least one gated metric regressed.
    Regression,
    /// The evidence does not decide.
    Inconclusive,
    /// A regression within an `[[accept]]` entry.
    Accepted,
    /// No baseline, and none required.
    New,
    /// Its files did not change.
    NotAffected,
    /// No baseline.
    NoBaseline,
    /// The baseline is from another environment or load.
    Incompatible,
    /// Could not be measured, or the measurement is not valid.
    Invalid,
    /// Stopped by the user.
    Interrupted,
}

impl Verdict {
    /// A word or two for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Regression => "regression",
            Self::Inconclusive => "inconclusive",
            Self::Accepted => "accepted",
            Self::New => "new",
            Self::NotAffected => "not affected",
            Self::NoBaseline => "no baseline",
            Self::Incompatible => "incompatible baseline",
            Self::Invalid => "could not measure",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The result of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioResult {
    /// The scenario's name.
    pub name: String,
    /// The model.
    pub model: String,
    /// The version that answered; empty where nothing was measured.
    pub model_version: String,
    /// The load in words: `concurrency 8, batch 1`.
    pub load: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, where it is not a plain pass.
    pub reason: Option<Reason>,
    /// True where it does not change the exit code.
    pub advisory: bool,
    /// The exit code that this scenario alone asks for, after `on_inconclusive`, `on_missing` and
    /// `advise`.
    pub exit_code: u8,
    /// What it was compared with.
    pub baseline: Option<BaselineUsed>,
    /// One row a gated metric.
    pub metrics: Vec<MetricResult>,
    /// Pairs of blocks, with a live reference.
    pub pairs: u32,
    /// Looks taken.
    pub looks: u32,
    /// Blocks of the candidate that count.
    pub blocks: u32,
    /// Seconds of measurement.
    pub seconds: f64,
    /// Requests of the candidate that completed.
    pub requests: u64,
    /// Requests of the candidate that failed, by class name.
    pub errors: BTreeMap<String, u64>,
    /// Blocks discarded, by reason.
    pub discarded: BTreeMap<String, u32>,
    /// How much of the noise between sessions is assumed: `assumed`, `partly_assumed`; none
    /// where it was measured.
    pub assumed_noise: Option<String>,
    /// Where the time went.
    pub breakdown: Option<Breakdown>,
    /// The GPUs of both sides; none where they could not be seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gpu: Option<GpuUsed>,
    /// Things that a reader should know.
    pub flags: Vec<Flag>,
    /// The session that was measured, as it is kept among the results; none without blocks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
}

impl ScenarioResult {
    /// A result that holds nothing yet but a name and a verdict.
    pub fn new(name: String, verdict: Verdict) -> Self {
        Self {
            name,
            model: String::new(),
            model_version: String::new(),
            load: String::new(),
            verdict,
            reason: None,
            advisory: false,
            exit_code: 0,
            baseline: None,
            metrics: Vec::new(),
            pairs: 0,
            looks: 0,
            blocks: 0,
            seconds: 0.0,
            requests: 0,
            errors: BTreeMap::new(),
            discarded: BTreeMap::new(),
            assumed_noise: None,
            breakdown: None,
            gpu: None,
            flags: Vec::new(),
            session: None,
        }
    }
}

/// The GPUs of both sides, means over their blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GpuUsed {
    /// The baseline's; none where it was recorded without.
    pub baseline: Option<GpuSample>,
    /// The candidate's.
    pub candidate: GpuSample,
}

/// Why a scenario did not plainly pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// A stable word for machines: `server_unreachable`, `few_sessions`.
    pub code: String,
    /// What happened and where.
    pub text: String,
    /// What to do next.
    pub next: String,
}

/// What a scenario was compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineUsed {
    /// Stored sessions or a live reference.
    pub kind: BaselineKind,
    /// Number of stored sessions.
    pub sessions: u32,
    /// Blocks in all of them.
    pub blocks: u32,
    /// The newest session's time, RFC 3339.
    pub newest: Option<String>,
    /// The newest session's commit.
    pub commit: Option<String>,
    /// The live reference in words, else the store's path.
    pub source: String,
}

/// The two kinds of baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineKind {
    /// Sessions recorded earlier.
    Stored,
    /// Another server, model or version, measured beside the candidate.
    Reference,
}

/// One gated metric of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricResult {
    /// What is gated.
    pub metric: Metric,
    /// Its unit.
    pub unit: String,
    /// The baseline's value; none without a baseline.
    pub baseline: Option<f64>,
    /// The candidate's value.
    pub candidate: Option<f64>,
    /// candidate / baseline - 1, raw sign.
    pub change: Option<f64>,
    /// The decision interval of the change; an unbounded end is null.
    pub interval: [Option<f64>; 2],
    /// The confidence of the two ends, `[lower, upper]` one-sided error levels.
    pub level: Option<[f64; 2]>,
    /// The threshold signed like `change`: -0.05, +0.10.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub threshold: Option<f64>,
    /// An absolute limit in the metric's unit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<f64>,
    /// The smallest change that this sample could have seen, as a positive fraction.
    pub noise_floor: Option<f64>,
    /// The verdict.
    pub verdict: MetricVerdict,
    /// Why it is undecided, where it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
    /// The pinned release that this row compares with; none for the baseline itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pin: Option<String>,
}

impl MetricResult {
    /// The row's name for people: the metric, and the pin that it compares with (`P99 vs v1.2`).
    pub fn label(&self) -> String {
        match &self.pin {
            Some(pin) => format!("{} vs {pin}", self.metric.label()),
            None => self.metric.label().to_owned(),
        }
    }
}

/// The verdict on one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricVerdict {
    /// A regression by the threshold is ruled out.
    Pass,
    /// Worse beyond the threshold.
    Regression,
    /// The evidence does not decide.
    Inconclusive,
    /// Better by at least half the threshold.
    Improvement,
}

/// Where the time went, microseconds per request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// At the baseline, where known.
    pub baseline: Option<SideBreakdown>,
    /// At the candidate.
    pub candidate: Option<SideBreakdown>,
}

/// Parts of the mean latency of one side, microseconds per request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SideBreakdown {
    /// Mean latency at the client.
    pub latency_us: f64,
    /// The server's queue.
    pub queue_us: f64,
    /// Preparing inputs.
    pub compute_input_us: f64,
    /// Running the model.
    pub compute_infer_us: f64,
    /// Extracting outputs.
    pub compute_output_us: f64,
    /// The server's own overhead.
    pub overhead_us: f64,
    /// Client and network: the rest.
    pub network_us: f64,
    /// Mean executed batch.
    pub executed_batch: Option<f64>,
}

/// Something that a reader should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// A stable word for machines: `client_busy`, `not_steady`.
    pub code: String,
    /// For people.
    pub text: String,
}
