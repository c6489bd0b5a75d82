use super::perf_analyzer::{self, PaError, Table};
use super::session_csv::{self, SessionCsvError};
use crate::data::Session;

/// A file of measurements of either kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Ours: one or more sessions.
    Own(Vec<Session>),
    /// One of `perf_analyzer`'s.
    PerfAnalyzer(Table),
}

/// Why a file of measurements cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// One of ours that is not whole.
    #[error(transparent)]
    Own(#[from] SessionCsvError),
    /// Neither ours nor one of `perf_analyzer`'s.
    #[error(transparent)]
    PerfAnalyzer(#[from] PaError),
}

/// Reads a file of either kind; ours is known by its columns `schema` and `session`.
///
/// # Errors
/// As [`session_csv::read_all`] and [`perf_analyzer::read`].
pub fn read_any(text: &str, file: &str) -> Result<Measured, ReadError> {
    if session_csv::is_session_csv(text) {
        Ok(Measured::Own(session_csv::read_all(text, file)?))
    } else {
        Ok(Measured::PerfAnalyzer(perf_analyzer::read(text, file)?))
    }
}
