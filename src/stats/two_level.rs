use super::error::{StatsError, check_positive, check_sample};
use super::{design_effect, mean, t_quantile, variance};

/// From this many stored sessions on, the spread between sessions is measured, not assumed.
pub const FEW_SESSIONS: usize = 8;
/// The weight of the assumed spread, in sessions.
pub const NU0: f64 = 4.0;

/// How much of the noise between sessions is an assumption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assumed {
    /// Measured from at least eight sessions.
    No,
    /// Three to seven sessions.
    Partly,
    /// One or two sessions.
    Yes,
}

/// A stored baseline of sessions against one session of the candidate.
///
/// Values are logarithms, oriented so that a positive estimate is a change for the worse. Two
/// levels vary: sessions (a process or model that was loaded anew) and blocks within a session.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoLevel {
    /// Mean of the session means of the baseline.
    pub baseline: f64,
    /// Mean of the candidate's blocks.
    pub candidate: f64,
    /// candidate - baseline.
    pub estimate: f64,
    /// Variance of the estimate.
    pub variance: f64,
    /// Degrees of freedom of the variance.
    pub df: f64,
    /// Variance of one session's true level.
    pub session_variance: f64,
    /// Share of the variance that further blocks of the candidate cannot lower.
    pub session_share: f64,
    /// How much of it is assumed.
    pub assumed: Assumed,
    /// Drift within the sessions exceeded the assumed spread and took its place.
    pub raised_by_drift: bool,
    /// No session and no candidate had two blocks, so that the noise within a session was assumed
    /// to be as large as that between sessions.
    pub within_assumed: bool,
}

/// What both rules need of the baseline.
struct Within {
    /// Pooled variance of a block within its session.
    variance: f64,
    /// Its degrees of freedom.
    df: f64,
    /// Blocks a session, harmonic mean: the mean of `s_r^2 / k_s` is `s_r^2 / k_b` with it.
    blocks: f64,
}

impl TwoLevel {
    /// Compares one session of the candidate with stored sessions.
    ///
    /// `assumed` is the standard deviation between sessions that is taken for granted where there
    /// are fewer than [`FEW_SESSIONS`].
    pub fn new(baseline: &[Vec<f64>], candidate: &[f64], assumed: f64) -> Result<Self, StatsError> {
        Self::with_epochs(baseline, &[], candidate, assumed)
    }

    /// The same where the baseline's level was accepted anew: `earlier` holds the sessions of each
    /// epoch before. The baseline's mean is that of its own sessions alone; the spread between
    /// sessions is pooled within all epochs, `s^2 = sum((S_e - 1) s_e^2) / sum(S_e - 1)`, and counts
    /// as measured by its degrees of freedom, `sum(S_e - 1)`.
    pub fn with_epochs(
        baseline: &[Vec<f64>],
        earlier: &[Vec<Vec<f64>>],
        candidate: &[f64],
        assumed: f64,
    ) -> Result<Self, StatsError> {
        check_sample(candidate, "the candidate's blocks")?;
        if baseline.is_empty() {
            return Err(StatsError::Empty {
                what: "the baseline's sessions",
            });
        }
        for session in baseline.iter().chain(earlier.iter().flatten()) {
            check_sample(session, "the blocks of a stored session")?;
        }
        check_positive(assumed, "the assumed noise between sessions")?;
        let stored = Stored::new(baseline, earlier, candidate, assumed)?;
        if stored.known() >= FEW_SESSIONS {
            many_sessions(&stored, candidate)
        } else {
            few_sessions(&stored, candidate, assumed)
        }
    }

    /// The one-sided lower bound at error level `alpha`; none (minus infinity) at level 0.
    pub fn lower(&self, alpha: f64) -> Result<Option<f64>, StatsError> {
        self.half_width(alpha)
            .map(|width| width.map(|width| self.estimate - width))
    }

    /// The one-sided upper bound at error level `beta`; none (infinity) at level 0.
    pub fn upper(&self, beta: f64) -> Result<Option<f64>, StatsError> {
        self.half_width(beta)
            .map(|width| width.map(|width| self.estimate + width))
    }

    fn half_width(&self, level: f64) -> Result<Option<f64>, StatsError> {
        if level == 0.0 {
            return Ok(None);
        }
        Ok(Some(
            t_quantile(1.0 - level, self.df)? * self.variance.sqrt(),
        ))
    }
}

/// The stored side, both levels of it.
struct Stored<'a> {
    /// Means of the baseline's own sessions.
    means: Vec<f64>,
    /// Every session of every epoch.
    all: Vec<&'a [f64]>,
    /// Variance of session means within their epochs; 0 without degrees of freedom.
    between: f64,
    /// Its degrees of freedom.
    df: f64,
    within: Within,
    within_assumed: bool,
}

impl<'a> Stored<'a> {
    fn new(
        baseline: &'a [Vec<f64>],
        earlier: &'a [Vec<Vec<f64>>],
        candidate: &[f64],
        assumed: f64,
    ) -> Result<Self, StatsError> {
        let means = session_means(baseline)?;
        let (mut squares, mut df) = (0.0, 0.0);
        for epoch in earlier.iter().map(Vec::as_slice).chain([baseline]) {
            if epoch.len() > 1 {
                let own = (epoch.len() - 1) as f64;
                squares += variance(&session_means(epoch)?)? * own;
                df += own;
            }
        }
        let all: Vec<&[f64]> = earlier
            .iter()
            .flatten()
            .chain(baseline)
            .map(Vec::as_slice)
            .collect();
        let (within, within_assumed) = within(&all, candidate, assumed)?;
        Ok(Self {
            means,
            all,
            between: if df > 0.0 { squares / df } else { 0.0 },
            df,
            within,
            within_assumed,
        })
    }

    /// How many sessions of one epoch would tell as much of the spread.
    fn known(&self) -> usize {
        self.df as usize + 1
    }
}

fn session_means(baseline: &[Vec<f64>]) -> Result<Vec<f64>, StatsError> {
    baseline.iter().map(|session| mean(session)).collect()
}

fn within(
    baseline: &[&[f64]],
    candidate: &[f64],
    assumed: f64,
) -> Result<(Within, bool), StatsError> {
    let mut squares = 0.0;
    let mut df = 0.0;
    let mut inverse = 0.0;
    for session in baseline {
        let own = (session.len() - 1) as f64;
        if session.len() > 1 {
            squares += variance(session)? * own;
            df += own;
        }
        inverse += 1.0 / session.len() as f64;
    }
    let blocks = baseline.len() as f64 / inverse;
    if df > 0.0 {
        return Ok((
            Within {
                variance: squares / df,
                df,
                blocks,
            },
            false,
        ));
    }
    if candidate.len() > 1 {
        // Files with one line a session: the candidate's own blocks are the best that is known.
        let own = (candidate.len() - 1) as f64;
        return Ok((
            Within {
                variance: variance(candidate)?,
                df: own,
                blocks,
            },
            false,
        ));
    }
    Ok((
        Within {
            variance: assumed * assumed,
            df: NU0,
            blocks,
        },
        true,
    ))
}

/// Variance of the candidate's mean that its own blocks cause, with its degrees of freedom.
fn candidate_part(candidate: &[f64], within: &Within) -> Result<(f64, f64), StatsError> {
    let n = candidate.len() as f64;
    if candidate.len() < 2 {
        return Ok((within.variance / n, within.df));
    }
    Ok((
        variance(candidate)? * design_effect(candidate)? / n,
        n - 1.0,
    ))
}

/// Eight sessions and more: everything is measured.
fn many_sessions(stored: &Stored<'_>, candidate: &[f64]) -> Result<TwoLevel, StatsError> {
    let sessions = stored.means.len() as f64;
    let (between, within) = (stored.between, &stored.within);
    let session_variance = (between - within.variance / within.blocks).max(0.0);
    let session_part = between / sessions + session_variance;
    let equal = stored
        .all
        .iter()
        .all(|session| session.len() == candidate.len());
    let (total, df) = if equal {
        // The candidate is one more session of the same length: exact whatever the
        // autocorrelation within sessions.
        (between * (1.0 + 1.0 / sessions), stored.df)
    } else {
        let (own, own_df) = candidate_part(candidate, within)?;
        let total = between / sessions + session_variance + own;
        let satterthwaite = total.powi(2)
            / ((between * (1.0 + 1.0 / sessions)).powi(2) / stored.df
                + (within.variance / within.blocks).powi(2) / within.df
                + own.powi(2) / own_df);
        (total, at_least(satterthwaite, stored.df))
    };
    let (baseline, candidate) = (mean(&stored.means)?, mean(candidate)?);
    Ok(TwoLevel {
        baseline,
        candidate,
        estimate: candidate - baseline,
        variance: total,
        df,
        session_variance,
        session_share: share(session_part, total),
        assumed: Assumed::No,
        raised_by_drift: false,
        // With equal lengths the variance within sessions does not enter.
        within_assumed: stored.within_assumed && !equal,
    })
}

/// Fewer than eight sessions: the spread between sessions starts from an assumption worth
/// [`NU0`] sessions, raised where the sessions drift more than that within themselves.
fn few_sessions(
    stored: &Stored<'_>,
    candidate: &[f64],
    assumed: f64,
) -> Result<TwoLevel, StatsError> {
    let sessions = stored.means.len() as f64;
    let within = &stored.within;
    let mut drift = 0.0;
    for session in stored.all.iter().copied().chain([candidate]) {
        let half = session.len() / 2;
        if half > 0 {
            let first = mean(&session[..half])?;
            let last = mean(&session[session.len() - half..])?;
            drift += (first - last).powi(2) / 2.0;
        }
    }
    drift /= stored.all.len() as f64 + 1.0;
    let prior = (assumed * assumed).max(drift);
    let nu = NU0 + stored.df;
    let measured = stored.df * (stored.between - within.variance / within.blocks).max(0.0);
    let session_variance = (NU0 * prior + measured) / nu;
    let session_term = session_variance * (1.0 + 1.0 / sessions);
    let baseline_term = within.variance / (sessions * within.blocks);
    let (own, own_df) = candidate_part(candidate, within)?;
    let total = session_term + baseline_term + own;
    let satterthwaite = total.powi(2)
        / (session_term.powi(2) / nu + baseline_term.powi(2) / within.df + own.powi(2) / own_df);
    let (base, cand) = (mean(&stored.means)?, mean(candidate)?);
    Ok(TwoLevel {
        baseline: base,
        candidate: cand,
        estimate: cand - base,
        variance: total,
        df: at_least(satterthwaite, nu),
        session_variance,
        session_share: share(session_term + baseline_term, total),
        assumed: if stored.known() < 3 {
            Assumed::Yes
        } else {
            Assumed::Partly
        },
        raised_by_drift: drift > assumed * assumed,
        within_assumed: stored.within_assumed,
    })
}

/// The larger of both; the floor also where the first is not a number (all variances 0).
fn at_least(value: f64, floor: f64) -> f64 {
    if value.is_finite() {
        value.max(floor)
    } else {
        floor
    }
}

fn share(part: f64, total: f64) -> f64 {
    if total > 0.0 {
        (part / total).min(1.0)
    } else {
        0.0
    }
}

/// How many stored sessions would let a change of `threshold` (log scale) be told from none, given
/// the standard deviation between sessions, however long the candidate is measured; none where
/// even 100 would not.
///
/// The smallest S with `(t_(1-alpha, S-1) + t_(1-beta, S-1)) sd sqrt(1 + 1/S) <= threshold`.
pub fn sessions_needed(
    sd: f64,
    threshold: f64,
    alpha: f64,
    beta: f64,
) -> Result<Option<u32>, StatsError> {
    for sessions in 2..=100_u32 {
        let count = f64::from(sessions);
        let width = t_quantile(1.0 - alpha, count - 1.0)? + t_quantile(1.0 - beta, count - 1.0)?;
        if width * sd * (1.0 + 1.0 / count).sqrt() <= threshold {
            return Ok(Some(sessions));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<f64>>> {
        prop::collection::vec(prop::collection::vec(-0.2..0.2_f64, 6), count)
    }

    fn shifted(sessions: &[Vec<f64>], by: f64) -> Vec<Vec<f64>> {
        sessions
            .iter()
            .map(|session| session.iter().map(|value| value + by).collect())
            .collect()
    }

    proptest! {
        /// Where the level was before an accepted shift has no part in the decision.
        #[test]
        fn an_earlier_level_is_forgotten(
            own in values(1..6), earlier in values(1..12), by in -2.0..2.0_f64,
            candidate in prop::collection::vec(-0.2..0.2_f64, 6),
        ) {
            let one = TwoLevel::with_epochs(&own, std::slice::from_ref(&earlier), &candidate, 0.05);
            let other = TwoLevel::with_epochs(&own, &[shifted(&earlier, by)], &candidate, 0.05);
            let (one, other) = (one.expect("levels"), other.expect("levels"));
            prop_assert_eq!(one.baseline.to_bits(), other.baseline.to_bits());
            prop_assert_eq!(one.assumed, other.assumed);
            for (a, b) in [(one.variance, other.variance), (one.df, other.df)] {
                prop_assert!((a - b).abs() <= 1e-6 * a.abs().max(1e-9), "{} {}", a, b);
            }
        }
    }

    #[test]
    fn the_spread_is_pooled_within_epochs_and_the_mean_is_the_newest() {
        let level = |value: f64| vec![value; 4];
        // Means 0, 2, 4 (variance 4, 2 df) and 9, 11 (variance 2, 1 df).
        let earlier = vec![level(0.0), level(2.0), level(4.0)];
        let own = vec![level(9.0), level(11.0)];
        let stored =
            Stored::new(&own, std::slice::from_ref(&earlier), &[10.0; 4], 0.1).expect("stored");
        assert!((stored.between - 10.0 / 3.0).abs() < 1e-12);
        assert_eq!((stored.df as u32, stored.known()), (3, 4));
        let result = TwoLevel::with_epochs(&own, &[earlier], &[10.0; 4], 0.1).expect("levels");
        assert!((result.baseline - 10.0).abs() < 1e-12);
        assert_eq!(result.assumed, Assumed::Partly);
    }

    #[test]
    fn eight_sessions_worth_of_spread_need_no_assumption_after_a_shift() {
        let earlier: Vec<Vec<f64>> = (0..8).map(|n| vec![f64::from(n) / 100.0; 4]).collect();
        let own = vec![vec![1.0; 4]];
        let result = TwoLevel::with_epochs(&own, std::slice::from_ref(&earlier), &[1.0; 4], 0.1)
            .expect("levels");
        assert_eq!(result.assumed, Assumed::No);
        assert!((result.df - 7.0).abs() < 1e-12);
        // s_b^2 (1 + 1/1): one session tells the new level.
        let spread = variance(&session_means(&earlier).expect("means")).expect("variance");
        assert!((result.variance - 2.0 * spread).abs() < 1e-12);
        let alone = TwoLevel::new(&own, &[1.0; 4], 0.1).expect("levels");
        assert_eq!(alone.assumed, Assumed::Yes);
    }
}
