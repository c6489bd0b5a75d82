//! Results to render in tests, one for every verdict.

use std::collections::BTreeMap;

use crate::data::{
    BaselineKind, BaselineUsed, Breakdown, CheckResult, Difference, Facts, Flag, GateChange,
    GateChangeKind, GateChanges, GateSide, GpuSample, GpuUsed, Metric, MetricResult, MetricVerdict,
    RESULT_SCHEMA, Reason, ScenarioResult, SideBreakdown, SubjectChange, Tool, Verdict,
};

pub(crate) const ALL_VERDICTS: [Verdict; 10] = [
    Verdict::Pass,
    Verdict::Regression,
    Verdict::Inconclusive,
    Verdict::Accepted,
    Verdict::New,
    Verdict::NotAffected,
    Verdict::NoBaseline,
    Verdict::Incompatible,
    Verdict::Invalid,
    Verdict::Interrupted,
];

/// Everything that may try to break out of a report.
pub(crate) const HOSTILE: &str = "a|b `c` <img src=x onerror=alert(1)> @octocat #1 \
    [x](http://evil.example) \u{1b}[31mred\u{1b}[0m \u{202e}| \n| x | y |\n-->\u{0}\u{7}漢字🚀";

pub(crate) fn metric(metric: Metric, verdict: MetricVerdict) -> MetricResult {
    let throughput = metric == Metric::Throughput;
    let (change, half) = match verdict {
        MetricVerdict::Pass => (0.008, 0.012),
        MetricVerdict::Regression => (0.182, 0.041),
        MetricVerdict::Inconclusive => (0.061, 0.052),
        MetricVerdict::Improvement => (-0.093, 0.021),
    };
    let change = if throughput { -change } else { change };
    let baseline = if throughput { 2504.3 } else { 4312.0 };
    MetricResult {
        metric,
        unit: metric.unit().to_owned(),
        baseline: Some(baseline),
        candidate: Some(baseline * (1.0 + change)),
        change: Some(change),
        interval: [Some(change - half), Some(change + half)],
        level: Some([0.005, 0.05]),
        threshold: Some(if throughput { -0.05 } else { 0.10 }),
        limit: None,
        noise_floor: Some(0.031),
        verdict,
        note: None,
        pin: None,
    }
}

pub(crate) fn scenario(name: &str, verdict: Verdict) -> ScenarioResult {
    let reason = |code: &str, text: &str, next: &str| {
        Some(Reason {
            code: code.to_owned(),
            text: text.to_owned(),
            next: next.to_owned(),
        })
    };
    let p99 = match verdict {
        Verdict::Regression | Verdict::Accepted => MetricVerdict::Regression,
        Verdict::Inconclusive => MetricVerdict::Inconclusive,
        _ => MetricVerdict::Pass,
    };
    let judged = matches!(
        verdict,
        Verdict::Pass | Verdict::Regression | Verdict::Inconclusive | Verdict::Accepted
    );
    let mut metrics = vec![
        metric(Metric::Throughput, MetricVerdict::Pass),
        metric(Metric::P99, p99),
    ];
    match verdict {
        Verdict::New => {
            for metric in &mut metrics {
                metric.baseline = None;
                metric.change = None;
                metric.interval = [None, None];
                metric.level = None;
                metric.noise_floor = None;
            }
        }
        _ if !judged => metrics.clear(),
        _ => {}
    }
    let measured = judged || verdict == Verdict::New;
    let side = |queue: f64| SideBreakdown {
        latency_us: 3100.0 + queue,
        queue_us: queue,
        compute_input_us: 110.0,
        compute_infer_us: 2600.0,
        compute_output_us: 90.0,
        overhead_us: 50.0,
        network_us: 250.0,
        executed_batch: Some(if queue > 600.0 { 2.1 } else { 3.9 }),
    };
    ScenarioResult {
        name: name.to_owned(),
        model: "yolov9".to_owned(),
        model_version: if measured { "2" } else { "" }.to_owned(),
        load: "concurrency 8, batch 1".to_owned(),
        verdict,
        reason: match verdict {
            Verdict::Pass | Verdict::Regression => None,
            Verdict::Inconclusive => reason(
                "budget_spent",
                "the budget of 5 min is spent",
                "raise budget, or record more baseline sessions",
            ),
            Verdict::Accepted => reason(
                "accepted",
                "P99 up to +25 % is accepted until 2027-01-31: larger input images",
                "",
            ),
            Verdict::New => reason(
                "no_baseline",
                "no session is stored for this scenario",
                "record one with `triton-gate baseline record`",
            ),
            Verdict::NotAffected => {
                reason("not_affected", "no file of models/yolov9/** changed", "")
            }
            Verdict::NoBaseline => reason(
                "no_baseline",
                "no session is stored in environment h100",
                "record one with `triton-gate baseline record --environment h100`",
            ),
            Verdict::Incompatible => reason(
                "environment",
                "gpu.name differs: NVIDIA H100 -> NVIDIA T4",
                "record a baseline on this GPU, or compare with --allow gpu.name",
            ),
            Verdict::Invalid => reason(
                "server_unreachable",
                "no connection to localhost:8001: connection refused",
                "start Triton, or pass its gRPC address with --url",
            ),
            Verdict::Interrupted => reason("interrupted", "stopped after 12 blocks", ""),
        },
        advisory: false,
        exit_code: match verdict {
            Verdict::Pass | Verdict::Accepted | Verdict::New | Verdict::NotAffected => 0,
            Verdict::Regression => 1,
            Verdict::Inconclusive => 4,
            Verdict::NoBaseline | Verdict::Incompatible => 5,
            Verdict::Invalid => 3,
            Verdict::Interrupted => 130,
        },
        baseline: judged.then(|| BaselineUsed {
            kind: BaselineKind::Stored,
            sessions: 5,
            blocks: 200,
            newest: Some("2026-01-30T12:00:00Z".to_owned()),
            commit: Some("1a2b3c4".to_owned()),
            source: "baselines/h100/yolov9-c8".to_owned(),
        }),
        metrics,
        pairs: 0,
        looks: if measured { 3 } else { 0 },
        blocks: if measured { 40 } else { 0 },
        seconds: if measured { 84.2 } else { 0.0 },
        requests: if measured { 210_432 } else { 0 },
        errors: BTreeMap::default(),
        discarded: BTreeMap::default(),
        assumed_noise: None,
        breakdown: judged.then(|| Breakdown {
            baseline: Some(side(400.0)),
            candidate: Some(side(if p99 == MetricVerdict::Regression {
                810.0
            } else {
                402.0
            })),
        }),
        gpu: None,
        flags: Vec::new(),
        session: None,
    }
}

pub(crate) fn check(scenarios: Vec<ScenarioResult>) -> CheckResult {
    let verdict = crate::report::worst_verdict(scenarios.iter().map(|s| s.verdict))
        .unwrap_or(Verdict::Invalid);
    let exit = scenarios
        .iter()
        .min_by_key(|scenario| super::rows::rank(scenario));
    CheckResult {
        schema: RESULT_SCHEMA,
        tool: Tool {
            version: "0.1.0".to_owned(),
            commit: "5f0a9c1".to_owned(),
        },
        command: "check".to_owned(),
        verdict,
        exit_code: exit.map_or(2, |scenario| scenario.exit_code),
        headline: crate::report::headline("check", &scenarios),
        started_at: "2026-01-31T12:00:00Z".to_owned(),
        commit: Some("9c0ffee".to_owned()),
        branch: Some("main".to_owned()),
        dirty: Some(false),
        environment_name: "h100".to_owned(),
        environment: [
            ("cpu.model", "AMD EPYC 9554"),
            ("gpu.count", "1"),
            ("gpu.name", "NVIDIA H100 80GB HBM3"),
            ("server.version", "2.51.0"),
        ]
        .into_iter()
        .collect::<Facts>(),
        subject_changes: Vec::new(),
        allowed: Vec::new(),
        configs: vec!["thresholds/vision.toml".to_owned()],
        notes: Vec::new(),
        gate_changes: None,
        scenarios,
    }
}

/// A regression with everything around it that a report can show.
pub(crate) fn full() -> CheckResult {
    let mut worst = scenario("yolov9-c8", Verdict::Regression);
    worst.assumed_noise = Some("partly_assumed".to_owned());
    worst.errors.insert("timeout".to_owned(), 2);
    worst.discarded.insert("throttled".to_owned(), 3);
    worst.pairs = 40;
    let gpu = GpuSample {
        utilisation: Some(0.874),
        power_w: Some(412.3),
        memory_bytes: Some(8.0 * 1024.0 * 1024.0 * 1024.0),
        clock_mhz: Some(1980.0),
        throttle: Some(0),
    };
    worst.gpu = Some(GpuUsed {
        baseline: Some(gpu),
        candidate: GpuSample {
            power_w: Some(380.0),
            clock_mhz: Some(1755.0),
            ..gpu
        },
    });
    worst.flags.push(Flag {
        code: "client_busy".to_owned(),
        text: "the busiest client thread used 84 % of a core".to_owned(),
    });
    let mut limit = metric(Metric::P50, MetricVerdict::Pass);
    limit.threshold = None;
    limit.limit = Some(25_000.0);
    limit.interval = [None, Some(0.02)];
    worst.metrics.push(limit);
    let mut result = check(vec![worst, scenario("resnet-c1", Verdict::Pass)]);
    for name in ["yolov9-c8", "resnet-c1"] {
        result.subject_changes.push(SubjectChange {
            scenario: name.to_owned(),
            difference: difference("server.version", Some("2.45.0"), Some("2.51.0")),
        });
    }
    result.subject_changes.push(SubjectChange {
        scenario: "yolov9-c8".to_owned(),
        difference: difference("instance_group.0.count", Some("2"), Some("1")),
    });
    result
        .allowed
        .push(difference("gpu.uuid", Some("GPU-1"), Some("GPU-2")));
    result
}

/// `count` scenarios with verdicts in turn.
pub(crate) fn many(count: usize) -> CheckResult {
    check(
        (0..count)
            .map(|at| {
                let verdict = match at % 7 {
                    2 => Verdict::Regression,
                    4 => Verdict::Inconclusive,
                    6 if at % 2 == 0 => Verdict::Invalid,
                    _ => Verdict::Pass,
                };
                scenario(&format!("model-{at:02}-c8"), verdict)
            })
            .collect(),
    )
}

/// One change of the gate of each kind.
pub(crate) fn gate_changes() -> GateChanges {
    use GateChangeKind as Kind;

    let change = |kind, key: &str, base: Option<&str>, head: Option<&str>, milder| GateChange {
        kind,
        scenario: Some("yolov9-c8".to_owned()),
        environment: None,
        key: key.to_owned(),
        base: base.map(str::to_owned),
        head: head.map(str::to_owned),
        milder,
    };
    let whole = |kind, base: Option<&str>, head: Option<&str>| GateChange {
        scenario: None,
        ..change(kind, "", base, head, false)
    };
    let rise = change(
        Kind::Setting,
        "gate.p99_rise",
        Some("10%"),
        Some("50%"),
        true,
    );
    let accepted = Some("up to 25% until 2027-01-31 (a larger model)");
    GateChanges {
        judged_by: GateSide::Base,
        changes: vec![
            whole(Kind::Unreadable, None, Some("head/a.toml:3: no such key")),
            change(Kind::ScenarioRemoved, "", None, None, true),
            rise.clone(),
            GateChange {
                scenario: Some("resnet-c1".to_owned()),
                ..rise.clone()
            },
            GateChange {
                environment: Some("t4".to_owned()),
                ..rise
            },
            change(
                Kind::Setting,
                "gate.mode",
                Some("enforce"),
                Some("advise"),
                true,
            ),
            change(Kind::Setting, "measure.block", Some("auto"), None, false),
            change(Kind::Setting, "inputs", None, None, false),
            change(
                Kind::Paths,
                "paths",
                Some("every file"),
                Some("models/a"),
                true,
            ),
            change(Kind::Paths, "paths", Some("a"), Some("a, b"), false),
            change(Kind::Accept, "p99", None, accepted, true),
            change(Kind::Accept, "p99", accepted, None, false),
            whole(Kind::Baselines, None, Some("2 files added, 1 removed")),
            change(Kind::ScenarioAdded, "", None, None, false),
        ],
    }
}

/// Hostile text in every place that comes from outside.
pub(crate) fn hostile(text: &str) -> CheckResult {
    let owned = text.to_owned();
    let mut scenarios = Vec::new();
    for verdict in ALL_VERDICTS {
        let mut scenario = scenario(text, verdict);
        scenario.model.clone_from(&owned);
        scenario.model_version.clone_from(&owned);
        scenario.load.clone_from(&owned);
        scenario.reason = Some(Reason {
            code: owned.clone(),
            text: owned.clone(),
            next: owned.clone(),
        });
        if let Some(baseline) = &mut scenario.baseline {
            baseline.source.clone_from(&owned);
            baseline.newest = Some(owned.clone());
            baseline.commit = Some(owned.clone());
        }
        for metric in &mut scenario.metrics {
            metric.note = Some(owned.clone());
        }
        scenario.errors.insert(owned.clone(), 1);
        scenario.discarded.insert(owned.clone(), 1);
        scenario.flags.push(Flag {
            code: owned.clone(),
            text: owned.clone(),
        });
        scenarios.push(scenario);
    }
    let mut result = check(scenarios);
    result.environment_name.clone_from(&owned);
    result.environment.set(text, text);
    result.tool.version.clone_from(&owned);
    result.started_at.clone_from(&owned);
    result.configs = vec![owned.clone()];
    let mut gate = gate_changes();
    for change in &mut gate.changes {
        for value in [&mut change.base, &mut change.head].into_iter().flatten() {
            value.clone_from(&owned);
        }
        change.scenario = Some(owned.clone());
        change.environment = Some(owned.clone());
        change.key.clone_from(&owned);
    }
    result.gate_changes = Some(gate);
    result.headline.clone_from(&owned);
    result
        .allowed
        .push(difference(text, Some(text), Some(text)));
    result.subject_changes.push(SubjectChange {
        scenario: owned,
        difference: difference(text, Some(text), None),
    });
    result
}

fn difference(field: &str, baseline: Option<&str>, candidate: Option<&str>) -> Difference {
    Difference {
        field: field.to_owned(),
        baseline: baseline.map(str::to_owned),
        candidate: candidate.map(str::to_owned),
    }
}
