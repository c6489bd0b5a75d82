//! Facts as readable TOML files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::Facts;

/// The schema number of facts files that this version writes.
const FACTS_SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactsFile {
    schema: u32,
    facts: BTreeMap<String, String>,
}

/// Facts as TOML.
pub(super) fn write(facts: &Facts) -> Result<String, String> {
    toml::to_string(&FactsFile {
        schema: FACTS_SCHEMA,
        facts: facts.0.clone(),
    })
    .map_err(|error| format!("facts cannot be written as TOML: {error}"))
}

/// Reads what [`write`] wrote.
pub(super) fn read(text: &str) -> Result<Facts, String> {
    #[derive(Deserialize)]
    struct Schema {
        schema: u32,
    }
    // The schema first: a newer file may have other keys.
    let schema: Schema = toml::from_str(text).map_err(|error| error.to_string())?;
    if schema.schema > FACTS_SCHEMA {
        return Err(format!(
            "schema {} is newer than this version reads ({FACTS_SCHEMA}): update triton-gate",
            schema.schema
        ));
    }
    let file: FactsFile = toml::from_str(text).map_err(|error| error.to_string())?;
    Ok(Facts(file.facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_round_trip() {
        let facts: Facts = [("gpu.name", "a \"b\"\n"), ("empty", ""), ("naïve.0", "ü")]
            .into_iter()
            .collect();
        let text = write(&facts).expect("written");
        assert_eq!(read(&text), Ok(facts));
    }

    #[test]
    fn a_newer_schema_is_named() {
        let error = read("schema = 2\nother = true\n").expect_err("newer");
        assert!(error.starts_with("schema 2 is newer"), "{error}");
        assert!(read("facts = 1").is_err());
    }
}
