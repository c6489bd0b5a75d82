//! From the bytes of a JSON or JSON Lines file to its values; the syntax only.

use super::error::Fault;
use super::node::Node;

/// What a file holds.
#[derive(Debug, PartialEq)]
pub(super) enum Document {
    /// One value.
    One(Node),
    /// Several, each with the line on which it begins.
    Lines(Vec<(usize, Node)>),
}

/// Reads the values of a file: one is a document, several are JSON Lines. With `lines` one is
/// JSON Lines too.
pub(super) fn parse(bytes: &[u8], lines: bool) -> Result<Document, Fault> {
    // Windows editors put it there.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Err(error) = std::str::from_utf8(bytes) {
        let line = line_of(bytes, error.valid_up_to());
        return Err(Fault::at(format!("line {line}"), "not UTF-8"));
    }
    let mut values = Vec::new();
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<Node>();
    let (mut start, mut line, mut counted) = (skip_blanks(bytes, 0), 1, 0);
    loop {
        // Counted from the value before: from the file's start, many lines would take for ever.
        line += line_ends(bytes.get(counted..start));
        counted = start;
        match stream.next() {
            None => break,
            Some(Ok(value)) => values.push((line, value)),
            Some(Err(error)) => return Err(syntax(bytes, start, line, values.len(), &error)),
        }
        start = skip_blanks(bytes, stream.byte_offset());
    }
    match values.len() {
        0 => Err(Fault::whole("empty: expected JSON")),
        1 if !lines => Ok(Document::One(values.swap_remove(0).1)),
        _ => Ok(Document::Lines(values)),
    }
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

/// The line of a byte, from 1.
fn line_of(bytes: &[u8], offset: usize) -> usize {
    1 + line_ends(bytes.get(..offset))
}

fn line_ends(bytes: Option<&[u8]>) -> usize {
    let lines = bytes.unwrap_or_default().split(|&byte| byte == b'\n');
    lines.count().saturating_sub(1)
}

fn syntax(
    bytes: &[u8],
    start: usize,
    first: usize,
    before: usize,
    error: &serde_json::Error,
) -> Fault {
    // The line that the parser counts is the file's.
    let (line, column) = (error.line().max(first), error.column());
    let place = if column == 0 {
        format!("line {line}")
    } else {
        format!("line {line}, column {column}")
    };
    let text = error.to_string();
    let message = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(message, _)| message);
    if error.is_eof() {
        let what = if before == 0 {
            "the file ends in the middle of the JSON: it may be cut short"
        } else {
            "the file ends in the middle of the last line's JSON: it may be cut short"
        };
        return Fault::at(place, what);
    }
    let near = near(bytes, line, column, start);
    if ["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"]
        .iter()
        .any(|word| near.starts_with(word))
    {
        return Fault::at(
            place,
            "NaN and Infinity are no JSON: give such values as base64 (\"b64\") or as .npy",
        );
    }
    Fault::at(place, format!("not valid JSON: {message}"))
}

/// The text from the start of the word in which the parser stopped.
fn near(bytes: &[u8], line: usize, column: usize, start: usize) -> String {
    let mut offset = 0;
    for _ in 1..line {
        let rest = bytes.get(offset..).unwrap_or_default();
        offset += rest.iter().position(|&b| b == b'\n').map_or(0, |at| at + 1);
    }
    let mut at = (offset + column.saturating_sub(1))
        .max(start)
        .min(bytes.len());
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    while at > 0 && bytes.get(at - 1).is_some_and(word) {
        at -= 1;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    String::from_utf8_lossy(rest.get(..rest.len().min(16)).unwrap_or_default()).into_owned()
}
