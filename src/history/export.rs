//! The history as CSV and as JSON.

use serde::Serialize;

use super::files::Skipped;
use super::range::CommitRange;
use super::series::{MetricSeries, Point, ScenarioHistory, Series};
use crate::data::{Metric, MetricVerdict, Tool, Verdict};
use crate::stats::Shift;

/// The schema number of the JSON.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Row<'a> {
    environment: &'a str,
    scenario: &'a str,
    load: &'a str,
    measured: &'static str,
    metric: Metric,
    unit: &'static str,
    recorded_at: String,
    commit: Option<&'a str>,
    branch: Option<&'a str>,
    dirty: Option<bool>,
    source: &'static str,
    value: f64,
    change: Option<f64>,
    metric_verdict: Option<MetricVerdict>,
    scenario_verdict: Option<Verdict>,
    shift: bool,
    file: &'a str,
}

/// One row a value, oldest first within a series; of each series the newest `last` points.
///
/// # Errors
/// A value that CSV cannot hold; none can.
pub fn csv(histories: &[ScenarioHistory], last: usize) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for history in histories {
        for series in &history.series {
            for found in &series.metrics {
                for (index, point) in newest(series, last) {
                    if let Some(value) = point.values.get(&found.metric) {
                        writer.serialize(Row {
                            environment: &history.environment,
                            scenario: &history.scenario,
                            load: &series.load,
                            measured: series.kind.name(),
                            metric: found.metric,
                            unit: found.metric.unit(),
                            recorded_at: time(point),
                            commit: point.commit.as_deref(),
                            branch: point.branch.as_deref(),
                            dirty: point.dirty,
                            source: source(point),
                            value: value.value,
                            change: value.change,
                            metric_verdict: value.verdict,
                            scenario_verdict: point.verdict,
                            shift: begins_level(found, index),
                            file: &point.file,
                        })?;
                    }
                }
            }
        }
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn newest(series: &Series, last: usize) -> impl Iterator<Item = (usize, &Point)> {
    let from = series.points.len().saturating_sub(last);
    series.points.iter().enumerate().skip(from)
}

fn begins_level(found: &MetricSeries, index: usize) -> bool {
    found
        .shifts
        .iter()
        .any(|(shift, _)| found.indices.get(shift.at) == Some(&index))
}

fn time(point: &Point) -> String {
    point.at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn source(point: &Point) -> &'static str {
    if point.session { "baseline" } else { "check" }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    tool: &'a Tool,
    command: &'static str,
    skipped: Vec<SkippedFile<'a>>,
    scenarios: Vec<ScenarioJson<'a>>,
}

#[derive(Serialize)]
struct SkippedFile<'a> {
    file: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct ScenarioJson<'a> {
    environment: &'a str,
    name: &'a str,
    model: &'a str,
    record: RecordJson,
    series: Vec<SeriesJson<'a>>,
}

#[derive(Serialize)]
struct RecordJson {
    checks: u32,
    passed: u32,
    undecided: u32,
    failed: u32,
    later_accepted: u32,
    later_passed: u32,
    accepted: u32,
    without_verdict: u32,
    not_affected: u32,
}

#[derive(Serialize)]
struct SeriesJson<'a> {
    load: &'a str,
    measured: &'static str,
    metrics: Vec<MetricJson<'a>>,
}

#[derive(Serialize)]
struct MetricJson<'a> {
    metric: Metric,
    unit: &'static str,
    counted: usize,
    last_shift: Option<ShiftJson>,
    shifts: Vec<ShiftJson>,
    points: Vec<PointJson<'a>>,
}

#[derive(Serialize)]
struct ShiftJson {
    at: String,
    change: Option<f64>,
    before: f64,
    after: f64,
    values_before: usize,
    values_after: usize,
    p_value: f64,
    after_commit: Option<String>,
    after_dirty: bool,
    after_time: String,
    by_commit: Option<String>,
    by_dirty: bool,
    by_time: String,
    same_commit: bool,
    command: Option<String>,
}

#[derive(Serialize)]
struct PointJson<'a> {
    recorded_at: String,
    commit: Option<&'a str>,
    branch: Option<&'a str>,
    dirty: Option<bool>,
    source: &'static str,
    value: f64,
    change: Option<f64>,
    metric_verdict: Option<MetricVerdict>,
    scenario_verdict: Option<Verdict>,
    counted: bool,
    file: &'a str,
}

/// The whole history, of each series the newest `last` points.
///
/// # Errors
/// A value that JSON cannot hold; none can.
pub fn json(
    histories: &[ScenarioHistory],
    skipped: &[Skipped],
    tool: &Tool,
    last: usize,
) -> Result<String, serde_json::Error> {
    let document = Document {
        schema: SCHEMA,
        tool,
        command: "history",
        skipped: skipped
            .iter()
            .map(|skipped| SkippedFile {
                file: &skipped.file,
                why: &skipped.why,
            })
            .collect(),
        scenarios: histories
            .iter()
            .map(|history| scenario_json(history, last))
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn scenario_json(history: &ScenarioHistory, last: usize) -> ScenarioJson<'_> {
    let record = &history.record;
    ScenarioJson {
        environment: &history.environment,
        name: &history.scenario,
        model: &history.model,
        record: RecordJson {
            checks: record.checks,
            passed: record.passed,
            undecided: record.undecided,
            failed: record.failed,
            later_accepted: record.later_accepted,
            later_passed: record.later_passed,
            accepted: record.accepted,
            without_verdict: record.without_verdict,
            not_affected: record.not_affected,
        },
        series: history
            .series
            .iter()
            .map(|series| SeriesJson {
                load: &series.load,
                measured: series.kind.name(),
                metrics: series
                    .metrics
                    .iter()
                    .map(|found| metric_json(series, found, last))
                    .collect(),
            })
            .collect(),
    }
}

fn metric_json<'a>(series: &'a Series, found: &'a MetricSeries, last: usize) -> MetricJson<'a> {
    let shift = |(shift, range): &(Shift, CommitRange)| shift_json(series, found, shift, range);
    MetricJson {
        metric: found.metric,
        unit: found.metric.unit(),
        counted: found.counted,
        last_shift: found.last_shift().map(shift),
        shifts: found.shifts.iter().map(shift).collect(),
        points: newest(series, last)
            .filter_map(|(_, point)| {
                let value = point.values.get(&found.metric)?;
                Some(PointJson {
                    recorded_at: time(point),
                    commit: point.commit.as_deref(),
                    branch: point.branch.as_deref(),
                    dirty: point.dirty,
                    source: source(point),
                    value: value.value,
                    change: value.change,
                    metric_verdict: value.verdict,
                    scenario_verdict: point.verdict,
                    counted: point.counted,
                    file: &point.file,
                })
            })
            .collect(),
    }
}

fn shift_json(
    series: &Series,
    found: &MetricSeries,
    shift: &Shift,
    range: &CommitRange,
) -> ShiftJson {
    let stamp =
        |at: chrono::DateTime<chrono::Utc>| at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let change = shift.after / shift.before - 1.0;
    let first = found.indices.get(shift.at);
    ShiftJson {
        at: first
            .and_then(|index| series.points.get(*index))
            .map(time)
            .unwrap_or_default(),
        change: change.is_finite().then_some(change),
        before: shift.before,
        after: shift.after,
        values_before: shift.values_before,
        values_after: shift.values_after,
        p_value: shift.p_value,
        after_commit: range.after_commit.clone(),
        after_dirty: range.after_dirty,
        after_time: stamp(range.after),
        by_commit: range.by_commit.clone(),
        by_dirty: range.by_dirty,
        by_time: stamp(range.by),
        same_commit: range.same_commit(),
        command: range.command(),
    }
}
