//! Files that people take for `perf_analyzer`'s, each by what gives it away.

use super::error::PaError;
use crate::baseline::Place;

/// Refuses what can be told from the text without reading it as CSV.
pub(super) fn by_text(text: &str, file: &str) -> Result<(), PaError> {
    let foreign = |line: usize, what, next| {
        Err(PaError::Foreign {
            place: Place::new(file, line as u64),
            what,
            next,
        })
    };
    let start = text.trim_start();
    if start.is_empty() {
        return foreign(
            1,
            "an empty file",
            "perf_analyzer writes none where nothing was measured; look at its output and run it \
             again",
        );
    }
    if text.contains('\0') {
        return foreign(1, "a binary file or UTF-16 text", "save it as CSV in UTF-8");
    }
    let marker = text
        .lines()
        .position(|line| line.starts_with("<<<<<<<") || line.starts_with(">>>>>>>"));
    if let Some(line) = marker {
        return foreign(
            line + 1,
            "a file with merge conflict markers",
            "resolve the conflict",
        );
    }
    if start.starts_with('<') {
        return foreign(
            1,
            "HTML",
            "a web page was saved instead of the file; download the raw file",
        );
    }
    let first = start.lines().next().unwrap_or_default().trim_end();
    let table = first.starts_with('[')
        && first.ends_with(']')
        && start.lines().any(|line| line.contains(" = "));
    if table {
        return foreign(
            1,
            "TOML",
            "a thresholds file belongs to `check -c`; pass two CSV files of measurements",
        );
    }
    if start.starts_with(['{', '[']) {
        let (what, next) = if start.contains("\"experiments\"") {
            (
                "the JSON of --profile-export-file",
                "pass the CSV that perf_analyzer wrote with -f",
            )
        } else if start.contains("\"inputs\"") || start.contains("\"instances\"") {
            (
                "an inference request in JSON (KServe)",
                "pass the CSV that perf_analyzer wrote with -f",
            )
        } else {
            ("JSON", "pass the CSV that perf_analyzer wrote with -f")
        };
        return foreign(1, what, next);
    }
    if start.starts_with("version https://git-lfs") {
        return foreign(
            1,
            "a pointer of Git LFS",
            "fetch the file itself with git lfs pull",
        );
    }
    let printed = text.lines().position(|line| {
        line.contains("*** Measurement Settings ***") || line.starts_with("Request concurrency:")
    });
    if let Some(line) = printed {
        return foreign(
            line + 1,
            "what perf_analyzer prints",
            "let it write a CSV with -f FILE.csv and pass that",
        );
    }
    Ok(())
}

/// Refuses what the names of the columns give away.
pub(super) fn by_header(names: &[String], place: &Place) -> Result<(), PaError> {
    let has = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    let any = |part: &str| {
        names
            .iter()
            .any(|name| name.to_ascii_lowercase().contains(part))
    };
    let foreign = |what, next| {
        Err(PaError::Foreign {
            place: place.clone(),
            what,
            next,
        })
    };
    if has("...") || has("\u{2026}") {
        return foreign(
            "an example from the documentation (a column is \"...\")",
            "pass a file that perf_analyzer wrote with -f",
        );
    }
    // A file of perf_analyzer has this column in every version; no other tool's has.
    if has("Inferences/Second") {
        return Ok(());
    }
    if has("Dynamic Batcher Sizes") || any("ram usage (mb)") && has("Model Config Path") {
        return foreign(
            "a result table of model_navigator",
            "its numbers are rounded and in ms; measure with perf_analyzer -f, or with \
             triton-gate measure",
        );
    }
    if has("Model Config Path") || has("Satisfies Constraints") || any("throughput (infer/sec)") {
        return foreign(
            "a result table of Model Analyzer",
            "its numbers are rounded and in ms; pass the CSV of the perf_analyzer run, or measure \
             with triton-gate measure",
        );
    }
    if any("time to first token")
        || any("inter token latency")
        || any("output token throughput")
        || any("request throughput")
        || any("request latency")
        || has("Metric") && (has("avg") || has("p99"))
    {
        return foreign(
            "an export of genai-perf or AIPerf",
            "it holds statistics of tokens in ms; pass the CSV that perf_analyzer wrote with -f",
        );
    }
    if names.len() < 2 && any(";") || any("\t") {
        return foreign(
            "a table with semicolons or tabs",
            "export it with commas between the cells and points in the numbers",
        );
    }
    Ok(())
}
