use std::collections::HashMap;

use csv::StringRecord;

use super::error::SessionCsvError;
use super::numbers;
use crate::baseline::Place;

/// One row, its cells by column name.
pub(super) struct Row<'a> {
    pub columns: &'a HashMap<String, usize>,
    pub record: &'a StringRecord,
    pub place: Place,
}

impl Row<'_> {
    /// The text of a cell; none where the cell is empty or the column missing.
    pub fn optional(&self, column: &str) -> Option<&str> {
        let cell = self.record.get(*self.columns.get(column)?)?;
        (!cell.is_empty()).then_some(cell)
    }

    /// The text of a cell, empty where unknown.
    pub fn text(&self, column: &str) -> String {
        self.optional(column).unwrap_or_default().to_owned()
    }

    /// An error about a cell.
    pub fn bad(&self, column: &str, expected: impl Into<String>) -> SessionCsvError {
        SessionCsvError::BadValue {
            place: self.place.clone(),
            column: column.to_owned(),
            value: self.text(column),
            expected: expected.into(),
        }
    }

    /// A whole number; none where unknown.
    pub fn count<T: std::str::FromStr>(&self, column: &str) -> Result<Option<T>, SessionCsvError> {
        self.optional(column)
            .map(|text| {
                text.trim()
                    .parse()
                    .map_err(|_| self.bad(column, "a whole number of at least 0"))
            })
            .transpose()
    }

    /// A whole number that must be there.
    pub fn required_count<T: std::str::FromStr>(&self, column: &str) -> Result<T, SessionCsvError> {
        self.count(column)?
            .ok_or_else(|| self.bad(column, "a whole number of at least 0"))
    }

    /// A text that must be there.
    pub fn required_text(&self, column: &str) -> Result<String, SessionCsvError> {
        self.optional(column)
            .map(str::to_owned)
            .ok_or_else(|| self.bad(column, "a name"))
    }

    /// A finite number of at least 0; none where unknown.
    pub fn number(&self, column: &str) -> Result<Option<f64>, SessionCsvError> {
        self.optional(column)
            .map(|text| match text.trim().parse::<f64>() {
                Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
                _ => Err(self.bad(column, "a finite number of at least 0")),
            })
            .transpose()
    }

    /// Thousandths; none where unknown.
    pub fn milli(&self, column: &str) -> Result<Option<u64>, SessionCsvError> {
        self.optional(column)
            .map(|text| {
                numbers::parse_milli(text.trim())
                    .ok_or_else(|| self.bad(column, "a number with at most 3 decimals"))
            })
            .transpose()
    }

    /// Yes or no; none where unknown. Spreadsheets write them in capitals.
    pub fn flag(&self, column: &str) -> Result<Option<bool>, SessionCsvError> {
        self.optional(column)
            .map(|text| match text.trim().to_ascii_lowercase().as_str() {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(self.bad(column, "true or false")),
            })
            .transpose()
    }
}
