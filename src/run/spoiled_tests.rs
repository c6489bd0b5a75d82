//! The loops on a lab that has to discard blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::tests::{BLOCK, design, paired, sessions};
use super::virtual_lab::{Effect, VirtualLab, World};
use super::{
    Budget, Lab, LabError, MeasurePlan, Measured, ScenarioOutcome, SessionSettings, WarmUp,
    run_sessions, run_stored,
};
use crate::data::{Auto, Side, Verdict};
use crate::gate::StoredGate;

/// Discards one index in so many.
struct Spoiling {
    lab: VirtualLab,
    every: u32,
    seen: u32,
}

impl Spoiling {
    fn one_in(every: u32, effect: Effect) -> Self {
        Self {
            lab: VirtualLab::new(World::QUIET, effect, 5),
            every,
            seen: 0,
        }
    }
}

impl Lab for Spoiling {
    fn warm_up(&mut self, side: Side) -> Result<WarmUp, LabError> {
        self.lab.warm_up(side)
    }
    fn measure(&mut self, plan: &MeasurePlan) -> Result<Measured, LabError> {
        let mut measured = self.lab.measure(plan)?;
        let indices: BTreeSet<u32> = measured.blocks.iter().map(|block| block.index).collect();
        let mut spoiled = BTreeSet::new();
        for index in indices {
            self.seen += 1;
            if self.seen.is_multiple_of(self.every) {
                spoiled.insert(index);
            }
        }
        let before = measured.blocks.len();
        measured
            .blocks
            .retain(|block| !spoiled.contains(&block.index));
        let lost = (before - measured.blocks.len()) as u32;
        if lost > 0 {
            measured.discarded = BTreeMap::from([("throttled".to_owned(), lost)]);
        }
        Ok(measured)
    }
    fn set_block(&mut self, block: Duration) {
        self.lab.set_block(block);
    }
    fn reload(&mut self, side: Side) -> Result<bool, LabError> {
        self.lab.reload(side)
    }
    fn now(&self) -> Duration {
        self.lab.now()
    }
}

fn stored(every: u32, effect: Effect) -> ScenarioOutcome {
    let mut gate = StoredGate::new(design(54), &sessions(World::QUIET, 6, 50)).expect("gate");
    let budget = Budget {
        time: Duration::from_secs(150),
        block: BLOCK,
    };
    run_stored(
        &mut Spoiling::one_in(every, effect),
        &mut gate,
        &budget,
        &mut |_| {},
    )
}

fn invalid(outcome: &ScenarioOutcome) {
    assert_eq!(outcome.verdict, Verdict::Invalid);
    assert!(outcome.decision.is_none());
    let reason = outcome.reason.as_ref().expect("a reason");
    assert_eq!(reason.code, "throttled");
    assert!(reason.text.contains("more than 30 %"), "{}", reason.text);
    assert!(!outcome.blocks.is_empty(), "what counted is kept");
}

#[test]
fn a_few_discarded_blocks_do_not_change_a_verdict_and_are_counted() {
    let slower = stored(5, Effect::throughput_drop(0.2));
    assert_eq!(slower.verdict, Verdict::Regression);
    assert!(slower.discarded["throttled"] >= 2, "{:?}", slower.discarded);

    let mut lab = Spoiling::one_in(5, Effect::throughput_drop(0.2));
    let slower = paired(&mut lab, 5);
    assert_eq!(slower.verdict, Verdict::Regression);
    assert!(slower.discarded["throttled"] >= 2, "{:?}", slower.discarded);
}

#[test]
fn where_more_than_three_in_ten_are_discarded_nothing_is_judged() {
    invalid(&stored(2, Effect::throughput_drop(0.2)));
    invalid(&stored(3, Effect::NONE));
    let mut lab = Spoiling::one_in(2, Effect::throughput_drop(0.2));
    invalid(&paired(&mut lab, 5));
}

#[test]
fn where_all_is_discarded_it_comes_to_an_end() {
    let outcome = stored(1, Effect::NONE);
    assert_eq!(outcome.verdict, Verdict::Invalid);
    assert!(outcome.blocks.is_empty());
}

fn in_turns(every: u32) -> ScenarioOutcome {
    let settings = SessionSettings {
        time: Duration::from_mins(5),
        block: Auto::Auto,
        seed: 1,
    };
    run_sessions(
        &mut Spoiling::one_in(every, Effect::throughput_drop(0.2)),
        &design(54),
        &settings,
        &mut |_| {},
    )
}

#[test]
fn a_session_is_filled_up() {
    let outcome = in_turns(5);
    assert_eq!(outcome.verdict, Verdict::Regression);
    assert!(
        outcome
            .sessions
            .iter()
            .all(|session| session.complete && session.blocks.len() == 12),
        "{:?}",
        outcome.sessions
    );
    assert!(outcome.discarded["throttled"] >= 6);
    invalid(&in_turns(2));
}
