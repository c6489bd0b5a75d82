//! The history for a terminal.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use super::range::{CommitRange, short};
use super::record::GateRecord;
use super::series::{Kind, MetricSeries, Point, ScenarioHistory, Series};
use super::spark::sparkline;
use crate::data::{Metric, MetricVerdict};
use crate::report::format;
use crate::report::text::clean;
use crate::stats::Shift;

/// Longest name, in characters.
const NAME: usize = 80;
/// Values of a sparkline.
const SPARK: usize = 60;

/// How the page is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageStyle {
    /// ASCII only.
    pub ascii: bool,
    /// Points of a series that are shown.
    pub rows: usize,
}

/// Every scenario with its record, its points and its shifts.
pub fn page(histories: &[ScenarioHistory], style: PageStyle) -> String {
    let mut out = String::new();
    let mut series = 0;
    for history in histories {
        let _ = writeln!(
            out,
            "{} on {} (model {})",
            shown(&history.scenario, style),
            shown(&history.environment, style),
            shown(&history.model, style)
        );
        let _ = writeln!(out, "  the gate: {}", record(&history.record));
        for part in &history.series {
            let _ = writeln!(out, "\n  {}, {}", shown(&part.load, style), way(part.kind));
            if part.metrics.is_empty() {
                let _ = writeln!(out, "    nothing was measured");
                continue;
            }
            table(&mut out, part, style);
            for metric in &part.metrics {
                series += usize::from(metric.counted > 0);
                line(&mut out, part, metric, style);
            }
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "! regression, ? undecided, + better; baseline: a stored session. A series that never changed \
         shows a shift by chance in 1 of 100; there are {series} here."
    );
    out
}

fn way(kind: Kind) -> &'static str {
    match kind {
        Kind::Stored => "against stored sessions",
        Kind::Live => "against a live reference",
    }
}

fn number(count: u32) -> String {
    format::count(u64::from(count))
}

/// The record in words.
fn record(record: &GateRecord) -> String {
    let mut text = format!(
        "{}: {} passed, {} undecided, {} failed",
        format::counted(u64::from(record.checks), "check"),
        number(record.passed),
        number(record.undecided),
        number(record.failed)
    );
    let mut later = Vec::new();
    if record.later_accepted > 0 {
        later.push(format!("{} accepted later", number(record.later_accepted)));
    }
    if record.later_passed > 0 {
        later.push(format!(
            "{} passed later at the same commit",
            number(record.later_passed)
        ));
    }
    if !later.is_empty() {
        let _ = write!(text, " ({})", later.join(", "));
    }
    for (count, what) in [
        (record.accepted, "accepted"),
        (record.without_verdict, "without a verdict"),
        (record.not_affected, "not affected"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {} {what}", number(count));
        }
    }
    text
}

fn table(out: &mut String, series: &Series, style: PageStyle) {
    let mut table = Table::new();
    table.load_style(if style.ascii {
        presets::ASCII_FULL_CONDENSED
    } else {
        presets::UTF8_FULL_CONDENSED
    });
    let mut header = vec!["recorded".to_owned(), "commit".to_owned()];
    header.extend(series.metrics.iter().map(|m| m.metric.label().to_owned()));
    header.push("verdict".to_owned());
    table.set_header(header);
    for point in series.newest(style.rows) {
        let mut cells = vec![point.at.format("%Y-%m-%d %H:%M").to_string(), commit(point)];
        cells.extend(series.metrics.iter().map(|m| cell(point, m.metric)));
        cells.push(match (point.session, point.verdict) {
            (true, _) => "baseline".to_owned(),
            (false, Some(verdict)) => verdict.label().to_owned(),
            (false, None) => "unknown".to_owned(),
        });
        table.add_row(cells);
    }
    for index in 2..2 + series.metrics.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in table.to_string().lines() {
        let _ = writeln!(out, "  {line}");
    }
    let left = series.points.len().saturating_sub(style.rows);
    if left > 0 {
        let _ = writeln!(
            out,
            "  {} older ones are not shown (--last N)",
            format::count(left as u64)
        );
    }
}

fn commit(point: &Point) -> String {
    let Some(commit) = &point.commit else {
        return String::new();
    };
    let mark = if point.dirty == Some(true) { "*" } else { "" };
    // A hash is ASCII; what is none may hold anything.
    let text = clean(commit, 40);
    format!("{}{mark}", short(&text.escape_default().to_string()))
}

fn cell(point: &Point, metric: Metric) -> String {
    let Some(value) = point.values.get(&metric) else {
        return String::new();
    };
    let mark = match value.verdict {
        Some(MetricVerdict::Regression) => " !",
        Some(MetricVerdict::Inconclusive) => " ?",
        Some(MetricVerdict::Improvement) => " +",
        Some(MetricVerdict::Pass) | None => "",
    };
    format!("{}{mark}", format::short_value(metric, value.value))
}

/// The sparkline, and the last shift.
fn line(out: &mut String, series: &Series, found: &MetricSeries, style: PageStyle) {
    let values: Vec<f64> = found
        .indices
        .iter()
        .filter_map(|index| series.points.get(*index)?.values.get(&found.metric))
        .map(|value| value.value)
        .collect();
    let from = values.len().saturating_sub(SPARK);
    let last = found.last_shift();
    let place = last.and_then(|(shift, _)| shift.at.checked_sub(from));
    let _ = writeln!(
        out,
        "  {:<14} {}",
        found.metric.label(),
        sparkline(values.get(from..).unwrap_or_default(), place, style.ascii)
    );
    match last {
        None => {
            let _ = writeln!(out, "    no shift found in {}", counted(found.counted));
        }
        Some((shift, range)) => {
            let _ = writeln!(out, "    last shift: {}", described(found.metric, shift));
            for text in places(range) {
                let _ = writeln!(out, "    {text}");
            }
        }
    }
}

fn counted(count: usize) -> String {
    format::counted(count as u64, "value")
}

fn described(metric: Metric, shift: &Shift) -> String {
    let change = shift.after / shift.before - 1.0;
    let change = if change.is_finite() {
        format!("{}, ", format::change(change))
    } else {
        String::new()
    };
    format!(
        "{change}{} -> {} (p = {:.3}; {} before, {} since)",
        format::value(metric, shift.before),
        format::value(metric, shift.after),
        shift.p_value,
        counted(shift.values_before),
        counted(shift.values_after)
    )
}

/// Where the shift came in, and how to see the commits.
fn places(range: &CommitRange) -> Vec<String> {
    let end = |commit: Option<&String>, dirty: bool, at: chrono::DateTime<chrono::Utc>| {
        let name = commit.map_or("an unknown commit", |commit| short(commit));
        let dirty = if dirty { " with changes" } else { "" };
        format!("{name}{dirty} ({})", at.format("%Y-%m-%d %H:%M"))
    };
    let mut lines = vec![format!(
        "came in after {} and by {}",
        end(range.after_commit.as_ref(), range.after_dirty, range.after),
        end(range.by_commit.as_ref(), range.by_dirty, range.by)
    )];
    if range.same_commit() {
        lines.push(
            "both are the same commit: look at the machine, the driver and the server, not the code"
                .to_owned(),
        );
    }
    lines.extend(range.command());
    lines
}

fn shown(text: &str, style: PageStyle) -> String {
    let text = clean(text, NAME);
    if style.ascii {
        text.escape_default().to_string()
    } else {
        text
    }
}
