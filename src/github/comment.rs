use std::fmt::Write as _;

use super::context::Context;
use crate::data::{CheckResult, Verdict};
use crate::report::format::counted;
use crate::report::text::{clean, markdown as escape};
use crate::report::{first_line, mark, markdown_within, severity, worst_first};

/// The longest report, in bytes; the rest of `BODY_LIMIT` is for the marker, the memory, the
/// attempts and the footer.
const REPORT_LIMIT: usize = 62_000;
/// Names in a command; with more, the command checks everything.
const NAMED: usize = 5;
/// Environments named in the first line.
const HEADED: usize = 10;

/// The report of one or several results as the body of a comment: verdict and next step first, a
/// section for each environment where there are several (what failed first), and how to
/// reproduce what failed.
///
/// Bounded at any number of results and scenarios; what was left out is said.
pub fn report(results: &[CheckResult]) -> String {
    if let [only] = results {
        let again = reproduce(only);
        return format!(
            "{}{again}",
            markdown_within(only, REPORT_LIMIT.saturating_sub(again.len()))
        );
    }
    let mut sorted: Vec<&CheckResult> = results.iter().collect();
    sorted.sort_by_key(|result| weight(result));
    let mut page = heading(&sorted);
    let note = 200;
    for (at, result) in sorted.iter().enumerate() {
        let left = sorted.len() - at;
        let room = REPORT_LIMIT.saturating_sub(page.len() + note) / left;
        let section = section(result, room);
        // Even its first line has no room: so would those of all that follow.
        if page.len() + section.len() + note > REPORT_LIMIT {
            let _ = write!(
                page,
                "\n**Cut to fit a comment:** {} left out, least important last.\n",
                counted(left as u64, "section")
            );
            break;
        }
        page.push_str(&section);
    }
    page
}

/// The worst verdict of several results.
pub fn worst(results: &[CheckResult]) -> Verdict {
    results
        .iter()
        .min_by_key(|result| weight(result))
        .map_or(Verdict::Invalid, |result| result.verdict)
}

/// What stands below a report: the commit, and the way to the job.
pub fn footer(context: &Context) -> String {
    let mut parts = Vec::new();
    if let Some(commit) = &context.head_commit {
        let short: String = commit
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(10)
            .collect();
        if !short.is_empty() {
            parts.push(format!("commit {short}"));
        }
    }
    if let Some(url) = &context.run_url {
        parts.push(if context.attempt > 1 {
            format!("[job, attempt {}]({url})", context.attempt)
        } else {
            format!("[job]({url})")
        });
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("<sub>For {}.</sub>", parts.join(", "))
}

/// What orders results: what decides an exit code first.
fn weight(result: &CheckResult) -> (usize, u8) {
    let exit = worst_first(result)
        .first()
        .map_or(result.exit_code, |scenario| scenario.exit_code);
    let weight = crate::report::Exit::BY_WEIGHT
        .iter()
        .position(|known| known.code() == exit)
        .unwrap_or(0);
    (weight, severity(result.verdict))
}

/// One line over several results.
fn heading(sorted: &[&CheckResult]) -> String {
    let mut parts: Vec<String> = sorted
        .iter()
        .take(HEADED)
        .map(|result| format!("{}: {}", name(result), result.verdict.label()))
        .collect();
    if sorted.len() > HEADED {
        parts.push(format!("{} more", sorted.len() - HEADED));
    }
    let sign = sorted.first().map_or("❌", |result| mark(result));
    format!(
        "{sign} **{} checked: {}**\n",
        counted(sorted.len() as u64, "environment"),
        parts.join("; ")
    )
}

fn name(result: &CheckResult) -> String {
    if result.environment_name.is_empty() {
        "unnamed".to_owned()
    } else {
        escape(&result.environment_name, 80)
    }
}

fn section(result: &CheckResult, room: usize) -> String {
    let head = format!("\n### {}\n\n", name(result));
    let again = reproduce(result);
    let full = markdown_within(result, room.saturating_sub(head.len() + again.len()));
    if head.len() + full.len() + again.len() <= room {
        return format!("{head}{full}{again}");
    }
    format!("{head}{}", first_line(result))
}

/// A command that repeats what did not pass, folded; empty where everything passed or where no
/// command can be named.
fn reproduce(result: &CheckResult) -> String {
    if result.command != "check" || result.configs.is_empty() || result.exit_code == 0 {
        return String::new();
    }
    let mut command = String::from("triton-gate check");
    for config in result.configs.iter().take(NAMED) {
        let _ = write!(command, " -c {}", quoted(config));
    }
    if !result.environment_name.is_empty() {
        let _ = write!(
            command,
            " --environment {}",
            quoted(&result.environment_name)
        );
    }
    let failed: Vec<&str> = worst_first(result)
        .into_iter()
        .filter(|scenario| scenario.exit_code != 0)
        .map(|scenario| scenario.name.as_str())
        .collect();
    if failed.len() <= NAMED {
        for name in failed {
            let _ = write!(command, " --only {}", quoted(name));
        }
    }
    // A fence longer than any run of backticks within cannot be closed by it.
    let longest = command
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!(
        "\n<details><summary>How to reproduce it</summary>\n\nOn a machine of that environment, \
         with the server running and its address in <code>TRITON_URL</code>:\n\n\
         {fence}sh\n{command}\n{fence}\n\n</details>\n"
    )
}

/// A word for a POSIX shell, cleaned of what cannot be seen.
fn quoted(word: &str) -> String {
    let word = clean(word, 200);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::super::sticky::{BODY_LIMIT, Memory, body};
    use super::*;
    use crate::report::samples::{self, HOSTILE};

    fn of(environment: &str, count: usize) -> CheckResult {
        let mut result = samples::many(count);
        environment.clone_into(&mut result.environment_name);
        result
    }

    #[test]
    fn one_result() {
        insta::assert_snapshot!(report(&[samples::full()]));
        let pass = samples::check(vec![samples::scenario("a", Verdict::Pass)]);
        assert!(!report(&[pass]).contains("reproduce"));
    }

    #[test]
    fn a_pull_request_that_changes_the_gate() {
        let mut result = samples::full();
        result.gate_changes = Some(samples::gate_changes());
        insta::assert_snapshot!(report(&[result]));
    }

    #[test]
    fn nothing_affected_and_nothing_decided() {
        let texts: Vec<String> = [
            Verdict::NotAffected,
            Verdict::Inconclusive,
            Verdict::Invalid,
        ]
        .into_iter()
        .map(|verdict| report(&[samples::check(vec![samples::scenario("a", verdict)])]))
        .collect();
        insta::assert_snapshot!(texts.join("\n=====\n"));
    }

    #[test]
    fn several_environments_what_failed_first() {
        let mut pass = samples::check(vec![samples::scenario("a", Verdict::Pass)]);
        "a100".clone_into(&mut pass.environment_name);
        let results = [pass, samples::full()];
        assert_eq!(worst(&results), Verdict::Regression);
        insta::assert_snapshot!(report(&results));
    }

    #[test]
    fn it_fits_at_any_number_and_says_what_was_cut() {
        for (sections, scenarios) in [(1, 3000), (3, 1000), (40, 60), (400, 30)] {
            let results: Vec<CheckResult> = (0..sections)
                .map(|at| of(&format!("env-{at}"), scenarios))
                .collect();
            let text = body("g", &Memory::default(), &report(&results), "footer");
            assert!(
                text.chars().count() < BODY_LIMIT,
                "{sections} x {scenarios}"
            );
            assert!(text.ends_with("\n\nfooter"), "{sections} x {scenarios}");
            assert_eq!(
                text.matches("<details>").count(),
                text.matches("</details>").count()
            );
            if sections == 400 {
                assert!(text.contains("sections left out"));
            } else if sections == 3 {
                assert!(text.matches("How to reproduce").count() == 3);
            }
        }
        let hostile: Vec<CheckResult> = (0..20).map(|_| samples::hostile(HOSTILE)).collect();
        assert!(report(&hostile).len() <= REPORT_LIMIT);
    }

    #[test]
    fn a_name_cannot_leave_the_command() {
        let mut result = samples::check(vec![samples::scenario(
            "it's `````\n``` $(id) @all",
            Verdict::Regression,
        )]);
        result.configs = vec!["a b.toml".to_owned()];
        let text = reproduce(&result);
        assert!(text.contains("\n``````sh\ntriton-gate check -c 'a b.toml' --environment h100"));
        assert!(
            text.contains(r"--only 'it'\''s ````` ``` $(id) @all'"),
            "{text}"
        );
    }
}
