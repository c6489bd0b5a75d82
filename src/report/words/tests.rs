use super::*;
use crate::data::Breakdown;
use crate::report::samples;

fn side(queue: f64, infer: f64, network: f64) -> SideBreakdown {
    SideBreakdown {
        latency_us: queue + infer + network,
        queue_us: queue,
        compute_input_us: 0.0,
        compute_infer_us: infer,
        compute_output_us: 0.0,
        overhead_us: 0.0,
        network_us: network,
        executed_batch: None,
    }
}

fn told(baseline: Option<SideBreakdown>, candidate: Option<SideBreakdown>) -> Option<String> {
    let mut scenario = samples::scenario("a", Verdict::Pass);
    scenario.breakdown = Some(Breakdown {
        baseline,
        candidate,
    });
    breakdown(&scenario)
}

#[test]
fn the_breakdown_names_what_grew_and_what_did_not() {
    let before = side(400.0, 2800.0, 300.0);
    for (now, expected) in [
        (
            side(810.0, 2800.0, 336.0),
            "mean latency 3.50 ms -> 3.95 ms (+446 us): queueing +410 us (92 % of the change), \
             compute unchanged, server overhead unchanged, network and client +36.0 us (8 % of \
             the change)",
        ),
        (
            side(300.0, 3400.0, 300.0),
            "mean latency 3.50 ms -> 4.00 ms (+500 us): queueing -100 us, compute +600 us \
             (120 % of the change), server overhead unchanged, network and client unchanged",
        ),
        (
            side(401.0, 2799.0, 301.0),
            "mean latency unchanged (3.50 ms)",
        ),
    ] {
        assert_eq!(told(Some(before), Some(now)).as_deref(), Some(expected));
    }
    assert_eq!(
        told(None, Some(before)).as_deref(),
        Some(
            "mean latency 3.50 ms: queueing 400 us (11 %), compute 2.80 ms (80 %), server \
             overhead 0 us (0 %), network and client 300 us (9 %)"
        )
    );
    assert_eq!(told(Some(before), None), None);
    let empty = side(0.0, 0.0, 0.0);
    assert!(told(Some(empty), Some(empty)).is_some());
    assert!(told(Some(before), Some(side(f64::NAN, 1.0, 1.0))).is_none());
}

#[test]
fn what_cannot_be_ruled_out_is_never_more_than_the_interval_says() {
    let metric = |metric, interval, note: Option<&str>| {
        let mut result = samples::metric(metric, MetricVerdict::Inconclusive);
        result.interval = interval;
        result.note = note.map(str::to_owned);
        not_ruled_out(&result)
    };
    for (kind, interval, note, expected) in [
        (
            Metric::P99,
            [Some(0.009), Some(0.113)],
            None,
            "P99 +6.1 %: a rise of 11.3 % cannot be ruled out (limit +10 %)",
        ),
        (
            Metric::Throughput,
            [Some(-0.073), Some(-0.01)],
            None,
            "throughput -6.1 %: a fall of 7.3 % cannot be ruled out (limit -5 %)",
        ),
        (
            Metric::P99,
            [Some(0.01), None],
            None,
            "P99 +6.1 %: a rise beyond +10 % cannot be ruled out",
        ),
        (
            Metric::P99,
            [Some(0.01), Some(0.08)],
            Some("the driver differs"),
            "P99 +6.1 %: the driver differs",
        ),
        (
            Metric::P99,
            [Some(0.01), Some(0.08)],
            None,
            "P99 +6.1 %: the evidence does not decide",
        ),
    ] {
        assert_eq!(metric(kind, interval, note), expected);
    }
    let mut absolute = samples::metric(Metric::P50, MetricVerdict::Inconclusive);
    absolute.threshold = None;
    absolute.limit = Some(25_000.0);
    absolute.change = None;
    assert_eq!(
        not_ruled_out(&absolute),
        "P50: too close to the limit of 25.0 ms to call"
    );
    absolute.candidate = Some(27_100.0);
    assert_eq!(metric_change(&absolute), "P50 27.1 ms (limit <= 25.0 ms)");
}

#[test]
fn changes_of_the_subject_are_said_once() {
    let result = samples::full();
    assert_eq!(
        subject_changes(&result),
        [
            "server.version 2.45.0 -> 2.51.0",
            "instance_group.0.count 2 -> 1 (yolov9-c8)"
        ]
    );
    assert_eq!(
        difference_text(&Difference {
            field: "gpu.mig".to_owned(),
            baseline: None,
            candidate: Some("on".to_owned()),
        }),
        "gpu.mig (absent) -> on"
    );
}

#[test]
fn nothing_measured_is_not_called_measured() {
    let mut scenario = samples::scenario("a", Verdict::Invalid);
    assert_eq!(measured(&scenario), None);
    scenario.errors.insert("timeout".to_owned(), 12);
    assert_eq!(
        measured(&scenario).as_deref(),
        Some("0 blocks, 0.0 s, 0 requests, 12 failed (timeout 12)")
    );
}
