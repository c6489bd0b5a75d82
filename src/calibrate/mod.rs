//! What a server's noise allows: the same model on both sides of a live comparison, so that every
//! difference is noise. [`record`] measures through a [`Lab`](crate::run::Lab) at several block
//! lengths in turns; the rest is pure: how large the noise is, what the real gate makes of it, and
//! the smallest limits that this server and budget can honestly hold.

mod advice;
mod agreement;
mod live;
mod loads;
mod noise;
mod outcome;
mod plan;
mod record;
mod resample;
mod summary;
#[cfg(test)]
mod tests;
mod text;

pub use advice::honest_limits;
pub use agreement::agreement;
pub use live::{Request, calibrate};
pub use loads::spread_of_loads;
pub use noise::{best_length, noise};
pub use outcome::{
    Advice, Agreement, CALIBRATION_SCHEMA, Calibrated, Calibration, LengthNoise, LoadSpread,
    MetricNoise, Rates,
};
pub use plan::{LengthPlan, block_lengths, fitting};
pub use record::{LengthRecord, RecordPlan, Recorded, Recording, record};
pub use resample::{Resampling, resample};
pub use summary::{Comparison, compare_lengths, summarise};
pub use text::text;
