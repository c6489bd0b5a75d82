//! What each value is and where it came from, for `--explain-config`.

use std::fmt::Write as _;

use super::layer::{Origin, Row};

/// One value of a scenario, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The dotted key, `gate.p99_rise`.
    pub key: String,
    /// The value in the words of a thresholds file; `***` for a secret, `-` for none.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

/// Rows under a section's name.
pub(crate) fn section(name: &str, rows: Vec<Row>) -> impl Iterator<Item = Explained> {
    rows.into_iter().map(move |(key, value, origin)| Explained {
        key: format!("{name}.{key}"),
        value,
        origin,
    })
}

/// The explanation as a table in plain text: key, value, origin; one line each.
pub fn explain_table(rows: &[Explained]) -> String {
    let width = |column: fn(&Explained) -> &str| {
        rows.iter()
            .map(|row| column(row).chars().count())
            .max()
            .unwrap_or(0)
    };
    let key = width(|row| &row.key);
    let value = width(|row| &row.value);
    rows.iter().fold(String::new(), |mut text, row| {
        let _ = writeln!(
            text,
            "{:key$}  {:value$}  {}",
            row.key, row.value, row.origin
        );
        text
    })
}
