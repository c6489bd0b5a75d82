//! Lists of a scenario become scenarios of their own; names are unique over all files.

use std::path::Path;

use super::error::{ConfigError, Problem, Subject};
use super::explain::Explained;
use super::file::File;
use super::layer::{At, Origin};
use super::resolve::{Parsed, nearest_scenario};
use super::scenario::{Axis, RawScenario};
use super::show::Show;
use super::text;
use crate::data::{DataSource, InputData, InputSpec};

/// More scenarios than anybody could wait for; a list went wrong.
const MOST_SCENARIOS: usize = 5000;

/// One expanded scenario: the scenario of the file, and its own name and load.
#[derive(Debug, Clone)]
pub(crate) struct Named<'a> {
    pub name: String,
    pub concurrency: u32,
    pub batch: u32,
    pub raw: &'a RawScenario,
    pub file: &'a File,
    pub path: &'a Path,
}

impl Named<'_> {
    /// Whether a name means this scenario: its own, or the one before expansion.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.raw.name.value == name
    }

    /// The scenario's own values in words; its inputs as they are with their files read.
    pub fn rows(&self, inputs: &[InputSpec], data: Option<&InputData>) -> Vec<Explained> {
        fn row<T: Show>(key: &str, at: &At<T>) -> Explained {
            line(key, at.value.show(), &at.origin)
        }
        fn line(key: &str, value: String, origin: &Origin) -> Explained {
            Explained {
                key: key.to_owned(),
                value,
                origin: origin.clone(),
            }
        }
        let raw = self.raw;
        let mut rows = vec![
            line("name", self.name.clone(), &raw.name.origin),
            row("model", &raw.model),
            row("version", &raw.version),
            line(
                "concurrency",
                self.concurrency.show(),
                &raw.concurrency.origin,
            ),
            line("batch", self.batch.show(), &raw.batch.origin),
            row("paths", &raw.paths),
        ];
        // As written, so that two checkouts of one file say the same.
        let within = |path: &Path| {
            let folder = self.path.parent().unwrap_or(Path::new(""));
            path.strip_prefix(folder)
                .unwrap_or(path)
                .display()
                .to_string()
        };
        if let (Some(at), Some(data)) = (&raw.input_data, data) {
            let steps = data.steps.len();
            let value = format!("{} ({steps} steps, {})", within(&data.path), data.digest);
            rows.push(line("input_data", value, &at.origin));
        }
        rows.extend(inputs.iter().zip(&raw.inputs).map(|(input, at)| {
            let data = match &input.data {
                DataSource::Zero => "zero".to_owned(),
                DataSource::Random { .. } => "random".to_owned(),
                DataSource::Literal(values) => format!("literal ({})", values.len()),
                DataSource::File(file) => format!("{} ({})", within(&file.path), file.digest),
            };
            let shape = input.shape.as_ref().map_or_else(
                || "the model's shape".to_owned(),
                |shape| format!("{shape:?}"),
            );
            line(
                &format!("inputs.{}", input.name),
                format!("{data}, {shape}"),
                &at.origin,
            )
        }));
        rows
    }
}

/// All scenarios of all files, lists expanded; a name that is taken or unfit is an error.
pub(crate) fn all<'a>(parsed: &'a [Parsed], errors: &mut Vec<ConfigError>) -> Vec<Named<'a>> {
    let mut all: Vec<Named<'a>> = Vec::new();
    for (path, file) in parsed {
        for raw in &file.scenarios {
            if all.len() > MOST_SCENARIOS {
                errors.push(ConfigError::in_file(
                    raw.place.clone(),
                    Problem::Value(format!("more than {MOST_SCENARIOS} scenarios")),
                ));
                return all;
            }
            for &concurrency in &raw.concurrency.values {
                for &batch in &raw.batch.values {
                    let named = Named {
                        name: format!(
                            "{}{}{}",
                            raw.name.value,
                            suffix('c', &raw.concurrency, concurrency),
                            suffix('b', &raw.batch, batch)
                        ),
                        concurrency,
                        batch,
                        raw,
                        file,
                        path,
                    };
                    match name_problem(&named, &all) {
                        Some(problem) => errors.push(ConfigError {
                            place: Some(raw.place.clone()),
                            subject: Some(Subject::Key("scenario.name".to_owned())),
                            scenario: None,
                            problem,
                        }),
                        None => all.push(named),
                    }
                }
            }
        }
    }
    all
}

/// Only a list adds to the name: a plain number stays as the user named the scenario.
fn suffix(letter: char, axis: &Axis, value: u32) -> String {
    if axis.listed {
        format!("-{letter}{value}")
    } else {
        String::new()
    }
}

fn name_problem(named: &Named<'_>, all: &[Named<'_>]) -> Option<Problem> {
    if let Err(problem) = text::safe_name(&named.name) {
        return Some(problem);
    }
    all.iter()
        .find(|known| known.name.eq_ignore_ascii_case(&named.name))
        .map(|first| Problem::DuplicateScenario {
            name: named.name.clone(),
            first: first.raw.place.clone(),
            case: first.name != named.name,
        })
}

/// The scenarios that `--only` names, in the files' order; all where it names none.
pub(crate) fn only<'a, 'b>(
    all: &'b [Named<'a>],
    names: &[String],
    errors: &mut Vec<ConfigError>,
) -> Vec<&'b Named<'a>> {
    for name in names {
        // After other errors the list may lack the scenario that was meant.
        if errors.is_empty() && !all.iter().any(|named| named.is(name)) {
            errors.push(ConfigError::outside(
                Subject::Flag("--only"),
                unknown(name, all),
            ));
        }
    }
    all.iter()
        .filter(|named| names.is_empty() || names.iter().any(|name| named.is(name)))
        .collect()
}

/// The error for a scenario that is in no file.
pub(crate) fn unknown(name: &str, all: &[Named<'_>]) -> Problem {
    Problem::UnknownName {
        what: "scenario",
        name: name.to_owned(),
        suggestion: nearest_scenario(name, all),
        allowed: all.iter().map(|named| named.name.clone()).collect(),
    }
}
