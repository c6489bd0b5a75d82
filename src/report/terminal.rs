use super::gate_changes;
use super::rows::{Tone, worst_first};
use super::table::{columns, table};
use super::text::{HEADLINE, MESSAGE, NAME, ascii, clean};
use super::words;
use crate::data::{CheckResult, ScenarioResult, Verdict};

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
    if let Some(title) = gate_changes::title(result) {
        page.list(&title, &gate_changes::sentences(result));
    }
    page.list("what changed", &words::subject_changes(result));
    let allowed: Vec<String> = result.allowed.iter().map(words::difference_text).collect();
    page.list("differs, and is allowed to (--allow)", &allowed);
    let notes: Vec<String> = result.notes.iter().map(|note| note.text.clone()).collect();
    page.list("notes", &notes);
    for scenario in worst_first(result) {
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
pub(crate) fn title(scenario: &ScenarioResult) -> String {
    let mut model = clean(&scenario.model, NAME);
    if !scenario.model_version.is_empty() {
        model.push_str(" version ");
        model.push_str(&clean(&scenario.model_version, NAME));
    }
    let load = clean(&scenario.load, NAME);
    // A comparison of files may know neither.
    let known: Vec<&str> = [model.as_str(), &load]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let known = if known.is_empty() {
        String::new()
    } else {
        format!(" ({})", known.join(", "))
    };
    format!(
        "{}{known}: {}",
        clean(&scenario.name, NAME),
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
            lines.push(format!("{}: {}", metric.label(), clean(note, MESSAGE)));
        }
    }
    if let Some(breakdown) = words::breakdown(scenario) {
        lines.push(format!("where the time went: {breakdown}"));
    }
    if let Some(gpu) = words::gpu(scenario) {
        lines.push(format!("GPU: {gpu}"));
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

fn verdict_tone(result: &CheckResult) -> Tone {
    match result.verdict {
        _ if result.exit_code == 4 => Tone::Warn,
        _ if result.exit_code != 0 => Tone::Bad,
        Verdict::Pass => Tone::Good,
        Verdict::NotAffected => Tone::Quiet,
        _ => Tone::Warn,
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
