use std::path::PathBuf;

use super::error::ConfigErrors;
use super::file::{self, NotYet};
use super::overrides::Overrides;
use super::resolve::{self, Config};
use super::schema::NOT_YET;
use super::source;

/// Reads the thresholds files and settles every scenario.
///
/// `paths` are files, or folders whose `*.toml` are taken in the order of their names. `env`
/// answers for environment variables. All that is wrong is reported at once.
pub fn load(
    paths: &[PathBuf],
    overrides: &Overrides,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigErrors> {
    load_with(paths, overrides, env, NOT_YET)
}

/// The same with another table of what is not built yet, for tests.
pub(crate) fn load_with(
    paths: &[PathBuf],
    overrides: &Overrides,
    env: &dyn Fn(&str) -> Option<String>,
    not_yet: NotYet,
) -> Result<Config, ConfigErrors> {
    let mut errors = Vec::new();
    let mut parsed = Vec::new();
    for path in source::find(paths).map_err(ConfigErrors)? {
        match source::read(&path) {
            Ok(source) => {
                let file = file::parse(&source, not_yet, &mut errors);
                parsed.push((path, file));
            }
            Err(error) => errors.push(*error),
        }
    }
    resolve::resolve(&parsed, overrides, env, not_yet, errors)
}
