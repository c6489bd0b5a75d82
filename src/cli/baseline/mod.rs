//! `triton-gate baseline`: the life of a baseline from the command line.

mod accept;
mod args;
mod dispatch;
mod import;
mod missing;
mod pin;
mod record;
mod shelf;
mod store;

pub use args::BaselineArgs;
pub use dispatch::run;
