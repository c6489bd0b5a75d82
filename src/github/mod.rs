//! The pull request: what a step of a workflow leaves behind (annotations, the step summary,
//! outputs), the context of a job, and the one comment of a gate.
//!
//! Text builders are pure; only `append` touches a file, and only [`Client`] the network.

mod annotations;
mod append;
mod client;
mod comment;
mod context;
mod outputs;
mod sticky;
mod summary;
#[cfg(test)]
mod tests;

pub use annotations::{annotations, failure_annotation};
pub use append::append;
pub use client::{Client, GithubError, Posted};
pub use comment::{footer, report, worst};
pub use context::{Context, ContextError, Head};
pub use outputs::{Files, OutputError, failure_outputs, outputs};
pub use sticky::{BODY_LIMIT, Memory, body, marker};
pub use summary::{SUMMARY_LIMIT, within_limit};
