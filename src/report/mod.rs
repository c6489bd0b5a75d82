//! From a result to text: terminal, Markdown, JSON and `JUnit`. Pure functions, no files, no clock.

pub mod format;
pub mod text;

pub(crate) mod gate_changes;
mod headline;
mod json;
mod junit;
mod markdown;
mod progress;
mod rows;
mod table;
mod terminal;
mod verdict;
mod words;

#[cfg(test)]
pub(crate) mod samples;

pub use headline::headline;
pub use json::json;
pub use junit::{JunitError, junit};
pub use markdown::{MARKDOWN_LIMIT, markdown};
pub(crate) use markdown::{first_line, mark, markdown_within};
pub use progress::{Phase, Progress, progress};
pub(crate) use rows::worst_first;
pub(crate) use terminal::title;
pub use terminal::{Style, terminal};
pub(crate) use verdict::severity;
pub use verdict::{Exit, ScenarioExit, check_exit, worst_verdict};
