//! `[[scenario]]`.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::DeValue;

use super::error::{Place, Problem};
use super::file::{Entry, Levels, Walk, joined};
use super::layer::{At, MODEL, Origin, VERSION};
use super::{input, read, schema, text};

/// A `[[scenario]]` before its lists are expanded.
#[derive(Debug, Clone)]
pub(crate) struct RawScenario {
    pub place: Place,
    pub name: At<String>,
    pub model: At<String>,
    pub version: At<Option<String>>,
    pub concurrency: Axis,
    pub batch: Axis,
    pub inputs: Vec<At<input::RawInput>>,
    pub input_data: Option<At<PathBuf>>,
    pub paths: At<Vec<String>>,
    pub levels: Levels,
}

impl RawScenario {
    /// The files and folders that its inputs come from.
    pub fn input_files(&self) -> Vec<PathBuf> {
        let single = self.inputs.iter().filter_map(|at| at.value.file.as_ref());
        let files = self.input_data.iter().chain(single);
        files.map(|at| at.value.clone()).collect()
    }
}

/// A number, or a list of numbers that makes one scenario of each.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub values: Vec<u32>,
    pub listed: bool,
    pub origin: Origin,
}

/// The longest list of an axis: each value is a measurement of minutes.
const MOST_VALUES: usize = 64;

impl Axis {
    fn one() -> Self {
        Self {
            values: vec![1],
            listed: false,
            origin: Origin::Default,
        }
    }
}

impl Walk<'_> {
    /// Reads one scenario; none where its name or model cannot be known.
    pub fn scenario(&mut self, item: &Spanned<DeValue<'_>>) -> Option<RawScenario> {
        const PATH: [&str; 1] = ["scenario"];
        let table = item.get_ref().as_table()?;
        let start = item.span().start;
        self.scenario = table
            .get("name")
            .and_then(|name| name.get_ref().as_str())
            .and_then(|name| text::safe_name(name).ok());
        let (mut name, mut model) = (None, None);
        let mut version = At {
            value: None,
            origin: Origin::Default,
        };
        let (mut concurrency, mut batch) = (Axis::one(), Axis::one());
        let mut inputs = Vec::new();
        let mut input_data = None;
        let mut paths = At {
            value: Vec::new(),
            origin: Origin::Default,
        };
        let mut levels = Levels::default();
        for (key, value) in self.entries(table, &PATH, schema::SCENARIO) {
            let entry = (key, value);
            match key.get_ref().as_ref() {
                "name" => {
                    name = self.value(entry, &PATH, |value| {
                        text::safe_name(read::text(value, "the scenario's name as text")?)
                    });
                }
                "model" => {
                    model =
                        self.value(entry, &PATH, |value| text::model(read::text(value, MODEL)?));
                }
                "version" => {
                    let read =
                        |value: &DeValue<'_>| text::version(read::text(value, VERSION)?).map(Some);
                    version = self.value(entry, &PATH, read).unwrap_or(version);
                }
                "concurrency" => {
                    concurrency = self.axis(entry, 65_536).unwrap_or(concurrency);
                }
                "batch" => batch = self.axis(entry, 1 << 20).unwrap_or(batch),
                "paths" => {
                    const EXPECTED: &str = "a list of texts, like [\"models/yolov9/**\"]";
                    let read = |value: &DeValue<'_>| read::texts(value, EXPECTED);
                    paths = self.value(entry, &PATH, read).unwrap_or(paths);
                }
                "inputs" => inputs = input::read(self, key, value),
                "input_data" => input_data = self.path(entry, &PATH),
                _ => {
                    self.sections(key, value, &PATH, &mut levels);
                }
            }
        }
        for (key, expected) in [
            ("name", "name = \"...\", unique among all files"),
            ("model", "model = \"...\", the model's name at the server"),
        ] {
            if !table.contains_key(key) {
                self.fail(
                    start,
                    &joined(&PATH, key),
                    Problem::Missing(expected.to_owned()),
                );
            }
        }
        self.scenario = None;
        Some(RawScenario {
            place: self.source.place(start),
            name: name?,
            model: model?,
            version,
            concurrency,
            batch,
            inputs,
            input_data,
            paths,
            levels,
        })
    }

    /// A number from 1, or a list of such numbers without repetition.
    fn axis(&mut self, entry: Entry<'_, '_>, most: u32) -> Option<Axis> {
        let read = |value: &DeValue<'_>| {
            let DeValue::Array(items) = value else {
                return match read::whole(value, 1, most) {
                    Ok(number) => Ok((vec![number], false)),
                    Err(Problem::WrongType { found, expected }) => Err(Problem::WrongType {
                        found,
                        expected: format!("{expected}, or a list of them"),
                    }),
                    Err(other) => Err(other),
                };
            };
            if items.len() > MOST_VALUES {
                return Err(Problem::Value(format!(
                    "a list of {} numbers: expected at most {MOST_VALUES}",
                    items.len()
                )));
            }
            let mut values = Vec::new();
            for item in items {
                let number = read::whole(item.get_ref(), 1, most)?;
                if values.contains(&number) {
                    return Err(Problem::Value(format!("{number} is listed twice")));
                }
                values.push(number);
            }
            if values.is_empty() {
                return Err(Problem::Value(
                    "an empty list: expected at least one number".to_owned(),
                ));
            }
            Ok((values, true))
        };
        let at = self.value(entry, &["scenario"], read)?;
        let (values, listed) = at.value;
        Some(Axis {
            values,
            listed,
            origin: at.origin,
        })
    }
}
