//! `[[accept]]`: slowdowns that are intended.

use chrono::NaiveDate;
use toml::de::{DeTable, DeValue};

use super::error::{Place, Problem, nearest, shown};
use super::file::{Walk, joined};
use super::layer::At;
use super::{read as values, schema};
use crate::data::{Fraction, Metric};

/// A slowdown that is accepted: committed with the change, reviewed with it.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptSpec {
    /// The scenario.
    pub scenario: String,
    /// The metric.
    pub metric: Metric,
    /// The largest accepted change for the worse.
    pub up_to: Fraction,
    /// Why, for reviewers.
    pub reason: String,
    /// The last day (UTC) on which it holds.
    pub expires: NaiveDate,
    /// Where it stands.
    pub place: Place,
}

/// An `[[accept]]` before its scenario was looked up.
#[derive(Debug, Clone)]
pub(crate) struct RawAccept {
    pub scenario: At<String>,
    pub metric: Metric,
    pub up_to: Fraction,
    pub reason: String,
    pub expires: NaiveDate,
    pub place: Place,
}

const PATH: [&str; 1] = ["accept"];

/// What each key holds, for messages.
const EXPECTED: [(&str, &str); 5] = [
    ("scenario", "a scenario's name as text"),
    ("metric", "a metric as text, like \"p99\""),
    ("up_to", "a percentage as text, like \"25%\""),
    ("reason", "why the slowdown is accepted, as text"),
    ("expires", "a date, like \"2027-01-31\""),
];

/// Reads one `[[accept]]`; every key is required.
pub(crate) fn read(walk: &mut Walk<'_>, table: &DeTable<'_>, place: Place) -> Option<RawAccept> {
    let (mut scenario, mut metric, mut up_to, mut reason, mut expires) =
        (None, None, None, None, None);
    for entry in walk.entries(table, &PATH, schema::ACCEPT) {
        match entry.0.get_ref().as_ref() {
            "scenario" => scenario = walk.value(entry, &PATH, |value| words(value, "scenario")),
            "metric" => metric = walk.value(entry, &PATH, read_metric),
            "up_to" => up_to = walk.value(entry, &PATH, values::rise),
            "reason" => reason = walk.value(entry, &PATH, |value| words(value, "reason")),
            _ => expires = walk.value(entry, &PATH, read_date),
        }
    }
    let mut complete = true;
    for (key, expected) in EXPECTED {
        if !table.contains_key(key) {
            complete = false;
            let problem = Problem::Missing(expected.to_owned());
            walk.fail_at(&place, &joined(&PATH, key), problem);
        }
    }
    if !complete {
        return None;
    }
    Some(RawAccept {
        scenario: scenario?,
        metric: metric?.value,
        up_to: up_to?.value,
        reason: reason?.value,
        expires: expires?.value,
        place,
    })
}

fn words(value: &DeValue<'_>, key: &str) -> Result<String, Problem> {
    let expected = EXPECTED
        .iter()
        .find(|(name, _)| *name == key)
        .map_or("text", |(_, expected)| expected);
    let text = values::text(value, expected)?.trim();
    if text.is_empty() {
        return Err(Problem::Value(format!("empty: expected {expected}")));
    }
    Ok(text.to_owned())
}

fn read_metric(value: &DeValue<'_>) -> Result<Metric, Problem> {
    let name = words(value, "metric")?;
    name.parse().map_err(|_| Problem::UnknownName {
        what: "metric",
        suggestion: nearest(&name, Metric::ALL.map(Metric::name)).map(str::to_owned),
        allowed: Metric::ALL.map(|metric| metric.name().to_owned()).to_vec(),
        name,
    })
}

/// A date as text or as TOML's own.
fn read_date(value: &DeValue<'_>) -> Result<NaiveDate, Problem> {
    let text = match value {
        DeValue::Datetime(date) => date.to_string(),
        other => words(other, "expires")?,
    };
    let well_formed = text.len() == 10;
    NaiveDate::parse_from_str(&text, "%Y-%m-%d")
        .ok()
        .filter(|_| well_formed)
        .ok_or_else(|| {
            Problem::Value(format!(
                "{} is not a date: expected year-month-day, like \"2027-01-31\"",
                shown(&text)
            ))
        })
}
