use crate::data::{Block, Flag, Metric, Session, Side};

use super::decision::add_flag;

/// A stored session, or several visits of one life of a server, ready for judgement.
#[derive(Debug, Clone)]
pub struct Life {
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
    /// The epoch of the baseline that it belongs to.
    pub epoch: u32,
}

/// The lives of the newest epoch: what the candidate's level is compared with.
pub(crate) fn newest_epoch(lives: &[Life]) -> Vec<&Life> {
    let newest = lives.iter().map(|life| life.epoch).max();
    lives
        .iter()
        .filter(|life| Some(life.epoch) == newest)
        .collect()
}

/// Stored sessions as independent lives: visits with the same mark are one. Where a session holds
/// both sides of a live comparison, its candidate is what it was recorded for.
pub(crate) fn lives(sessions: &[Session], flags: &mut Vec<Flag>) -> Vec<Life> {
    let mut ordered: Vec<&Session> = sessions.iter().collect();
    ordered.sort_by(|one, other| one.recorded_at.cmp(&other.recorded_at));
    let mut marks: Vec<Option<(&str, u32)>> = Vec::new();
    let mut lives: Vec<Life> = Vec::new();
    for session in ordered {
        let blocks = own_blocks(&session.blocks);
        if blocks.is_empty() {
            continue;
        }
        let mark = session.life.as_deref().map(|mark| (mark, session.epoch));
        let known = mark.and_then(|mark| marks.iter().position(|other| *other == Some(mark)));
        if let Some(life) = known.and_then(|index| lives.get_mut(index)) {
            life.blocks.extend(blocks);
            add_flag(
                flags,
                "sessions_merged",
                "stored sessions from one life of the server count as one".to_owned(),
            );
        } else {
            marks.push(mark);
            lives.push(Life {
                blocks,
                epoch: session.epoch,
            });
        }
    }
    lives
}

/// The blocks that speak for a session.
pub(crate) fn own_blocks(blocks: &[Block]) -> Vec<Block> {
    let both = [Side::Baseline, Side::Candidate]
        .into_iter()
        .all(|side| blocks.iter().any(|block| block.side == side));
    blocks
        .iter()
        .filter(|block| !both || block.side == Side::Candidate)
        .cloned()
        .collect()
}

/// The positive values of a metric over neighbouring blocks, or why there are none.
///
/// Server means are taken over a whole stretch of load and repeat in each of its blocks: they
/// count once, else one measurement would pose as many.
pub(crate) fn values(blocks: &[Block], metric: Metric) -> Result<Vec<f64>, String> {
    let mut values = Vec::with_capacity(blocks.len());
    let mut last_server = None;
    for block in blocks {
        if matches!(metric, Metric::ServerQueue | Metric::ServerCompute) {
            if last_server == block.server && last_server.is_some() {
                continue;
            }
            last_server = block.server;
        }
        match block.value(metric) {
            Some(value) if value.is_finite() && value > 0.0 => values.push(value),
            Some(value) => {
                return Err(format!(
                    "{} is {value} in block {}: a ratio cannot be taken",
                    metric.label(),
                    block.index
                ));
            }
            None => {
                return Err(format!(
                    "{} is unknown in block {}",
                    metric.label(),
                    block.index
                ));
            }
        }
    }
    if values.is_empty() {
        return Err(format!("{} was not measured", metric.label()));
    }
    Ok(values)
}

/// The median number of requests of a block; 0 without blocks.
pub(crate) fn median_requests<'a>(blocks: impl Iterator<Item = &'a Block>) -> u64 {
    let mut requests: Vec<u64> = blocks.map(|block| block.requests).collect();
    requests.sort_unstable();
    requests.get(requests.len() / 2).copied().unwrap_or(0)
}
