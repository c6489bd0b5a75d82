//! What a calibration found, as data. The serialised form is the JSON of `calibrate --json`.

use serde::Serialize;

use crate::data::{Flag, Metric, Reason, Tool};

/// Version of the JSON.
pub const CALIBRATION_SCHEMA: u32 = 1;

/// A whole calibration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// Version of this format.
    pub schema: u32,
    /// What wrote it.
    pub tool: Tool,
    /// Always `calibrate`.
    pub command: String,
    /// The exit code.
    pub exit_code: u8,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// The environment's name.
    pub environment_name: String,
    /// Scenario by scenario, in the files' order.
    pub scenarios: Vec<Calibrated>,
}

/// What was found of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibrated {
    /// The scenario.
    pub name: String,
    /// The model.
    pub model: String,
    /// The version that answered; empty where it never did.
    pub model_version: String,
    /// The load, in words.
    pub load: String,
    /// Time of a check's measurement, seconds: what all figures are for.
    pub budget_seconds: f64,
    /// Seconds that the calibration took.
    pub seconds: f64,
    /// True where everything planned was measured.
    pub complete: bool,
    /// Why it is not complete.
    pub reason: Option<Reason>,
    /// The noise by block length, shortest first.
    pub lengths: Vec<LengthNoise>,
    /// Milliseconds of the best block; none where nothing could be compared.
    pub best_block_ms: Option<f64>,
    /// One side alone in long blocks against short ones, by block length and metric.
    pub agreement: Vec<Agreement>,
    /// The spread between loads of the model, by metric; empty where it could not be seen.
    pub loads: Vec<LoadSpread>,
    /// Loads of the model that were seen.
    pub loads_seen: u32,
    /// What the gate makes of identical code at the configured limits and the best block length.
    pub rates: Option<Rates>,
    /// The smallest limits that can be kept, by metric.
    pub advice: Vec<Advice>,
    /// Lines for the thresholds file.
    pub toml: String,
    /// Things that a reader should know.
    pub flags: Vec<Flag>,
}

/// The noise at one block length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LengthNoise {
    /// The block's length, milliseconds.
    pub block_ms: f64,
    /// True for the length that a check takes with the present thresholds.
    pub chosen: bool,
    /// Pairs in a unit.
    pub pairs_per_unit: u32,
    /// Units that were measured.
    pub units: u32,
    /// Seconds that a unit took, both sides.
    pub unit_seconds: f64,
    /// Units that a check's budget holds.
    pub units_of_check: u32,
    /// By metric, in the limits' order.
    pub metrics: Vec<MetricNoise>,
}

/// The noise of one metric at one block length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricNoise {
    /// The metric.
    pub metric: Metric,
    /// Standard deviation of the ln difference of the sides over units.
    pub unit_sd: f64,
    /// Standard error of the ln difference after a whole check.
    pub check_se: f64,
    /// The smallest change that a whole check can see at the configured error rates, a fraction.
    pub noise_floor: f64,
    /// The mean difference of the two identical sides, a fraction: how far off nothing is.
    pub mean_change: f64,
}

/// Whether alternating changes what is measured: short blocks against long ones of one side alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// The short blocks' length, milliseconds.
    pub block_ms: f64,
    /// The metric.
    pub metric: Metric,
    /// The short blocks' value against the long ones', a fraction.
    pub change: f64,
    /// Its 95 % interval; unbounded where there are too few turns.
    pub interval: [Option<f64>; 2],
    /// Turns that were compared.
    pub turns: u32,
    /// False where the change is certain, and large beside the limits.
    pub agrees: bool,
}

/// The spread between loads of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadSpread {
    /// The metric.
    pub metric: Metric,
    /// Standard deviation of ln between loads, what it would be within one load taken off. Drift of
    /// the machine from load to load is in it.
    pub sd: f64,
    /// False where chance alone could well make loads differ as much (F test at 5 %).
    pub certain: bool,
    /// The largest that the configured limit takes without false alarms: T / (2.33 sqrt 2).
    pub bearable: f64,
}

impl LoadSpread {
    /// True where a difference of two loads alone may certainly cross the limit.
    pub fn too_large(&self) -> bool {
        self.certain && self.sd > self.bearable
    }
}

/// What became of resampled checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Checks.
    pub checks: u32,
    /// Independent stretches of a whole check's length that the recording holds.
    pub stretches: f64,
    /// Share that ended in a regression; with the same model on both sides, false alarms.
    pub regression: f64,
    /// Share that passed.
    pub pass: f64,
    /// Share that was inconclusive.
    pub inconclusive: f64,
    /// Mean seconds of measurement to the verdict.
    pub mean_seconds: f64,
}

/// The smallest limit of a metric that this server and budget can keep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The metric.
    pub metric: Metric,
    /// The configured limit, a positive fraction.
    pub limit: f64,
    /// The smallest honest one, a positive fraction; none where none is up to 50 %.
    pub honest: Option<f64>,
    /// Share of resampled checks with that limit alone that pass identical code.
    pub pass: Option<f64>,
}
