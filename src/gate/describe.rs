use crate::data::{Block, Limit, MetricResult};

use super::decision::blank;

/// One row a limit with the candidate's median over the blocks and nothing to compare it with.
pub fn describe(limits: &[Limit], blocks: &[Block]) -> Vec<MetricResult> {
    limits
        .iter()
        .map(|limit| {
            let mut values: Vec<f64> = blocks
                .iter()
                .filter_map(|block| block.value(limit.metric))
                .collect();
            values.sort_by(f64::total_cmp);
            let mut row = blank(limit);
            row.candidate = median(&values);
            row.note = Some("nothing to compare with".to_owned());
            row
        })
        .collect()
}

fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    Some(f64::midpoint(lower, upper))
}
