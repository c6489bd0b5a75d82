//! `perf_analyzer`'s CSV files (`-f`), of every version and layout, and those that people make
//! of them.
//!
//! Columns go by name, never by position: options and versions move them. Rows are sorted by
//! throughput, so a row goes by its level of load, never by its place. The file's units are
//! inferences per second and microseconds.

mod error;
mod header;
mod read;
mod refuse;
mod sessions;
mod table;

#[cfg(test)]
mod tests;

pub use error::PaError;
pub use read::read;
pub use sessions::{ImportInfo, levels};
pub use table::{Gpu, Repeat, Row, Server, Table};
