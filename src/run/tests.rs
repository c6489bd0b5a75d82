use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::virtual_lab::{Effect, VirtualLab, World};
use super::*;
use crate::data::{
    Auto, Block, Bound, Fraction, Limit, Metric, Policy, Reason, Rule, Session, Side, Verdict,
};
use crate::gate::{Design, Stage, StoredGate};

pub(super) const BLOCK: Duration = Duration::from_secs(2);

pub(super) fn design(max_samples: u32) -> Design {
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
        max_samples,
        assumed_noise: (0.01, 0.03),
        suspicious_gain: 0.5,
        stage: Stage::Only,
    }
}

pub(super) fn sessions(world: World, count: u32, seed: u64) -> Vec<Session> {
    (0..count)
        .map(|index| VirtualLab::session(world, 12, BLOCK, seed + u64::from(index)))
        .collect()
}

/// Plays the virtual lab, but its nth measurement ends as told.
struct Broken {
    lab: VirtualLab,
    endings: VecDeque<Result<Ended, LabError>>,
}

impl Lab for Broken {
    fn warm_up(&mut self, side: Side) -> Result<WarmUp, LabError> {
        self.lab.warm_up(side)
    }

    fn measure(&mut self, plan: &MeasurePlan) -> Result<Measured, LabError> {
        let mut measured = self.lab.measure(plan)?;
        match self.endings.pop_front() {
            Some(Ok(ended)) => {
                let half = measured.blocks.len() / 2;
                measured.blocks.truncate(half);
                measured.ended = ended;
                Ok(measured)
            }
            Some(Err(error)) => Err(error),
            None => Ok(measured),
        }
    }

    fn set_block(&mut self, _: Duration) {}
    fn reload(&mut self, side: Side) -> Result<bool, LabError> {
        self.lab.reload(side)
    }

    fn now(&self) -> Duration {
        self.lab.now()
    }
}

fn broken(endings: Vec<Result<Ended, LabError>>) -> ScenarioOutcome {
    let mut lab = Broken {
        lab: VirtualLab::new(World::QUIET, Effect::NONE, 1),
        endings: endings.into(),
    };
    let mut gate = StoredGate::new(design(54), &sessions(World::QUIET, 3, 50)).expect("gate");
    let budget = Budget {
        time: Duration::from_secs(150),
        block: BLOCK,
    };
    run_stored(&mut lab, &mut gate, &budget, &mut |_| {})
}

fn reason(code: &str) -> Reason {
    Reason {
        code: code.to_owned(),
        text: "gone".to_owned(),
        next: String::new(),
    }
}

#[test]
fn blocks_are_kept_however_the_loop_ends() {
    let interrupted = broken(vec![Ok(Ended::Interrupted)]);
    assert_eq!(interrupted.verdict, Verdict::Interrupted);
    assert_eq!(interrupted.blocks.len(), 6);
    assert!(!interrupted.complete && interrupted.decision.is_none());

    let failed = broken(vec![Ok(Ended::Failed(reason("server_unreachable")))]);
    assert_eq!(failed.verdict, Verdict::Invalid);
    assert_eq!(failed.blocks.len(), 6);
    assert_eq!(failed.reason.expect("reason").code, "server_unreachable");

    let nothing = broken(vec![Err(LabError::Failed(reason("model_missing")))]);
    assert_eq!(nothing.verdict, Verdict::Invalid);
    assert!(nothing.blocks.is_empty());

    // The deadline is no failure: what is there decides.
    let late = broken(vec![Ok(Ended::Deadline)]);
    assert_eq!(late.blocks.len(), 6);
    assert!(late.decision.is_some());
}

#[test]
fn a_lab_that_yields_nothing_comes_to_an_end() {
    struct Empty;
    impl Lab for Empty {
        fn warm_up(&mut self, _: Side) -> Result<WarmUp, LabError> {
            Ok(WarmUp {
                settled: false,
                seconds: 0.0,
                request_rate: 0.0,
                histogram: None,
                rate_spread: None,
                overhead: Duration::ZERO,
            })
        }
        fn measure(&mut self, _: &MeasurePlan) -> Result<Measured, LabError> {
            Ok(Measured {
                blocks: Vec::<Block>::new(),
                ended: Ended::Complete,
                discarded: BTreeMap::new(),
                flags: Vec::new(),
            })
        }
        fn set_block(&mut self, _: Duration) {}
        fn reload(&mut self, _: Side) -> Result<bool, LabError> {
            Ok(false)
        }
        fn now(&self) -> Duration {
            Duration::ZERO
        }
    }
    let mut gate = StoredGate::new(design(54), &sessions(World::QUIET, 1, 1)).expect("gate");
    let budget = Budget {
        time: Duration::from_mins(1),
        block: BLOCK,
    };
    let outcome = run_stored(&mut Empty, &mut gate, &budget, &mut |_| {});
    assert_eq!(outcome.verdict, Verdict::Inconclusive);
    assert_eq!(outcome.reason.expect("reason").code, "budget");
    assert!(outcome.flags.iter().any(|flag| flag.code == "not_steady"));
}

#[test]
fn a_short_budget_limits_the_blocks() {
    let budget = Budget {
        time: Duration::from_secs(20),
        block: BLOCK,
    };
    let mut lab = VirtualLab::new(World::QUIET, Effect::NONE, 3);
    let mut gate = StoredGate::new(design(54), &sessions(World::QUIET, 3, 50)).expect("gate");
    let outcome = run_stored(&mut lab, &mut gate, &budget, &mut |_| {});
    assert!(outcome.decision.is_some());
    assert!(outcome.blocks.len() <= 9, "{}", outcome.blocks.len());
    assert_eq!(
        budget.blocks(Duration::from_secs(2), Duration::from_millis(500)),
        7
    );
    assert_eq!(budget.blocks(Duration::from_mins(1), Duration::ZERO), 1);
}

/// How often stored decisions end in a regression, and in a pass, of `runs`.
fn stored_rates(world: World, effect: Effect, stored: u32, runs: u64) -> (u64, u64) {
    let (mut failed, mut passed) = (0, 0);
    for run in 0..runs {
        let seed = run * 1000;
        let mut lab = VirtualLab::new(world, effect, seed + 999);
        let mut gate = StoredGate::new(design(36), &sessions(world, stored, seed)).expect("gate");
        let budget = Budget {
            time: Duration::from_mins(2),
            block: BLOCK,
        };
        match run_stored(&mut lab, &mut gate, &budget, &mut |_| {}).verdict {
            Verdict::Regression => failed += 1,
            Verdict::Pass => passed += 1,
            _ => {}
        }
    }
    (failed, passed)
}

#[test]
fn identical_code_rarely_fails_against_stored_sessions() {
    let (failed, passed) = stored_rates(World::QUIET, Effect::NONE, 12, 60);
    assert!(failed <= 2, "{failed} of 60");
    assert!(passed >= 30, "{passed} of 60");
    let (failed, _) = stored_rates(World::SHARED, Effect::NONE, 12, 60);
    assert!(failed <= 2, "{failed} of 60");
}

#[test]
fn a_tenth_of_throughput_is_found_against_stored_sessions() {
    let (failed, passed) = stored_rates(World::QUIET, Effect::throughput_drop(0.10), 12, 30);
    assert!(failed >= 27, "{failed} of 30");
    assert_eq!(passed, 0);
}

fn settings(seed: u64) -> PairSettings {
    PairSettings {
        time: Duration::from_secs(270),
        confirm_time: Duration::from_secs(270),
        block: Auto::Auto,
        seed,
    }
}

pub(super) fn paired(lab: &mut dyn Lab, seed: u64) -> ScenarioOutcome {
    run_paired(lab, &design(1), &settings(seed), &mut |_| {})
}

/// How often live decisions end in a regression, and in a pass, of `runs`.
fn paired_rates(world: World, effect: Effect, runs: u64) -> (u64, u64) {
    let (mut failed, mut passed) = (0, 0);
    for run in 0..runs {
        let mut lab = VirtualLab::new(world, effect, run * 1000);
        match paired(&mut lab, run).verdict {
            Verdict::Regression => failed += 1,
            Verdict::Pass => passed += 1,
            _ => {}
        }
    }
    (failed, passed)
}

#[test]
fn identical_code_rarely_fails_against_a_live_reference() {
    for (world, wanted) in [(World::QUIET, 36), (World::SHARED, 32), (World::HOSTED, 28)] {
        let (failed, passed) = paired_rates(world, Effect::NONE, 40);
        assert!(failed <= 1, "{}: {failed} of 40 failed", world.name);
        assert!(passed >= wanted, "{}: {passed} of 40 passed", world.name);
    }
}

#[test]
fn a_tenth_of_throughput_is_found_against_a_live_reference() {
    for world in World::ALL {
        let (failed, passed) = paired_rates(world, Effect::throughput_drop(0.10), 20);
        assert!(failed >= 18, "{}: {failed} of 20 found", world.name);
        assert_eq!(passed, 0);
    }
}

#[test]
fn a_confirmed_regression_says_so() {
    let mut lab = VirtualLab::new(World::QUIET, Effect::throughput_drop(0.15), 5);
    let outcome = paired(&mut lab, 5);
    assert_eq!(outcome.verdict, Verdict::Regression);
    let decision = outcome.decision.expect("decision");
    let note = decision.metrics[0].note.as_deref().unwrap_or_default();
    assert!(note.contains("confirmed after a reload"), "{note}");
    assert!(
        !decision
            .flags
            .iter()
            .any(|flag| flag.code == "not_confirmed")
    );
    assert_eq!(outcome.warm_ups.len(), 4);
    assert_eq!(outcome.blocks.len() as u32, 2 * decision.units);
    assert!(outcome.pair_plan.is_some());
}

/// A virtual lab whose candidate is slower for one load only, or whose reload goes otherwise.
struct Loads {
    lab: VirtualLab,
    reload: Result<bool, LabError>,
}

impl Lab for Loads {
    fn warm_up(&mut self, side: Side) -> Result<WarmUp, LabError> {
        self.lab.warm_up(side)
    }
    fn measure(&mut self, plan: &MeasurePlan) -> Result<Measured, LabError> {
        self.lab.measure(plan)
    }
    fn set_block(&mut self, _: Duration) {}
    fn reload(&mut self, side: Side) -> Result<bool, LabError> {
        self.lab.set_effect(Effect::NONE);
        self.lab.reload(side)?;
        self.reload.clone()
    }
    fn now(&self) -> Duration {
        self.lab.now()
    }
}

#[test]
fn a_change_that_a_reload_takes_away_is_no_regression() {
    let cases = [
        (Ok(true), Verdict::Inconclusive),
        (Ok(false), Verdict::Regression),
        (
            Err(LabError::Failed(reason("reload_failed"))),
            Verdict::Regression,
        ),
        (Err(LabError::Interrupted), Verdict::Interrupted),
    ];
    for (reload, expected) in cases {
        let lab = VirtualLab::new(World::QUIET, Effect::throughput_drop(0.15), 6);
        let outcome = paired(
            &mut Loads {
                lab,
                reload: reload.clone(),
            },
            6,
        );
        assert_eq!(outcome.verdict, expected);
        let flagged = |code: &str| {
            outcome
                .decision
                .iter()
                .any(|decision| decision.flags.iter().any(|f| f.code == code))
        };
        match expected {
            Verdict::Inconclusive => {
                let reason = outcome.reason.as_ref().expect("reason");
                assert_eq!(reason.code, "differs_by_load");
            }
            Verdict::Regression => {
                assert!(flagged("not_confirmed"));
                assert_eq!(flagged("reload_failed"), reload.is_err());
            }
            _ => assert!(!outcome.blocks.is_empty()),
        }
    }
}

#[test]
fn units_are_kept_however_the_paired_loop_ends() {
    let ends = |endings: Vec<Result<Ended, LabError>>| {
        let lab = VirtualLab::new(World::QUIET, Effect::NONE, 1).gap(Duration::from_millis(20));
        paired(
            &mut Broken {
                lab,
                endings: endings.into(),
            },
            1,
        )
    };
    let interrupted = ends(vec![Ok(Ended::Interrupted)]);
    assert_eq!(interrupted.verdict, Verdict::Interrupted);
    assert_eq!(interrupted.blocks.len(), 2, "half of the first unit");
    let failed = ends(vec![Err(LabError::Failed(reason("server_unreachable")))]);
    assert_eq!(failed.verdict, Verdict::Invalid);
    assert!(failed.blocks.is_empty());
    let late = ends(vec![Ok(Ended::Deadline)]);
    assert!(late.decision.is_some());
}

#[test]
fn short_blocks_are_pooled_into_units() {
    let mut lab = VirtualLab::new(World::SHARED, Effect::NONE, 2).gap(Duration::from_millis(20));
    let outcome = paired(&mut lab, 2);
    let plan = outcome.pair_plan.expect("plan");
    assert!(
        plan.block < Duration::from_millis(200) && plan.pairs_per_unit > 10,
        "{plan:?}"
    );
    let decision = outcome.decision.expect("decision");
    assert_eq!(decision.pairs, decision.units * plan.pairs_per_unit);
    assert_eq!(outcome.verdict, Verdict::Pass);
}

/// Sessions in turn on a virtual server whose loads differ by this much.
fn in_turns(effect: Effect, spread: f64, seed: u64) -> ScenarioOutcome {
    let mut lab = VirtualLab::new(World::QUIET, effect, seed).load_spread(spread);
    let settings = SessionSettings {
        time: Duration::from_mins(5),
        block: Auto::Auto,
        seed,
    };
    run_sessions(&mut lab, &design(54), &settings, &mut |_| {})
}

#[test]
fn sessions_take_turns_and_each_is_a_new_start() {
    use Side::{Baseline as B, Candidate as A};
    let outcome = in_turns(Effect::throughput_drop(0.2), 0.005, 1);
    assert_eq!(outcome.verdict, Verdict::Regression);
    let sides: Vec<Side> = outcome.sessions.iter().map(|one| one.side).collect();
    assert_eq!(sides, [A, B, B, A, A, B]);
    assert!(outcome.sessions.iter().all(|one| one.complete));
    assert_eq!(outcome.blocks.len(), 6 * 12);
    let decision = outcome.decision.expect("decided");
    assert_eq!((decision.looks, decision.blocks), (1, 36));
}

#[test]
fn loads_that_differ_are_in_the_spread_of_the_sessions() {
    let runs = 60;
    let count = |effect, wanted| {
        (0..runs)
            .filter(|seed| in_turns(effect, 0.01, 7_000 + seed).verdict == wanted)
            .count()
    };
    // 1 % of false alarms is .6 of 60: five or more would come about once in 5 000 times.
    assert!(count(Effect::NONE, Verdict::Regression) <= 4);
    assert!(count(Effect::throughput_drop(0.08), Verdict::Pass) <= 9);
    assert!(count(Effect::throughput_drop(0.15), Verdict::Regression) >= 50);
}

#[test]
fn a_budget_too_short_for_three_sessions_a_side_is_undecided() {
    let mut lab = VirtualLab::new(World::QUIET, Effect::NONE, 1);
    let settings = SessionSettings {
        time: Duration::from_secs(20),
        block: Auto::Auto,
        seed: 0,
    };
    let outcome = run_sessions(&mut lab, &design(54), &settings, &mut |_| {});
    assert_eq!(outcome.verdict, Verdict::Inconclusive);
    let reason = outcome.reason.expect("a reason");
    assert_eq!(reason.code, "budget");
    assert!(reason.next.contains("at least"), "{reason:?}");
}

#[test]
fn a_reference_that_dies_ends_the_turns_and_keeps_what_is_known() {
    let mut lab = Broken {
        lab: VirtualLab::new(World::QUIET, Effect::NONE, 1),
        endings: VecDeque::from([Ok(Ended::Failed(reason("gone")))]),
    };
    let settings = SessionSettings {
        time: Duration::from_mins(5),
        block: Auto::Auto,
        seed: 1,
    };
    let outcome = run_sessions(&mut lab, &design(54), &settings, &mut |_| {});
    assert_eq!(outcome.verdict, Verdict::Invalid);
    assert!(!outcome.blocks.is_empty());
    assert!(!outcome.sessions.is_empty());
}
