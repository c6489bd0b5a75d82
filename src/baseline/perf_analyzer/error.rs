use crate::baseline::Place;

/// Why a file cannot be read as one of `perf_analyzer`'s.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PaError {
    /// Something else.
    #[error("{place}: not a perf_analyzer CSV but {what}: {next}")]
    Foreign {
        /// The line that gives it away.
        place: Place,
        /// What it is.
        what: &'static str,
        /// What to do.
        next: &'static str,
    },
    /// No rows.
    #[error(
        "{0}: the file has a header but no rows: nothing was measured in it; run perf_analyzer again"
    )]
    NoRows(Place),
    /// No column that says how hard the server was pushed, or how fast it was.
    #[error("{place}: no column `{column}`: expected a file that perf_analyzer wrote with -f")]
    MissingColumn {
        /// The header.
        place: Place,
        /// What is missing.
        column: &'static str,
    },
    /// A column that is there twice.
    #[error("{place}: two columns are named `{column}`: keep the right one")]
    RepeatedColumn {
        /// The header.
        place: Place,
        /// The name.
        column: String,
    },
    /// A row with too few or too many cells.
    #[error("{place}: this row has {found} cells, the header {expected}: {why}")]
    Cells {
        /// The row.
        place: Place,
        /// Cells of the row.
        found: usize,
        /// Cells of the header.
        expected: usize,
        /// What may have happened.
        why: &'static str,
    },
    /// A cell that does not hold what its column should.
    #[error("{place}: column `{column}` holds {value:?}: expected {expected}")]
    BadValue {
        /// The row.
        place: Place,
        /// The column.
        column: String,
        /// The cell.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// Not CSV at all.
    #[error("{place}: not readable as CSV: {message}")]
    Csv {
        /// Where.
        place: Place,
        /// From the CSV reader.
        message: String,
    },
}
