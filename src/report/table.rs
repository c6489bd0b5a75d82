use comfy_table::{
    Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width, presets,
};

use super::Style;
use super::rows::{Row, Tone, rows};
use super::text::{NAME, ascii, clean};
use crate::data::CheckResult;

/// Scenario names are not squeezed below this before a narrower layout is taken.
const ROOM_FOR_NAMES: usize = 24;

/// Three layouts, from wide to narrow; the first that fits is taken.
#[derive(Clone, Copy)]
enum Layout {
    /// A column for everything.
    Wide,
    /// Two values a cell, one above the other.
    Medium,
    /// The same, and name, metric and verdict in one cell.
    Narrow,
}

impl Layout {
    fn header(self) -> Vec<&'static str> {
        match self {
            Self::Wide => vec![
                "scenario",
                "metric",
                "baseline",
                "candidate",
                "change",
                "interval",
                "limit",
                "noise floor",
                "verdict",
            ],
            Self::Medium => vec![
                "scenario\nmetric",
                "baseline\ncandidate",
                "change\ninterval",
                "limit\nfloor",
                "verdict",
            ],
            Self::Narrow => vec![
                "scenario\nmetric\nverdict",
                "baseline\ncandidate",
                "change\ninterval",
                "limit\nfloor",
            ],
        }
    }

    fn cells(self, row: &Row<'_>, name: &str) -> Vec<String> {
        let two = |above: String, below: String| format!("{above}\n{below}");
        match self {
            Self::Wide => vec![
                name.to_owned(),
                row.metric_label(),
                row.baseline(),
                row.candidate(),
                row.change(),
                row.interval(),
                row.limit(),
                row.noise_floor(),
                row.verdict().to_owned(),
            ],
            Self::Medium => vec![
                two(name.to_owned(), row.metric_label()),
                two(row.baseline(), row.candidate()),
                two(row.change(), row.interval()),
                two(row.limit(), row.noise_floor()),
                row.verdict().to_owned(),
            ],
            Self::Narrow => vec![
                format!("{name}\n{}\n{}", row.metric_label(), row.verdict()),
                two(row.short_baseline(), row.short_candidate()),
                two(row.change(), row.interval()),
                two(row.limit(), row.noise_floor()),
            ],
        }
    }
}

/// The table of all rows in the widest layout that fits.
pub(super) fn table(result: &CheckResult, style: Style) -> String {
    let rows = rows(result);
    let name = |row: &Row<'_>| {
        if style.ascii {
            ascii(&row.scenario.name, NAME)
        } else {
            clean(&row.scenario.name, NAME)
        }
    };
    let names: Vec<String> = rows.iter().map(name).collect();
    let longest = names.iter().map(|name| columns(name)).max().unwrap_or(0);
    let mut choice = (Layout::Wide, None);
    if let Some(width) = style.width.map(usize::from) {
        for layout in [Layout::Wide, Layout::Medium, Layout::Narrow] {
            let fixed = fixed_width(layout, &rows);
            let room = width.saturating_sub(fixed);
            choice = (layout, Some(room.clamp(8, longest.max(10))));
            if room >= longest.clamp(10, ROOM_FOR_NAMES) {
                break;
            }
        }
    }
    let (layout, room) = choice;

    let mut table = Table::new();
    table
        .load_style(if style.ascii {
            presets::ASCII_FULL_CONDENSED
        } else {
            presets::UTF8_FULL_CONDENSED
        })
        .set_content_arrangement(if room.is_some() {
            ContentArrangement::Dynamic
        } else {
            ContentArrangement::Disabled
        })
        .set_header(layout.header());
    if style.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    if let Some(width) = style.width {
        table.set_width(width);
    }
    for (row, name) in rows.iter().zip(&names) {
        let texts = layout.cells(row, name);
        // The verdict's colour goes to the cell that holds the verdict.
        let verdict_at = match layout {
            Layout::Narrow => 0,
            _ => texts.len() - 1,
        };
        let cells = texts.into_iter().enumerate().map(|(at, text)| {
            let cell = Cell::new(text);
            if style.color && at == verdict_at {
                match color(row.tone()) {
                    Some(color) => cell.fg(color),
                    None => cell,
                }
            } else {
                cell
            }
        });
        table.add_row(cells.collect::<Vec<Cell>>());
    }
    let numbers = match layout {
        Layout::Wide => 2..8,
        Layout::Medium | Layout::Narrow => 1..4,
    };
    for (at, column) in table.column_iter_mut().enumerate() {
        if numbers.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if at > 0 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        } else if let Some(room) = room {
            column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(
                u16::try_from(room + 2).unwrap_or(u16::MAX),
            )));
        }
    }
    table.trim_fmt()
}

/// What a layout needs beside the text of its first column.
fn fixed_width(layout: Layout, rows: &[Row<'_>]) -> usize {
    let mut widths: Vec<usize> = layout.header().iter().map(|text| widest(text)).collect();
    for row in rows {
        for (width, text) in widths.iter_mut().zip(layout.cells(row, "")) {
            *width = (*width).max(widest(&text));
        }
    }
    // A space on each side of a cell, a border before each and one at the end.
    widths.iter().skip(1).sum::<usize>() + 3 * widths.len() + 1
}

fn widest(text: &str) -> usize {
    text.lines().map(columns).max().unwrap_or(0)
}

/// Columns that a text takes at most: outside ASCII a character may be two wide.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

const fn color(tone: Tone) -> Option<Color> {
    match tone {
        Tone::Bad => Some(Color::Red),
        Tone::Warn => Some(Color::Yellow),
        Tone::Good => Some(Color::Green),
        Tone::Quiet => None,
    }
}
