use proptest::prelude::*;

use super::*;
use crate::data::{
    Block, Bound, ClientSide, ErrorClass, ErrorCounts, Facts, Fraction, Latency, Limit,
    LoadIdentity, Metric, MetricVerdict, Policy, Rule, Session, Side, Verdict,
};

/// A repeatable wobble of unit variance or so, different for each seed.
fn wobble(seed: u32, index: u32) -> f64 {
    let mixed = u64::from(seed)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(u64::from(index).wrapping_mul(0xBF58_476D_1CE4_E5B9));
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed >> 40) as f64 / f64::from(1 << 24) - 0.5) * 3.4
}

fn block(side: Side, index: u32, throughput: f64, p99: f64) -> Block {
    Block {
        side,
        index,
        duration_ns: 2_000_000_000,
        batch: 1,
        requests: (throughput * 2.0).round() as u64,
        errors: ErrorCounts::default(),
        latency: Latency {
            p50: Some(p99 / 2.0),
            p90: Some(p99 * 0.8),
            p95: Some(p99 * 0.9),
            p99: Some(p99),
            p999: None,
            mean: Some(p99 / 2.0),
            max: Some(p99 * 2.0),
        },
        histogram: None,
        client: ClientSide::default(),
        server: None,
        gpu: None,
        steal: None,
        stated_throughput: None,
    }
}

/// Blocks around a level with noise between them.
pub(super) fn blocks(
    side: Side,
    seed: u32,
    count: u32,
    throughput: f64,
    p99: f64,
    noise: f64,
) -> Vec<Block> {
    (0..count)
        .map(|index| {
            block(
                side,
                index,
                throughput * (noise * wobble(seed, index)).exp(),
                p99 * (noise * wobble(seed + 1000, index)).exp(),
            )
        })
        .collect()
}

pub(super) fn session(id: u32, blocks: Vec<Block>) -> Session {
    Session {
        id: id.to_string(),
        recorded_at: format!("2026-01-{:02}T00:00:00Z", id % 28 + 1),
        commit: None,
        branch: None,
        dirty: None,
        tool_version: String::new(),
        scenario: "s".to_owned(),
        model: "m".to_owned(),
        model_version: "1".to_owned(),
        load: LoadIdentity {
            concurrency: Some(8),
            rate_milli: None,
            batch: 1,
            connections: 1,
            workers: 1,
            block_ns: 2_000_000_000,
            payload: String::new(),
            engine: 1,
        },
        environment: Facts::default(),
        subject: Facts::default(),
        subject_hash: String::new(),
        life: None,
        server_requests: None,
        epoch: 0,
        complete: true,
        blocks,
    }
}

/// Stored sessions with this spread between and within them.
pub(super) fn sessions(count: u32, between: f64, within: f64) -> Vec<Session> {
    (0..count)
        .map(|id| {
            let level = (between * wobble(77, id)).exp();
            session(
                id,
                blocks(
                    Side::Baseline,
                    id,
                    12,
                    5000.0 * level,
                    10_000.0 / level,
                    within,
                ),
            )
        })
        .collect()
}

pub(super) fn relative(metric: Metric, fraction: f64) -> Limit {
    Limit {
        metric,
        bound: Bound::Relative(Fraction::new(fraction)),
    }
}

fn absolute(metric: Metric, value: f64) -> Limit {
    Limit {
        metric,
        bound: Bound::Absolute(value),
    }
}

pub(super) fn design(limits: Vec<Limit>) -> Design {
    Design {
        gated: limits.len() as u32,
        limits,
        false_alarm: 0.01,
        missed_regression: 0.05,
        policy: Policy::Enforce,
        rule: Rule::Evidence,
        max_samples: 54,
        assumed_noise: (0.01, 0.03),
        suspicious_gain: 0.5,
        stage: Stage::Only,
    }
}

fn usual() -> Design {
    design(vec![
        relative(Metric::Throughput, 0.05),
        relative(Metric::P99, 0.10),
    ])
}

/// Feeds blocks from a long candidate until the gate is done.
fn decide(gate: &mut StoredGate, all: &[Block]) -> Decision {
    let mut have = 0;
    for _ in 0..100 {
        match gate.step(&all[..have]).expect("step") {
            Step::Done(decision) => return *decision,
            Step::Measure { blocks } => {
                assert!(blocks > 0);
                have += blocks as usize;
            }
        }
    }
    panic!("the gate never came to an end");
}

fn verdict_of(decision: &Decision, metric: Metric) -> MetricVerdict {
    decision
        .metrics
        .iter()
        .find(|m| m.metric == metric)
        .expect("metric")
        .verdict
}

#[test]
fn equal_candidates_pass_and_slow_ones_fail() {
    for (throughput, p99, expected) in [
        (5000.0, 10_000.0, Verdict::Pass),
        (4500.0, 10_000.0, Verdict::Regression),
        (5000.0, 13_000.0, Verdict::Regression),
        (5500.0, 9_000.0, Verdict::Pass),
    ] {
        let mut gate = StoredGate::new(usual(), &sessions(12, 0.003, 0.01)).expect("gate");
        let candidate = blocks(Side::Candidate, 500, 54, throughput, p99, 0.01);
        let decision = decide(&mut gate, &candidate);
        assert_eq!(
            decision.verdict, expected,
            "{throughput} {p99}: {decision:?}"
        );
        assert_eq!(decision.assumed_noise, None);
        assert_eq!(decision.reason.is_none(), expected == Verdict::Pass);
        assert!(decision.looks >= 1 && decision.blocks >= 12);
    }
}

#[test]
fn changes_and_intervals_keep_their_raw_sign() {
    let mut gate = StoredGate::new(usual(), &sessions(12, 0.003, 0.01)).expect("gate");
    let decision = decide(
        &mut gate,
        &blocks(Side::Candidate, 500, 54, 4500.0, 12_000.0, 0.01),
    );
    let throughput = &decision.metrics[0];
    let change = throughput.change.expect("change");
    assert!((-0.12..-0.08).contains(&change), "{change}");
    assert_eq!(throughput.threshold, Some(-0.05));
    let [low, high] = throughput.interval;
    let (low, high) = (low.expect("low"), high.expect("high"));
    assert!(
        low < change && change < high && high < 0.0,
        "{low} {change} {high}"
    );
    let [low_level, high_level] = throughput.level.expect("level");
    // For throughput the upper end speaks of a false alarm: it is the stricter.
    assert!(high_level < low_level);
    assert!(throughput.noise_floor.expect("floor") > 0.0);
    let shown = throughput.candidate.expect("candidate") / throughput.baseline.expect("base") - 1.0;
    assert!((shown - change).abs() < 1e-9);
    let p99 = &decision.metrics[1];
    assert!((0.15..0.25).contains(&p99.change.expect("change")));
    assert_eq!(p99.threshold, Some(0.10));
    assert!(p99.interval[0].expect("low") < p99.interval[1].expect("high"));
}

#[test]
fn an_improvement_passes_and_a_suspicious_one_is_flagged() {
    let stored = sessions(12, 0.003, 0.01);
    let mut gate = StoredGate::new(usual(), &stored).expect("gate");
    let decision = decide(
        &mut gate,
        &blocks(Side::Candidate, 500, 54, 10_000.0, 5_000.0, 0.01),
    );
    assert_eq!(decision.verdict, Verdict::Pass);
    assert_eq!(
        verdict_of(&decision, Metric::Throughput),
        MetricVerdict::Improvement
    );
    assert!(
        decision
            .flags
            .iter()
            .any(|flag| flag.code == "suspicious_gain")
    );
}

#[test]
fn few_sessions_say_that_noise_is_assumed() {
    for (count, expected) in [(1, "assumed"), (2, "assumed"), (3, "partly_assumed")] {
        let mut gate = StoredGate::new(usual(), &sessions(count, 0.003, 0.01)).expect("gate");
        let decision = decide(
            &mut gate,
            &blocks(Side::Candidate, 500, 54, 5000.0, 10_000.0, 0.01),
        );
        assert_eq!(decision.assumed_noise.as_deref(), Some(expected), "{count}");
        assert!(!decision.is_final_pass());
    }
}

#[test]
fn wide_sessions_end_early_and_say_what_is_missing() {
    let mut gate = StoredGate::new(usual(), &sessions(4, 0.08, 0.01)).expect("gate");
    let decision = decide(
        &mut gate,
        &blocks(Side::Candidate, 500, 54, 5000.0, 10_000.0, 0.01),
    );
    assert_eq!(decision.verdict, Verdict::Inconclusive);
    assert_eq!(decision.blocks, 12, "more blocks cannot help");
    let reason = decision.reason.expect("reason");
    assert_eq!(reason.code, "few_sessions");
    assert!(reason.next.contains("record"), "{}", reason.next);
    // Assumed noise of a hosted machine never passes a 5 % limit from one session.
    let wide = Design {
        assumed_noise: (0.07, 0.13),
        ..usual()
    };
    let mut gate = StoredGate::new(wide, &sessions(1, 0.003, 0.01)).expect("gate");
    let decision = decide(
        &mut gate,
        &blocks(Side::Candidate, 500, 54, 5000.0, 10_000.0, 0.01),
    );
    assert_eq!(decision.verdict, Verdict::Inconclusive);
}

#[test]
fn visits_of_one_life_are_one_session() {
    let mut stored = sessions(12, 0.003, 0.01);
    for one in &mut stored {
        one.life = Some("same".to_owned());
    }
    let gate = StoredGate::new(usual(), &stored).expect("gate");
    assert_eq!(gate.sessions(), 1);
    let mut gate = gate;
    let decision = decide(
        &mut gate,
        &blocks(Side::Candidate, 500, 54, 5000.0, 10_000.0, 0.01),
    );
    assert_eq!(decision.assumed_noise.as_deref(), Some("assumed"));
    assert!(
        decision
            .flags
            .iter()
            .any(|flag| flag.code == "sessions_merged")
    );
}

#[test]
fn a_block_without_completions_never_passes() {
    let mut candidate = blocks(Side::Candidate, 500, 54, 5000.0, 10_000.0, 0.01);
    candidate[3].requests = 0;
    candidate[3].latency = Latency::default();
    let mut gate = StoredGate::new(usual(), &sessions(12, 0.003, 0.01)).expect("gate");
    let decision = decide(&mut gate, &candidate);
    assert_eq!(decision.verdict, Verdict::Inconclusive);
    assert_eq!(decision.reason.expect("reason").code, "not_measured");
    assert!(
        decision.metrics[0]
            .note
            .as_deref()
            .is_some_and(|note| note.contains("block 3"))
    );
}

#[test]
fn an_unknown_metric_is_inconclusive_and_says_so() {
    let design = design(vec![
        relative(Metric::P999, 0.10),
        relative(Metric::Throughput, 0.05),
    ]);
    let mut gate = StoredGate::new(design, &sessions(12, 0.003, 0.01)).expect("gate");
    let decision = decide(
        &mut gate,
        &blocks(Side::Candidate, 500, 54, 5000.0, 10_000.0, 0.01),
    );
    assert_eq!(
        verdict_of(&decision, Metric::P999),
        MetricVerdict::Inconclusive
    );
    assert_eq!(
        verdict_of(&decision, Metric::Throughput),
        MetricVerdict::Pass
    );
    assert!(decision.metrics[0].note.is_some());
}

#[test]
fn a_percentile_of_too_few_requests_may_fail_but_never_pass() {
    // 20 requests a second: 40 in a block.
    let stored: Vec<Session> = (0..12)
        .map(|id| session(id, blocks(Side::Baseline, id, 12, 20.0, 10_000.0, 0.01)))
        .collect();
    let limits = vec![relative(Metric::P99, 0.10)];
    for (p99, expected) in [
        (10_000.0, Verdict::Inconclusive),
        (15_000.0, Verdict::Regression),
    ] {
        let mut gate = StoredGate::new(design(limits.clone()), &stored).expect("gate");
        let decision = decide(
            &mut gate,
            &blocks(Side::Candidate, 500, 54, 20.0, p99, 0.01),
        );
        assert_eq!(decision.verdict, expected);
        if expected == Verdict::Inconclusive {
            assert_eq!(decision.reason.expect("reason").code, "few_requests");
        }
    }
}

#[test]
fn server_means_of_one_stretch_count_once() {
    let means = |queue_us: f64| crate::data::ServerMeans {
        queue_us,
        compute_input_us: 1.0,
        compute_infer_us: 10.0,
        compute_output_us: 1.0,
        total_us: 20.0,
        executed_batch: None,
    };
    let mut all = blocks(Side::Candidate, 1, 6, 100.0, 1.0, 0.0);
    for (index, block) in all.iter_mut().enumerate() {
        block.server = Some(means(if index < 4 { 5.0 } else { 6.0 }));
    }
    assert_eq!(
        series::values(&all, Metric::ServerQueue),
        Ok(vec![5.0, 6.0])
    );
}

#[test]
fn the_point_rule_compares_medians_and_nothing_else() {
    for (throughput, p99, expected) in [
        (5000.0, 10_000.0, Verdict::Pass),
        (4800.0, 10_900.0, Verdict::Pass),
        (4700.0, 10_000.0, Verdict::Regression),
        (5000.0, 11_100.0, Verdict::Regression),
    ] {
        let design = Design {
            rule: Rule::Point,
            ..usual()
        };
        let stored = vec![session(
            0,
            blocks(Side::Baseline, 0, 3, 5000.0, 10_000.0, 0.0),
        )];
        let mut gate = StoredGate::new(design, &stored).expect("gate");
        assert_eq!(gate.looks(), [12]);
        let decision = decide(
            &mut gate,
            &blocks(Side::Candidate, 9, 54, throughput, p99, 0.0),
        );
        assert_eq!(decision.verdict, expected, "{throughput} {p99}");
        assert_eq!(decision.metrics[0].interval, [None, None]);
        assert_eq!(decision.assumed_noise, None);
    }
}

#[test]
fn absolute_limits_need_proof_in_either_direction() {
    for (limit, expected) in [
        (absolute(Metric::Throughput, 4000.0), Verdict::Pass),
        (absolute(Metric::Throughput, 6000.0), Verdict::Regression),
        (absolute(Metric::Throughput, 5000.0), Verdict::Inconclusive),
        (absolute(Metric::P99, 12_000.0), Verdict::Pass),
        (absolute(Metric::P99, 8_000.0), Verdict::Regression),
        (absolute(Metric::ErrorRate, 0.01), Verdict::Pass),
        (absolute(Metric::ErrorRate, 0.0), Verdict::Pass),
    ] {
        let mut gate = StoredGate::new(design(vec![limit]), &[]).expect("gate");
        let decision = decide(
            &mut gate,
            &blocks(Side::Candidate, 500, 54, 5000.0, 10_000.0, 0.01),
        );
        assert_eq!(decision.verdict, expected, "{limit:?}: {decision:?}");
    }
    let mut failing = blocks(Side::Candidate, 500, 54, 5000.0, 10_000.0, 0.01);
    failing[0].errors.add(ErrorClass::Timeout);
    let zero = design(vec![absolute(Metric::ErrorRate, 0.0)]);
    let mut gate = StoredGate::new(zero, &[]).expect("gate");
    assert_eq!(decide(&mut gate, &failing).verdict, Verdict::Regression);
}

#[test]
fn a_percentile_limit_is_proven_from_all_requests() {
    // 1000 requests in 12 blocks, all at 9 ms but the slowest 5 of a block at 20 ms.
    let with_tail = |slow: u64| -> Vec<Block> {
        let mut all = blocks(Side::Candidate, 1, 12, 500.0, 9_000.0, 0.001);
        for block in &mut all {
            let mut histogram = hdrhistogram::Histogram::new(3).expect("histogram");
            histogram.record_n(9_000_000, 1000 - slow).expect("record");
            histogram.record_n(20_000_000, slow).expect("record");
            block.histogram = Some(histogram);
        }
        all
    };
    for (slow, expected) in [(2, Verdict::Pass), (9, Verdict::Inconclusive)] {
        let limit = design(vec![absolute(Metric::P99, 10_000.0)]);
        let limit = Design {
            max_samples: 12,
            ..limit
        };
        let mut gate = StoredGate::new(limit, &[]).expect("gate");
        assert_eq!(
            decide(&mut gate, &with_tail(slow)).verdict,
            expected,
            "{slow} of 1000 slow"
        );
    }
}

#[test]
fn a_stored_stage_before_a_live_one_never_fails_and_spends_less() {
    let whole = usual();
    let first = whole.for_stage(Stage::StoredFirst);
    let second = whole.for_stage(Stage::LiveSecond);
    assert!((first.missed_regression - 0.015).abs() < 1e-12);
    assert!((second.missed_regression - 0.035).abs() < 1e-12);
    assert!((second.alpha() - whole.alpha()).abs() < 1e-12);
    let mut gate = StoredGate::new(first, &sessions(12, 0.003, 0.01)).expect("gate");
    let decision = decide(
        &mut gate,
        &blocks(Side::Candidate, 500, 54, 4000.0, 20_000.0, 0.01),
    );
    assert_eq!(decision.verdict, Verdict::Inconclusive);
    assert_eq!(decision.blocks, 12, "it cannot pass any more");
}

#[test]
fn time_that_ends_between_looks_gives_one_last_look() {
    let mut gate = StoredGate::new(usual(), &sessions(12, 0.003, 0.01)).expect("gate");
    let few = blocks(Side::Candidate, 500, 5, 4000.0, 10_000.0, 0.01);
    assert!(matches!(gate.step(&few), Ok(Step::Measure { .. })));
    assert_eq!(
        gate.finish(&few).expect("decision").verdict,
        Verdict::Regression
    );
    assert_eq!(gate.finish(&[]), Err(GateError::NoBlocks));
}

#[test]
fn bad_designs_are_refused() {
    let stored = sessions(1, 0.01, 0.01);
    for (design, expected) in [
        (design(vec![]), "no metric"),
        (
            design(vec![relative(Metric::Throughput, 1.0)]),
            "below 100%",
        ),
        (design(vec![relative(Metric::P99, 0.0)]), "above 0%"),
        (design(vec![relative(Metric::P99, f64::NAN)]), "above 0%"),
        (design(vec![absolute(Metric::P99, -1.0)]), "positive"),
        (
            design(vec![relative(Metric::P99, 0.1), relative(Metric::P99, 0.2)]),
            "two limits",
        ),
        (
            Design {
                false_alarm: 0.0,
                ..usual()
            },
            "false_alarm",
        ),
        (
            Design {
                missed_regression: 0.7,
                ..usual()
            },
            "missed_regression",
        ),
    ] {
        let error = StoredGate::new(design, &stored)
            .expect_err("refused")
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(
        StoredGate::new(usual(), &[]).expect_err("refused"),
        GateError::NoSessions
    );
}

#[test]
fn files_with_one_line_decide_only_under_an_assumption() {
    let base = [session(
        0,
        vec![block(Side::Candidate, 0, 5000.0, 10_000.0)],
    )];
    let same = [session(
        1,
        vec![block(Side::Candidate, 0, 5000.0, 10_000.0)],
    )];
    let half = [session(
        2,
        vec![block(Side::Candidate, 0, 2500.0, 20_000.0)],
    )];
    let hosted = Design {
        assumed_noise: (0.07, 0.13),
        ..usual()
    };
    assert_eq!(
        compare(&hosted, &base, &same).expect("decision").verdict,
        Verdict::Inconclusive
    );
    let decision = compare(&usual(), &base, &half).expect("decision");
    assert_eq!(decision.verdict, Verdict::Regression);
    assert_eq!(decision.assumed_noise.as_deref(), Some("assumed"));
    assert!(
        decision
            .flags
            .iter()
            .any(|flag| flag.code == "within_assumed")
    );
    let point = Design {
        rule: Rule::Point,
        ..usual()
    };
    assert_eq!(
        compare(&point, &base, &same).expect("decision").verdict,
        Verdict::Pass
    );
    assert_eq!(
        compare(&point, &base, &half).expect("decision").verdict,
        Verdict::Regression
    );
    assert_eq!(
        compare(&point, &base, &[]).expect_err("empty"),
        GateError::NoBlocks
    );
}

#[test]
fn files_with_both_sides_speak_for_their_candidate() {
    let mut both = blocks(Side::Baseline, 1, 12, 9000.0, 1_000.0, 0.01);
    both.extend(blocks(Side::Candidate, 2, 12, 5000.0, 10_000.0, 0.01));
    let base = [session(0, both)];
    let candidate = [session(
        1,
        blocks(Side::Candidate, 3, 12, 5000.0, 10_000.0, 0.01),
    )];
    let decision = compare(&usual(), &base, &candidate).expect("decision");
    let change = decision.metrics[0].change.expect("change");
    assert!(change.abs() < 0.02, "{change}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Slower by any factor is never judged better.
    #[test]
    fn worse_candidates_are_never_judged_better(
        seed in 0_u32..1000,
        change in 0.7_f64..1.2,
        worse in 1.0_f64..1.5,
        stored in 1_u32..14,
        noise in 0.001_f64..0.05,
    ) {
        let rank = |verdict: MetricVerdict| match verdict {
            MetricVerdict::Improvement => 0,
            MetricVerdict::Pass => 1,
            MetricVerdict::Inconclusive => 2,
            MetricVerdict::Regression => 3,
        };
        let base = sessions(stored, 0.01, noise);
        let judge = |scale: f64| {
            let candidate =
                blocks(Side::Candidate, seed, 20, 50_000.0 / scale, 10_000.0 * scale, noise);
            let one = [session(99, candidate)];
            compare(&usual(), &base, &one).expect("decision").metrics
        };
        for (before, after) in judge(change).iter().zip(judge(change * worse)) {
            prop_assert!(rank(after.verdict) >= rank(before.verdict));
        }
    }

    /// Units do not matter: microseconds or milliseconds give the same verdict.
    #[test]
    fn verdicts_do_not_depend_on_the_unit(seed in 0_u32..1000, scale in 0.01_f64..100.0) {
        let scaled = |unit: f64| {
            let base: Vec<Session> = (0..3)
                .map(|id| session(id, blocks(Side::Baseline, id, 12, 5000.0, 100.0 * unit, 0.02)))
                .collect();
            let candidate = [session(9, blocks(Side::Candidate, seed, 12, 5000.0, 104.0 * unit, 0.02))];
            let limits = design(vec![relative(Metric::P99, 0.10)]);
            compare(&limits, &base, &candidate).expect("decision").metrics.remove(0)
        };
        let (one, two) = (scaled(1.0), scaled(scale));
        prop_assert_eq!(one.verdict, two.verdict);
        let difference = one.change.expect("change") - two.change.expect("change");
        prop_assert!(difference.abs() < 1e-9);
    }
}

/// One block of a pair whose requests take `ms`, the slowest `slow` of them ten times that.
fn pair_block(side: Side, index: u32, ms: f64, slow: u64) -> Block {
    let mut histogram = hdrhistogram::Histogram::new(3).expect("histogram");
    histogram
        .record_n((ms * 1e6) as u64, 1000 - slow)
        .expect("record");
    histogram.record_n((ms * 1e7) as u64, slow).expect("record");
    let mut block = block(side, index, 500.0 / ms, 0.0);
    block.requests = 1000;
    block.duration_ns = (ms * 2e8) as u64;
    block.histogram = Some(histogram);
    block
}

fn unit(index: u32, base: (f64, u64), cand: (f64, u64)) -> Unit {
    let blocks = [
        pair_block(Side::Baseline, 0, base.0, base.1),
        pair_block(Side::Candidate, 0, cand.0, cand.1),
    ];
    Unit::pool(&blocks, index).expect("unit")
}

fn pair_plan(max_units: u32) -> PairPlan {
    PairPlan {
        block: std::time::Duration::from_secs(2),
        pairs_per_unit: 1,
        max_units,
        unit_seconds: 4.0,
        throughput_resolves: None,
        percentiles: Vec::new(),
        highest_in_reach: None,
    }
}

/// Steps a paired gate through units without a way to reload.
fn decide_units(design: Design, units: &[Unit]) -> Decision {
    let mut gate = PairedGate::new(design, &pair_plan(units.len() as u32), 1).expect("gate");
    let mut have = 0;
    for _ in 0..100 {
        match gate.step(&units[..have]).expect("step") {
            PairedStep::Measure { units } => have += units as usize,
            PairedStep::Confirm => {
                let decision = gate.confirm(false, &units[..have]).expect("confirm");
                return decision.expect("decision");
            }
            PairedStep::Done(decision) => return *decision,
        }
    }
    panic!("the gate never came to an end");
}

#[test]
fn units_hold_whole_pairs_only() {
    let blocks = [
        pair_block(Side::Baseline, 0, 1.0, 0),
        pair_block(Side::Candidate, 0, 2.0, 0),
        pair_block(Side::Candidate, 1, 2.0, 0),
        pair_block(Side::Baseline, 1, 1.0, 0),
        pair_block(Side::Baseline, 2, 9.0, 0),
    ];
    let unit = Unit::pool(&blocks, 7).expect("unit");
    assert_eq!(
        (unit.pairs, unit.baseline.requests, unit.baseline.index),
        (2, 2000, 7)
    );
    assert_eq!(unit.candidate.duration_ns, 800_000_000);
    let p99 = unit.candidate.latency.p99.expect("p99");
    assert!((p99 / 2000.0 - 1.0).abs() < 0.01, "microseconds: {p99}");
    assert!(Unit::pool(&blocks[4..], 0).is_none());
}

#[test]
fn live_units_decide_by_their_differences() {
    for (ms, expected) in [
        (1.0, Verdict::Pass),
        (1.2, Verdict::Regression),
        (0.8, Verdict::Pass),
    ] {
        let units: Vec<Unit> = (0..24)
            .map(|index| {
                let drift = 1.0 + 0.2 * f64::from(index) + 0.01 * wobble(3, index);
                unit(
                    index,
                    (drift, 5),
                    (drift * ms * (0.01 * wobble(4, index)).exp(), 5),
                )
            })
            .collect();
        let decision = decide_units(usual(), &units);
        assert_eq!(decision.verdict, expected, "{ms}: {decision:?}");
        assert!(decision.units >= 12 && decision.pairs == decision.units);
        let throughput = decision.metrics[0].change.expect("change");
        assert!((throughput - (1.0 / ms - 1.0)).abs() < 0.02, "{throughput}");
        let not_confirmed = decision
            .flags
            .iter()
            .any(|flag| flag.code == "not_confirmed");
        assert_eq!(not_confirmed, expected == Verdict::Regression);
    }
}

#[test]
fn a_tail_that_is_hidden_in_a_few_units_does_not_pass() {
    let units: Vec<Unit> = (0..90)
        .map(|index| unit(index, (1.0, 2), (1.0, if index % 6 == 0 { 100 } else { 2 })))
        .collect();
    let limits = design(vec![relative(Metric::P99, 0.10)]);
    let decision = decide_units(limits, &units);
    assert_eq!(decision.verdict, Verdict::Inconclusive);
    assert_eq!(decision.reason.expect("reason").code, "bursty_tail");
}

#[test]
fn the_order_of_pairs_is_a_fair_coin_that_the_seed_repeats() {
    let coins = |seed| {
        PairedGate::new(usual(), &pair_plan(54), seed)
            .expect("gate")
            .coins(1000)
    };
    assert_eq!(coins(1), coins(1));
    assert_ne!(coins(1), coins(2));
    let heads = coins(3).into_iter().filter(|first| *first).count();
    assert!((400..600).contains(&heads), "{heads}");
}

#[test]
fn the_pair_plan_follows_the_rate_and_the_budget() {
    use crate::data::Auto;
    use std::time::Duration;
    let figures = |rate: f64, ms: f64, overhead: u64| {
        let mut histogram = hdrhistogram::Histogram::<u64>::new(3).expect("histogram");
        for step in 0..100_u64 {
            histogram
                .record(((ms + ms * step as f64 / 1000.0) * 1e6) as u64)
                .expect("record");
        }
        SideFigures {
            request_rate: rate,
            histogram: Some(histogram),
            rate_spread: Some(0.02),
            overhead: Duration::from_millis(overhead),
        }
    };
    let plan = |side: &SideFigures, seconds: u64| {
        PairPlan::new(
            &usual(),
            [side, side],
            Auto::Auto,
            Duration::from_secs(seconds),
        )
        .expect("plan")
    };
    let fast = plan(&figures(4000.0, 1.0, 0), 270);
    assert_eq!(fast.block, Duration::from_millis(20));
    assert_eq!(fast.pairs_per_unit, 100);
    assert_eq!(fast.highest_in_reach, Some(Metric::P99));
    assert!(fast.percentiles[0].in_reach && fast.percentiles[0].resolves.is_some());
    assert!(
        fast.texts()
            .iter()
            .any(|text| text.contains("P99: this budget resolves"))
    );
    // 3.97 x 2 % x sqrt(2 / 135 s of load a side).
    let resolves = fast.throughput_resolves.expect("gated and known");
    assert!((resolves - 0.0096).abs() < 5e-4, "{resolves}");
    let slow_switch = plan(&figures(4000.0, 1.0, 100), 270);
    assert_eq!(slow_switch.block, Duration::from_millis(400));
    // 60 requests a second fit P99 into five minutes, 20 do not.
    assert!(plan(&figures(60.0, 100.0, 0), 300).percentiles[0].in_reach);
    let slow = plan(&figures(20.0, 100.0, 0), 300);
    assert!(!slow.percentiles[0].in_reach);
    assert_eq!(slow.highest_in_reach, Some(Metric::P95));
    assert!(slow.percentiles[0].text().contains("out of reach"));
    assert!(
        slow.texts()
            .iter()
            .any(|text| text.contains("the highest percentile in reach is P"))
    );
    assert!(slow.max_units >= 12, "throughput is decided all the same");
    let dead = plan(&figures(0.0, 100.0, 0), 300);
    assert_eq!(dead.highest_in_reach, None);
}

#[test]
fn a_live_percentile_of_too_few_requests_may_fail_but_never_pass() {
    for (ms, expected) in [
        (1.0, MetricVerdict::Inconclusive),
        (1.5, MetricVerdict::Regression),
    ] {
        let units: Vec<Unit> = (0..24)
            .map(|index| {
                let mut one = unit(index, (1.0, 5), (ms * (0.01 * wobble(4, index)).exp(), 5));
                one.baseline.requests = 40;
                one.candidate.requests = 40;
                one
            })
            .collect();
        let decision = decide_units(design(vec![relative(Metric::P99, 0.10)]), &units);
        assert_eq!(decision.metrics[0].verdict, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Slower by any factor is never judged better, nor does the order of the units matter where
    /// one look sees all of them.
    #[test]
    fn worse_candidates_are_never_judged_better_live(
        seed in 0_u32..1000,
        change in 0.8_f64..1.2,
        worse in 1.0_f64..1.5,
        noise in 0.001_f64..0.1,
    ) {
        let rank = |verdict: MetricVerdict| match verdict {
            MetricVerdict::Improvement => 0,
            MetricVerdict::Pass => 1,
            MetricVerdict::Inconclusive => 2,
            MetricVerdict::Regression => 3,
        };
        let judge = |scale: f64, reversed: bool| {
            let mut units: Vec<Unit> = (0..14)
                .map(|index| {
                    let wobbly = (noise * wobble(seed, index)).exp();
                    unit(index, (1.0, 5), (scale * wobbly, 5))
                })
                .collect();
            if reversed {
                units.reverse();
            }
            decide_units(usual(), &units).metrics
        };
        let before = judge(change, false);
        for (before, after) in before.iter().zip(judge(change * worse, false)) {
            prop_assert!(rank(after.verdict) >= rank(before.verdict));
        }
        for (one, other) in before.iter().zip(judge(change, true)) {
            prop_assert_eq!(one.verdict, other.verdict);
            prop_assert_eq!(one.interval, other.interval);
        }
    }
}
