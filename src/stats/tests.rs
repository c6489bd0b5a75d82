use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn golden() -> Value {
    serde_json::from_str(include_str!("../../tests/fixtures/statistics.json")).expect("JSON")
}

fn list(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("array")
        .iter()
        .map(|v| v.as_f64().expect("number"))
        .collect()
}

fn lists(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().expect("array").iter().map(list).collect()
}

fn entries<'a>(root: &'a Value, key: &str) -> Vec<&'a Value> {
    let found: Vec<&Value> = root[key].as_array().expect("array").iter().collect();
    assert!(!found.is_empty(), "no vectors under {key}");
    found
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("number")
}

#[track_caller]
fn close(found: f64, expected: f64, relative: f64) {
    let scale = expected.abs().max(1e-12);
    assert!(
        (found - expected).abs() <= relative * scale,
        "{found} is not {expected}"
    );
}

#[test]
fn hodges_lehmann_and_bounds_agree_with_the_reference() {
    let root = golden();
    for entry in entries(&root, "signed_rank_hl") {
        let rank = SignedRank::new(&list(&entry["d"])).expect("sample");
        let alpha = number(&entry["alpha"]);
        close(rank.estimate(), number(&entry["hl"]), 1e-9);
        for (found, key) in [
            (rank.lower(alpha).expect("level"), "lower"),
            (rank.upper(alpha).expect("level"), "upper"),
        ] {
            match (found, entry[key].as_f64()) {
                (Some(found), Some(expected)) => close(found, expected, 1e-9),
                (None, None) => {}
                other => panic!("{key}: {other:?}"),
            }
        }
    }
}

#[test]
fn the_null_distribution_agrees_with_the_reference() {
    let root = golden();
    for entry in entries(&root, "signed_rank_sf") {
        let n = entry["n"].as_u64().expect("n") as usize;
        let w = entry["w"].as_u64().expect("w") as usize;
        close(signed_rank_sf(n, w).expect("sf"), number(&entry["p"]), 1e-9);
    }
    // All mass lies on 0 ..= n(n+1)/2, also for the largest sample in use.
    for n in [1, 12, 240] {
        close(signed_rank_sf(n, 0).expect("sf"), 1.0, 1e-9);
        assert!(signed_rank_sf(n, n * (n + 1) / 2).expect("sf") > 0.0);
    }
}

#[test]
fn order_statistics_agree_with_the_reference() {
    let root = golden();
    for entry in entries(&root, "p99_order_ci") {
        let ranks = order_statistic_ranks(
            entry["n"].as_u64().expect("n"),
            number(&entry["p"]),
            number(&entry["conf"]),
        )
        .expect("ranks");
        assert_eq!(ranks, (entry["l"].as_u64(), entry["u"].as_u64()));
    }
    // Too few requests for an upper end at all.
    assert_eq!(
        order_statistic_ranks(100, 0.99, 0.95).expect("ranks").1,
        None
    );
}

#[test]
fn early_stopping_needs_the_known_numbers_of_requests() {
    let root = golden();
    let table = root["mlperf_early_stop_min_n"].as_object().expect("object");
    for (t, n) in table {
        let (t, n): (u64, u64) = (t.parse().expect("t"), n.as_u64().expect("n"));
        assert_eq!(early_stopping_rank(n, 0.99, 0.99).expect("rank"), Some(t));
        let before = early_stopping_rank(n - 1, 0.99, 0.99).expect("rank");
        assert_eq!(before.unwrap_or(0), t - 1);
    }
    for (p, n) in [(0.90, 64), (0.95, 130), (0.97, 219), (0.999, 6636)] {
        assert_eq!(
            early_stopping_rank(n, p, 0.99).expect("rank"),
            Some(1),
            "p {p}"
        );
        assert_eq!(
            early_stopping_rank(n - 1, p, 0.99).expect("rank"),
            None,
            "p {p}"
        );
    }
}

#[test]
fn t_quantiles_agree_with_the_reference() {
    let root = golden();
    for entry in entries(&root, "t_quantile") {
        let found = t_quantile(number(&entry["p"]), number(&entry["df"])).expect("t");
        close(found, number(&entry["t"]), 1e-8);
    }
    close(
        t_quantile(0.95, 1e9).expect("t"),
        normal_quantile(0.95).expect("z"),
        1e-7,
    );
}

#[test]
fn spending_agrees_with_the_reference() {
    let root = golden();
    let entry = &root["spending"];
    let sizes: Vec<u32> = list(&entry["looks"])
        .into_iter()
        .map(|n| n as u32)
        .collect();
    let looks = Looks::at(&sizes).expect("looks");
    let alpha = number(&entry["alpha"]) / number(&entry["k"]);
    let beta = number(&entry["beta"]);
    let (mut alpha_left, mut beta_left) = (alpha, beta);
    for (index, (a, b)) in list(&entry["alpha_j"])
        .into_iter()
        .zip(list(&entry["beta_j"]))
        .enumerate()
    {
        let rest = looks.rest(index, alpha, beta).expect("rest");
        close(rest.0, alpha_left, 1e-9);
        close(rest.1, beta_left, 1e-9);
        close(looks.alpha(index, alpha).expect("alpha"), a, 1e-9);
        close(looks.beta(index, beta).expect("beta"), b, 1e-9);
        alpha_left -= a;
        beta_left -= b;
    }
    assert!(looks.rest(sizes.len(), alpha, beta).expect("rest").0.abs() < 1e-15);
}

#[test]
fn looks_grow_by_half_up_to_the_budget() {
    for (first, last, expected) in [
        (12, 120, vec![12, 18, 27, 40, 60, 90, 120]),
        (12, 54, vec![12, 18, 27, 40, 54]),
        (12, 13, vec![13]),
        (12, 12, vec![12]),
        (12, 5, vec![5]),
        (12, 0, vec![1]),
    ] {
        assert_eq!(Looks::plan(first, last).sizes(), expected, "to {last}");
    }
    for (k, first) in [(2.0, 12), (4.0, 12), (10.0, 13), (20.0, 14), (40.0, 14)] {
        assert_eq!(
            first_paired_look(0.01 / k, 54).expect("look"),
            first,
            "k {k}"
        );
    }
}

#[test]
fn many_sessions_agree_with_the_reference() {
    let root = golden();
    let entry = &root["two_level"];
    let result = TwoLevel::new(&lists(&entry["baseline"]), &list(&entry["candidate"]), 0.01)
        .expect("two levels");
    close(result.baseline, number(&entry["mean_b"]), 1e-9);
    close(result.candidate, number(&entry["mean_c"]), 1e-9);
    close(result.variance, number(&entry["var"]), 1e-9);
    close(result.df, number(&entry["df"]), 1e-9);
    close(
        result.lower(0.005).expect("level").expect("bound"),
        number(&entry["lower_005"]),
        1e-7,
    );
    close(
        result.upper(0.05).expect("level").expect("bound"),
        number(&entry["upper_05"]),
        1e-7,
    );
    assert_eq!(result.assumed, Assumed::No);
}

#[test]
fn sessions_of_equal_length_use_the_variance_of_their_means() {
    let baseline: Vec<Vec<f64>> = (0..8)
        .map(|s| vec![f64::from(s), f64::from(s) + 2.0])
        .collect();
    let result = TwoLevel::new(&baseline, &[1.0, 9.0], 0.01).expect("two levels");
    // Means 1..=8, their variance 6.
    close(result.variance, 6.0 * (1.0 + 1.0 / 8.0), 1e-12);
    close(result.df, 7.0, 1e-12);
    close(result.estimate, 5.0 - 4.5, 1e-12);
}

#[test]
fn few_sessions_agree_with_the_reference() {
    let root = golden();
    for entry in entries(&root, "stored_few_sessions") {
        let baseline = lists(&entry["baseline"]);
        let result = TwoLevel::new(
            &baseline,
            &list(&entry["candidate"]),
            number(&entry["assumed_noise"]),
        )
        .expect("two levels");
        close(result.estimate, number(&entry["est"]), 1e-9);
        close(result.session_variance, number(&entry["s_d2"]), 1e-9);
        close(result.variance, number(&entry["var"]), 1e-9);
        close(result.df, number(&entry["df"]), 1e-9);
        let lower = result.lower(0.005).expect("level").expect("bound");
        let upper = result.upper(0.05).expect("level").expect("bound");
        close(lower, number(&entry["lower_005"]), 1e-7);
        close(upper, number(&entry["upper_05"]), 1e-7);
        let expected = if baseline.len() < 3 {
            Assumed::Yes
        } else {
            Assumed::Partly
        };
        assert_eq!(result.assumed, expected);
        assert_eq!(
            result.raised_by_drift,
            number(&entry["drift"]) > number(&entry["assumed_noise"]).powi(2)
        );
    }
}

#[test]
fn single_blocks_assume_their_noise_instead_of_claiming_none() {
    let result = TwoLevel::new(&[vec![0.0]], &[0.1], 0.01).expect("two levels");
    assert!(result.within_assumed);
    close(result.variance, 4.0 * 0.01 * 0.01, 1e-9);
    assert!(result.lower(0.005).expect("level").expect("bound") > 0.0);
    let candidate_known = TwoLevel::new(&[vec![0.0]], &[0.1, 0.2, 0.15], 0.01).expect("levels");
    assert!(!candidate_known.within_assumed);
}

#[test]
fn sessions_needed_follow_the_spread() {
    // 5 % of throughput at two metrics and 1 % between sessions: about a dozen.
    let needed = sessions_needed(0.01, 0.0513, 0.005, 0.05)
        .expect("levels")
        .expect("finite");
    assert!((10..=15).contains(&needed), "{needed}");
    assert_eq!(
        sessions_needed(0.03, 0.0513, 0.005, 0.05).expect("levels"),
        None
    );
}

#[test]
fn quantiles_of_type_eight_agree_with_the_reference() {
    let root = golden();
    for entry in entries(&root, "quantile_type8") {
        let samples = list(&entry["x"]);
        for (p, expected) in entry["quantiles"].as_object().expect("object") {
            let p: f64 = p.parse().expect("p");
            close(
                quantile(&samples, p).expect("quantile"),
                number(expected),
                1e-9,
            );
        }
    }
}

#[test]
fn a_histogram_gives_the_quantile_of_its_counts() {
    let mut histogram = hdrhistogram::Histogram::<u64>::new(3).expect("histogram");
    for value in 1..=1000 {
        histogram.record(value).expect("record");
    }
    let samples: Vec<f64> = (1..=1000).map(f64::from).collect();
    let expected = quantile(&samples, 0.5).expect("quantile");
    close(
        histogram_quantile(&histogram, 0.5).expect("quantile"),
        expected,
        1e-12,
    );
    assert_eq!(rank_value(&histogram, 10), Some(10.0));
    assert_eq!(rank_value(&histogram, 1001), None);
    assert_eq!(rank_value(&histogram, 0), None);
}

#[test]
fn warm_up_ends_where_the_level_is_reached() {
    let mut values = vec![2.0; 20];
    values.extend((0..80).map(|i| 1.0 + 0.01 * f64::from(i % 5)));
    assert_eq!(
        mser5(&values).expect("cut"),
        WarmUpCut {
            discard: 20,
            settled: true
        }
    );
    let flat = vec![1.0; 40];
    assert_eq!(
        mser5(&flat).expect("cut"),
        WarmUpCut {
            discard: 0,
            settled: true
        }
    );
    let moving: Vec<f64> = (0..60).map(f64::from).collect();
    assert!(!mser5(&moving).expect("cut").settled);
    assert!(mser5(&values[..19]).is_err());
}

#[test]
fn the_tail_guard_needs_an_excess_in_more_than_one_unit() {
    let one = tail_guard(&[0.0, 0.0, 0.3, 0.0], 1.0).expect("guard");
    assert!(!one.blocks_pass(0.0953));
    let many = tail_guard(&[0.1, 0.1, 0.1, 0.1], 1.0).expect("guard");
    assert!(many.blocks_pass(0.0953));
    assert!(
        !tail_guard(&[0.1; 4], 0.05)
            .expect("guard")
            .blocks_pass(0.0953)
    );
    assert!(
        !tail_guard(&[0.0; 4], 1.0)
            .expect("guard")
            .blocks_pass(0.0953)
    );
}

#[test]
fn the_plan_reproduces_the_table_of_log_normals() {
    // s1 of a log-normal of sigma .25 is .93 by its density; the difference quotient is wider.
    let spread =
        tail_spread(0.99, |p| normal_quantile(p).map(|z| (0.25 * z).exp())).expect("spread");
    close(spread, 0.93, 0.1);
    let needed = requests_needed(0.93, 0.10_f64.ln_1p(), 1.0).expect("needed");
    close(needed as f64, 3000.0, 0.01);
    assert_eq!(pairs_needed(0.05, 0.05).expect("pairs"), 11);
    close(noise_floor_rise(0.1), 0.1_f64.exp() - 1.0, 1e-12);
    close(noise_floor_fall(0.1), 1.0 - (-0.1_f64).exp(), 1e-12);
}

#[test]
fn outliers_stand_out_from_the_median() {
    assert_eq!(
        mad_outliers(&[1.0, 1.1, 0.9, 1.05, 9.0], 5.0).expect("outliers"),
        [4]
    );
    assert!(mad_outliers(&[1.0; 5], 5.0).expect("outliers").is_empty());
}

#[test]
fn bad_numbers_are_errors() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(SignedRank::new(&[0.1, bad]).is_err());
        assert!(quantile(&[1.0, bad], 0.5).is_err());
        assert!(TwoLevel::new(&[vec![0.0, bad]], &[0.0], 0.01).is_err());
        assert!(TwoLevel::new(&[vec![0.0]], &[bad], 0.01).is_err());
        assert!(TwoLevel::new(&[vec![0.0]], &[0.0], bad).is_err());
        assert!(mean(&[bad]).is_err());
        assert!(mser5(&[bad; 40]).is_err());
        assert!(t_quantile(bad, 3.0).is_err());
        assert!(t_quantile(0.9, bad).is_err());
        assert!(quantile(&[1.0], bad).is_err());
        assert!(Looks::plan(12, 54).alpha(0, bad).is_err());
        assert!(tail_guard(&[bad], 0.0).is_err());
    }
    assert!(SignedRank::new(&[]).is_err());
    assert!(quantile(&[], 0.5).is_err());
    assert!(TwoLevel::new(&[], &[0.0], 0.01).is_err());
    assert!(TwoLevel::new(&[vec![]], &[0.0], 0.01).is_err());
    assert!(TwoLevel::new(&[vec![0.0]], &[], 0.01).is_err());
    assert!(variance(&[1.0]).is_err());
    assert!(Looks::at(&[12, 12]).is_err());
}

proptest! {
    #[test]
    fn bounds_enclose_the_estimate_whatever_the_order(
        mut d in prop::collection::vec(-0.5_f64..0.5, 12..60),
        shift in -0.5_f64..0.5,
    ) {
        let rank = SignedRank::new(&d).expect("sample");
        let lower = rank.lower(0.005).expect("level").expect("bound");
        let upper = rank.upper(0.05).expect("level").expect("bound");
        prop_assert!(lower <= rank.estimate() && rank.estimate() <= upper);
        // A wider level gives a tighter bound.
        prop_assert!(rank.lower(0.05).expect("level").expect("bound") >= lower);
        // Shifting the sample shifts everything.
        d.reverse();
        let shifted: Vec<f64> = d.iter().map(|v| v + shift).collect();
        let moved = SignedRank::new(&shifted).expect("sample");
        prop_assert!((moved.estimate() - rank.estimate() - shift).abs() < 1e-9);
        let moved_lower = moved.lower(0.005).expect("level").expect("bound");
        prop_assert!((moved_lower - lower - shift).abs() < 1e-9);
    }

    #[test]
    fn ties_and_zeros_never_prove_anything(n in 1_usize..100, zeros in 0_usize..100) {
        let mut d = vec![0.0; zeros.min(n)];
        d.resize(n, 0.1);
        let rank = SignedRank::new(&d).expect("sample");
        if zeros >= n {
            prop_assert!(rank.lower(0.05).expect("level").is_none_or(|bound| bound <= 0.0));
        }
        prop_assert!(rank.estimate().is_finite());
    }

    #[test]
    fn quantiles_are_monotone_and_within_the_sample(
        samples in prop::collection::vec(1.0_f64..1e6, 1..300),
        p in 0.001_f64..0.999,
        q in 0.001_f64..0.999,
    ) {
        let (low, high) = (p.min(q), p.max(q));
        let one = quantile(&samples, low).expect("quantile");
        let two = quantile(&samples, high).expect("quantile");
        prop_assert!(one <= two);
        let max = samples.iter().copied().fold(f64::MIN, f64::max);
        let min = samples.iter().copied().fold(f64::MAX, f64::min);
        prop_assert!(min <= one && two <= max);
    }

    #[test]
    fn two_levels_follow_shifts_and_widen_with_the_assumption(
        sessions in 1_usize..12,
        blocks in 1_usize..10,
        candidate in 1_usize..20,
        seed in prop::collection::vec(-0.05_f64..0.05, 240),
        shift in -1.0_f64..1.0,
    ) {
        let baseline: Vec<Vec<f64>> =
            (0..sessions).map(|s| seed[s * blocks..(s + 1) * blocks].to_vec()).collect();
        let series = seed[200..200 + candidate].to_vec();
        let one = TwoLevel::new(&baseline, &series, 0.01).expect("two levels");
        prop_assert!(one.variance >= 0.0 && one.df > 0.0);
        prop_assert!((0.0..=1.0).contains(&one.session_share));
        let shifted: Vec<f64> = series.iter().map(|v| v + shift).collect();
        let two = TwoLevel::new(&baseline, &shifted, 0.01).expect("two levels");
        prop_assert!((two.estimate - one.estimate - shift).abs() < 1e-9);
        prop_assert!((two.variance - one.variance).abs() < 1e-9);
        let wide = TwoLevel::new(&baseline, &series, 0.1).expect("two levels");
        prop_assert!(wide.variance >= one.variance - 1e-12);
    }

    #[test]
    fn looks_ascend_and_spend_everything(first in 1_u32..20, last in 1_u32..500) {
        let looks = Looks::plan(first, last);
        prop_assert!(looks.sizes().windows(2).all(|two| two[0] < two[1]));
        prop_assert_eq!(looks.last(), last);
        let spent: f64 = (0..looks.sizes().len())
            .map(|index| looks.alpha(index, 0.005).expect("alpha"))
            .sum();
        prop_assert!((spent - 0.005).abs() < 1e-12);
    }
}

#[test]
fn the_tail_of_f_agrees_with_its_tables() {
    // Critical values at 5 %.
    for (ratio, above, below) in [(4.2565, 2.0, 9.0), (2.7109, 5.0, 20.0), (4.9646, 1.0, 10.0)] {
        let tail = f_tail(ratio, above, below).expect("a probability");
        assert!((tail - 0.05).abs() < 1e-4, "{ratio}: {tail}");
    }
    assert!((f_tail(0.0, 2.0, 9.0).expect("a probability") - 1.0).abs() < 1e-12);
    assert!(f_tail(1.0, 0.0, 9.0).is_err());
}
