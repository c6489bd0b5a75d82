//! What a candidate is compared with: the store of sessions, their CSV files, `perf_analyzer`'s
//! CSV files, and the comparison of environments.

pub mod environment;
mod facts_file;
mod files;
mod life;
mod pairing;
pub mod perf_analyzer;
mod place;
mod read_any;
#[cfg(test)]
pub(crate) mod samples;
pub mod session_csv;
mod store;

#[cfg(test)]
pub(crate) use samples::session as test_session;

pub use files::{write_new, write_over};
pub use life::{UNKNOWN_LIFE, continued, life_of};
pub use pairing::{Level, LevelKey, LevelLoad, Matched, Pairing, Problem, WhichSide, pair};
pub use place::Place;
pub use read_any::{Measured, ReadError, read_any};
pub use store::{Entry, GitError, Pin, Renamed, Store, StoreError, Summary, session_id};
