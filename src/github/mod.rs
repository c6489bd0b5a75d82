//! The pull request: the context of a job, and the one comment of a gate.

mod client;
mod context;
mod sticky;
#[cfg(test)]
mod tests;

pub use client::{Client, GithubError, Posted};
pub use context::{Context, ContextError};
pub use sticky::{BODY_LIMIT, Memory, body, marker};
