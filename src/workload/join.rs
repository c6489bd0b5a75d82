//! From columns of rows to requests: each request joins as many rows as its batch is large.

use std::borrow::Cow;

use bytes::Bytes;

use super::error::Problem;
use super::rows::{Column, Row};
use crate::triton::Datatype;

/// One input of one request.
#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    pub name: &'a str,
    pub datatype: Datatype,
    /// With the batch dimension, where there is one.
    pub wire_shape: Vec<i64>,
    pub data: Bytes,
}

/// The number of rows that all columns have, or 1; columns of one row hold for every request.
pub(super) fn count(columns: &[&Column<'_>]) -> Result<usize, Problem> {
    let longest = columns.iter().max_by_key(|column| column.rows.len());
    let Some(longest) = longest else {
        return Ok(1);
    };
    let count = longest.rows.len();
    match columns
        .iter()
        .find(|column| column.rows.len() != 1 && column.rows.len() != count)
    {
        None => Ok(count.max(1)),
        Some(other) => Err(Problem::RowCounts {
            name: longest.name.to_owned(),
            rows: count,
            other: other.name.to_owned(),
            other_rows: other.rows.len(),
        }),
    }
}

/// The rows at which requests begin so that every row is sent equally often.
pub(super) fn starts(rows: usize, batch: u32) -> Vec<usize> {
    let batch = batch.max(1) as usize;
    let requests = rows / greatest_common_divisor(rows, batch);
    (0..requests)
        .map(|request| (request as u128 * batch as u128 % rows.max(1) as u128) as usize)
        .collect()
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a.max(1)
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// The size of an input in the request that begins at a row, bytes.
pub(super) fn size(column: &Column<'_>, start: usize, batch: u32) -> u128 {
    let rows = if column.batched { batch } else { 1 };
    joined(column, start, rows)
        .flatten()
        .map(|row| row.data.len() as u128)
        .sum()
}

/// An input in the request that begins at a row; none where its rows leave it out.
pub(super) fn part<'a>(
    column: &Column<'a>,
    start: usize,
    batch: u32,
    place: &dyn Fn(usize) -> String,
) -> Result<Option<Part<'a>>, Problem> {
    let at = |offset: usize| (start + offset) % column.rows.len().max(1);
    let differ = |offset: usize, what: String| Problem::BatchOfDifferent {
        name: column.name.to_owned(),
        first: place(at(0)),
        other: place(at(offset)),
        batch,
        what,
    };
    let mut rows = joined(column, start, batch);
    let Some(first) = rows.next().flatten() else {
        return match rows.position(|row| row.is_some()) {
            None => Ok(None),
            Some(offset) => Err(differ(offset + 1, "only the second has it".to_owned())),
        };
    };
    let mut data = Cow::Borrowed(&first.data);
    let mut bytes = Vec::new();
    for (offset, row) in rows.enumerate() {
        let Some(row) = row else {
            return Err(differ(offset + 1, "only the first has it".to_owned()));
        };
        if row.shape != first.shape {
            let what = format!("their shapes are {:?} and {:?}", first.shape, row.shape);
            return Err(differ(offset + 1, what));
        }
        if !column.batched {
            if row.data != first.data {
                return Err(differ(
                    offset + 1,
                    "it has one value for the whole batch".to_owned(),
                ));
            }
            continue;
        }
        if bytes.is_empty() {
            bytes.extend_from_slice(&first.data);
        }
        bytes.extend_from_slice(&row.data);
    }
    if !bytes.is_empty() {
        data = Cow::Owned(Bytes::from(bytes));
    }
    let mut wire_shape = Vec::with_capacity(first.shape.len() + 1);
    if column.batched {
        wire_shape.push(i64::from(batch));
    }
    wire_shape.extend_from_slice(&first.shape);
    Ok(Some(Part {
        name: column.name,
        datatype: column.datatype,
        wire_shape,
        data: data.into_owned(),
    }))
}

fn joined<'c>(
    column: &'c Column<'_>,
    start: usize,
    batch: u32,
) -> impl Iterator<Item = Option<&'c Row>> {
    let count = column.rows.len().max(1);
    (0..batch as usize).map(move |offset| {
        column
            .rows
            .get((start + offset) % count)
            .and_then(Option::as_ref)
    })
}
