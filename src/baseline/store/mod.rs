//! The store: `ROOT/ENVIRONMENT/SCENARIO/SESSION.csv`, one immutable file a session.
//!
//! Beside the sessions of a scenario lie `subjects/HASH.toml` and `environments/HASH.toml`: what
//! was under test and where, readable, named after their content and never changed. Appending is
//! creating a file and pruning is deleting one, so two branches never conflict and two processes
//! lose nothing. `pins/NAME/` holds copies that pruning leaves alone.

mod change;
mod error;
mod folders;
mod git;
mod names;
mod pins;
mod sessions;

#[cfg(test)]
mod tests;

pub use change::Renamed;
pub use error::StoreError;
pub use git::GitError;
pub use names::session_id;
pub use pins::Pin;
pub use sessions::{Entry, Store, Summary};
