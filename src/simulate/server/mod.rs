//! The server's life: its sockets, threads, start, and end.

mod connection;
mod running;

pub(crate) use connection::Connection;
pub use running::{Running, Server};
