use crate::data::{Metric, Session};
use crate::stats::{mad_outliers, mean, median};

use super::series::{own_blocks, values};

/// Fewer sessions say nothing of what is usual.
const FEWEST: usize = 5;
/// Scaled deviations from which a session is far. Beyond the usual 3.5 (Iglewicz and Hoaglin,
/// 1993): the deviation of a few sessions is itself uncertain.
const LIMIT: f64 = 5.0;
/// A session nearer than this to the median is no outlier, however alike the others are: ln.
const NEAREST: f64 = 0.02;

/// A stored session far from the others of its epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlier {
    /// The session.
    pub session: String,
    /// In what it is.
    pub metric: Metric,
    /// Its level against the median session's, minus 1.
    pub change: f64,
}

/// The sessions of one scenario that lie far from the median of their epoch, by the median
/// absolute deviation of the sessions' mean logarithms. They are for people to see: nothing is left
/// out because of it.
pub fn outliers(sessions: &[Session], metrics: &[Metric]) -> Vec<Outlier> {
    let mut epochs: Vec<u32> = sessions.iter().map(|session| session.epoch).collect();
    epochs.sort_unstable();
    epochs.dedup();
    let mut found = Vec::new();
    for epoch in epochs {
        for metric in metrics {
            let levels: Vec<(&str, f64)> = sessions
                .iter()
                .filter(|session| session.epoch == epoch && session.complete)
                .filter_map(|session| {
                    let values = values(&own_blocks(&session.blocks), *metric).ok()?;
                    let logs: Vec<f64> = values.into_iter().map(f64::ln).collect();
                    Some((session.id.as_str(), mean(&logs).ok()?))
                })
                .collect();
            if levels.len() < FEWEST {
                continue;
            }
            let numbers: Vec<f64> = levels.iter().map(|(_, level)| *level).collect();
            let (Ok(middle), Ok(far)) = (median(&numbers), mad_outliers(&numbers, LIMIT)) else {
                continue;
            };
            for (session, level) in far.into_iter().filter_map(|index| levels.get(index)) {
                if (level - middle).abs() > NEAREST {
                    found.push(Outlier {
                        session: (*session).to_owned(),
                        metric: *metric,
                        change: (level - middle).exp_m1(),
                    });
                }
            }
        }
    }
    found
}
