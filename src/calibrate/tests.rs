//! The pure part by tables, the recording in virtual time.

use std::time::Duration;

use super::record::LengthRecord;
use super::*;
use crate::data::{
    Auto, Block, Bound, ClientSide, ErrorCounts, Fraction, Latency, Limit, Metric, Policy, Rule,
    Side,
};
use crate::gate::{Design, PairPlan, SideFigures, Stage, Unit};
use crate::run::virtual_lab::{Effect, VirtualLab, World};
use crate::run::{Ended, Lab, LabError, MeasurePlan, Measured, WarmUp};

fn design() -> Design {
    let relative = |metric, fraction| Limit {
        metric,
        bound: Bound::Relative(Fraction::new(fraction)),
    };
    Design {
        limits: vec![
            relative(Metric::Throughput, 0.05),
            relative(Metric::P99, 0.10),
        ],
        gated: 2,
        false_alarm: 0.01,
        missed_regression: 0.05,
        policy: Policy::Enforce,
        rule: Rule::Evidence,
        max_samples: 54,
        assumed_noise: (0.01, 0.03),
        suspicious_gain: 0.25,
        stage: Stage::Only,
    }
}

fn throughput_alone(drop: f64) -> Design {
    Design {
        limits: vec![Limit {
            metric: Metric::Throughput,
            bound: Bound::Relative(Fraction::new(drop)),
        }],
        ..design()
    }
}

fn plan(block_ms: u64, max_units: u32) -> PairPlan {
    PairPlan {
        block: Duration::from_millis(block_ms),
        pairs_per_unit: 10,
        max_units,
        unit_seconds: 4.0,
        throughput_resolves: None,
        percentiles: Vec::new(),
        highest_in_reach: None,
    }
}

/// A block of 2 s in which a request takes this long.
fn block(side: Side, latency_us: f64) -> Block {
    Block {
        side,
        index: 0,
        duration_ns: 2_000_000_000,
        batch: 1,
        requests: (8e6 / latency_us) as u64,
        errors: ErrorCounts::default(),
        latency: Latency {
            mean: Some(latency_us),
            p99: Some(2.0 * latency_us),
            ..Latency::default()
        },
        histogram: None,
        client: ClientSide::default(),
        server: None,
        gpu: None,
        steal: None,
        stated_throughput: None,
    }
}

fn unit(baseline_us: f64, candidate_us: f64) -> Unit {
    Unit {
        pairs: 10,
        baseline: block(Side::Baseline, baseline_us),
        candidate: block(Side::Candidate, candidate_us),
    }
}

fn recorded(unit: Unit, turn: u32, load: u32) -> Recorded {
    Recorded {
        unit,
        turn,
        load,
        seconds: 4.0,
    }
}

fn record_of(block_ms: u64, units: Vec<Recorded>) -> LengthRecord {
    LengthRecord {
        plan: plan(block_ms, 16),
        chosen: block_ms == 100,
        units,
    }
}

/// Steady values around 0 with this size, without a period.
fn wobble(index: u32, size: f64) -> f64 {
    let mixed = u64::from(index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (((mixed >> 33) % 1000) as f64 / 500.0 - 1.0) * size
}

fn figures(median_ms: u64, rate: f64) -> SideFigures {
    let mut histogram = hdrhistogram::Histogram::new(3).expect("three digits");
    histogram
        .record_n(median_ms * 1_000_000, 1000)
        .expect("in range");
    SideFigures {
        request_rate: rate,
        histogram: Some(histogram),
        rate_spread: None,
        overhead: Duration::from_millis(median_ms),
    }
}

#[test]
fn lengths_suit_the_model_and_the_time() {
    let budget = Duration::from_mins(5);
    let lengths = |median_ms, rate, block| -> Vec<(u128, bool)> {
        let side = figures(median_ms, rate);
        block_lengths(&design(), [&side, &side], block, budget)
            .expect("lengths")
            .into_iter()
            .map(|one| (one.plan.block.as_millis(), one.chosen))
            .collect()
    };
    // The tool's own choice for 1 ms is 20 ms or a little more, which stands for the shortest.
    let quick = lengths(1, 4000.0, Auto::Auto);
    assert_eq!(quick.len(), 4, "{quick:?}");
    assert_eq!(quick.iter().filter(|(_, chosen)| *chosen).count(), 1);
    // A model of 300 ms: nothing shorter than 900 ms but what a check would take.
    let slow = lengths(300, 26.0, Auto::Auto);
    assert!(slow.iter().all(|(ms, _)| *ms >= 900), "{slow:?}");
    // A length that the thresholds fix is among them, once.
    let fixed = lengths(1, 4000.0, Auto::Fixed(Duration::from_millis(110)));
    assert_eq!(
        fixed,
        [(20, false), (110, true), (500, false), (2000, false)]
    );
    // Less time, fewer lengths; the chosen one stays, and after it the one farthest from it.
    let side = figures(1, 4000.0);
    let all = block_lengths(
        &design(),
        [&side, &side],
        Auto::Fixed(Duration::from_millis(100)),
        budget,
    )
    .expect("lengths");
    let kept = |seconds| -> Vec<u128> {
        fitting(
            all.clone(),
            Duration::from_secs(seconds),
            Duration::from_secs(2),
        )
        .iter()
        .map(|one| one.plan.block.as_millis())
        .collect()
    };
    assert_eq!(kept(600), [20, 100, 500, 2000]);
    assert_eq!(kept(1), [100]);
    assert!(kept(100).len() < 4 && kept(100).contains(&100));
}

#[test]
fn noise_is_the_spread_of_differences_and_not_of_levels() {
    // Levels drift by half, the sides stay apart by a constant 1 %: no noise at all.
    let steady: Vec<Recorded> = (0..20)
        .map(|turn| {
            let level = 1000.0 * (1.0 + f64::from(turn) / 40.0);
            recorded(unit(level, level * 1.01), turn, 0)
        })
        .collect();
    let found = noise(&design(), &record_of(100, steady)).expect("noise");
    let p99 = found.metrics.iter().find(|one| one.metric == Metric::P99);
    let p99 = p99.expect("P99 was measured");
    assert!(p99.unit_sd < 1e-9, "{p99:?}");
    assert!((p99.mean_change - 0.01).abs() < 1e-9, "{p99:?}");
    // Differences of +-2 %: sd near .02, and a quarter of it over 16 units.
    let noisy: Vec<Recorded> = (0..20)
        .map(|turn| {
            let sign = if turn % 2 == 0 { 0.02_f64 } else { -0.02 };
            recorded(unit(1000.0, 1000.0 * sign.exp()), turn, 0)
        })
        .collect();
    let found = noise(&design(), &record_of(100, noisy)).expect("noise");
    let p99 = found.metrics.iter().find(|one| one.metric == Metric::P99);
    let p99 = p99.expect("P99 was measured");
    assert!((p99.unit_sd - 0.0205).abs() < 0.0005, "{p99:?}");
    assert!((p99.check_se - p99.unit_sd / 4.0).abs() < 1e-12);
    // z(.995) + z(.95) = 4.22 standard errors.
    assert!((p99.noise_floor.ln_1p() / p99.check_se - 4.22).abs() < 0.01);
}

#[test]
fn the_best_length_is_the_one_that_decides_soonest() {
    let of = |block_ms: u64, sd: f64| {
        let units = (0..40)
            .map(|turn| {
                let change = wobble(turn, sd * 1.7);
                recorded(unit(1000.0, 1000.0 * change.exp()), turn, 0)
            })
            .collect();
        noise(&design(), &record_of(block_ms, units)).expect("noise")
    };
    let any = |_: &LengthNoise| true;
    let lengths = [of(20, 0.01), of(100, 0.02), of(2000, 0.05)];
    assert_eq!(best_length(&design(), &lengths, &any), Some(0));
    // Nearly as good is as good where a check uses it already.
    let near = [of(20, 0.0195), of(100, 0.02)];
    assert_eq!(best_length(&design(), &near, &any), Some(1));
    // What does not measure the same thing does not count.
    let long = |length: &LengthNoise| length.block_ms > 50.0;
    assert_eq!(best_length(&design(), &lengths, &long), Some(1));
    assert_eq!(best_length(&design(), &[], &any), None);
}

#[test]
fn the_spread_of_loads_is_told_from_noise_within_them() {
    let recording = |spread: f64| {
        let units = (0..60)
            .map(|turn| {
                let load = turn / 10;
                let offset = if load % 2 == 0 { spread } else { -spread };
                let level = 1000.0 * (offset + wobble(turn, 0.01)).exp();
                recorded(unit(level, level), turn, load)
            })
            .collect();
        Recording {
            lengths: vec![record_of(100, units)],
            loads: 6,
            ..Recording::default()
        }
    };
    let p99 = |spread: f64| {
        let spreads = spread_of_loads(&design(), &recording(spread)).expect("spreads");
        spreads
            .into_iter()
            .find(|one| one.metric == Metric::P99)
            .expect("P99")
    };
    let wide = p99(0.05);
    // Six loads at +-5 %: sd sqrt(6/5) x 5 %.
    assert!((wide.sd - 0.0548).abs() < 0.002, "{wide:?}");
    assert!(wide.certain && wide.too_large());
    let none = p99(0.0);
    assert!(none.sd < 0.004 && !none.certain, "{none:?}");
    // ln(1.1) / (2.33 sqrt 2)
    assert!((none.bearable - 0.02892).abs() < 1e-4);
    let one_load = Recording {
        lengths: vec![record_of(
            100,
            (0..9)
                .map(|turn| recorded(unit(1000.0, 1000.0), turn, 0))
                .collect(),
        )],
        ..Recording::default()
    };
    assert!(
        spread_of_loads(&design(), &one_load)
            .expect("spreads")
            .is_empty()
    );
}

#[test]
fn short_blocks_that_measure_something_else_are_found() {
    let recording = |shift: f64| Recording {
        lengths: vec![record_of(
            100,
            (0..20)
                .map(|turn| {
                    let level = 1000.0 * (shift + wobble(turn, 0.01)).exp();
                    recorded(unit(level, level), turn, 0)
                })
                .collect(),
        )],
        alone: (0..20)
            .map(|turn| (turn, block(Side::Candidate, 1000.0)))
            .collect(),
        ..Recording::default()
    };
    for (shift, agrees) in [(0.0, true), (0.01, true), (0.08, false), (-0.08, false)] {
        let found = agreement(&design(), &recording(shift)).expect("agreement");
        assert_eq!(found.len(), 2, "mean latency and P99");
        for one in &found {
            assert_eq!(one.agrees, agrees, "{shift}: {one:?}");
            assert!((one.change.ln_1p() - shift).abs() < 0.01, "{one:?}");
        }
    }
}

#[test]
fn resampled_checks_of_identical_sides_pass_where_the_noise_allows() {
    let units: Vec<Unit> = (0..60)
        .map(|turn| unit(1000.0, 1000.0 * wobble(turn, 0.01).exp()))
        .collect();
    let units: Vec<&Unit> = units.iter().collect();
    let how = Resampling {
        checks: 200,
        seed: 7,
        swap: true,
    };
    let quiet = resample(&throughput_alone(0.05), &plan(100, 54), &units, how).expect("rates");
    assert!(quiet.regression < 0.03 && quiet.pass > 0.95, "{quiet:?}");
    assert!((quiet.regression + quiet.pass + quiet.inconclusive - 1.0).abs() < 1e-9);
    assert!((quiet.stretches - 60.0 / 54.0).abs() < 1e-9);
    assert!(quiet.mean_seconds >= 12.0 * 4.0);
    // Twenty times the noise decides nothing, and still accuses nobody.
    let rough: Vec<Unit> = (0..60)
        .map(|turn| unit(1000.0, 1000.0 * wobble(turn, 0.6).exp()))
        .collect();
    let rough: Vec<&Unit> = rough.iter().collect();
    let rough = resample(&throughput_alone(0.05), &plan(100, 54), &rough, how).expect("rates");
    assert!(
        rough.inconclusive > 0.7 && rough.regression < 0.03,
        "{rough:?}"
    );
    // The same seed gives the same figures.
    let again = resample(&throughput_alone(0.05), &plan(100, 54), &units, how).expect("rates");
    assert_eq!(quiet, again);
    assert!(resample(&throughput_alone(0.05), &plan(100, 54), &[], how).is_err());
}

#[test]
fn a_slowed_side_is_found_where_labels_stay() {
    let units: Vec<Unit> = (0..60)
        .map(|turn| unit(1000.0, 1090.0 * wobble(turn, 0.01).exp()))
        .collect();
    let units: Vec<&Unit> = units.iter().collect();
    let how = |swap| Resampling {
        checks: 100,
        seed: 7,
        swap,
    };
    let kept = resample(&throughput_alone(0.05), &plan(100, 54), &units, how(false));
    assert!(kept.expect("rates").regression > 0.99);
    let swapped = resample(&throughput_alone(0.05), &plan(100, 54), &units, how(true));
    assert!(swapped.expect("rates").regression < 0.05);
}

#[test]
fn honest_limits_grow_with_the_noise() {
    let limit = |size: f64, loads: &[LoadSpread]| {
        let recorded: Vec<Recorded> = (0..60)
            .map(|turn| {
                let change = wobble(turn, size);
                recorded(unit(1000.0, 1000.0 * change.exp()), turn, 0)
            })
            .collect();
        let record = record_of(100, recorded);
        let found = noise(&design(), &record).expect("noise");
        let units: Vec<&Unit> = record.units.iter().map(|one| &one.unit).collect();
        honest_limits(
            &throughput_alone(0.05),
            &record.plan,
            &units,
            &found,
            loads,
            Resampling {
                checks: 200,
                seed: 3,
                swap: true,
            },
        )
        .expect("limits")
        .remove(0)
    };
    let quiet = limit(0.01, &[]).honest.expect("a limit");
    let rough = limit(0.1, &[]).honest.expect("a limit");
    assert!(quiet <= 0.02 && rough > 2.0 * quiet, "{quiet} {rough}");
    // Loads that differ by 2 % do not allow less than 2.33 sqrt 2 times that.
    let spread = LoadSpread {
        metric: Metric::Throughput,
        sd: 0.02,
        certain: true,
        bearable: 0.0156,
    };
    let kept = limit(0.01, &[spread]).honest.expect("a limit");
    assert!(kept >= 0.064, "{kept}");
    assert_eq!(limit(3.0, &[]).honest, None, "no limit holds");
}

fn lengths_of(lab: &mut dyn Lab) -> Vec<LengthPlan> {
    let figures = |warm: WarmUp| SideFigures {
        request_rate: warm.request_rate,
        histogram: warm.histogram,
        rate_spread: warm.rate_spread,
        overhead: warm.overhead,
    };
    let baseline = figures(lab.warm_up(Side::Baseline).expect("warm"));
    let candidate = figures(lab.warm_up(Side::Candidate).expect("warm"));
    block_lengths(
        &design(),
        [&baseline, &candidate],
        Auto::Auto,
        Duration::from_secs(280),
    )
    .expect("lengths")
}

#[test]
fn a_virtual_server_is_calibrated_from_end_to_end() {
    let mut lab = VirtualLab::new(World::QUIET, Effect::NONE, 11).gap(Duration::from_millis(20));
    let lengths = lengths_of(&mut lab);
    let mut recording = Recording::default();
    let plan = RecordPlan {
        lengths,
        alone: 1,
        until: Duration::from_secs(400),
        loads: 6,
        seed: 1,
    };
    let mut loads = Vec::new();
    record(&mut lab, &plan, &mut recording, &mut |load, _| {
        loads.push(load);
    })
    .expect("recorded");
    assert_eq!(loads, [1, 2, 3, 4, 5, 6]);
    assert!(recording.reloadable && recording.loads == 6);
    let turns = recording.alone.len();
    for length in &recording.lengths {
        assert!(length.units.len().abs_diff(turns) <= 1);
    }
    let compared = compare_lengths(&design(), &recording).expect("a comparison");
    assert!(
        compared.agreement.iter().all(|one| one.agrees),
        "{compared:?}"
    );
    let mut calibrated = calibrated();
    summarise(
        &design(),
        &recording,
        compared.best,
        100,
        5,
        Duration::from_mins(5),
        &mut calibrated,
    )
    .expect("a summary");
    let rates = calibrated.rates.expect("rates");
    assert!(rates.regression <= 0.03 && rates.pass > 0.8, "{rates:?}");
    assert_eq!(calibrated.loads.len(), 2);
    assert!(calibrated.loads.iter().all(|load| !load.too_large()));
    // What is to be pasted is a valid piece of a thresholds file.
    let file = format!(
        "schema = 1\n[[scenario]]\nname = \"a\"\nmodel = \"m\"\n{}",
        calibrated.toml
    );
    let parsed: toml::Table = file.parse().expect("TOML");
    assert!(parsed["scenario"][0]["gate"]["budget"].is_str());
    let page = text(
        &Calibration {
            schema: CALIBRATION_SCHEMA,
            tool: crate::data::Tool {
                version: "0".to_owned(),
                commit: String::new(),
            },
            command: "calibrate".to_owned(),
            exit_code: 0,
            started_at: String::new(),
            environment_name: "test".to_owned(),
            scenarios: vec![calibrated],
        },
        crate::report::Style::default(),
    );
    for words in ["false alarm", "noise floor", "best", "throughput_drop = \""] {
        assert!(page.contains(words), "{words:?} is missing:\n{page}");
    }
}

fn calibrated() -> Calibrated {
    Calibrated {
        name: "a".to_owned(),
        model: "m".to_owned(),
        model_version: "1".to_owned(),
        load: "concurrency 8, batch 1".to_owned(),
        budget_seconds: 300.0,
        seconds: 400.0,
        complete: true,
        reason: None,
        lengths: Vec::new(),
        best_block_ms: None,
        agreement: Vec::new(),
        loads: Vec::new(),
        loads_seen: 0,
        rates: None,
        advice: Vec::new(),
        toml: String::new(),
        flags: Vec::new(),
    }
}

/// A lab that cannot reload, and is interrupted after some time.
struct Fixed {
    inner: VirtualLab,
    end: Duration,
}

impl Lab for Fixed {
    fn warm_up(&mut self, side: Side) -> Result<WarmUp, LabError> {
        self.inner.warm_up(side)
    }

    fn measure(&mut self, plan: &MeasurePlan) -> Result<Measured, LabError> {
        let mut measured = self.inner.measure(plan)?;
        if self.inner.now() > self.end {
            measured.ended = Ended::Interrupted;
        }
        Ok(measured)
    }

    fn set_block(&mut self, block: Duration) {
        self.inner.set_block(block);
    }

    fn reload(&mut self, _: Side) -> Result<bool, LabError> {
        Ok(false)
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }
}

#[test]
fn without_reloads_and_after_an_interruption_what_was_measured_stays() {
    let mut lab = Fixed {
        inner: VirtualLab::new(World::QUIET, Effect::NONE, 3).gap(Duration::from_millis(20)),
        end: Duration::from_mins(2),
    };
    let plan = RecordPlan {
        lengths: lengths_of(&mut lab),
        alone: 1,
        until: Duration::from_mins(5),
        loads: 6,
        seed: 1,
    };
    let mut recording = Recording::default();
    let ended = record(&mut lab, &plan, &mut recording, &mut |_, _| {});
    assert_eq!(ended, Err(LabError::Interrupted));
    assert!(!recording.reloadable && recording.loads == 1);
    assert!(recording.lengths.iter().any(|one| !one.units.is_empty()));
    let mut calibrated = calibrated();
    summarise(
        &design(),
        &recording,
        None,
        100,
        5,
        Duration::from_mins(5),
        &mut calibrated,
    )
    .expect("a summary");
    let said = |code: &str| calibrated.flags.iter().any(|flag| flag.code == code);
    assert!(
        said("loads_not_seen") && said("few_units"),
        "{calibrated:?}"
    );
    assert!(calibrated.rates.is_none() && calibrated.loads.is_empty());
}

#[test]
fn nothing_recorded_is_said_and_not_judged() {
    let mut calibrated = calibrated();
    summarise(
        &design(),
        &Recording::default(),
        None,
        100,
        5,
        Duration::from_mins(5),
        &mut calibrated,
    )
    .expect("a summary");
    assert!(calibrated.best_block_ms.is_none() && calibrated.advice.is_empty());
    assert!(
        calibrated
            .flags
            .iter()
            .any(|flag| flag.code == "no_best_block")
    );
}
