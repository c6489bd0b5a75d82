//! A calibration for people.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use super::outcome::{Agreement, Calibrated, Calibration, Rates};
use crate::data::{Direction, Metric};
use crate::report::Style;
use crate::report::format;
use crate::report::text::{ascii, clean};

/// Characters of a name or message from outside that are shown.
const LONGEST: usize = 400;

/// The report: a section a scenario, the lines to paste at the end of each.
pub fn text(calibration: &Calibration, style: Style) -> String {
    let mut out = String::new();
    for scenario in &calibration.scenarios {
        section(&mut out, scenario, style);
        out.push('\n');
    }
    out
}

fn line(out: &mut String, style: Style, text: &str) {
    // Cleaning takes the blanks at the beginning.
    let indent = text.len() - text.trim_start_matches(' ').len();
    out.push_str(&" ".repeat(indent));
    let shown = if style.ascii {
        ascii(text, LONGEST)
    } else {
        clean(text, LONGEST)
    };
    out.push_str(&shown);
    out.push('\n');
}

fn section(out: &mut String, scenario: &Calibrated, style: Style) {
    let version = if scenario.model_version.is_empty() {
        String::new()
    } else {
        format!(" version {}", scenario.model_version)
    };
    line(
        out,
        style,
        &format!(
            "{} ({}{version}, {}): {}, {}, identical on both sides; figures are for checks of {}",
            scenario.name,
            scenario.model,
            scenario.load,
            format::duration(scenario.seconds),
            format::counted(u64::from(scenario.loads_seen), "load"),
            format::duration(scenario.budget_seconds),
        ),
    );
    if let Some(reason) = &scenario.reason {
        line(out, style, &format!("  not complete: {}", reason.text));
        if !reason.next.is_empty() {
            line(out, style, &format!("  next: {}", reason.next));
        }
    }
    if scenario
        .lengths
        .iter()
        .any(|length| !length.metrics.is_empty())
    {
        out.push_str("\nNoise: sd of the difference of a unit, and what a whole check can see\n");
        let _ = writeln!(out, "{}", noise_table(scenario, style));
    }
    if !scenario.agreement.is_empty() {
        out.push_str("\nShort blocks against long ones of one side alone (95 % interval)\n");
        for one in &scenario.agreement {
            line(out, style, &agreement_line(one));
        }
    }
    if !scenario.loads.is_empty() {
        let _ = writeln!(
            out,
            "\nSpread between {} of the model, drift of the machine included",
            format::counted(u64::from(scenario.loads_seen), "load")
        );
        for load in &scenario.loads {
            line(
                out,
                style,
                &format!(
                    "  {}: sd {}, the limit bears {}{}",
                    load.metric.label(),
                    format::percent(load.sd),
                    format::percent(load.bearable),
                    if load.certain {
                        ""
                    } else {
                        " (chance alone could make it)"
                    }
                ),
            );
        }
    }
    if let Some(rates) = &scenario.rates {
        out.push('\n');
        line(out, style, &rates_line(scenario, rates));
    }
    for flag in &scenario.flags {
        line(out, style, &format!("note: {}", flag.text));
    }
    if !scenario.advice.is_empty() {
        out.push_str("\nThe smallest limits that hold here\n");
        for advice in &scenario.advice {
            let signed = |limit: f64| match advice.metric.direction() {
                Direction::HigherIsBetter => format::threshold(-limit),
                Direction::LowerIsBetter => format::threshold(limit),
            };
            let honest = advice
                .honest
                .map_or_else(|| "none up to 50 %".to_owned(), signed);
            line(
                out,
                style,
                &format!(
                    "  {}: {honest} (configured: {})",
                    advice.metric.label(),
                    signed(advice.limit)
                ),
            );
        }
        out.push('\n');
        out.push_str(&scenario.toml);
    }
}

fn noise_table(scenario: &Calibrated, style: Style) -> String {
    let metrics: Vec<Metric> = scenario
        .lengths
        .iter()
        .find(|length| !length.metrics.is_empty())
        .map_or_else(Vec::new, |length| {
            length.metrics.iter().map(|noise| noise.metric).collect()
        });
    let mut header = vec!["block".to_owned(), "units".to_owned(), "a unit".to_owned()];
    for metric in &metrics {
        header.push(format!("{} sd", metric.label()));
        header.push("noise floor".to_owned());
    }
    header.push(String::new());
    let mut table = Table::new();
    table
        .load_style(if style.ascii {
            presets::ASCII_FULL_CONDENSED
        } else {
            presets::UTF8_FULL_CONDENSED
        })
        .force_no_tty()
        .set_header(header);
    for length in &scenario.lengths {
        let best = scenario
            .best_block_ms
            .is_some_and(|best| best.total_cmp(&length.block_ms).is_eq());
        let mut cells = vec![
            format::duration_ms(length.block_ms),
            length.units.to_string(),
            format::duration(length.unit_seconds),
        ];
        for metric in &metrics {
            let known = length.metrics.iter().find(|noise| noise.metric == *metric);
            cells
                .push(known.map_or_else(|| "-".to_owned(), |noise| format::percent(noise.unit_sd)));
            cells.push(known.map_or_else(
                || "-".to_owned(),
                |noise| format::percent(noise.noise_floor),
            ));
        }
        let note = match (best, length.chosen) {
            (true, true) => "best, in use",
            (true, false) => "best",
            (false, true) => "in use",
            (false, false) => "",
        };
        cells.push(note.to_owned());
        table.add_row(cells);
    }
    let last = 2 + 2 * metrics.len();
    for (at, column) in table.column_iter_mut().enumerate() {
        if at <= last {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn agreement_line(one: &Agreement) -> String {
    format!(
        "  {}: {} {} {} over {}{}",
        format::duration_ms(one.block_ms),
        one.metric.label(),
        format::change(one.change),
        format::interval(one.interval),
        format::counted(u64::from(one.turns), "turn"),
        if one.agrees { "" } else { ": does not agree" }
    )
}

fn rates_line(scenario: &Calibrated, rates: &Rates) -> String {
    format!(
        "Identical code at the configured limits, blocks of {}, {} resampled checks over {:.1} \
         independent stretches: false alarm {}, inconclusive {}, pass {}, {} to the verdict",
        scenario
            .best_block_ms
            .map_or_else(|| "-".to_owned(), format::duration_ms),
        format::count(u64::from(rates.checks)),
        rates.stretches,
        format::percent(rates.regression),
        format::percent(rates.inconclusive),
        format::percent(rates.pass),
        format::duration(rates.mean_seconds)
    )
}
