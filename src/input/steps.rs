//! From JSON values to steps: the format of `perf_analyzer`'s `--input-data`
//! (`docs/input_data.md` there), and what users write in its place.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

use super::error::{Fault, shown};
use super::json::Document;
use super::node::Node;
use crate::data::{Content, Step, TensorData, Value};

/// Base64 as files hold it: with or without the padding at its end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The steps of a document; all streams of a file in turn.
pub(super) fn steps(document: Document) -> Result<Vec<Step>, Fault> {
    match document {
        Document::Lines(lines) => lines
            .into_iter()
            .map(|(line, node)| step(node, format!("line {line}")))
            .collect(),
        Document::One(Node::Object(entries)) => perf_analyzer(entries),
        Document::One(other) => Err(Fault::whole(format!(
            "{} at the top: expected {{\"data\": [...]}}",
            other.kind()
        ))),
    }
}

fn perf_analyzer(entries: Vec<(String, Node)>) -> Result<Vec<Step>, Fault> {
    let (mut data, mut validation) = (None, None);
    let mut others = Vec::new();
    for (name, node) in entries {
        match name.as_str() {
            "data" => data = Some(node),
            "validation_data" => validation = Some(node),
            _ => others.push(name),
        }
    }
    let Some(data) = data else {
        return Err(Fault::whole(without_data(&others)));
    };
    if let Some(other) = others.first() {
        return Err(Fault::whole(format!(
            "unknown name {} beside \"data\": expected \"data\" and \"validation_data\"",
            shown(other)
        )));
    }
    let mut steps = listed(data, "data")?;
    if let Some(validation) = validation {
        let expected = listed(validation, "validation_data")?;
        if let (Some(first), true) = (expected.first(), expected.len() != steps.len()) {
            let what = format!(
                "{} entries, but \"data\" has {}: expected one for each",
                expected.len(),
                steps.len()
            );
            let list = first.place.split('[').next().unwrap_or_default();
            return Err(Fault::at(list, what));
        }
        for (step, outputs) in steps.iter_mut().zip(expected) {
            let inner = outputs.place.trim_start_matches("validation_data");
            if step.place.trim_start_matches("data") != inner {
                let what = format!("stands beside {}: expected the same streams", step.place);
                return Err(Fault::at(outputs.place, what));
            }
            step.expected = outputs.tensors;
        }
    }
    Ok(steps)
}

fn without_data(names: &[String]) -> String {
    if names
        .iter()
        .any(|name| name == "inputs" || name == "instances")
    {
        "no \"data\": this is a request of an inference protocol, not an input file; expected {\"data\": [{\"INPUT\": [values]}, ...]}".to_owned()
    } else {
        "no \"data\": expected {\"data\": [{\"INPUT\": [values]}, ...]}, or one object a line in a file that ends in .jsonl".to_owned()
    }
}

/// The steps of `data` or `validation_data`: a list of them, or a list of streams.
fn listed(node: Node, list: &str) -> Result<Vec<Step>, Fault> {
    const EXPECTED: &str = "expected a list of objects, or a list of lists of objects";
    let Node::List(items) = node else {
        return Err(Fault::at(list, format!("{}: {EXPECTED}", node.kind())));
    };
    if items.is_empty() {
        return Err(Fault::at(
            list,
            "an empty list: expected at least one entry",
        ));
    }
    let streams = items
        .iter()
        .filter(|item| matches!(item, Node::List(_)))
        .count();
    if streams != 0 && streams != items.len() {
        return Err(Fault::at(
            list,
            "holds lists and objects side by side: expected either streams or steps",
        ));
    }
    let mut steps = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let place = format!("{list}[{index}]");
        match item {
            Node::List(stream) => {
                if stream.is_empty() {
                    return Err(Fault::at(
                        place,
                        "an empty stream: expected at least one step",
                    ));
                }
                for (at, item) in stream.into_iter().enumerate() {
                    steps.push(step(item, format!("{place}[{at}]"))?);
                }
            }
            other => steps.push(step(other, place)?),
        }
    }
    Ok(steps)
}

fn step(node: Node, place: String) -> Result<Step, Fault> {
    let Node::Object(entries) = node else {
        let what = format!("{}: expected an object of inputs and values", node.kind());
        return Err(Fault::at(place, what));
    };
    if entries.is_empty() {
        return Err(Fault::at(
            place,
            "an empty object: expected at least one tensor",
        ));
    }
    let mut tensors = Vec::with_capacity(entries.len());
    for (name, node) in entries {
        let tensor = tensor(name.clone(), node)
            .map_err(|fault| fault.within(&shown(&name)).within(&place))?;
        tensors.push(tensor);
    }
    Ok(Step {
        place,
        tensors,
        expected: Vec::new(),
    })
}

fn tensor(name: String, node: Node) -> Result<TensorData, Fault> {
    let Node::Object(entries) = node else {
        return Ok(TensorData {
            name,
            shape: None,
            content: Content::Values(values(node)?),
        });
    };
    let (mut content, mut shape) = (None, None);
    for (key, node) in entries {
        let found = match key.as_str() {
            "content" => self::content(node).map_err(|fault| fault.within("content"))?,
            "b64" => decoded(node).map_err(|fault| fault.within("b64"))?,
            "shape" => {
                shape = Some(dims(node).map_err(|fault| fault.within("shape"))?);
                continue;
            }
            other => {
                return Err(Fault::whole(format!(
                    "unknown key {}: expected \"content\", \"b64\" and \"shape\"",
                    shown(other)
                )));
            }
        };
        if content.replace(found).is_some() {
            return Err(Fault::whole(
                "has \"content\" and \"b64\": expected one of them",
            ));
        }
    }
    let content =
        content.ok_or_else(|| Fault::whole("has no data: expected \"content\" or \"b64\""))?;
    Ok(TensorData {
        name,
        shape,
        content,
    })
}

fn content(node: Node) -> Result<Content, Fault> {
    let Node::Object(entries) = node else {
        return values(node).map(Content::Values);
    };
    let mut entries = entries.into_iter();
    match (entries.next(), entries.next()) {
        (Some((key, node)), None) if key == "b64" => {
            decoded(node).map_err(|fault| fault.within("b64"))
        }
        _ => Err(Fault::whole(
            "an object: expected a list of values, or {\"b64\": \"...\"}",
        )),
    }
}

/// A list as its values; a single value is a list of one.
fn values(node: Node) -> Result<Vec<Value>, Fault> {
    match node {
        Node::List(items) => items
            .into_iter()
            .enumerate()
            .map(|(index, item)| {
                value(item).map_err(|fault| fault.within(&format!("value {}", index + 1)))
            })
            .collect(),
        Node::Null => Err(Fault::whole(
            "null: expected values (leave an optional input out)",
        )),
        other => value(other).map(|value| vec![value]),
    }
}

fn value(node: Node) -> Result<Value, Fault> {
    Ok(match node {
        Node::Bool(value) => Value::Bool(value),
        Node::Integer(number) => Value::Integer(number),
        Node::Float(number) => Value::Float(number),
        Node::Text(text) => Value::Text(text),
        Node::List(items) => Value::List(items.into_iter().map(value).collect::<Result<_, _>>()?),
        Node::Null | Node::Object(_) => {
            return Err(Fault::whole(format!(
                "{}: expected a number, a text, true or false",
                node.kind()
            )));
        }
    })
}

fn decoded(node: Node) -> Result<Content, Fault> {
    let Node::Text(text) = node else {
        return Err(Fault::whole(format!(
            "{}: expected base64 text",
            node.kind()
        )));
    };
    // Files wrap it at 76 columns.
    let letters: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    BASE64
        .decode(&letters)
        .map(|bytes| Content::Encoded(Bytes::from(bytes)))
        .map_err(|error| Fault::whole(not_base64(&letters, &error)))
}

fn not_base64(letters: &[u8], error: &base64::DecodeError) -> String {
    match error {
        base64::DecodeError::InvalidByte(offset, byte) => {
            let from = offset.saturating_sub(8);
            let near = letters.get(from..(offset + 8).min(letters.len()));
            format!(
                "not base64: {:?} is no letter of it, near {}",
                char::from(*byte),
                shown(&String::from_utf8_lossy(near.unwrap_or_default()))
            )
        }
        other => format!("not base64: {other}; it may be cut short"),
    }
}

fn dims(node: Node) -> Result<Vec<i64>, Fault> {
    const EXPECTED: &str =
        "expected whole numbers from 0, without the batch dimension, like [3, 640, 640]";
    let Node::List(items) = node else {
        return Err(Fault::whole(format!("{}: {EXPECTED}", node.kind())));
    };
    let mut elements: i64 = 1;
    let mut shape = Vec::with_capacity(items.len());
    for item in items {
        let size = match item {
            Node::Integer(number) => i64::try_from(number).ok().filter(|&size| size >= 0),
            _ => None,
        };
        let size = size.ok_or_else(|| Fault::whole(EXPECTED))?;
        elements = elements
            .checked_mul(size.max(1))
            .ok_or_else(|| Fault::whole("more elements than can be counted"))?;
        shape.push(size);
    }
    Ok(shape)
}
