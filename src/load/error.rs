use thiserror::Error;

/// What prevents any measurement. Failed requests are no such thing: they are counted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The load that was asked for cannot be made.
    #[error("cannot make this load: {what}; {next}")]
    Invalid {
        /// What is wrong.
        what: String,
        /// What to do about it.
        next: &'static str,
    },
    /// The address, its TLS files or its metadata cannot be used.
    #[error(transparent)]
    Address(#[from] crate::triton::EndpointError),
    /// No connection could be opened.
    #[error(
        "cannot connect to {address}: {cause}; check that the server runs and that this is its gRPC port"
    )]
    Connect {
        /// The address as given.
        address: String,
        /// Why not, from the outermost to the innermost cause.
        cause: String,
    },
    /// A worker thread could not start.
    #[error("cannot start load worker {worker}: {cause}; check the limits on threads and files")]
    Start {
        /// Which worker, from 0.
        worker: usize,
        /// Why not.
        cause: String,
    },
    /// A worker thread ended while it was needed.
    #[error("load worker {worker} ended unexpectedly; please report this with the log of -v")]
    Worker {
        /// Which worker, from 0.
        worker: usize,
    },
}
