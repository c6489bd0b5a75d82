//! `triton-gate comment`.

use std::path::Path;

use serde_json::Value;

use super::args::CommentArgs;
use super::context::Context;
use super::failure::Failure;
use super::files;
use super::github::{self, Comment};
use super::terminal::Terminal;
use crate::data::{CheckResult, RESULT_SCHEMA};
use crate::github::{report, worst};

/// The largest result that is read, in bytes: results may come from a build of a stranger.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Posts the results; having nowhere to post them is no failure, GitHub's refusal is.
pub fn run(terminal: Terminal, arguments: &CommentArgs) -> Result<u8, Failure> {
    let results = arguments
        .results
        .iter()
        .map(|path| read(path))
        .collect::<Result<Vec<_>, _>>()?;
    let job = github::context()
        .map_err(|error| Failure::usage(error).next("set GITHUB_REPOSITORY to owner/name"))?;
    let context = Context::start(terminal)?;
    let text = report(&results);
    let configs = results.iter().flat_map(|result| result.configs.clone());
    let id = github::comment_id(arguments.comment_id.as_deref(), configs);
    let comment = github::post(
        &context.handle(),
        &job,
        &id,
        worst(&results),
        &text,
        arguments.pull_request,
    );
    github::summarise(terminal, &job, &text, Some(&comment));
    match comment {
        Comment::Failed(reason) => Err(Failure::not_measured(reason)
            .next("nothing was judged here: the verdict is that of the check")),
        other => {
            github::say(terminal, &job, &other);
            Ok(0)
        }
    }
}

fn read(path: &Path) -> Result<CheckResult, Failure> {
    let length = std::fs::metadata(path).map_or(0, |file| file.len());
    if length > LARGEST {
        return Err(Failure::usage(format!(
            "{}: {length} bytes, a result has at most {LARGEST}",
            path.display()
        )));
    }
    parse(&files::read(path, "the result")?, path)
}

fn parse(text: &str, path: &Path) -> Result<CheckResult, Failure> {
    let bad = |problem: String| {
        Failure::usage(format!("{}: {problem}", path.display()))
            .next("pass the file that `triton-gate check --json FILE` wrote")
    };
    let value: Value =
        serde_json::from_str(text).map_err(|error| bad(format!("not JSON: {error}")))?;
    let schema = value
        .get("schema")
        .and_then(Value::as_u64)
        .ok_or_else(|| bad("expected a result with a schema number".to_owned()))?;
    if schema > u64::from(RESULT_SCHEMA) {
        return Err(Failure::usage(format!(
            "{}: written in schema {schema}, this version reads up to {RESULT_SCHEMA}",
            path.display()
        ))
        .next("use a newer triton-gate"));
    }
    serde_json::from_value(value).map_err(|error| bad(format!("not a result: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_result_is_named() {
        for (text, expected) in [
            ("", "a.json: not JSON"),
            ("[]", "a.json: expected a result with a schema number"),
            (r#"{"schema": 1}"#, "a.json: not a result: missing field"),
            (
                r#"{"schema": 99}"#,
                "written in schema 99, this version reads up to 1",
            ),
        ] {
            let failure = parse(text, Path::new("a.json")).expect_err("refused");
            assert!(failure.message.contains(expected), "{}", failure.message);
            assert_eq!(failure.exit.code(), 2);
            assert!(failure.next.is_some());
        }
    }
}
