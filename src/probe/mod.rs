//! What surrounds the load: host, GPU, repository, CPU steal, and the lock that keeps two
//! checks off one GPU. Read beside the load, never on its path; what is absent is quiet.

mod changes;
mod gpu;
mod gpu_watch;
mod host;
mod host_watch;
mod lock;
mod metrics;
mod repository;
mod steal;

pub use changes::{Changes, ChangesError};
pub use gpu::gpu_facts;
pub use gpu_watch::{GpuWatch, gpu_processes};
pub use host::{host_facts, is_local, memory_available};
pub use host_watch::{HostPeriod, HostWatch};
pub use lock::{HostLock, LockError};
pub use metrics::{fetch as fetch_metrics, gpu_sample};
pub use repository::{Repository, commit_of};
