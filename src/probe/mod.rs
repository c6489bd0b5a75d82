//! What surrounds the load: host, GPU, repository, CPU steal, and the lock that keeps two
//! checks off one GPU. Read beside the load, never on its path; what is absent is quiet.

mod changes;
mod gpu;
mod host;
mod lock;
mod repository;
mod steal;

pub use changes::{Changes, ChangesError};
pub use gpu::gpu_facts;
pub use host::{host_facts, is_local};
pub use lock::{HostLock, LockError};
pub use repository::{Repository, commit_of};
pub use steal::StealMeter;
