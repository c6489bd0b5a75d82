use std::fmt::Write as _;

use proptest::prelude::*;

use super::{load, load_open};
use crate::config::text;

/// Pieces that parse as TOML more often than arbitrary text does.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "name",
        "model",
        "version",
        "concurrency",
        "batch",
        "shape",
        "data",
        "range",
        "length",
        "p99_rise",
        "p99_max",
        "throughput_min",
        "budget",
        "assumed_noise",
        "metadata",
        "url",
        "tls",
        "launch",
        "schema",
        "scenario",
        "gate",
        "environment",
        "expires",
        "up_to",
        "metric",
        "reason",
        "paths",
        "x",
    ]);
    let value = prop_oneof![
        Just("\"5%\"".to_owned()),
        Just("\"s\"".to_owned()),
        Just("[1, 2, 4]".to_owned()),
        Just("{ a = \"${B}\" }".to_owned()),
        Just("2027-01-31".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:e}")),
        "\"[ -~]{0,12}\"",
        "[0-9]{1,30}(ms|s|h|%)?".prop_map(|text| format!("\"{text}\"")),
    ];
    let header = prop::sample::select(vec![
        "[server]",
        "[gate]",
        "[measure]",
        "[reference]",
        "[environment]",
        "[environment.t4.gate]",
        "[[scenario]]",
        "[scenario.gate]",
        "[scenario.inputs.x]",
        "[scenario.server]",
        "[[accept]]",
    ]);
    prop_oneof![
        1 => header.prop_map(str::to_owned),
        3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
    ]
}

proptest! {
    #[test]
    fn arbitrary_text(text in any::<String>()) {
        let _ = load(&text);
        let _ = text::duration(&text);
        let _ = text::address(&text);
        let _ = text::expand(&text, &|name| Some(name.to_owned()));
    }

    #[test]
    fn arbitrary_toml(lines in prop::collection::vec(line(), 0..12)) {
        let text = lines.join("\n");
        // Whatever loads has something to gate, and every message says where.
        match load_open(&text) {
            Ok(config) => prop_assert!(config.gated_metrics > 0),
            Err(errors) => for error in errors.0 {
                prop_assert!(error.to_string().starts_with("a.toml"), "{}", error);
            },
        }
    }

    #[test]
    fn durations_come_back(nanoseconds in 0_u64..31_536_000_000_000) {
        let duration = std::time::Duration::from_nanos(nanoseconds);
        prop_assert_eq!(text::duration(&text::show_duration(duration)), Ok(duration));
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let text = format!("x = {}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(load(&text).is_err());
}

#[test]
fn lists_cannot_make_endless_scenarios() {
    let list: Vec<String> = (1..=64).map(|n: u32| n.to_string()).collect();
    let list = list.join(",");
    let mut text = String::new();
    for index in 0..3 {
        let _ = write!(
            text,
            "[[scenario]]
model = \"m\"
name = \"s{index}\"
concurrency = [{list}]
batch = [{list}]
"
        );
    }
    let found = super::messages(load(&text));
    assert_eq!(found, "a.toml:11: more than 5000 scenarios");
}
