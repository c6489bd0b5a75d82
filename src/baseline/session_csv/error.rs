use crate::baseline::Place;
use crate::data::SESSION_SCHEMA;

/// Why a session file cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionCsvError {
    /// No byte in it, or only blanks.
    #[error("{0}: the file is empty: expected a header and one row a block; record it again")]
    Empty(Place),
    /// A header without rows.
    #[error("{0}: the file has a header but no rows: nothing was recorded in it; record it again")]
    HeaderOnly(Place),
    /// Cut short: a part of the file is missing.
    #[error(
        "{place}: the file is truncated: {what}; restore it from version control or record it again"
    )]
    Truncated {
        /// Where it breaks off.
        place: Place,
        /// How that shows.
        what: String,
    },
    /// Markers that a version control system left.
    #[error(
        "{0}: the file holds merge conflict markers: session files never change, so keep one side whole (git checkout --ours or --theirs)"
    )]
    Conflict(Place),
    /// Not text in UTF-8.
    #[error("{0}: not UTF-8 text: a session file is plain CSV")]
    NotText(Place),
    /// Written by a newer version.
    #[error(
        "{place}: schema {found} is newer than this version reads ({SESSION_SCHEMA}): update triton-gate"
    )]
    NewerSchema {
        /// Where.
        place: Place,
        /// The schema of the file.
        found: u64,
    },
    /// A column without which a session cannot be understood.
    #[error(
        "{place}: no column `{column}`: not a session file of triton-gate, or its header was edited"
    )]
    MissingColumn {
        /// The header.
        place: Place,
        /// What is missing.
        column: &'static str,
    },
    /// A column that is there twice.
    #[error("{place}: two columns are named `{column}`: keep one")]
    RepeatedColumn {
        /// The header.
        place: Place,
        /// The name.
        column: String,
    },
    /// A cell that does not hold what its column should.
    #[error("{place}: column `{column}` holds {value:?}: expected {expected}")]
    BadValue {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// The cell.
        value: String,
        /// What it should hold.
        expected: String,
    },
    /// Rows of more than one session where one is expected.
    #[error(
        "{place}: a row of session {second:?} among rows of session {first:?}: expected one session in a file; split it"
    )]
    TwoSessions {
        /// The first foreign row.
        place: Place,
        /// The session of the first row.
        first: String,
        /// The other session.
        second: String,
    },
    /// A fact of the whole session that differs between its rows.
    #[error(
        "{place}: column `{column}` holds {second:?}, but {first:?} in the session's first row: rows were mixed or edited"
    )]
    Disagreement {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// In the first row.
        first: String,
        /// Here.
        second: String,
    },
    /// Not CSV.
    #[error("{place}: not readable as CSV: {message}")]
    Csv {
        /// Where.
        place: Place,
        /// From the CSV reader.
        message: String,
    },
    /// A session that cannot be put into a file without loss.
    #[error("session {session:?} cannot be written: {why}")]
    NotWritable {
        /// The session.
        session: String,
        /// What stands in the way.
        why: String,
    },
}
