//! The thresholds files: TOML to settled scenarios, every complaint with file, line and key.
//!
//! docs/thresholds.md explains the file to users.

mod accept;
mod changes;
mod error;
mod expand;
mod explain;
mod file;
mod imp;
mod input;
mod inputs;
mod layer;
mod limits;
mod overrides;
mod read;
mod resolve;
mod scenario;
mod schema;
mod show;
mod source;
mod text;

#[cfg(test)]
mod tests;

pub use accept::AcceptSpec;
pub use changes::changes;
pub use error::{ConfigError, ConfigErrors, Place, Problem, Subject};
pub use explain::{Explained, explain_table};
pub use imp::load;
pub use layer::Origin;
pub use overrides::{ENVIRONMENT_VARIABLE, Overrides, URL_VARIABLE};
pub use read::LARGEST_RISE;
pub use resolve::{Config, ReferenceSpec};
pub use text::{duration, safe_name, show_duration};
