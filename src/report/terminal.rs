use comfy_table::{
    Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width, presets,
};

use super::rows::{Row, Tone, rows};
use super::text::{HEADLINE, MESSAGE, NAME, ascii, clean};
use super::words;
use crate::data::{CheckResult, ScenarioResult, Verdict};

/// Scenario names are not squeezed below this before a narrower layout is taken.
const ROOM_FOR_NAMES: usize = 24;

/// How a terminal wants it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours.
    pub color: bool,
    /// Columns; none where the output is no terminal: then nothing is wrapped.
    pub width: Option<u16>,
    /// ASCII only, for terminals without UTF-8.
    pub ascii: bool,
}

/// The report for a terminal or a log: the verdict in the first line, then the table with what
/// failed first, then what a reader needs to act on it.
pub fn terminal(result: &CheckResult, style: Style) -> String {
    let mut page = Page {
        out: String::new(),
        style,
    };
    let headline = if result.headline.is_empty() {
        super::headline(&result.command, &result.scenarios)
    } else {
        result.headline.clone()
    };
    let headline = page.text(&headline, HEADLINE);
    page.out
        .push_str(&paint(&headline, verdict_tone(result), style.color));
    page.out.push('\n');
    if !result.scenarios.is_empty() {
        page.out.push('\n');
        page.out.push_str(&table(result, style));
        page.out.push('\n');
    }
    page.list("what changed", &words::subject_changes(result));
    let allowed: Vec<String> = result.allowed.iter().map(words::difference_text).collect();
    page.list("differs, and is allowed to (--allow)", &allowed);
    let mut scenarios: Vec<&ScenarioResult> = result.scenarios.iter().collect();
    scenarios.sort_by_key(|scenario| super::rows::rank(scenario));
    for scenario in scenarios {
        details(&mut page, scenario);
    }
    page.out.push('\n');
    page.line("", &format!("environment: {}", words::environment(result)));
    page.line("", &words::tool(result));
    page.out
}

struct Page {
    out: String,
    style: Style,
}

impl Page {
    /// Text from outside as this terminal can show it.
    fn text(&self, text: &str, limit: usize) -> String {
        if self.style.ascii {
            ascii(text, limit)
        } else {
            clean(text, limit)
        }
    }

    /// One line, wrapped at words and indented where it goes on.
    fn line(&mut self, indent: &str, text: &str) {
        let text = self.text(text, 4 * MESSAGE);
        let width = self.style.width.map_or(usize::MAX, usize::from).max(20);
        self.out.push_str(indent);
        let mut used = indent.len();
        let mut fresh = true;
        for word in text.split(' ') {
            if !fresh && used + 1 + columns(word) > width {
                self.out.push('\n');
                self.out.push_str(indent);
                self.out.push_str("  ");
                used = indent.len() + 2;
                fresh = true;
            }
            if !fresh {
                self.out.push(' ');
                used += 1;
            }
            self.out.push_str(word);
            used += columns(word);
            fresh = false;
        }
        self.out.push('\n');
    }

    fn list(&mut self, title: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.out.push('\n');
        self.line("", &format!("{title}:"));
        for item in items {
            self.line("  ", item);
        }
    }
}

/// What a scenario needs said beside its rows; nothing for a plain pass.
fn details(page: &mut Page, scenario: &ScenarioResult) {
    let quiet = matches!(scenario.verdict, Verdict::Pass | Verdict::NotAffected);
    if quiet && scenario.flags.is_empty() && scenario.assumed_noise.is_none() {
        return;
    }
    page.out.push('\n');
    page.line("", &title(scenario));
    for line in lines(scenario) {
        page.line("  ", &line);
    }
}

/// `yolov9-c8 (yolov9 version 2, concurrency 8, batch 1): regression`.
pub(super) fn title(scenario: &ScenarioResult) -> String {
    let mut model = clean(&scenario.model, NAME);
    if !scenario.model_version.is_empty() {
        model.push_str(" version ");
        model.push_str(&clean(&scenario.model_version, NAME));
    }
    format!(
        "{} ({model}, {}): {}",
        clean(&scenario.name, NAME),
        clean(&scenario.load, NAME),
        words::verdict(scenario.verdict)
    )
}

/// The lines about one scenario, most useful first.
pub(super) fn lines(scenario: &ScenarioResult) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(reason) = &scenario.reason {
        lines.push(format!("reason: {}", clean(&reason.text, MESSAGE)));
    }
    lines.extend(words::next(scenario).map(|next| format!("next: {next}")));
    if let Some(effect) = words::exit_effect(scenario) {
        lines.push(effect);
    }
    for metric in &scenario.metrics {
        if scenario.verdict == Verdict::Inconclusive
            && metric.verdict == crate::data::MetricVerdict::Inconclusive
        {
            lines.push(words::not_ruled_out(metric));
        } else if let Some(note) = &metric.note {
            lines.push(format!(
                "{}: {}",
                metric.metric.label(),
                clean(note, MESSAGE)
            ));
        }
    }
    if let Some(breakdown) = words::breakdown(scenario) {
        lines.push(format!("where the time went: {breakdown}"));
    }
    for flag in &scenario.flags {
        lines.push(format!("note: {}", clean(&flag.text, MESSAGE)));
    }
    if let Some(assumed) = words::assumed_noise(scenario) {
        lines.push(assumed.to_owned());
    }
    if let Some(measured) = words::measured(scenario) {
        lines.push(format!("measured: {measured}"));
    }
    if let Some(baseline) = words::baseline(scenario) {
        lines.push(format!("compared with: {baseline}"));
    }
    lines
}

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
                row.metric_label().to_owned(),
                row.baseline(),
                row.candidate(),
                row.change(),
                row.interval(),
                row.limit(),
                row.noise_floor(),
                row.verdict().to_owned(),
            ],
            Self::Medium => vec![
                two(name.to_owned(), row.metric_label().to_owned()),
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

fn table(result: &CheckResult, style: Style) -> String {
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
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

fn verdict_tone(result: &CheckResult) -> Tone {
    match result.verdict {
        _ if result.exit_code == 4 => Tone::Warn,
        _ if result.exit_code != 0 => Tone::Bad,
        Verdict::Pass => Tone::Good,
        Verdict::NotAffected => Tone::Quiet,
        _ => Tone::Warn,
    }
}

const fn color(tone: Tone) -> Option<Color> {
    match tone {
        Tone::Bad => Some(Color::Red),
        Tone::Warn => Some(Color::Yellow),
        Tone::Good => Some(Color::Green),
        Tone::Quiet => None,
    }
}

fn paint(text: &str, tone: Tone, color: bool) -> String {
    let code = match tone {
        _ if !color => return text.to_owned(),
        Tone::Bad => "1;31",
        Tone::Warn => "1;33",
        Tone::Good => "1;32",
        Tone::Quiet => "1",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::{self, ALL_VERDICTS, HOSTILE};

    fn at(width: u16) -> Style {
        Style {
            width: Some(width),
            ..Style::default()
        }
    }

    #[test]
    fn one_scenario_of_each_verdict() {
        for verdict in ALL_VERDICTS {
            let result = samples::check(vec![samples::scenario("yolov9-c8", verdict)]);
            insta::with_settings!({ snapshot_suffix => words::verdict(verdict).replace(' ', "_") }, {
                insta::assert_snapshot!(terminal(&result, at(120)));
            });
        }
    }

    #[test]
    fn everything_at_three_widths() {
        for width in [60, 80, 160] {
            insta::with_settings!({ snapshot_suffix => width.to_string() }, {
                insta::assert_snapshot!(terminal(&samples::full(), at(width)));
            });
        }
    }

    #[test]
    fn many_scenarios() {
        insta::assert_snapshot!(terminal(&samples::many(20), at(100)));
    }

    #[test]
    fn hostile_names_in_ascii() {
        let style = Style {
            width: Some(100),
            ascii: true,
            ..Style::default()
        };
        let text = terminal(&samples::hostile(HOSTILE), style);
        assert!(text.is_ascii());
        assert!(!text.contains('\u{1b}'));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn fits_every_width() {
        let results = [
            samples::full(),
            samples::many(20),
            samples::hostile(HOSTILE),
            samples::hostile(&"x".repeat(300)),
        ];
        for result in &results {
            for width in [60, 79, 80, 99, 100, 119, 120, 139, 140, 200] {
                let text = terminal(result, at(width));
                let table: Vec<&str> = text
                    .lines()
                    .filter(|line| line.starts_with(['│', '┌', '╞', '├', '└']))
                    .collect();
                assert!(!table.is_empty());
                for line in table {
                    assert!(
                        line.chars().count() <= usize::from(width),
                        "{width}: {line}"
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_are_never_torn_apart() {
        for width in [60, 80, 120] {
            let text = terminal(&samples::full(), at(width));
            for number in ["2 504", "+18.2 %", "[+14.1 %, +22.3 %]", "4.31 ms"] {
                assert!(text.contains(number), "{width}: {number}\n{text}");
            }
        }
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let plain = terminal(&samples::full(), at(120));
        let style = Style {
            color: true,
            ..at(120)
        };
        let coloured = terminal(&samples::full(), style);
        assert!(coloured.starts_with("\u{1b}[1;31mREGRESSION"));
        let stripped: Vec<String> = coloured.lines().map(strip).collect();
        let plain: Vec<&str> = plain.lines().map(str::trim_end).collect();
        assert_eq!(stripped, plain);
    }

    fn strip(line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            out.push_str(before);
            rest = after.split_once('m').map_or("", |(_, rest)| rest);
        }
        out.push_str(rest);
        out.trim_end().to_owned()
    }

    #[test]
    fn the_first_line_is_the_verdict_even_without_a_stored_headline() {
        let mut result = samples::full();
        result.headline.clear();
        let text = terminal(&result, Style::default());
        assert!(text.starts_with("REGRESSION in 1 of 2 scenarios: yolov9-c8: P99 +18.2 %"));
        result.scenarios.clear();
        assert!(terminal(&result, Style::default()).starts_with("NOTHING CHECKED"));
    }
}
