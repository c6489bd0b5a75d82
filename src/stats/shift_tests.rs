use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::{ShiftSearch, shifts};

/// Values around levels, each level for so many values, with a standard deviation of `sd`.
fn series(levels: &[(f64, usize)], sd: f64, seed: u64) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    levels
        .iter()
        .flat_map(|(level, count)| std::iter::repeat_n(*level, *count))
        .map(|level| level + sd * random.sample::<f64, _>(StandardNormal))
        .collect()
}

fn places(values: &[f64]) -> Vec<usize> {
    shifts(values, &ShiftSearch::default())
        .expect("a series")
        .iter()
        .map(|shift| shift.at)
        .collect()
}

#[test]
fn clear_shifts_are_found_where_they_are() {
    for (levels, expected) in [
        (&[(1.0, 20), (2.0, 20)][..], &[20][..]),
        (&[(1.0, 24), (0.0, 4)], &[24]),
        (&[(1.0, 6), (2.0, 6)], &[6]),
        (&[(1.0, 20), (2.0, 10), (1.0, 20)], &[20, 30]),
        (&[(1.0, 12), (2.0, 12), (3.0, 12)], &[12, 24]),
        (&[(1.0, 40)], &[]),
        // Too few values to tell from chance.
        (&[(1.0, 3), (2.0, 3)], &[]),
        (&[(1.0, 1)], &[]),
    ] {
        assert_eq!(places(&series(levels, 0.02, 7)), expected, "{levels:?}");
    }
}

#[test]
fn a_shift_tells_its_levels_and_its_range() {
    let values = series(&[(1.0, 30), (2.0, 15)], 0.01, 3);
    let found = shifts(&values, &ShiftSearch::default()).expect("a series");
    let shift = found.first().expect("a shift");
    assert_eq!((shift.earliest, shift.at, shift.latest), (30, 30, 30));
    assert_eq!((shift.values_before, shift.values_after), (30, 15));
    assert!((shift.before - 1.0).abs() < 0.02 && (shift.after - 2.0).abs() < 0.02);
    assert!((shift.p_value - 0.001).abs() < 1e-9, "{}", shift.p_value);

    // As large as the noise: the place is vague, and within the range.
    let values = series(&[(0.0, 60), (1.5, 60)], 1.0, 5);
    let found = shifts(&values, &ShiftSearch::default()).expect("a series");
    let shift = found.first().expect("a shift");
    assert!(shift.earliest < shift.latest);
    assert!((shift.earliest..=shift.latest).contains(&60), "{shift:?}");
}

#[test]
fn one_wild_value_is_no_shift_and_hides_none() {
    let mut values = series(&[(1.0, 30)], 0.02, 11);
    values[20] = 40.0;
    assert_eq!(places(&values), Vec::<usize>::new());
    let mut values = series(&[(1.0, 20), (1.2, 20)], 0.02, 11);
    values[3] = 40.0;
    assert_eq!(places(&values), [20]);
}

#[test]
fn equal_values_have_no_shift_and_two_equal_levels_do() {
    assert_eq!(places(&[0.1 + 0.2; 50]), Vec::<usize>::new());
    assert_eq!(places(&[0.0; 50]), Vec::<usize>::new());
    let two: Vec<f64> = [1.0; 10].into_iter().chain([1.1; 10]).collect();
    let found = shifts(&two, &ShiftSearch::default()).expect("a series");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].earliest, found[0].latest), (10, 10));
}

#[test]
fn what_is_no_series_is_refused() {
    let search = ShiftSearch::default();
    assert!(shifts(&[], &search).is_err());
    assert!(shifts(&[1.0, f64::NAN], &search).is_err());
    for level in [0.0, 1.0, f64::NAN] {
        assert!(shifts(&[1.0; 20], &ShiftSearch { level, ..search }).is_err());
    }
}

/// 600 series without a shift; of a level of 5 %, 30 are expected, and 50 or more have a
/// probability below 0.1 % where the level is kept.
#[test]
fn false_alarms_keep_to_the_level() {
    let search = ShiftSearch {
        level: 0.05,
        permutations: 199,
        ..ShiftSearch::default()
    };
    for wild in [false, true] {
        let alarms = (0..600)
            .filter(|seed| {
                let mut values = series(&[(0.0, 25)], 1.0, 1000 + seed);
                if wild {
                    // Far heavier tails than a normal distribution's.
                    for value in &mut values {
                        *value = value.powi(5);
                    }
                }
                let search = ShiftSearch {
                    seed: *seed,
                    ..search
                };
                !shifts(&values, &search).expect("a series").is_empty()
            })
            .count();
        assert!((5..50).contains(&alarms), "{alarms} of 600, wild: {wild}");
    }
}

proptest! {
    #[test]
    fn ranges_hold_places_and_scale_does_not_matter(
        values in proptest::collection::vec(-1000_i32..1000, 1..80),
        step in prop::option::of(0_usize..80),
    ) {
        let values: Vec<f64> = values
            .iter()
            .enumerate()
            .map(|(at, value)| {
                f64::from(*value) + if step.is_some_and(|step| at >= step) { 4000.0 } else { 0.0 }
            })
            .collect();
        let search = ShiftSearch { permutations: 199, ..ShiftSearch::default() };
        let found = shifts(&values, &search).expect("a series");
        for shift in &found {
            prop_assert!(shift.earliest <= shift.at && shift.at <= shift.latest);
            prop_assert!(shift.values_before >= 3 && shift.values_after >= 3);
            prop_assert!(shift.earliest >= 1 && shift.latest < values.len());
            prop_assert!(shift.p_value <= search.level);
        }
        let scaled: Vec<f64> = values.iter().map(|value| value * 8.0).collect();
        let again = shifts(&scaled, &search).expect("a series");
        let at = |list: &[super::Shift]| list.iter().map(|shift| shift.at).collect::<Vec<_>>();
        prop_assert_eq!(at(&found), at(&again));
    }
}
