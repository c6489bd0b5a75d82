use super::random::{to_bf16, to_f16};
use super::resolve::elements;
use crate::data::Value;
use crate::triton::Datatype;

/// Whether the values are of the datatype and fill the shape once, or once a row; the error says
/// what was expected.
pub(super) fn check(
    datatype: Datatype,
    values: &[Value],
    shape: &[i64],
    rows: u32,
) -> Result<(), String> {
    let mut count = 0_u128;
    let mut scratch = Vec::new();
    visit(values, &mut |value| {
        scratch.clear();
        count += 1;
        encode_one(&mut scratch, datatype, value)
            .map_err(|reason| format!("value {count} is {}: {reason}", shown(value)))
    })?;
    let row = elements(shape);
    let all = row.saturating_mul(u128::from(rows));
    if count != row && count != all {
        let or = if rows > 1 {
            format!(" (the same in each of the batch of {rows}), or {all} (each its own)")
        } else {
            String::new()
        };
        return Err(format!(
            "{count} values for shape {shape:?}: expected {row}{or}"
        ));
    }
    check_nesting(values, shape, rows)
}

/// Nested arrays must be nested as the shape is; a flat one may stand for any shape.
fn check_nesting(values: &[Value], shape: &[i64], rows: u32) -> Result<(), String> {
    if !values.iter().any(|value| matches!(value, Value::List(_))) {
        return Ok(());
    }
    let mut with_batch = vec![i64::from(rows)];
    with_batch.extend_from_slice(shape);
    match nested_shape(values) {
        Some(nested) if nested == shape || nested == with_batch => Ok(()),
        Some(nested) => Err(format!(
            "the values are nested as {nested:?}: expected {shape:?}, {with_batch:?}, or a flat array"
        )),
        None => Err(format!(
            "the nested arrays differ in length: expected {shape:?}, or a flat array"
        )),
    }
}

/// Appends the values, checked before: once, or once a row where one row is given.
pub(super) fn fill(
    buffer: &mut Vec<u8>,
    datatype: Datatype,
    values: &[Value],
    row_elements: u64,
    rows: u32,
) -> Result<(), String> {
    let start = buffer.len();
    let mut count = 0_u64;
    visit(values, &mut |value| {
        count += 1;
        encode_one(buffer, datatype, value)
    })?;
    if count == row_elements {
        let end = buffer.len();
        for _ in 1..rows {
            buffer.extend_from_within(start..end);
        }
    }
    Ok(())
}

/// Number of strings, and their bytes on the wire with length prefixes.
pub(super) fn strings(values: &[Value]) -> (u64, u128) {
    let (mut count, mut bytes) = (0, 0);
    let counted = visit(values, &mut |value| {
        count += 1;
        if let Value::Text(text) = value {
            bytes += 4 + text.len() as u128;
        }
        Ok(())
    });
    debug_assert!(counted.is_ok(), "counting does not fail");
    (count, bytes)
}

/// The shape of nested arrays; none where they differ in length.
pub(super) fn nested_shape(values: &[Value]) -> Option<Vec<i64>> {
    let mut shape = vec![i64::try_from(values.len()).ok()?];
    let mut inner: Option<Vec<i64>> = None;
    for value in values {
        let own = match value {
            Value::List(values) => nested_shape(values)?,
            _ => Vec::new(),
        };
        match &inner {
            Some(first) if *first != own => return None,
            Some(_) => {}
            None => inner = Some(own),
        }
    }
    shape.extend(inner.unwrap_or_default());
    Some(shape)
}

fn visit(
    values: &[Value],
    take: &mut dyn FnMut(&Value) -> Result<(), String>,
) -> Result<(), String> {
    for value in values {
        match value {
            Value::List(values) => visit(values, take)?,
            value => take(value)?,
        }
    }
    Ok(())
}

fn encode_one(buffer: &mut Vec<u8>, datatype: Datatype, value: &Value) -> Result<(), String> {
    if let Some((least, most)) = datatype.integer_bounds() {
        let Value::Integer(number) = value else {
            return Err(format!("expected an integer from {least} to {most}"));
        };
        let number = *number;
        if number < least || number > most {
            return Err(format!("expected an integer from {least} to {most}"));
        }
        let width = datatype.size().unwrap_or_default();
        buffer.extend_from_slice(number.to_le_bytes().get(..width).unwrap_or_default());
        return Ok(());
    }
    match (datatype, value) {
        (Datatype::Bool, Value::Bool(value)) => buffer.push(u8::from(*value)),
        (Datatype::Bool, Value::Integer(value @ (0 | 1))) => buffer.push(*value as u8),
        (Datatype::Bool, _) => return Err("expected true or false".to_owned()),
        (Datatype::Bytes, Value::Text(text)) => {
            let length = u32::try_from(text.len())
                .map_err(|_| "expected a string of less than 4 GiB".to_owned())?;
            buffer.extend_from_slice(&length.to_le_bytes());
            buffer.extend_from_slice(text.as_bytes());
        }
        (Datatype::Bytes, _) => return Err("expected a string".to_owned()),
        (_, Value::Float(number)) => encode_float(buffer, datatype, *number)?,
        (_, Value::Integer(number)) => encode_float(buffer, datatype, *number as f64)?,
        _ => return Err("expected a number".to_owned()),
    }
    Ok(())
}

/// `inf` and `nan` are sent as written; a finite number must stay finite.
fn encode_float(buffer: &mut Vec<u8>, datatype: Datatype, number: f64) -> Result<(), String> {
    let finite = match datatype {
        Datatype::Fp16 => {
            let value = to_f16(number);
            buffer.extend_from_slice(&value.to_le_bytes());
            value.is_finite()
        }
        Datatype::Bf16 => {
            let value = to_bf16(number);
            buffer.extend_from_slice(&value.to_le_bytes());
            value.is_finite()
        }
        Datatype::Fp32 => {
            let value = number as f32;
            buffer.extend_from_slice(&value.to_le_bytes());
            value.is_finite()
        }
        _ => {
            buffer.extend_from_slice(&number.to_le_bytes());
            true
        }
    };
    if number.is_finite() && !finite {
        let most = datatype.float_max().unwrap_or(f64::MAX);
        return Err(format!("expected a number from {:e} to {most:e}", -most));
    }
    Ok(())
}

/// A value in a message: long strings are cut.
fn shown(value: &Value) -> String {
    const LIMIT: usize = 40;
    let text = match value {
        Value::Bool(value) => value.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Text(text) => format!("{text:?}"),
        Value::List(_) => "a list".to_owned(),
    };
    if text.chars().count() <= LIMIT {
        text
    } else {
        let cut: String = text.chars().take(LIMIT).collect();
        format!("{cut}...")
    }
}
