use crate::data::{Block, Session};
use crate::stats::Looks;

use super::decision::add_flag;
use super::series::own_blocks;
use super::{Decision, Design, GateError, StoredGate};

/// A verdict from two sets of recorded sessions, in one look at everything.
///
/// Several sessions of the candidate are read as one: between them lies the same spread that the
/// baseline's sessions show, and taking them for one claims no more than is known.
pub fn compare(
    design: &Design,
    baseline: &[Session],
    candidate: &[Session],
) -> Result<Decision, GateError> {
    let blocks: Vec<Block> = candidate
        .iter()
        .flat_map(|session| own_blocks(&session.blocks))
        .collect();
    if blocks.is_empty() {
        return Err(GateError::NoBlocks);
    }
    let looks = Looks::at(&[blocks.len() as u32]).map_err(GateError::Plan)?;
    let mut gate = StoredGate::with_looks(design.clone(), baseline, looks)?;
    let mut decision = gate.finish(&blocks)?;
    if candidate.len() > 1 {
        add_flag(
            &mut decision.flags,
            "candidate_sessions_merged",
            format!(
                "{} sessions of the candidate are judged as one",
                candidate.len()
            ),
        );
    }
    Ok(decision)
}
