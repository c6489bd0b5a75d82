//! The load engine: keeps a fixed number of requests in flight against one model and reports
//! what came back as blocks.
//!
//! [`Engine::start`] opens worker threads and connections; [`Engine::run`] obeys one
//! [`Stretch`] of load and returns a [`StretchOutcome`]. The engine measures and counts. It never
//! judges: whether errors or a busy client make a measurement invalid is decided elsewhere.
//!
//! One worker thread is one single-threaded runtime with its own connections. Requests are
//! prebuilt frames that are never copied, responses are skimmed and dropped as they arrive.

mod classify;
mod clock;
mod connect;
mod engine;
mod error;
mod gauge;
mod outcome;
mod plan;
mod record;
mod skim;
mod slot;
mod spec;
mod status;
mod transport;
mod worker;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use engine::Engine;
pub use error::LoadError;
pub use gauge::Gauge;
pub use outcome::StretchOutcome;
pub use record::{counts, quantile};
pub use spec::{Counting, ENGINE_NUMBER, LoadSpec, Ramp, Shape, Stop, Stretch};
