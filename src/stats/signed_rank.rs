use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use super::error::{StatsError, check_open_unit, check_sample};

/// The largest sample for which the exact distribution is computed: 2^-n must stay a number, and
/// the work grows with the cube.
const MAX_N: usize = 1000;

/// Cumulative null distributions of W+ by sample size; a cache of a pure function.
static NULL: LazyLock<Mutex<BTreeMap<usize, Arc<[f64]>>>> = LazyLock::new(Mutex::default);

/// P(W+ <= w) for w = 0 ..= n(n+1)/2 under the null hypothesis, by dynamic programming over the
/// ranks: each enters with probability one half.
fn null_cdf(n: usize) -> Arc<[f64]> {
    let mut cache = NULL.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(cache.entry(n).or_insert_with(|| {
        let total = n * (n + 1) / 2;
        let mut mass = vec![0.0; total + 1];
        mass[0] = 1.0;
        let mut reached = 0;
        for rank in 1..=n {
            reached += rank;
            for w in (0..=reached).rev() {
                let without = mass[w];
                let with = if w >= rank { mass[w - rank] } else { 0.0 };
                mass[w] = 0.5 * (without + with);
            }
        }
        let mut sum = 0.0;
        mass.into_iter()
            .map(|p| {
                sum += p;
                sum
            })
            .collect()
    }))
}

/// P(W+ >= w) of Wilcoxon's signed-rank statistic of n differences under the null hypothesis.
pub fn signed_rank_sf(n: usize, w: usize) -> Result<f64, StatsError> {
    if n == 0 {
        return Err(StatsError::Empty {
            what: "a signed-rank test",
        });
    }
    if n > MAX_N {
        return Err(too_many(n));
    }
    let total = n * (n + 1) / 2;
    if w > total {
        return Ok(0.0);
    }
    // P(W >= w) = P(W <= total - w) by symmetry: small tails keep their digits.
    Ok(null_cdf(n)[total - w].min(1.0))
}

fn too_many(n: usize) -> StatsError {
    StatsError::OutOfRange {
        what: "the number of differences",
        value: n as f64,
        expected: "at most 1000",
    }
}

/// The Walsh averages of a sample of differences: the Hodges-Lehmann estimate and the exact
/// one-sided bounds that belong to Wilcoxon's signed-rank test.
///
/// The bounds assume a distribution symmetric about the centre; a fair coin that decides which
/// member of a pair comes first gives that under the null hypothesis, whatever the drift. Ties and
/// zeros make the bounds wider, never narrower.
#[derive(Debug, Clone)]
pub struct SignedRank {
    n: usize,
    walsh: Vec<f64>,
}

impl SignedRank {
    /// Takes the differences in any order.
    pub fn new(differences: &[f64]) -> Result<Self, StatsError> {
        check_sample(differences, "a signed-rank estimate")?;
        let n = differences.len();
        if n > MAX_N {
            return Err(too_many(n));
        }
        let mut walsh = Vec::with_capacity(n * (n + 1) / 2);
        for (index, one) in differences.iter().enumerate() {
            for other in &differences[index..] {
                walsh.push(f64::midpoint(*one, *other));
            }
        }
        walsh.sort_unstable_by(f64::total_cmp);
        Ok(Self { n, walsh })
    }

    /// The Hodges-Lehmann estimate: the median of the Walsh averages.
    pub fn estimate(&self) -> f64 {
        let half = self.walsh.len() / 2;
        if self.walsh.len() % 2 == 1 {
            self.walsh[half]
        } else {
            f64::midpoint(self.walsh[half - 1], self.walsh[half])
        }
    }

    /// The lower bound at one-sided error level `alpha`; none (minus infinity) where the sample is
    /// too small for it.
    pub fn lower(&self, alpha: f64) -> Result<Option<f64>, StatsError> {
        Ok(self.cut(alpha)?.map(|cut| self.walsh[cut]))
    }

    /// The upper bound at one-sided error level `beta`; none (infinity) where the sample is too
    /// small for it.
    pub fn upper(&self, beta: f64) -> Result<Option<f64>, StatsError> {
        Ok(self
            .cut(beta)?
            .map(|cut| self.walsh[self.walsh.len() - 1 - cut]))
    }

    /// The largest c with P(W+ <= c) <= level, below the middle.
    fn cut(&self, level: f64) -> Result<Option<usize>, StatsError> {
        check_open_unit(level, "an error level")?;
        let cdf = null_cdf(self.n);
        let within = cdf.partition_point(|p| *p <= level);
        Ok(within
            .checked_sub(1)
            .map(|cut| cut.min((self.walsh.len() - 1) / 2)))
    }
}
