//! What a step of a GitHub Actions workflow leaves behind: annotations, the step summary, outputs.
//!
//! Text builders are pure; only `append` touches a file.

mod annotations;
mod append;
mod outputs;
mod summary;

pub use annotations::annotations;
pub use append::append;
pub use outputs::{OutputError, outputs};
pub use summary::{SUMMARY_LIMIT, summary};
