use proptest::prelude::*;

use super::*;
use crate::triton::proto::inference::{InferBatchStatistics, InferStatistics};

#[expect(
    clippy::unnecessary_wraps,
    reason = "every field that takes it is optional"
)]
fn span(count: u64, ns: u64) -> Option<StatisticDuration> {
    Some(StatisticDuration { count, ns })
}

/// `count` requests of `ns` each: a tenth in the queue, half in the model.
fn stats(name: &str, version: &str, count: u64, ns: u64) -> ModelStatistics {
    ModelStatistics {
        name: name.to_owned(),
        version: version.to_owned(),
        inference_count: count * 2,
        execution_count: count,
        inference_stats: Some(InferStatistics {
            success: span(count, count * ns),
            fail: span(0, 0),
            queue: span(count, count * ns / 10),
            compute_input: span(count, count * ns / 20),
            compute_infer: span(count, count * ns / 2),
            compute_output: span(count, count * ns / 40),
            cache_hit: None,
            cache_miss: None,
        }),
        batch_stats: vec![InferBatchStatistics {
            batch_size: 2,
            compute_infer: span(count, count * ns / 2),
            ..InferBatchStatistics::default()
        }],
        ..ModelStatistics::default()
    }
}

fn snapshot(models: &[ModelStatistics]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.add(models);
    snapshot
}

fn model(name: &str, steps: &[&str]) -> ModelSignature {
    ModelSignature {
        name: name.to_owned(),
        version: String::new(),
        versions: vec!["1".to_owned()],
        platform: "python".to_owned(),
        max_batch_size: 8,
        inputs: Vec::new(),
        outputs: Vec::new(),
        decoupled: false,
        sequence: false,
        ensemble_steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        response_cache: false,
        dynamic_batching: false,
    }
}

#[test]
fn means_are_per_request_of_the_difference() {
    let before = snapshot(&[stats("m", "1", 10, 1_000_000)]);
    let mut later = stats("m", "1", 10, 1_000_000);
    let more = stats("m", "1", 5, 400_000);
    // 5 more requests of 400 us each.
    let add = |to: &mut Option<StatisticDuration>, other: Option<StatisticDuration>| {
        let (to, other) = (to.as_mut().expect("set"), other.expect("set"));
        to.count += other.count;
        to.ns += other.ns;
    };
    let (into, from) = (
        later.inference_stats.as_mut().expect("set"),
        more.inference_stats.expect("set"),
    );
    add(&mut into.success, from.success);
    add(&mut into.queue, from.queue);
    add(&mut into.compute_input, from.compute_input);
    add(&mut into.compute_infer, from.compute_infer);
    add(&mut into.compute_output, from.compute_output);
    later.inference_count += 15;
    later.execution_count += 5;
    let delta = difference(&before, &snapshot(&[later])).expect("continues");
    let means = delta
        .means(&model("m", &[]))
        .expect("fits")
        .expect("something succeeded");
    let expected = ServerMeans {
        queue_us: 40.0,
        compute_input_us: 20.0,
        compute_infer_us: 200.0,
        compute_output_us: 10.0,
        total_us: 400.0,
        executed_batch: Some(3.0),
    };
    assert_eq!(means, expected);
    assert_eq!(delta.versions_used("m"), ["1"]);
}

#[test]
fn nothing_served_has_no_means_and_no_share() {
    let same = snapshot(&[stats("m", "1", 10, 1_000)]);
    let delta = difference(&same, &same).expect("continues");
    assert_eq!(delta.means(&model("m", &[])), Ok(None));
    assert_eq!(delta.foreign_share("m", 0), Ok(None));
    assert!(delta.versions_used("m").is_empty());
    assert!(same.continues(&same));
}

#[test]
fn a_fallen_counter_is_a_reload() {
    let before = snapshot(&[stats("m", "1", 10, 1_000)]);
    let after = snapshot(&[stats("m", "1", 3, 1_000)]);
    let error = difference(&before, &after).expect_err("reloaded");
    assert!(error.to_string().contains("was reloaded"), "{error}");
    assert!(
        error
            .to_string()
            .contains("inference_count fell from 20 to 6"),
        "{error}"
    );
    assert!(!before.continues(&after));
}

#[test]
fn a_reload_hidden_behind_more_requests_is_seen_in_the_time() {
    // After the reload more requests than before, but quicker ones.
    let before = snapshot(&[stats("m", "1", 10, 1_000_000)]);
    let after = snapshot(&[stats("m", "1", 11, 1_000)]);
    assert!(matches!(
        difference(&before, &after),
        Err(StatisticsError::Reloaded { before: b, after: a, .. }) if b > a
    ));
}

#[test]
fn versions_that_come_and_go_are_told() {
    let one = snapshot(&[stats("m", "1", 10, 1_000)]);
    let both = snapshot(&[stats("m", "1", 10, 1_000), stats("m", "2", 1, 1_000)]);
    assert!(matches!(
        difference(&one, &both),
        Err(StatisticsError::Appeared { version, .. }) if version == "2"
    ));
    assert!(matches!(
        difference(&both, &one),
        Err(StatisticsError::Vanished { version, .. }) if version == "2"
    ));
    let idle = snapshot(&[
        stats("m", "1", 10, 1_000),
        ModelStatistics {
            name: "m".to_owned(),
            version: "2".to_owned(),
            ..ModelStatistics::default()
        },
    ]);
    assert!(difference(&one, &idle).is_ok());
}

#[test]
fn foreign_traffic_is_what_we_did_not_send() {
    let before = snapshot(&[stats("m", "1", 0, 0), stats("m", "2", 0, 0)]);
    let after = snapshot(&[stats("m", "1", 90, 1_000), stats("m", "2", 10, 1_000)]);
    let delta = difference(&before, &after).expect("continues");
    for (ours, share) in [(100, 0.0), (95, 0.05), (0, 1.0), (120, 0.0)] {
        assert_eq!(delta.foreign_share("m", ours), Ok(Some(share)), "{ours}");
    }
}

#[test]
fn cache_hits_are_counted_in_the_steps_too() {
    let mut step = stats("step", "1", 4, 1_000);
    let before = snapshot(&[stats("e", "1", 0, 0), stats("step", "1", 4, 1_000)]);
    step.inference_stats.as_mut().expect("set").cache_hit = span(3, 50);
    let delta = difference(&before, &snapshot(&[stats("e", "1", 4, 10), step])).expect("ok");
    assert_eq!(delta.cache_hits(), 3);
}

#[test]
fn an_ensembles_queue_holds_that_of_its_steps() {
    let before = snapshot(&[
        stats("e", "1", 0, 0),
        stats("a", "1", 0, 0),
        stats("b", "1", 0, 0),
    ]);
    // 10 requests of 100 us; step a once each (50 us), step b twice each (20 us).
    let after = snapshot(&[
        stats("e", "1", 10, 100_000),
        stats("a", "1", 10, 50_000),
        stats("b", "1", 20, 20_000),
    ]);
    let delta = difference(&before, &after).expect("continues");
    let means = delta
        .means(&model("e", &["a", "b"]))
        .expect("fits")
        .expect("served");
    // Own 10, a 5, b 2 x 2.
    assert!((means.queue_us - 19.0).abs() < 1e-9, "{means:?}");
    assert_eq!(means.executed_batch, None);
}

#[test]
fn counters_near_the_top_do_not_wrap() {
    let mut huge = stats("m", "1", 0, 0);
    huge.inference_count = u64::MAX;
    let mut other = huge.clone();
    other.version = "2".to_owned();
    let zero = snapshot(&[stats("m", "1", 0, 0), stats("m", "2", 0, 0)]);
    let delta = difference(&zero, &snapshot(&[huge, other])).expect("each fits");
    assert!(matches!(
        delta.model("m"),
        Err(StatisticsError::Overflow { .. })
    ));
}

proptest! {
    #[test]
    fn no_counters_break_it(values in proptest::collection::vec(any::<u64>(), 8)) {
        let make = |v: &[u64]| {
            let mut model = stats("m", "1", 0, 0);
            model.inference_count = v[0];
            model.execution_count = v[1];
            if let Some(stats) = model.inference_stats.as_mut() {
                stats.success = span(v[2], v[3]);
            }
            snapshot(&[model])
        };
        let (before, after) = (make(&values[..4]), make(&values[4..]));
        let grew = values[..4].iter().zip(&values[4..]).all(|(b, a)| b <= a);
        let result = difference(&before, &after);
        prop_assert_eq!(result.is_ok(), grew);
        if let Ok(delta) = result {
            prop_assert!(delta.means(&model("m", &[])).is_ok());
        }
    }
}
