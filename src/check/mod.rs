//! A check from thresholds and baselines to a result: which sessions may be compared, what is
//! measured in which order, and what becomes of it. Everything that judges is in `gate`.

mod accept;
mod affected;
mod alternate;
mod compare;
mod compatible;
mod explain;
mod live;
mod measure;
mod notes;
mod observer;
mod outcome;
mod pins;
mod record;
mod scenario;
mod servers;
mod session;
mod stored;
#[cfg(test)]
mod tests;
mod unjudged;
mod whole;

pub use affected::{BadPattern, not_affected};
pub use compare::{Recorded as RecordedFile, compare};
pub use compatible::sentence;
pub use measure::measure;
pub use observer::{Observer, Silent};
pub use outcome::{not_measured, reason_result};
pub use record::{RecordPlan, Recorded, record};
pub use scenario::{Options, needs_baseline};
pub use servers::{Servers, environment_name};
pub use session::{Surroundings, Visit};
pub use unjudged::new_life;
pub use whole::{CheckError, check, nothing_affected, worst_exit};
