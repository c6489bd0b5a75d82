use super::error::{StatsError, check_sample};

/// Windows a batch.
const BATCH: usize = 5;

/// Where the warm-up of a series ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUpCut {
    /// Values to discard at the beginning, a multiple of five.
    pub discard: usize,
    /// False where the best cut is the last that was allowed: the series still moves.
    pub settled: bool,
}

/// MSER-5 (White and Spratt): batches of five values, and the cut d in the first half that
/// minimises the squared standard error of the mean of what is left,
/// `sum_(i >= d) (y_i - mean_d)^2 / (k - d)^2`.
///
/// Needs at least four batches, 20 values.
pub fn mser5(values: &[f64]) -> Result<WarmUpCut, StatsError> {
    check_sample(values, "a warm-up")?;
    let batches: Vec<f64> = values
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    let count = batches.len();
    if count < 4 {
        return Err(StatsError::TooFew {
            what: "a warm-up",
            have: values.len(),
            need: 4 * BATCH,
        });
    }
    let limit = count / 2;
    let mut best = (f64::INFINITY, 0);
    // Sums from the end, so that every cut costs one step.
    let (mut sum, mut squares) = (0.0, 0.0);
    let centre = batches.iter().sum::<f64>() / count as f64;
    for cut in (0..count).rev() {
        let value = batches[cut] - centre;
        sum += value;
        squares += value * value;
        if cut > limit {
            continue;
        }
        let left = (count - cut) as f64;
        let score = ((squares - sum * sum / left).max(0.0)) / (left * left);
        // The earlier cut wins a tie: nothing is discarded without a reason.
        if score <= best.0 {
            best = (score, cut);
        }
    }
    Ok(WarmUpCut {
        discard: best.1 * BATCH,
        settled: best.1 < limit,
    })
}
