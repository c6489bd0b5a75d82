use std::fmt::Write as _;

use super::shape;
use crate::config::safe_name;

/// What is known about a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitModel {
    /// Its name at the server.
    pub name: String,
    /// The versions that can be asked for, as the server lists them.
    pub versions: Vec<String>,
    /// The largest batch; 0 where the model does not batch.
    pub max_batch: u32,
    /// Its inputs.
    pub inputs: Vec<InitInput>,
    /// One request gives any number of responses.
    pub decoupled: bool,
    /// Requests belong to sequences.
    pub sequence: bool,
    /// The model answers now.
    pub ready: bool,
}

/// What is known about an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitInput {
    /// Its name.
    pub name: String,
    /// Its datatype on the wire, `FP32`.
    pub datatype: String,
    /// Its dimensions without the batch's; -1 is open.
    pub dims: Vec<i64>,
    /// Requests may leave it out.
    pub optional: bool,
}

/// Requests in flight that the file begins with: enough to keep a batching model busy, few enough
/// that latency is not mostly waiting.
const CONCURRENCY: u32 = 8;

/// A thresholds file for a server's models, with a comment on every choice that is left to its
/// reader. A model that cannot be gated stands there as comments, with the reason.
pub fn render(url: &str, metrics_url: Option<&str>, models: &[InitModel]) -> String {
    let mut out = head(url, metrics_url);
    let mut taken = Vec::new();
    for model in models {
        let name = scenario_name(&model.name, &mut taken);
        let lines = scenario(&name, model);
        out.push('\n');
        if let Some(why) = unfit(model) {
            let _ = writeln!(out, "# {}: {why}", plain(&model.name));
            for line in lines.lines() {
                out.push_str(if line.starts_with('#') { "" } else { "# " });
                out.push_str(line);
                out.push('\n');
            }
        } else {
            out.push_str(&lines);
        }
    }
    if models.is_empty() {
        out.push_str(
            "\n# The server lists no model. Load one, and add a scenario:\n# [[scenario]]\n# name = \"...\"\n# model = \"...\"\n",
        );
    }
    out
}

fn head(url: &str, metrics_url: Option<&str>) -> String {
    let metrics = match metrics_url {
        Some(url) => format!("metrics_url = {}", quoted(url)),
        None => "# metrics_url = \"http://localhost:8002/metrics\"   # optional".to_owned(),
    };
    format!(
        "\
# Thresholds of triton-gate. docs/thresholds.md explains every key.
schema = 1

[server]
url = {url}   # gRPC; --url and TRITON_URL override it
{metrics}

[gate]
throughput_drop = \"5%\"   # fail when throughput fell by more
p99_rise = \"10%\"         # fail when P99 latency rose by more
# p99_max = \"25ms\"       # fail when P99 latency is above, whatever the baseline
budget = \"5m\"            # time to measure each scenario
",
        url = quoted(url)
    )
}

/// Why a model cannot be gated, if so.
fn unfit(model: &InitModel) -> Option<&'static str> {
    if model.decoupled {
        Some("decoupled (many responses to a request), which is not supported yet")
    } else if model.sequence {
        Some("takes sequences of requests, which are not supported yet")
    } else if !model.ready {
        Some("was not ready when this file was written; uncomment once it is loaded")
    } else {
        None
    }
}

fn scenario(name: &str, model: &InitModel) -> String {
    let mut out = format!(
        "[[scenario]]\nname = {}\nmodel = {}\n",
        quoted(name),
        quoted(&model.name)
    );
    match model.versions.as_slice() {
        [] => {}
        [only] => {
            let _ = writeln!(
                out,
                "# version = {}   # the server has this one only",
                quoted(only)
            );
        }
        [first, ..] => {
            let all: Vec<String> = model.versions.iter().map(|v| plain(v)).collect();
            let _ = writeln!(
                out,
                "# version = {}   # the server has {}; default: its choice",
                quoted(first),
                all.join(", ")
            );
        }
    }
    let _ = writeln!(
        out,
        "concurrency = {CONCURRENCY}   # requests in flight; a list like [1, 8, 32] makes a scenario of each"
    );
    let _ = match model.max_batch {
        0 => writeln!(out, "batch = 1         # the model does not batch"),
        most => writeln!(
            out,
            "batch = 1         # inferences per request, at most {most}"
        ),
    };
    for input in &model.inputs {
        out.push_str(&input_lines(input));
    }
    out
}

fn input_lines(input: &InitInput) -> String {
    let what = format!(
        "{} ({}, {:?})",
        plain(&input.name),
        plain(&input.datatype),
        input.dims
    );
    let header = format!("[scenario.inputs.{}]", quoted_key(&input.name));
    let open = input.dims.iter().any(|&size| size < 0);
    let guess = shape::guess(&input.datatype, &input.dims);
    if input.optional {
        return format!(
            "# optional input {what}: sent only where it is named\n# {header}\n# shape = {guess:?}\n"
        );
    }
    if open {
        return format!(
            "{header}\nshape = {guess:?}   # fill in: the model's is {:?}, this is a guess\n{}",
            input.dims,
            data(input, "")
        );
    }
    format!(
        "# input {what}: random data by default\n# {header}\n{}",
        data(input, "# ")
    )
}

/// A line about the data, where the datatype wants a word about it.
fn data(input: &InitInput, comment: &str) -> String {
    match input.datatype.as_str() {
        "BYTES" => format!("{comment}length = 16   # characters of each text\n"),
        "FP16" | "BF16" | "FP32" | "FP64" => {
            format!("{comment}range = [0, 1]\n")
        }
        "BOOL" => String::new(),
        _ => format!("{comment}range = [0, 127]   # token ids must be within the vocabulary\n"),
    }
}

/// A scenario's name from a model's: safe, short, and not taken.
fn scenario_name(model: &str, taken: &mut Vec<String>) -> String {
    const MOST: usize = 80;
    let safe: String = model
        .chars()
        .map(|c| {
            let fits = c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if fits { c } else { '_' }
        })
        .take(MOST)
        .collect();
    // What a folder cannot be called (`-x`, `con.v2`) gets a word in front.
    let base = if safe_name(&safe).is_ok() {
        safe
    } else {
        let rest = safe.trim_matches(['.', '-']);
        if rest.is_empty() {
            "model".to_owned()
        } else {
            format!("model-{rest}")
        }
    };
    let mut name = format!("{base}-c{CONCURRENCY}");
    let mut number = 2;
    while taken.contains(&name.to_ascii_lowercase()) {
        name = format!("{base}-{number}-c{CONCURRENCY}");
        number += 1;
    }
    taken.push(name.to_ascii_lowercase());
    name
}

/// Text as TOML wants it, on one line.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key as TOML wants it: bare where it may be.
fn quoted_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// Text as it may stand in a comment: nothing that ends the line.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
