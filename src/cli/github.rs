//! A result to GitHub: annotations, the comment, the step summary, the outputs. Whatever fails
//! here is said and changes no verdict and no exit code.

use std::path::Path;
use std::time::Duration;

use tokio::runtime::Handle;

use super::failure::Failure;
use super::files;
use super::terminal::Terminal;
use crate::data::{CheckResult, Verdict};
use crate::github::{
    Client, Context, ContextError, Files, Posted, annotations, append, failure_annotation,
    failure_outputs, footer, outputs, within_limit,
};
use crate::report::Exit;
use crate::report::text::{clean, markdown as escape};

/// The most time that all requests of one comment take together.
const PATIENCE: Duration = Duration::from_mins(3);

/// Where a result goes.
pub struct Place {
    /// Name of the comment.
    pub id: String,
    /// Whether there is to be one.
    pub comment: bool,
    /// Whether standard output carries a file and takes nothing else.
    pub data_on_stdout: bool,
}

/// What became of the comment.
pub enum Comment {
    /// It is there.
    Posted(Posted, u64),
    /// There is nowhere to post it, or no right to: no failure.
    Nowhere(String),
    /// GitHub did not take it.
    Failed(String),
}

/// The name of the comment: the given one, else the thresholds files.
pub fn comment_id(given: Option<&str>, files: impl Iterator<Item = String>) -> String {
    given.map_or_else(
        || {
            let mut names: Vec<String> = files.collect();
            names.sort();
            names.dedup();
            names.join("_")
        },
        str::to_owned,
    )
}

/// The job, as its environment tells it.
pub fn context() -> Result<Context, ContextError> {
    let variable = |name: &str| std::env::var(name).ok();
    Context::from_environment(&variable, &|path| std::fs::read_to_string(path).ok())
}

/// Publishes the result of a check.
pub fn publish(
    terminal: Terminal,
    handle: &Handle,
    place: &Place,
    result: &CheckResult,
    report: &str,
    files: Files<'_>,
) {
    let Some(context) = job(terminal) else { return };
    annotate(terminal, &context, place, &annotations(result));
    let comment = place.comment.then(|| {
        let comment = post(handle, &context, &place.id, result.verdict, report, None);
        say(terminal, &context, &comment);
        comment
    });
    summarise(terminal, &context, report, comment.as_ref());
    let text = delimiter().and_then(|delimiter| {
        outputs(result, files, &delimiter).map_err(|error| error.to_string())
    });
    write_outputs(terminal, &context, text);
}

/// Publishes that a check ended before it had a result, so that no earlier verdict stands as if
/// it were this commit's.
pub fn publish_failure(terminal: Terminal, handle: &Handle, place: &Place, failure: &Failure) {
    let Some(context) = job(terminal) else { return };
    annotate(
        terminal,
        &context,
        place,
        &failure_annotation(&failure.message),
    );
    let report = failure_report(failure);
    let verdict = if failure.exit == Exit::Interrupted {
        Verdict::Interrupted
    } else {
        Verdict::Invalid
    };
    let comment = place.comment.then(|| {
        let comment = post(handle, &context, &place.id, verdict, &report, None);
        say(terminal, &context, &comment);
        comment
    });
    summarise(terminal, &context, &report, comment.as_ref());
    let text = delimiter().and_then(|delimiter| {
        failure_outputs(failure.exit.code(), &failure.message, &delimiter)
            .map_err(|error| error.to_string())
    });
    write_outputs(terminal, &context, text);
}

fn failure_report(failure: &Failure) -> String {
    let next = failure.next.as_deref().map_or_else(String::new, |next| {
        format!(" Next: {}.", escape(next.trim_end_matches('.'), 600))
    });
    format!(
        "❌ **NOTHING CHECKED (exit {}): {}**{next}\n",
        failure.exit.code(),
        escape(&failure.message, 1000)
    )
}

/// Writes the report beside the result; says whether it is there.
pub fn keep_report(terminal: Terminal, path: &Path, report: &str) -> bool {
    match files::write(terminal, path, report) {
        Ok(()) => true,
        Err(failure) => {
            terminal.warn(format!("the report was not kept: {}", failure.message));
            false
        }
    }
}

/// Makes or updates the comment, where there is a pull request and a token.
pub fn post(
    handle: &Handle,
    context: &Context,
    id: &str,
    verdict: Verdict,
    report: &str,
    pull_request: Option<u64>,
) -> Comment {
    let known = pull_request.or(context.pull_request);
    if known.is_none() && context.head.is_none() {
        return Comment::Nowhere("the event has no pull request".to_owned());
    }
    if context.token.is_none() {
        return Comment::Nowhere(if context.from_fork {
            "a pull request from a fork gets no token that may write; a following workflow can \
             post the result with `triton-gate comment` (docs/ci.md)"
                .to_owned()
        } else {
            "GITHUB_TOKEN is not set".to_owned()
        });
    }
    let commit = context.head_commit.clone().unwrap_or_default();
    let posted = handle.block_on(async {
        let work = async {
            let client = Client::new(context)?;
            let number = match (known, &context.head) {
                (Some(number), _) => Some(number),
                (None, Some(head)) => client.pull_request_of(head, &commit).await?,
                (None, None) => None,
            };
            let Some(number) = number else {
                return Ok(None);
            };
            let footer = footer(context);
            let posted = client
                .post(id, number, &commit, verdict, report, &footer)
                .await?;
            Ok::<_, crate::github::GithubError>(Some((posted, number)))
        };
        tokio::time::timeout(PATIENCE, work).await
    });
    match posted {
        Ok(Ok(Some((posted, number)))) => Comment::Posted(posted, number),
        Ok(Ok(None)) => Comment::Nowhere(
            "no open pull request has this commit as its head: it was closed, or has moved on"
                .to_owned(),
        ),
        Ok(Err(error)) => Comment::Failed(error.to_string()),
        Err(_) => Comment::Failed(format!(
            "failed to post the comment: GitHub took longer than {} s",
            PATIENCE.as_secs()
        )),
    }
}

/// Says what became of the comment.
pub fn say(terminal: Terminal, context: &Context, comment: &Comment) {
    match comment {
        Comment::Posted(posted, number) => {
            let what = match posted {
                Posted::Created(_) => "commented on",
                Posted::Updated(_) => "updated the comment on",
            };
            terminal.say(format!(
                "{what} pull request {number} of {}/{}",
                context.owner, context.repository
            ));
        }
        Comment::Nowhere(reason) => terminal.say(format!("no comment: {reason}")),
        Comment::Failed(reason) => terminal.warn(format!(
            "no comment: {}; the verdict and the exit code stay as they are",
            clean(reason, 600)
        )),
    }
}

fn job(terminal: Terminal) -> Option<Context> {
    match context() {
        Ok(context) => Some(context),
        Err(error) => {
            terminal.warn(format!("nothing was published on GitHub: {error}"));
            None
        }
    }
}

/// Only a runner reads annotations; it reads both streams.
fn annotate(terminal: Terminal, context: &Context, place: &Place, text: &str) {
    if !context.in_actions {
        return;
    }
    if place.data_on_stdout {
        terminal.raw(text);
    } else if let Err(failure) = terminal.data(text) {
        terminal.warn(format!("no annotations: {}", failure.message));
    }
}

/// Appends a report to the step summary, with the reason where it is the only place that has it.
pub fn summarise(terminal: Terminal, context: &Context, report: &str, comment: Option<&Comment>) {
    let Some(path) = &context.summary_file else {
        return;
    };
    let note = match comment {
        Some(Comment::Nowhere(reason) | Comment::Failed(reason)) => {
            format!("\n<sub>No comment: {}.</sub>\n", escape(reason, 600))
        }
        _ => String::new(),
    };
    let present = std::fs::metadata(path).map_or(0, |file| file.len());
    match within_limit(&format!("{report}{note}"), present) {
        Some(text) => {
            if let Err(error) = append(path, &text) {
                terminal.warn(format!("failed to write the step summary: {error}"));
            }
        }
        None => terminal.warn("the step summary is full: the report is not in it"),
    }
}

fn write_outputs(terminal: Terminal, context: &Context, text: Result<String, String>) {
    let Some(path) = &context.output_file else {
        return;
    };
    let written = text.and_then(|text| append(path, &text).map_err(|error| error.to_string()));
    if let Err(error) = written {
        terminal.warn(format!("failed to write the step's outputs: {error}"));
    }
}

/// A word that nobody can guess.
fn delimiter() -> Result<String, String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(format!("gate_{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_named_after_the_thresholds() {
        let files = || {
            ["b.toml", "a.toml", "b.toml"]
                .into_iter()
                .map(str::to_owned)
        };
        assert_eq!(comment_id(None, files()), "a.toml_b.toml");
        assert_eq!(comment_id(Some("mine"), files()), "mine");
    }

    #[test]
    fn a_failure_is_one_harmless_line() {
        let failure = Failure::usage("a.toml:3: key 'x|y' @all\n::error::").next("mend it.");
        assert_eq!(
            failure_report(&failure),
            "❌ **NOTHING CHECKED (exit 2): a.toml:3: key 'x&#124;y' @&#8203;all ::error::** \
             Next: mend it.\n"
        );
    }

    #[test]
    fn delimiters_differ() {
        assert_ne!(delimiter().expect("random"), delimiter().expect("random"));
    }
}
