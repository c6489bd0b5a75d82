//! Epochs, pins and outliers.

use super::tests::{blocks, design, relative, session, sessions};
use super::*;
use crate::data::{Metric, MetricVerdict, Session, Side, Verdict};

/// The same sessions later and at another level: throughput x `factor`.
fn epoch(sessions: Vec<Session>, epoch: u32, factor: f64) -> Vec<Session> {
    sessions
        .into_iter()
        .map(|mut session| {
            session.epoch = epoch;
            session.id = format!("e{epoch}-{}", session.id);
            for block in &mut session.blocks {
                block.requests = (block.requests as f64 * factor) as u64;
            }
            session
        })
        .collect()
}

fn candidate(throughput: f64) -> Vec<Session> {
    let blocks = blocks(Side::Candidate, 900, 12, throughput, 10_000.0, 0.002);
    vec![session(900, blocks)]
}

#[test]
fn a_candidate_is_compared_with_the_level_since_the_last_shift() {
    let design = design(vec![relative(Metric::Throughput, 0.05)]);
    let mut stored = sessions(8, 0.003, 0.002);
    stored.extend(epoch(sessions(1, 0.003, 0.002), 1, 0.8));
    let same = compare(&design, &stored, &candidate(4000.0)).expect("decided");
    assert_eq!(same.verdict, Verdict::Pass, "{:?}", same.metrics);
    // The spread of the old epoch is known, so nothing is assumed of the single new session.
    assert_eq!(same.assumed_noise, None);
    assert!(same.flags.iter().any(|flag| flag.code == "epoch"));
    let worse = compare(&design, &stored, &candidate(3500.0)).expect("decided");
    assert_eq!(worse.verdict, Verdict::Regression, "{:?}", worse.metrics);
}

#[test]
fn ten_small_steps_pass_one_by_one_and_fail_against_the_pin() {
    let design = design(vec![relative(Metric::Throughput, 0.05)]);
    let release = sessions(8, 0.003, 0.002);
    let level = 5000.0 * 0.99_f64.powi(10);
    let newest = epoch(sessions(8, 0.003, 0.002), 0, 0.99_f64.powi(9));
    let now = candidate(level);
    let step = compare(&design, &newest, &now).expect("decided");
    assert_eq!(step.verdict, Verdict::Pass, "{:?}", step.metrics);
    let rows = against_pin(&design, "v1", &release, &now[0].blocks).expect("judged");
    assert_eq!(rows[0].verdict, MetricVerdict::Regression, "{rows:?}");
    assert_eq!(rows[0].pin.as_deref(), Some("v1"));
    let rows = against_pin(&design, "v1", &release, &candidate(5000.0)[0].blocks).expect("judged");
    assert_eq!(rows[0].verdict, MetricVerdict::Pass, "{rows:?}");
}

#[test]
fn a_pin_is_decided_on_the_first_blocks_alone() {
    let design = design(vec![relative(Metric::Throughput, 0.05)]);
    let release = sessions(8, 0.003, 0.002);
    let first = candidate(5000.0).remove(0).blocks;
    let mut more = first.clone();
    more.extend(candidate(1000.0).remove(0).blocks);
    assert_eq!(
        against_pin(&design, "v1", &release, &first),
        against_pin(&design, "v1", &release, &more)
    );
    assert!(against_pin(&design, "v1", &[], &first).is_err());
    assert!(against_pin(&design, "v1", &release, &[]).is_err());
}

#[test]
fn a_session_far_from_the_others_of_its_epoch_is_named() {
    let mut stored = sessions(9, 0.003, 0.002);
    let metrics = [Metric::Throughput, Metric::P99];
    assert_eq!(outliers(&stored, &metrics), []);
    for block in &mut stored[3].blocks {
        block.requests /= 2;
    }
    let found = outliers(&stored, &metrics);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].session.as_str(), found[0].metric),
        ("3", Metric::Throughput)
    );
    assert!(found[0].change < -0.45 && found[0].change > -0.55);
    // Another level is another epoch, not an outlier; and four sessions say nothing.
    stored[3].epoch = 1;
    assert_eq!(outliers(&stored, &metrics), []);
    let mut few = sessions(4, 0.003, 0.002);
    for block in &mut few[3].blocks {
        block.requests /= 2;
    }
    assert_eq!(outliers(&few, &metrics), []);
}
