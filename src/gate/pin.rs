use crate::data::{Block, Bound, MetricResult, Rule, Session};
use crate::stats::FIRST_LOOK;

use super::relative::Levels;
use super::search::KEPT_BACK;
use super::series::lives;
use super::{Design, GateError, point, relative};

/// One row a relative limit of a candidate against a pinned release.
///
/// It is decided once, on the blocks of the first look, so that when the search against the
/// baseline ends has no part in it. As at the end of such a search, a part of the false-alarm
/// level is kept back: `design.gated` must count these rows too.
///
/// # Errors
/// No session with blocks, or numbers that cannot be judged.
pub fn against_pin(
    design: &Design,
    name: &str,
    sessions: &[Session],
    blocks: &[Block],
) -> Result<Vec<MetricResult>, GateError> {
    let stored = lives(sessions, &mut Vec::new());
    if stored.is_empty() {
        return Err(GateError::NoSessions);
    }
    let first = blocks.get(..FIRST_LOOK as usize).unwrap_or(blocks);
    if first.is_empty() {
        return Err(GateError::NoBlocks);
    }
    let levels = Levels {
        alpha: design.false_alarm / f64::from(design.gated.max(1)) * KEPT_BACK,
        beta: design.beta(),
    };
    let mut rows = Vec::new();
    for limit in &design.limits {
        if !matches!(limit.bound, Bound::Relative(_)) {
            continue;
        }
        let mut row = match design.rule {
            Rule::Point => point::evaluate(limit, &stored, first)?,
            Rule::Evidence => relative::evaluate(design, limit, &stored, first, levels)?.result,
        };
        row.pin = Some(name.to_owned());
        rows.push(row);
    }
    Ok(rows)
}
