//! Sessions as CSV: one row a block, `perf_analyzer`'s column names first, times in
//! microseconds, unknown cells empty, no comment lines.
//!
//! Readers go by column name: further columns are passed over, and columns that do not identify
//! the measurement may be missing. A file that lost rows, or part of one, is always noticed:
//! every row carries the number of rows, and the last one ends with a line break.

mod cells;
mod error;
mod numbers;
mod read;
mod row;
mod write;

#[cfg(test)]
mod tests;

pub use error::SessionCsvError;
pub use read::{read, read_all, read_bytes};
pub use write::{write, write_all};

pub(crate) use read::is_session_csv;
pub(crate) use write::with_scenario;
