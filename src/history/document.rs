//! A result file, read as leniently as its schema promises: unknown fields, metrics and verdicts are
//! passed over.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};

use crate::data::{BaselineKind, Metric, MetricVerdict, RESULT_SCHEMA, Verdict};

/// One check, as far as history needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The file that it was read from.
    pub file: String,
    /// When it began.
    pub at: DateTime<Utc>,
    /// The environment's name.
    pub environment: String,
    /// The commit of the work tree, if known.
    pub commit: Option<String>,
    /// The branch, if known.
    pub branch: Option<String>,
    /// Whether the work tree had changes.
    pub dirty: Option<bool>,
    /// Its scenarios.
    pub scenarios: Vec<CheckedScenario>,
}

/// One scenario of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedScenario {
    /// The scenario's name.
    pub name: String,
    /// The model.
    pub model: String,
    /// The load in words.
    pub load: String,
    /// The verdict; none where it is one that this version does not know.
    pub verdict: Option<Verdict>,
    /// What it was compared with; none where with nothing.
    pub kind: Option<BaselineKind>,
    /// What was measured.
    pub values: Vec<(Metric, Value)>,
}

/// One metric of one measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// In the metric's unit.
    pub value: f64,
    /// Against the baseline of that time, candidate / baseline - 1.
    pub change: Option<f64>,
    /// The verdict on this metric; none for a stored session.
    pub verdict: Option<MetricVerdict>,
}

/// Why a file is no part of the history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Empty, cut off, or something else.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON of another kind.
    #[error("not a result of triton-gate: {0}")]
    Foreign(String),
    /// Written by a later version.
    #[error("schema {0}, and this version reads {RESULT_SCHEMA}: read it with a newer triton-gate")]
    Newer(u64),
    /// No check: `compare` has no time and no place in a series.
    #[error("a result of {0:?}, not of a check")]
    OtherCommand(String),
    /// A time that cannot be read.
    #[error("started_at is {0:?}, expected a time like 2026-01-31T12:00:00Z")]
    NoTime(String),
    /// The operating system, or a file of absurd size.
    #[error("{0}")]
    Unreadable(String),
}

#[derive(Deserialize)]
struct Document {
    command: String,
    started_at: String,
    environment_name: String,
    #[serde(default)]
    commit: Option<String>,
    #[serde(default)]
    branch: Option<String>,
    #[serde(default)]
    dirty: Option<bool>,
    scenarios: Vec<Scenario>,
}

#[derive(Deserialize)]
struct Scenario {
    name: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    load: String,
    #[serde(default, deserialize_with = "known")]
    verdict: Option<Verdict>,
    #[serde(default)]
    baseline: Option<Baseline>,
    #[serde(default)]
    metrics: Vec<Row>,
}

#[derive(Deserialize)]
struct Baseline {
    #[serde(default, deserialize_with = "known")]
    kind: Option<BaselineKind>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default, deserialize_with = "known")]
    metric: Option<Metric>,
    #[serde(default)]
    candidate: Option<f64>,
    #[serde(default)]
    change: Option<f64>,
    #[serde(default, deserialize_with = "known")]
    verdict: Option<MetricVerdict>,
}

/// A word that this version knows, else none.
fn known<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = serde_json::Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok())
}

#[derive(Deserialize)]
struct Head {
    schema: Option<u64>,
}

/// Reads one result.
///
/// # Errors
/// Anything that is no result of a check which this version can read.
pub fn parse(text: &str, file: &str) -> Result<Check, Unusable> {
    let head: Head = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            Unusable::Foreign(error.to_string())
        } else {
            Unusable::NotJson(error.to_string())
        }
    })?;
    match head.schema {
        None => return Err(Unusable::Foreign("it has no schema".to_owned())),
        Some(schema) if schema > u64::from(RESULT_SCHEMA) => return Err(Unusable::Newer(schema)),
        Some(_) => {}
    }
    let document: Document =
        serde_json::from_str(text).map_err(|error| Unusable::Foreign(error.to_string()))?;
    if document.command != "check" {
        return Err(Unusable::OtherCommand(document.command));
    }
    let at = DateTime::parse_from_rfc3339(&document.started_at)
        .map_err(|_| Unusable::NoTime(document.started_at.clone()))?
        .with_timezone(&Utc);
    Ok(Check {
        file: file.to_owned(),
        at,
        environment: document.environment_name,
        commit: document.commit.filter(|commit| !commit.is_empty()),
        branch: document.branch.filter(|branch| !branch.is_empty()),
        dirty: document.dirty,
        scenarios: document.scenarios.into_iter().map(scenario).collect(),
    })
}

fn scenario(read: Scenario) -> CheckedScenario {
    CheckedScenario {
        name: read.name,
        model: read.model,
        load: read.load,
        verdict: read.verdict,
        kind: read.baseline.and_then(|baseline| baseline.kind),
        values: read
            .metrics
            .into_iter()
            .filter_map(|row| {
                let value = Value {
                    value: row.candidate.filter(|value| value.is_finite())?,
                    change: row.change,
                    verdict: row.verdict,
                };
                Some((row.metric?, value))
            })
            .collect(),
    }
}
