//! What may stand where: the keys of the tables that are no settings, and the keys whose feature
//! is not built yet.

/// The schema number that this version reads.
pub(crate) const SCHEMA: i64 = 1;

/// Keys of the contract whose feature is not built yet, and what they would do ("... not
/// supported yet"). A key with `scenario.` or `environment.NAME.` before a section is matched
/// without it. `*` stands for one whole part of a key or for the rest of its last part.
///
/// A row is deleted when its feature lands.
pub(crate) const NOT_YET: &[(&str, &str)] = &[
    ("scenario.rate", "load at a fixed rate is"),
    ("scenario.request_rate", "load at a fixed rate is"),
    ("scenario.golden", "comparing outputs with golden ones is"),
    ("scenario.unique_prefix", "a unique prefix is"),
    (
        "scenario.inputs.*.golden",
        "comparing outputs with golden ones is",
    ),
    ("scenario.inputs.*.unique_prefix", "a unique prefix is"),
    ("gate.ttft_*", "limits on the time to the first token are"),
    ("gate.tpot_*", "limits on the time per output token are"),
    ("gate.token_throughput_*", "limits on token throughput are"),
];

/// Top-level keys.
pub(crate) const ROOT: &[&str] = &[
    "schema",
    "server",
    "environment",
    "gate",
    "measure",
    "reference",
    "scenario",
    "accept",
];

/// Keys of a `[[scenario]]`.
pub(crate) const SCENARIO: &[&str] = &[
    "name",
    "model",
    "version",
    "concurrency",
    "batch",
    "paths",
    "inputs",
    "input_data",
    "gate",
    "measure",
    "server",
    "reference",
];

/// Sections that a scenario or an environment may override.
pub(crate) const SECTIONS: &[&str] = &["gate", "measure", "server", "reference"];

/// Keys of `[scenario.inputs.NAME]`.
pub(crate) const INPUT: &[&str] = &["shape", "data", "file", "range", "length"];

/// Keys of an `[[accept]]`.
pub(crate) const ACCEPT: &[&str] = &["scenario", "metric", "up_to", "reason", "expires"];

/// What a key would do, if its feature is not built yet.
pub(crate) fn not_yet(
    table: &[(&'static str, &'static str)],
    key: &[&str],
) -> Option<&'static str> {
    let key = match key {
        ["scenario", section, ..] if SECTIONS.contains(section) => key.get(1..)?,
        ["environment", _, section, ..] if SECTIONS.contains(section) => key.get(2..)?,
        _ => key,
    };
    table
        .iter()
        .find(|(pattern, _)| matches(pattern, key))
        .map(|(_, what)| *what)
}

fn matches(pattern: &str, key: &[&str]) -> bool {
    let parts: Vec<&str> = pattern.split('.').collect();
    parts.len() == key.len()
        && parts
            .iter()
            .zip(key)
            .all(|(part, key)| match part.strip_suffix('*') {
                Some(beginning) => key.starts_with(beginning),
                None => part == key,
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_keys_at_every_level() {
        let table = &[
            ("server.tls", "tls"),
            ("gate.ttft_*", "ttft"),
            ("scenario.inputs.*.file", "file"),
        ];
        for (key, expected) in [
            (&["server", "tls"][..], Some("tls")),
            (&["scenario", "server", "tls"], Some("tls")),
            (&["environment", "t4", "server", "tls"], Some("tls")),
            (
                &["environment", "t4", "gate", "ttft_p50_rise"],
                Some("ttft"),
            ),
            (&["scenario", "inputs", "x", "file"], Some("file")),
            (&["server"], None),
            (&["server", "tls", "ca"], None),
            (&["gate", "p99_rise"], None),
            (&["scenario", "inputs", "x", "data"], None),
            (&[], None),
        ] {
            assert_eq!(not_yet(table, key), expected, "{key:?}");
        }
    }
}
