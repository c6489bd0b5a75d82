use super::format::counted;
use super::gate_changes;
use super::rows::{Row, Tone, rows, worst_first};
use super::text::{HEADLINE, MESSAGE, NAME, VALUE, clean, markdown as escape};
use super::words;
use crate::data::{CheckResult, ScenarioResult, Verdict};

/// The longest Markdown that is written, in bytes. GitHub takes 65 536 characters; the difference
/// is room for what a sender puts around it, like the mark by which a comment is found again.
pub const MARKDOWN_LIMIT: usize = 65_000;

/// Up to this many rows nothing is folded away.
const OPEN_ROWS: usize = 12;

/// Regressions that are explained without unfolding anything.
const EXPLAINED: usize = 5;

const TABLE: &str = "\n| Scenario | Metric | Baseline | Candidate | Change | Limit | Noise floor \
    | Verdict |\n|:--|:--|--:|--:|--:|--:|--:|:--|\n";

/// The report for a pull request: verdict and next step in the first line, what changed, the
/// table with what failed first, and the rest folded.
///
/// It never exceeds `MARKDOWN_LIMIT`: what does not fit is left out by whole rows and sections,
/// and the end says how much.
pub fn markdown(result: &CheckResult) -> String {
    markdown_within(result, MARKDOWN_LIMIT)
}

/// The same within another limit, in bytes, where a page holds more than this report. The first
/// line and the environment are never cut: a limit below some 10 000 bytes may be exceeded.
pub(crate) fn markdown_within(result: &CheckResult, limit: usize) -> String {
    let tail = tail(result);
    let mut page = Page {
        out: first_line(result),
        limit: limit.saturating_sub(tail.len()).saturating_sub(Cut::ROOM),
    };
    let mut cut = Cut::default();

    if let Some(title) = gate_changes::title(result) {
        let lines = bullets(&gate_changes::sentences(result), 2 * MESSAGE);
        let open = format!(
            "\n⚠️ **{}:**\n\n",
            escape(&title, MESSAGE).replacen("this", "This", 1)
        );
        cut.changes += page.section(&open, &lines, "", 20);
    }
    let changes = bullets(&words::subject_changes(result), 4 * VALUE);
    cut.changes += page.section("\n**What changed:**\n\n", &changes, "", 30);
    let allowed: Vec<String> = result.allowed.iter().map(words::difference_text).collect();
    let allowed = bullets(&allowed, 4 * VALUE);
    cut.changes += page.section("\n**Differs, and is allowed to:**\n\n", &allowed, "", 40);

    let notes: Vec<String> = result.notes.iter().map(|note| note.text.clone()).collect();
    cut.changes += page.section("\n**Notes:**\n\n", &bullets(&notes, 4 * VALUE), "", 45);

    let all = rows(result);
    let folds = all.len() > OPEN_ROWS;
    let (open, folded): (Vec<Row<'_>>, Vec<Row<'_>>) = all
        .iter()
        .partition(|row| !folds || matches!(row.tone(), Tone::Bad | Tone::Warn));
    let open: Vec<String> = open.iter().map(table_row).collect();
    let folded: Vec<String> = folded.iter().map(table_row).collect();
    cut.rows += page.section(TABLE, &open, "", 65);

    let explained = bullets(&explanations(result), 2 * MESSAGE);
    cut.scenarios += page.section("\n**What explains it:**\n\n", &explained, "", 70);

    let details: Vec<String> = worst_first(result)
        .into_iter()
        .filter_map(details)
        .collect();
    cut.scenarios += page.section(
        "\n<details><summary>Reasons, where the time went, and what was measured</summary>\n",
        &details,
        "\n</details>\n",
        85,
    );
    let summary = format!(
        "\n<details><summary>{} without a problem</summary>\n{TABLE}",
        counted(folded.len() as u64, "row")
    );
    cut.rows += page.section(&summary, &folded, "\n</details>\n", 100);

    page.out.push_str(&cut.note(all.len()));
    page.out.push_str(&tail);
    page.out
}

/// A text that stays within a limit.
struct Page {
    out: String,
    limit: usize,
}

impl Page {
    /// Adds as many items as fit into `percent` of the whole, between `open` and `close`, and
    /// returns how many did not.
    fn section(&mut self, open: &str, items: &[String], close: &str, percent: usize) -> usize {
        let limit = self.limit * percent / 100;
        let mut used = self.out.len() + open.len() + close.len();
        let fitting = items
            .iter()
            .take_while(|item| {
                used += item.len();
                used <= limit
            })
            .count();
        if fitting > 0 {
            self.out.push_str(open);
            self.out
                .extend(items.iter().take(fitting).map(String::as_str));
            self.out.push_str(close);
        }
        items.len() - fitting
    }
}

/// What was left out.
#[derive(Default)]
struct Cut {
    changes: usize,
    rows: usize,
    scenarios: usize,
}

impl Cut {
    /// More than the longest note.
    const ROOM: usize = 300;

    fn note(&self, all_rows: usize) -> String {
        let mut parts = Vec::new();
        if self.rows > 0 {
            parts.push(format!("{} of {all_rows} rows", self.rows));
        }
        if self.scenarios > 0 {
            parts.push(format!(
                "the details of {}",
                counted(self.scenarios as u64, "scenario")
            ));
        }
        if self.changes > 0 {
            parts.push(counted(self.changes as u64, "difference"));
        }
        if parts.is_empty() {
            return String::new();
        }
        format!(
            "\n**Cut to fit a comment:** {} left out, least important last. The log and the JSON \
             result have everything.\n",
            parts.join(", ")
        )
    }
}

pub(crate) fn first_line(result: &CheckResult) -> String {
    let headline = if result.headline.is_empty() {
        super::headline(&result.command, &result.scenarios)
    } else {
        result.headline.clone()
    };
    let mut line = format!("{} **{}**", mark(result), escape(&headline, HEADLINE));
    if let Some(next) = words::next_step(result) {
        line.push_str(" Next: ");
        line.push_str(&escape(next.trim_end_matches('.'), MESSAGE));
        line.push('.');
    }
    line.push('\n');
    line
}

pub(crate) const fn mark(result: &CheckResult) -> &'static str {
    match (result.exit_code, result.verdict) {
        (0, Verdict::Pass) => "✅",
        (0, Verdict::NotAffected | Verdict::New) => "ℹ️",
        (0 | 4, _) => "⚠️",
        _ => "❌",
    }
}

fn table_row(row: &Row<'_>) -> String {
    let mark = match row.tone() {
        Tone::Bad => "❌ ",
        Tone::Warn => "⚠️ ",
        Tone::Good => "✅ ",
        Tone::Quiet => "",
    };
    let change = match row.metric {
        Some(metric) if metric.interval.iter().any(Option::is_some) => {
            format!("{} {}", row.change(), row.interval())
        }
        _ => row.change(),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {mark}{} |\n",
        escape(&row.scenario.name, NAME),
        row.metric_label(),
        unbroken(&row.baseline()),
        unbroken(&row.candidate()),
        change.replace(" %", "\u{a0}%"),
        unbroken(&row.limit().replace('<', "&lt;").replace('>', "&gt;")),
        unbroken(&row.noise_floor()),
        row.verdict()
    )
}

/// A number whose unit stays on its line in a narrow column.
fn unbroken(number: &str) -> String {
    number.replace(' ', "\u{a0}")
}

/// What is folded about one scenario; none for one that passed without anything to say.
fn details(scenario: &ScenarioResult) -> Option<String> {
    let lines = super::terminal::lines(scenario);
    if lines.is_empty() || scenario.verdict == Verdict::NotAffected {
        return None;
    }
    Some(format!(
        "\n**{}**\n\n{}",
        escape(&super::terminal::title(scenario), 4 * NAME),
        bullets(&lines, 2 * MESSAGE).concat()
    ))
}

/// Where the time went in the scenarios that regressed: what a reader of a failure asks next.
fn explanations(result: &CheckResult) -> Vec<String> {
    worst_first(result)
        .into_iter()
        .filter(|scenario| scenario.verdict == Verdict::Regression)
        .filter_map(|scenario| {
            let breakdown = words::breakdown(scenario)?;
            Some(format!("{}: {breakdown}", clean(&scenario.name, NAME)))
        })
        .take(EXPLAINED)
        .collect()
}

fn bullets(lines: &[String], limit: usize) -> Vec<String> {
    lines
        .iter()
        .map(|line| format!("- {}\n", escape(line, limit)))
        .collect()
}

fn tail(result: &CheckResult) -> String {
    format!(
        "\n<sub>Environment: {}. {}</sub>\n",
        escape(&words::environment(result), 2 * MESSAGE),
        escape(&words::tool(result), 2 * VALUE)
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::samples::{self, ALL_VERDICTS, HOSTILE};

    #[test]
    fn one_scenario_of_each_verdict() {
        for verdict in ALL_VERDICTS {
            let result = samples::check(vec![samples::scenario("yolov9-c8", verdict)]);
            insta::with_settings!({ snapshot_suffix => words::verdict(verdict).replace(' ', "_") }, {
                insta::assert_snapshot!(markdown(&result));
            });
        }
    }

    #[test]
    fn everything() {
        insta::assert_snapshot!(markdown(&samples::full()));
    }

    #[test]
    fn many_scenarios() {
        insta::assert_snapshot!(markdown(&samples::many(20)));
    }

    #[test]
    fn hostile_names() {
        insta::assert_snapshot!(markdown(&samples::hostile(HOSTILE)));
    }

    #[test]
    fn failures_survive_the_cut_and_the_cut_is_said() {
        let text = markdown(&samples::many(2000));
        assert!(text.len() <= MARKDOWN_LIMIT);
        assert!(text.len() > MARKDOWN_LIMIT * 6 / 10, "too much was cut");
        assert!(text.starts_with("❌ **REGRESSION in 286 of 2 000 scenarios"));
        assert!(text.contains("**Cut to fit a comment:**"));
        sound(&text);
        let short = markdown(&samples::many(20));
        assert!(!short.contains("Cut to fit"));
    }

    /// Every table row has as many cells as its header, and every fold is closed.
    fn sound(text: &str) {
        for line in text.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(line.matches('|').count(), 9, "{line}");
        }
        assert_eq!(
            text.matches("<details>").count(),
            text.matches("</details>").count()
        );
        let html = text
            .replace("<details>", "")
            .replace("</details>", "")
            .replace("<summary>", "")
            .replace("</summary>", "")
            .replace("<sub>", "")
            .replace("</sub>", "")
            .replace("<span>$</span>", "");
        assert!(!html.contains('<'), "{html}");
        assert_eq!(text.matches('@').count(), text.matches("@&#8203;").count());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn nothing_breaks_out_whatever_it_says(
            text in prop_oneof![
                any::<String>(),
                "[|`<>@#$\\\\\\[\\]*_~\n a1-]{0,200}",
                "[$]{400,700}",
                "[漢🚀|]{100,300}",
            ],
            copies in 1usize..60,
        ) {
            let mut result = samples::hostile(&text);
            let scenarios = result.scenarios.clone();
            let changes = result.subject_changes.clone();
            for _ in 1..copies {
                result.subject_changes.extend(changes.iter().cloned());
                result.scenarios.extend(scenarios.iter().cloned());
            }
            let markdown = markdown(&result);
            prop_assert!(markdown.len() <= MARKDOWN_LIMIT, "{}", markdown.len());
            sound(&markdown);
        }
    }
}
