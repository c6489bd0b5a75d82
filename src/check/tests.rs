//! Samples for the tests of this room.

use std::path::PathBuf;
use std::time::Duration;

use crate::data::{
    Auto, Bound, Fraction, GateSpec, Limit, Load, MeasureSpec, Metric, Mode, OnInconclusive,
    OnMissing, Policy, Rule, Scenario, ServerSpec,
};

/// A plain scenario.
pub(super) fn scenario(name: &str) -> Scenario {
    Scenario {
        name: name.to_owned(),
        model: "m".to_owned(),
        version: None,
        load: Load::Closed { concurrency: 1 },
        batch: 1,
        inputs: Vec::new(),
        input_data: None,
        input_files: Vec::new(),
        server: ServerSpec {
            url: "localhost:8001".to_owned(),
            metrics_url: None,
            tls: None,
            metadata: Vec::new(),
            launch: Vec::new(),
            stop: Vec::new(),
            explicit_models: false,
        },
        gate: GateSpec {
            mode: Mode::Enforce,
            limits: vec![Limit {
                metric: Metric::P99,
                bound: Bound::Relative(Fraction::new(0.1)),
            }],
            false_alarm: Fraction::new(0.01),
            missed_regression: Fraction::new(0.05),
            budget: Duration::from_mins(5),
            on_inconclusive: OnInconclusive::Report,
            on_missing: OnMissing::Fail,
            rule: Rule::Evidence,
            policy: Policy::Enforce,
            assumed_noise: None,
            suspicious_gain: Fraction::new(0.25),
        },
        measure: MeasureSpec {
            warmup: Auto::Auto,
            block: Auto::Auto,
            connections: Auto::Auto,
            workers: Auto::Auto,
            request_timeout: Duration::from_secs(30),
            max_error_rate: Fraction::new(0.0),
            allow_saturated: false,
            seed: 0,
        },
        paths: Vec::new(),
        file: PathBuf::from("t.toml"),
    }
}
