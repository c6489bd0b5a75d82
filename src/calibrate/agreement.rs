//! Whether alternating changes what is measured: one side alone in long blocks must agree with
//! itself in short ones.

use super::noise::worse_log;
use super::outcome::Agreement;
use super::record::Recording;
use crate::data::{Bound, Metric};
use crate::gate::{Design, GateError, Unit, limit_on_log_scale};
use crate::stats::SignedRank;

/// Error level of each end of the interval.
const LEVEL: f64 = 0.025;
/// Share of the limit from which a certain difference matters.
const MATTERS: f64 = 0.5;

/// Compares, turn by turn, the two sides of each block length together with the long blocks of the
/// same turn. Mean latency stands for throughput, which it is in a closed loop, without the edges
/// at which a short block fills and drains. Hodges-Lehmann estimate and signed-rank interval.
pub fn agreement(design: &Design, recording: &Recording) -> Result<Vec<Agreement>, GateError> {
    let mut found = Vec::new();
    for record in &recording.lengths {
        for (metric, limit) in compared(design)? {
            let differences: Vec<f64> = record
                .units
                .iter()
                .filter_map(|recorded| {
                    let (_, alone) = recording
                        .alone
                        .iter()
                        .find(|(turn, _)| *turn == recorded.turn)?;
                    let unit: &Unit = &recorded.unit;
                    let short = f64::midpoint(
                        worse_log(&unit.baseline, metric)?,
                        worse_log(&unit.candidate, metric)?,
                    );
                    Some(short - worse_log(alone, metric)?)
                })
                .collect();
            if differences.is_empty() {
                continue;
            }
            let fail = |source| GateError::Stats { metric, source };
            let rank = SignedRank::new(&differences).map_err(fail)?;
            let lower = rank.lower(LEVEL).map_err(fail)?;
            let upper = rank.upper(LEVEL).map_err(fail)?;
            let certain =
                lower.is_some_and(|low| low > 0.0) || upper.is_some_and(|high| high < 0.0);
            found.push(Agreement {
                block_ms: record.plan.block.as_secs_f64() * 1e3,
                metric,
                change: rank.estimate().exp_m1(),
                interval: [lower.map(f64::exp_m1), upper.map(f64::exp_m1)],
                turns: differences.len() as u32,
                agrees: !(certain && rank.estimate().abs() >= MATTERS * limit),
            });
        }
    }
    Ok(found)
}

/// What is compared, with the limit on the log scale that it is held against.
fn compared(design: &Design) -> Result<Vec<(Metric, f64)>, GateError> {
    let mut compared = Vec::new();
    for limit in &design.limits {
        if !matches!(limit.bound, Bound::Relative(_)) {
            continue;
        }
        let metric = match limit.metric {
            Metric::Throughput => Metric::Mean,
            metric => metric,
        };
        let size = limit_on_log_scale(limit)?;
        match compared.iter_mut().find(|(known, _)| *known == metric) {
            Some((_, known)) => *known = f64::min(*known, size),
            None => compared.push((metric, size)),
        }
    }
    Ok(compared)
}
