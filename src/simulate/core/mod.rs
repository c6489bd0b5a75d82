//! The state behind the protocol: models, their versions, and the way of a request through them.

mod admit;
mod model;
mod state;
mod ticket;

pub(crate) use admit::{Admitted, Client, Ran, Way};
pub(crate) use model::{LoadState, Model, Version};
pub(crate) use state::Core;
