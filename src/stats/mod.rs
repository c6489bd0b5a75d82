//! Estimators, intervals and plans: numbers in, numbers out.
//!
//! Everything here is pure and total: a number that is not finite, an empty sample or a level
//! outside (0, 1) is a [`StatsError`], never a NaN that could be read as a verdict.
//! docs/statistics.md says where each rule comes from.

mod contrast;
mod distribution;
mod error;
mod plan;
mod quantile;
mod sample;
mod shift;
#[cfg(test)]
mod shift_tests;
mod signed_rank;
mod spending;
mod tail;
#[cfg(test)]
mod tests;
mod two_level;
mod warmup;

pub use contrast::Contrast;
pub use distribution::{f_tail, normal_quantile, t_quantile};
pub use error::StatsError;
pub use plan::{noise_floor_fall, noise_floor_rise, pairs_needed, requests_needed, tail_spread};
pub use quantile::{
    early_stopping_rank, histogram_quantile, order_statistic_ranks, quantile, quantile_of_counts,
    rank_value,
};
pub use sample::{
    MeanInterval, design_effect, mad_outliers, mean, mean_interval, median, variance,
};
pub use shift::{Shift, ShiftSearch, shifts};
pub use signed_rank::{SignedRank, signed_rank_sf};
pub(crate) use spending::FIRST_LOOK;
pub use spending::{Looks, first_paired_look};
pub use tail::{TailGuard, tail_guard};
pub use two_level::{Assumed, FEW_SESSIONS, NU0, TwoLevel, sessions_needed};
pub use warmup::{WarmUpCut, mser5};
