//! `[scenario.inputs.NAME]`.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{Problem, shown};
use super::file::{Walk, joined};
use super::layer::At;
use super::{read, schema};
use crate::data::{DataSource, InputSpec, Value};

/// The longest text that is generated for an element of BYTES, in characters.
const LONGEST_TEXT: u32 = 16 << 20;

/// What `data` says.
enum Data {
    Zero,
    Random,
    Literal(Vec<Value>),
}

/// An input before its file is read.
#[derive(Debug, Clone)]
pub(crate) struct RawInput {
    /// As it stands; random where a file follows.
    pub spec: InputSpec,
    /// The file that holds its data.
    pub file: Option<At<PathBuf>>,
}

/// Reads the inputs of a scenario in the file's order.
pub(crate) fn read(
    walk: &mut Walk<'_>,
    key: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
) -> Vec<At<RawInput>> {
    const PATH: [&str; 2] = ["scenario", "inputs"];
    let Some(table) = walk.table(key, value, &PATH) else {
        return Vec::new();
    };
    let mut inputs = Vec::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let path = joined(&PATH, name);
        if name.is_empty() {
            let problem = Problem::Value("an empty name: expected the input's name".to_owned());
            walk.fail(key.span().start, &path, problem);
            continue;
        }
        if let Some(table) = walk.table(key, value, &path) {
            let origin = walk.origin(key);
            let value = input(walk, name, table, &path);
            inputs.push(At { value, origin });
        }
    }
    inputs
}

fn input(walk: &mut Walk<'_>, name: &str, table: &DeTable<'_>, path: &[&str]) -> RawInput {
    let (mut shape, mut data, mut file) = (None, None, None);
    let (mut range, mut length) = (None, None);
    for entry in walk.entries(table, path, schema::INPUT) {
        match entry.0.get_ref().as_ref() {
            "shape" => shape = walk.value(entry, path, read_shape).map(|at| at.value),
            "data" => data = walk.value(entry, path, read_data).map(|at| at.value),
            "file" => file = walk.path(entry, path),
            "range" => range = walk.value(entry, path, read_range).map(|at| at.value),
            _ => {
                length = walk
                    .value(entry, path, |value| read::whole(value, 0, LONGEST_TEXT))
                    .map(|at| at.value);
            }
        }
    }
    if let (Some(file), true) = (table.get_key_value("file"), table.contains_key("data")) {
        let problem = Problem::Value("stands beside data: keep one of the two".to_owned());
        walk.fail(file.0.span().start, &joined(path, "file"), problem);
    }
    // They shape random data only; beside other data they would be ignored.
    if file.is_some() || matches!(data, Some(Data::Zero | Data::Literal(_))) {
        for only_random in ["range", "length"] {
            if let Some((key, _)) = table.get_key_value(only_random) {
                let problem =
                    Problem::Value("goes with data = \"random\" only: remove one".to_owned());
                walk.fail(key.span().start, &joined(path, only_random), problem);
            }
        }
    }
    RawInput {
        spec: InputSpec {
            name: name.to_owned(),
            shape,
            data: match data {
                Some(Data::Zero) => DataSource::Zero,
                Some(Data::Literal(values)) => DataSource::Literal(values),
                Some(Data::Random) | None => DataSource::Random { range, length },
            },
        },
        file,
    }
}

fn read_shape(value: &DeValue<'_>) -> Result<Vec<i64>, Problem> {
    const EXPECTED: &str =
        "a list of whole numbers from 0, without the batch dimension, like [3, 640, 640]";
    let items = value
        .as_array()
        .ok_or_else(|| read::wrong(value, EXPECTED))?;
    let mut elements: i64 = 1;
    let mut shape = Vec::new();
    for item in items {
        let DeValue::Integer(number) = item.get_ref() else {
            return Err(read::wrong(item.get_ref(), EXPECTED));
        };
        let size = read::integer(number)
            .filter(|&size| size >= 0)
            .ok_or_else(|| {
                Problem::Value(format!(
                    "{} cannot be a dimension: expected {EXPECTED}",
                    shown(&number.to_string())
                ))
            })?;
        elements = elements.checked_mul(size.max(1)).ok_or_else(|| {
            Problem::Value("more elements than can be counted: expected a smaller shape".to_owned())
        })?;
        shape.push(size);
    }
    Ok(shape)
}

fn read_data(value: &DeValue<'_>) -> Result<Data, Problem> {
    const EXPECTED: &str = "\"zero\", \"random\", or a list of values";
    match value {
        DeValue::String(word) => match word.as_ref() {
            "zero" => Ok(Data::Zero),
            "random" => Ok(Data::Random),
            other => Err(Problem::Value(format!(
                "{} is not known: expected {EXPECTED} (one text as a value is written [\"...\"])",
                shown(other)
            ))),
        },
        DeValue::Array(items) if items.is_empty() => Err(Problem::Value(format!(
            "an empty list: expected {EXPECTED}"
        ))),
        DeValue::Array(items) => items
            .iter()
            .map(|item| literal(item.get_ref()))
            .collect::<Result<_, _>>()
            .map(Data::Literal),
        other => Err(read::wrong(other, EXPECTED)),
    }
}

/// A value as written: number, text, true or false, or a list of them.
fn literal(value: &DeValue<'_>) -> Result<Value, Problem> {
    const EXPECTED: &str = "numbers, texts, true and false, or lists of them";
    match value {
        DeValue::String(text) => Ok(Value::Text(text.as_ref().to_owned())),
        DeValue::Integer(number) => read::integer(number)
            .map(|number| Value::Integer(i128::from(number)))
            .ok_or_else(|| {
                Problem::Value(format!(
                    "{} does not fit into 64 bits",
                    shown(&number.to_string())
                ))
            }),
        // Infinity is what attention masks are made of; a NaN is a slip.
        DeValue::Float(number) => number
            .as_str()
            .parse::<f64>()
            .ok()
            .filter(|number| !number.is_nan())
            .map(Value::Float)
            .ok_or_else(|| Problem::Value(format!("not a number (nan): expected {EXPECTED}"))),
        DeValue::Boolean(value) => Ok(Value::Bool(*value)),
        DeValue::Array(items) => items
            .iter()
            .map(|item| literal(item.get_ref()))
            .collect::<Result<_, _>>()
            .map(Value::List),
        other => Err(read::wrong(other, EXPECTED)),
    }
}

fn read_range(value: &DeValue<'_>) -> Result<(f64, f64), Problem> {
    const EXPECTED: &str = "the smallest and the largest value, like [0, 255]";
    let items = value
        .as_array()
        .ok_or_else(|| read::wrong(value, EXPECTED))?;
    let numbers = items
        .iter()
        .map(|item| read::number(item.get_ref(), EXPECTED))
        .collect::<Result<Vec<_>, _>>()?;
    match numbers.as_slice() {
        &[low, high] if low <= high => Ok((low, high)),
        &[_, _] => Err(Problem::Value(format!(
            "the first number is the larger one: expected {EXPECTED}"
        ))),
        other => Err(Problem::Value(format!(
            "{} numbers: expected {EXPECTED}",
            other.len()
        ))),
    }
}
