//! docs/thresholds.md and the schema say the same.

use super::load;
use crate::config::layer::{Gate, Layer as _, Measure, Reference, Server};
use crate::config::schema;

const GUIDE: &str = include_str!("../../../docs/thresholds.md");

#[test]
fn every_key_is_explained() {
    let sections = [
        ("[server]", Server::keys()),
        ("[gate]", Gate::keys()),
        ("[measure]", Measure::keys()),
        ("[reference]", Reference::keys()),
        ("[[scenario]]", owned(schema::SCENARIO)),
        ("[scenario.inputs.NAME]", owned(schema::INPUT)),
        ("[[accept]]", owned(schema::ACCEPT)),
    ];
    for (section, keys) in sections {
        let part = GUIDE
            .split_once(&format!("# `{section}`\n"))
            .and_then(|(_, rest)| rest.split("\n#").next())
            .unwrap_or_else(|| panic!("no part about {section}"));
        for key in keys {
            assert!(part.contains(&format!("`{key}`")), "{section} {key}");
        }
    }
    assert!(GUIDE.contains("`total_budget`"));
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

#[test]
fn every_example_loads() {
    let examples: Vec<&str> = GUIDE
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        if let Err(errors) = load(example) {
            panic!("{errors}\n{example}");
        }
    }
}

#[test]
fn what_is_not_built_yet_is_said_and_nothing_else() {
    let part = GUIDE
        .split_once("## Not in this version yet\n")
        .map_or("", |(_, rest)| rest);
    let said: Vec<&str> = part.split('`').skip(1).step_by(2).collect();
    let refused: Vec<&str> = schema::NOT_YET.iter().map(|(key, _)| *key).collect();
    assert_eq!(said, refused);
}
