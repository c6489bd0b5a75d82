use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::data::Facts;

/// The columns asked of `nvidia-smi`, with the fact that each becomes.
const COLUMNS: [(&str, &str); 5] = [
    ("name", "gpu.name"),
    ("uuid", "gpu.uuid"),
    ("driver_version", "gpu.driver"),
    ("mig.mode.current", "gpu.mig"),
    (
        "clocks_event_reasons.applications_clocks_setting",
        "gpu.clocks_locked",
    ),
];

/// Facts of the local GPUs from `nvidia-smi`; empty where there is none.
///
/// A child process instead of NVML: a static binary cannot load NVML.
pub fn gpu_facts() -> Facts {
    let query: Vec<&str> = COLUMNS.iter().map(|(column, _)| *column).collect();
    run(&[
        &format!("--query-gpu={}", query.join(",")),
        "--format=csv,noheader",
    ])
    .map(|text| parse(&text))
    .unwrap_or_default()
}

/// Runs `nvidia-smi`, giving up after five seconds: a wedged driver must not hang a check.
pub(super) fn run(arguments: &[&str]) -> Option<String> {
    let mut child = Command::new("nvidia-smi")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
    let output = child.wait_with_output().ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()
}

fn parse(text: &str) -> Facts {
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split(',').map(str::trim).collect())
        .collect();
    let mut facts = Facts::default();
    if rows.is_empty() {
        return facts;
    }
    facts.set("gpu.count", rows.len().to_string());
    for (position, (_, field)) in COLUMNS.iter().enumerate() {
        let mut values: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.get(position).copied())
            .filter(|value| !value.starts_with('[') && !value.is_empty())
            .collect();
        values.dedup();
        if !values.is_empty() {
            facts.set(*field, values.join(", "));
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_two_equal_cards() {
        let facts = parse(
            "NVIDIA H100 80GB HBM3, GPU-1, 550.54, Disabled, Not Active\n\
             NVIDIA H100 80GB HBM3, GPU-2, 550.54, Disabled, Not Active\n",
        );
        assert_eq!(facts.get("gpu.count"), Some("2"));
        assert_eq!(facts.get("gpu.name"), Some("NVIDIA H100 80GB HBM3"));
        assert_eq!(facts.get("gpu.uuid"), Some("GPU-1, GPU-2"));
    }

    #[test]
    fn leaves_out_what_the_card_does_not_know() {
        let facts = parse("Tesla T4, GPU-1, 550.54, [N/A], Active\n");
        assert_eq!(facts.get("gpu.mig"), None);
        assert!(parse("").0.is_empty());
    }
}
