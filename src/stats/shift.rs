//! Where the level of a series changed.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::error::{StatsError, check_open_unit, check_sample};
use super::sample::median;

/// From the median absolute deviation of a normal sample to its standard deviation.
const MAD_TO_SD: f64 = 1.4826;
/// Values further from the median than this many standard deviations (by the MAD) are drawn in.
const FENCE: f64 = 3.0;
/// 97.5 % quantile of the place of the maximum of W(s) - |s| / 2, W a two-sided Wiener process
/// (Yao, Annals of Statistics 15, 1987; Bai, Review of Economics and Statistics 79, 1997).
const PLACE_QUANTILE: f64 = 11.03;

/// How shifts are looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShiftSearch {
    /// Chance to find a shift in a series that has none, in (0, 1).
    pub level: f64,
    /// Random orders that a split is compared with.
    pub permutations: u32,
    /// The fewest values on either side of a shift; at least 1.
    pub shortest: usize,
    /// Seed of the random orders.
    pub seed: u64,
}

impl Default for ShiftSearch {
    fn default() -> Self {
        Self {
            level: 0.01,
            permutations: 999,
            shortest: 3,
            seed: 1,
        }
    }
}

/// A place at which the level of a series changed for good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Index of the first value on the new level.
    pub at: usize,
    /// The smallest index that `at` may truly have. Together with `latest` it aims at 95 %; in
    /// simulation it holds the place in 85 to 99 % (docs/evidence.md).
    pub earliest: usize,
    /// The largest index that `at` may truly have.
    pub latest: usize,
    /// Median of the values since the shift before this one.
    pub before: f64,
    /// Number of those values.
    pub values_before: usize,
    /// Median of the values up to the next shift.
    pub after: f64,
    /// Number of those values.
    pub values_after: usize,
    /// Share of random orders of the values that split at least as well.
    pub p_value: f64,
}

/// The shifts of a series, oldest first.
///
/// The split that takes most out of the sum of squares, over the whole series and over shorter
/// stretches of it (seeded intervals: Kovacs, Buhlmann, Li and Munk, Biometrika 110, 2023), is compared
/// with the best splits of random orders of the same values (Antoch and Huskova, Statistics and
/// Probability Letters 53, 2001): in a series of independent values without a shift, of whatever distribution, one is found with a
/// probability of at most `level`. Where there is one, both parts are searched anew (binary
/// segmentation, Vostrikova 1981), and each place is found once more between its neighbours (Bai,
/// Econometric Theory 13, 1997). A few wild values change little: beyond 3 standard deviations by
/// the MAD they are drawn in. The range of a place is `11 (sd / change)^2` values to either side,
/// rounded (Bai, Review of Economics and Statistics 79, 1997).
///
/// Neighbouring values that depend on each other (a machine that drifts) make shifts far more
/// frequent than `level`: docs/evidence.md has the figures.
pub fn shifts(values: &[f64], search: &ShiftSearch) -> Result<Vec<Shift>, StatsError> {
    check_sample(values, "a series")?;
    check_open_unit(search.level, "the level of a shift")?;
    let shortest = search.shortest.max(1);
    let mut random = ChaCha8Rng::seed_from_u64(search.seed);
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut open = vec![(0, values.len())];
    while let Some((from, to)) = open.pop() {
        let Some(part) = values.get(from..to) else {
            continue;
        };
        if let Some((split, p_value)) = test(part, shortest, search, &mut random) {
            found.push((from + split, p_value));
            open.push((from, from + split));
            open.push((from + split, to));
        }
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    settle(values, &mut found, shortest);
    Ok(described(values, &found, shortest))
}

/// The best split of a part and its p value, where chance does not explain it.
fn test(
    part: &[f64],
    shortest: usize,
    search: &ShiftSearch,
    random: &mut ChaCha8Rng,
) -> Option<(usize, f64)> {
    let mut values = drawn_in(part);
    let (split, gain) = best_split(&values, shortest)?;
    // Rounding must not make a series of equal values look ordered.
    let scale = part.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    if gain <= (scale * 1e-12).powi(2) {
        return None;
    }
    let runs = search.permutations.max(1);
    let allowed = search.level * f64::from(runs + 1);
    let mut as_good = 0_u32;
    for _ in 0..runs {
        values.shuffle(random);
        let other = best_split(&values, shortest).map_or(0.0, |(_, gain)| gain);
        if other >= gain * (1.0 - 1e-9) {
            as_good += 1;
            if f64::from(as_good + 1) > allowed {
                return None;
            }
        }
    }
    let p_value = f64::from(as_good + 1) / f64::from(runs + 1);
    (p_value <= search.level).then_some((split, p_value))
}

/// The best split of all stretches: the whole, and ever shorter ones that overlap by half, so that
/// a rise and the fall after it do not hide each other.
fn best_split(values: &[f64], shortest: usize) -> Option<(usize, f64)> {
    let count = values.len();
    let mut best: Option<(usize, f64)> = None;
    let mut length = count;
    while length >= 2 * shortest {
        let step = length.div_ceil(2);
        let mut from = 0;
        loop {
            let start = from.min(count - length);
            let stretch = values.get(start..start + length).unwrap_or_default();
            if let Some((split, gain)) = one_split(stretch, shortest)
                && best.is_none_or(|(_, most)| gain > most)
            {
                best = Some((start + split, gain));
            }
            if from + length >= count {
                break;
            }
            from += step;
        }
        length = step;
        if length == 1 {
            break;
        }
    }
    best
}

/// The split of one stretch with the largest drop in its sum of squares, and that drop.
fn one_split(values: &[f64], shortest: usize) -> Option<(usize, f64)> {
    let count = values.len();
    if count < 2 * shortest {
        return None;
    }
    let centre = values.iter().sum::<f64>() / count as f64;
    let mut best: Option<(usize, f64)> = None;
    let mut sum = 0.0;
    for (index, value) in values.iter().enumerate() {
        sum += value - centre;
        let left = index + 1;
        let right = count - left;
        if left < shortest || right < shortest {
            continue;
        }
        let gain = sum * sum * count as f64 / (left as f64 * right as f64);
        if best.is_none_or(|(_, most)| gain > most) {
            best = Some((left, gain));
        }
    }
    best
}

/// The values with wild ones drawn in to the fence; the order does not matter to where it stands.
fn drawn_in(values: &[f64]) -> Vec<f64> {
    let Some((middle, sd)) = centre_and_spread(values) else {
        return values.to_vec();
    };
    if sd <= 0.0 {
        return values.to_vec();
    }
    let reach = FENCE * sd;
    values
        .iter()
        .map(|value| value.clamp(middle - reach, middle + reach))
        .collect()
}

fn centre_and_spread(values: &[f64]) -> Option<(f64, f64)> {
    let middle = median(values).ok()?;
    let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some((middle, median(&away).ok()? * MAD_TO_SD))
}

/// Finds each place once more between its neighbours: what the first splits saw held shifts that
/// were not known yet.
fn settle(values: &[f64], found: &mut [(usize, f64)], shortest: usize) {
    for index in 0..found.len() {
        let from = index
            .checked_sub(1)
            .and_then(|before| found.get(before))
            .map_or(0, |(at, _)| *at);
        let to = found.get(index + 1).map_or(values.len(), |(at, _)| *at);
        if let Some(part) = values.get(from..to)
            && let Some((split, _)) = one_split(&drawn_in(part), shortest)
            && let Some(place) = found.get_mut(index)
        {
            place.0 = from + split;
        }
    }
}

fn described(values: &[f64], found: &[(usize, f64)], shortest: usize) -> Vec<Shift> {
    let mut out = Vec::with_capacity(found.len());
    for (index, (at, p_value)) in found.iter().enumerate() {
        let from = index
            .checked_sub(1)
            .and_then(|before| found.get(before))
            .map_or(0, |(at, _)| *at);
        let to = found.get(index + 1).map_or(values.len(), |(at, _)| *at);
        let (Some(left), Some(right)) = (values.get(from..*at), values.get(*at..to)) else {
            continue;
        };
        let (Ok(before), Ok(after)) = (median(left), median(right)) else {
            continue;
        };
        let away: Vec<f64> = left
            .iter()
            .map(|value| (value - before).abs())
            .chain(right.iter().map(|value| (value - after).abs()))
            .collect();
        let sd = median(&away).unwrap_or(0.0) * MAD_TO_SD;
        let reach = PLACE_QUANTILE * (sd / (after - before)).powi(2);
        // A range that is not a number comes from equal medians: the place is not known.
        let reach = if reach.is_finite() {
            reach.round().min(values.len() as f64) as usize
        } else {
            values.len()
        };
        out.push(Shift {
            at: *at,
            earliest: at.saturating_sub(reach).max(from + shortest.min(at - from)),
            latest: (at + reach).min(to - shortest.min(to - at)),
            before,
            values_before: left.len(),
            after,
            values_after: right.len(),
            p_value: *p_value,
        });
    }
    out
}
