//! What earlier checks found: each scenario's series out of the results folder and the baselines,
//! the last shift of each metric with the commits between which it came in, and the gate's own
//! record.

mod document;
mod export;
mod files;
mod page;
mod range;
mod record;
mod series;
mod spark;
#[cfg(test)]
mod tests;

pub use document::{Check, CheckedScenario, Unusable, Value, parse};
pub use export::{csv, json};
pub use files::{Found, Skipped, read_baselines, read_results};
pub use page::{PageStyle, page};
pub use range::CommitRange;
pub use record::GateRecord;
pub use series::{
    Filter, Kind, MetricSeries, Point, ScenarioHistory, Series, StoredSession, assemble,
};
