//! Which scenarios a change touches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::data::{Reason, Scenario};
use crate::probe::Changes;

/// A pattern that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: scenario {scenario:?}: paths: {pattern:?}: {why}", file.display())]
pub struct BadPattern {
    /// The thresholds file.
    pub file: PathBuf,
    /// The scenario.
    pub scenario: String,
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

/// The scenarios that a change does not touch, each with the reason.
///
/// A scenario without `paths` is always touched. So is one whose thresholds file, input files or
/// baseline (in the folder `baselines`, of any environment) changed, or whose thresholds file lies outside of the
/// repository: nobody can tell whether that changed. Patterns are relative to the repository's
/// root; one that names a folder means all that is in it.
///
/// # Errors
/// A pattern that is none.
pub fn not_affected(
    scenarios: &[Scenario],
    changes: &Changes,
    baselines: &Path,
) -> Result<BTreeMap<String, Reason>, BadPattern> {
    let store = within(baselines, &changes.root);
    let mut untouched = BTreeMap::new();
    for scenario in scenarios {
        let patterns = patterns(scenario)?;
        if scenario.paths.is_empty() {
            continue;
        }
        let Some(thresholds) = within(&scenario.file, &changes.root) else {
            continue;
        };
        let inputs: Vec<String> = scenario
            .input_files
            .iter()
            .filter_map(|path| within(path, &changes.root))
            .collect();
        let touched = changes.files.iter().any(|file| {
            patterns.is_match(file)
                || *file == thresholds
                || inputs
                    .iter()
                    .any(|input| Path::new(file).starts_with(input))
                || store
                    .as_deref()
                    .is_some_and(|store| is_baseline(file, store, &scenario.name))
        });
        if !touched {
            let base = changes.base.get(..10).unwrap_or(&changes.base);
            let reason = Reason {
                code: "not_affected".to_owned(),
                text: format!(
                    "no file of {} changed since {} (merge base {base}), nor its thresholds, input files or baseline",
                    scenario.paths.join(", "),
                    changes.since
                ),
                next: String::new(),
            };
            untouched.insert(scenario.name.clone(), reason);
        }
    }
    Ok(untouched)
}

fn patterns(scenario: &Scenario) -> Result<GlobSet, BadPattern> {
    let bad = |pattern: &str, why: &dyn std::fmt::Display| BadPattern {
        file: scenario.file.clone(),
        scenario: scenario.name.clone(),
        pattern: pattern.to_owned(),
        why: why.to_string(),
    };
    let mut set = GlobSetBuilder::new();
    for given in &scenario.paths {
        // What can match nothing would never measure the scenario again.
        if given.starts_with('!') || given.split('/').any(|part| part == "..") {
            return Err(bad(
                given,
                &"expected a pattern relative to the repository's root, without ! and ..",
            ));
        }
        let path = given.strip_prefix("./").unwrap_or(given);
        let patterns = match path.trim_matches('/') {
            "" | "." => vec!["**".to_owned()],
            path => vec![path.to_owned(), format!("{path}/**")],
        };
        for pattern in patterns {
            let glob = GlobBuilder::new(&pattern)
                .literal_separator(true)
                .build()
                .map_err(|error| bad(given, &error))?;
            set.add(glob);
        }
    }
    set.build().map_err(|error| bad("", &error))
}

/// `STORE/ENVIRONMENT/SCENARIO/...`, or the readable environment beside it.
fn is_baseline(file: &str, store: &str, scenario: &str) -> bool {
    let inner = if store.is_empty() {
        Some(file)
    } else {
        file.strip_prefix(store)
            .and_then(|rest| rest.strip_prefix('/'))
    };
    let mut parts = inner.unwrap_or_default().split('/').skip(1);
    parts
        .next()
        .is_some_and(|part| part == scenario || part == "environment.toml")
}

/// A path relative to the root, `/` between parts; none where it lies outside.
fn within(path: &Path, root: &Path) -> Option<String> {
    let full = path
        .canonicalize()
        .or_else(|_| std::path::absolute(path))
        .ok()?;
    let inner = full.strip_prefix(root).ok()?;
    let parts: Vec<String> = inner
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Overrides, load};

    fn touched(paths: &str, changed: &str) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a folder");
        let file = root.join("t.toml");
        let text = format!(
            "schema = 1\n[[scenario]]\nname = \"a\"\nmodel = \"m\"\n{paths}\n[server]\nurl = \"h:1\"\n"
        );
        std::fs::write(&file, text).expect("written");
        std::fs::create_dir(root.join("data")).expect("a folder");
        std::fs::write(root.join("data/in.jsonl"), "{\"A\": 1}").expect("written");
        let config = load(&[file], &Overrides::default(), &|_| None).expect("thresholds");
        let changes = Changes {
            since: "main".to_owned(),
            base: "0123456789abcdef".to_owned(),
            files: [changed.to_owned()].into(),
            root: root.clone(),
        };
        not_affected(&config.scenarios, &changes, &root.join("base"))
            .expect("patterns")
            .is_empty()
    }

    #[test]
    fn a_change_touches_what_it_may_change() {
        let models = "paths = [\"models/m/**\"]";
        let data = "paths = [\"models/m/**\"]\ninput_data = \"data/in.jsonl\"";
        for (paths, changed, expected) in [
            ("", "anything", true),
            ("paths = []", "anything", true),
            (models, "models/m/config.pbtxt", true),
            (models, "models/m/1/deep/model.onnx", true),
            (models, "models/m2/config.pbtxt", false),
            (models, "other/models/m/config.pbtxt", false),
            (models, "t.toml", true),
            (models, "u.toml", false),
            (models, "base/h100/a/s.csv", true),
            (models, "base/h100/environment.toml", true),
            (models, "base/h100/ab/s.csv", false),
            (models, "base/a/b/s.csv", false),
            ("paths = [\"models/m\"]", "models/m/1/x", true),
            ("paths = [\"./models/m/\"]", "models/m/1/x", true),
            ("paths = [\"models/*\"]", "models/m/1/x", true),
            ("paths = [\"models/*.py\"]", "models/m/x.py", false),
            ("paths = [\"**/*.py\"]", "models/m/x.py", true),
            ("paths = [\"x\", \"{a,b}/[0-9]\"]", "b/7", true),
            ("paths = [\".\"]", "b/7", true),
            (data, "data/in.jsonl", true),
            (data, "data/in.json", false),
            (data, "data", false),
        ] {
            assert_eq!(touched(paths, changed), expected, "{paths} {changed}");
        }
    }
}
