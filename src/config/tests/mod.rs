use std::path::Path;

use super::file::{self, NotYet};
use super::resolve::{self, Config};
use super::schema::NOT_YET;
use super::{ConfigErrors, Overrides, source};

mod bad_files;
mod changes;
mod expansion;
mod files;
mod guide;
mod never_panics;
mod not_yet;
mod precedence;
mod values;

/// Loads texts as if they were files of these names.
fn load_all(
    files: &[(&str, &str)],
    overrides: &Overrides,
    env: &dyn Fn(&str) -> Option<String>,
    not_yet: NotYet,
) -> Result<Config, ConfigErrors> {
    let mut errors = Vec::new();
    let mut parsed = Vec::new();
    for (name, text) in files {
        let path = Path::new(name);
        match source::from_bytes(path, text.as_bytes().to_vec()) {
            Ok(source) => {
                let file = file::parse(&source, not_yet, &mut errors);
                parsed.push((path.to_owned(), file));
            }
            Err(error) => errors.push(*error),
        }
    }
    resolve::resolve(&parsed, overrides, env, not_yet, errors)
}

/// Loads one text as `a.toml`, no flags, no variables, features as they are built.
fn load(text: &str) -> Result<Config, ConfigErrors> {
    load_all(
        &[("a.toml", text)],
        &Overrides::default(),
        &|_| None,
        NOT_YET,
    )
}

/// The same with every feature open.
fn load_open(text: &str) -> Result<Config, ConfigErrors> {
    load_all(&[("a.toml", text)], &Overrides::default(), &|_| None, &[])
}

/// The messages of a text that does not load.
fn messages(result: Result<Config, ConfigErrors>) -> String {
    result.expect_err("should not load").to_string()
}

/// The smallest scenario, to stand after other text.
const SCENARIO: &str = "[[scenario]]\nname = \"s\"\nmodel = \"m\"\n";
