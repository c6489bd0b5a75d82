//! Input files: `perf_analyzer`'s JSON, JSON Lines, `NumPy` arrays, texts, raw bytes, and folders of
//! them. What they hold becomes plain data; what it means for a model is `workload`'s to say.

mod error;
mod file;
mod folder;
mod json;
mod node;
mod npy;
mod read;
mod steps;

#[cfg(test)]
mod tests;

pub use error::InputError;
pub use read::{data, file};
