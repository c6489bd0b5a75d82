use std::time::Duration;

use super::{SCENARIO, load};
use crate::config::text::{duration, expand, show_duration};
use crate::data::{
    Auto, Bound, DataSource, Fraction, InputSpec, Limit, Load, Metric, Mode, OnInconclusive,
    OnMissing, Policy, Rule, Value,
};

#[test]
fn the_smallest_file_has_the_defaults_of_the_contract() {
    let config = load(SCENARIO).expect("loads");
    let scenario = &config.scenarios[0];
    assert_eq!(scenario.server.url, "localhost:8001");
    assert_eq!(scenario.load, Load::Closed { concurrency: 1 });
    assert_eq!(scenario.batch, 1);
    assert_eq!(scenario.version, None);
    let gate = &scenario.gate;
    assert_eq!(
        gate.limits,
        [
            relative(Metric::Throughput, 0.05),
            relative(Metric::P99, 0.10)
        ]
    );
    assert_eq!(gate.mode, Mode::Enforce);
    assert_eq!(gate.false_alarm, Fraction::new(0.01));
    assert_eq!(gate.missed_regression, Fraction::new(0.05));
    assert_eq!(gate.budget, Duration::from_mins(5));
    assert_eq!(gate.on_inconclusive, OnInconclusive::Report);
    assert_eq!(gate.on_missing, OnMissing::Fail);
    assert_eq!(gate.rule, Rule::Evidence);
    assert_eq!(gate.policy, Policy::Enforce);
    assert_eq!(gate.assumed_noise, None);
    assert_eq!(gate.suspicious_gain, Fraction::new(0.25));
    let measure = &scenario.measure;
    assert_eq!(measure.warmup, Auto::Auto);
    assert_eq!(measure.block, Auto::Auto);
    assert_eq!(measure.connections, Auto::Auto);
    assert_eq!(measure.workers, Auto::Auto);
    assert_eq!(measure.request_timeout, Duration::from_secs(30));
    assert_eq!(measure.max_error_rate, Fraction::new(0.0));
    assert!(!measure.allow_saturated);
    assert_eq!(config.total_budget, None);
    assert_eq!(config.gated_metrics, 2);
    assert!(config.reference("s").is_none());
}

fn relative(metric: Metric, fraction: f64) -> Limit {
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

#[test]
fn reads_every_key() {
    let text = "\
schema = 1
[server]
url = \"triton.internal:8001\"
metrics_url = \"http://triton.internal:8002/metrics\"
metadata = { x-plain = \"a $$ and $HOME\" }
[environment]
name = \"h100\"
[gate]
mode = \"advise\"
throughput_drop = \"2.5%\"
throughput_min = 250
p50_rise = \"10 %\"
p99_rise = \"off\"
p99_max = \"25ms\"
p999_max = \"1.5ms\"
mean_rise = \"120%\"
server_queue_max = \"800us\"
server_compute_rise = \"3%\"
error_rate_max = \"0.1%\"
false_alarm = \"5%\"
missed_regression = \"10%\"
budget = \"1h30m\"
total_budget = \"3h\"
on_inconclusive = \"fail\"
on_missing = \"new\"
rule = \"point\"
policy = \"detect\"
assumed_noise = { throughput = \"1%\", latency = \"3%\" }
suspicious_gain = \"50%\"
[measure]
warmup = \"0s\"
block = \"2s\"
connections = 4
workers = 2
request_timeout = \"250ms\"
max_error_rate = \"1%\"
allow_saturated = true
seed = 42
[[scenario]]
name = \"yolov9-c8\"
model = \"yolov9\"
version = \"2\"
concurrency = 8
batch = 4
paths = [\"models/yolov9/**\"]
[scenario.inputs.images]
shape = [3, 640, 640]
range = [0, 1.5]
[scenario.inputs.\"a b\"]
data = \"zero\"
[scenario.inputs.aa]
shape = []
data = [[1, 2.5], [\"x\", true, inf]]
[scenario.inputs.text]
length = 32
";
    let config = load(text).expect("loads");
    assert_eq!(config.environment_name.as_deref(), Some("h100"));
    assert_eq!(config.total_budget, Some(Duration::from_hours(3)));
    assert_eq!(config.gated_metrics, 9);
    let scenario = &config.scenarios[0];
    assert_eq!(scenario.version.as_deref(), Some("2"));
    assert_eq!(scenario.paths, ["models/yolov9/**"]);
    assert_eq!(scenario.server.metadata[0].1.expose(), "a $ and $HOME");
    let gate = &scenario.gate;
    assert_eq!(
        gate.limits,
        [
            relative(Metric::Throughput, 0.025),
            absolute(Metric::Throughput, 250.0),
            relative(Metric::P50, 0.10),
            absolute(Metric::P99, 25_000.0),
            absolute(Metric::P999, 1_500.0),
            relative(Metric::Mean, 1.2),
            absolute(Metric::ErrorRate, 0.001),
            absolute(Metric::ServerQueue, 800.0),
            relative(Metric::ServerCompute, 0.03),
        ]
    );
    assert_eq!(gate.assumed_noise, Some((0.01, 0.03)));
    assert_eq!(gate.budget, Duration::from_mins(90));
    assert_eq!(gate.policy, Policy::Detect);
    let measure = &scenario.measure;
    assert_eq!(measure.warmup, Auto::Fixed(Duration::ZERO));
    assert_eq!(measure.connections, Auto::Fixed(4));
    assert_eq!(measure.seed, 42);
    assert_eq!(
        scenario.inputs,
        [
            InputSpec {
                name: "images".to_owned(),
                shape: Some(vec![3, 640, 640]),
                data: DataSource::Random {
                    range: Some((0.0, 1.5)),
                    length: None
                },
            },
            InputSpec {
                name: "a b".to_owned(),
                shape: None,
                data: DataSource::Zero,
            },
            InputSpec {
                name: "aa".to_owned(),
                shape: Some(Vec::new()),
                data: DataSource::Literal(vec![
                    Value::List(vec![Value::Integer(1), Value::Float(2.5)]),
                    Value::List(vec![
                        Value::Text("x".to_owned()),
                        Value::Bool(true),
                        Value::Float(f64::INFINITY),
                    ]),
                ]),
            },
            InputSpec {
                name: "text".to_owned(),
                shape: None,
                data: DataSource::Random {
                    range: None,
                    length: Some(32)
                },
            },
        ]
    );
}

#[test]
fn one_assumed_noise_holds_for_both() {
    let text = format!("[gate]\nassumed_noise = \"2%\"\n{SCENARIO}");
    let config = load(&text).expect("loads");
    assert_eq!(config.scenarios[0].gate.assumed_noise, Some((0.02, 0.02)));
}

#[test]
fn durations() {
    for (text, expected) in [
        ("5m", Some(300_000_000)),
        ("90s", Some(90_000_000)),
        ("2s", Some(2_000_000)),
        (" 250ms ", Some(250_000)),
        ("1h30m", Some(5_400_000_000)),
        ("1.5s", Some(1_500_000)),
        ("800us", Some(800)),
        ("800µs", Some(800)),
        ("0s", Some(0)),
        ("5", None),
        ("", None),
        ("s", None),
        ("5d", None),
        ("5S", None),
        ("1s1s", None),
        ("1s 1ms", None),
        ("1.2.3s", None),
        (".s", None),
        ("-1s", None),
        ("infs", None),
        ("8761h", None),
    ] {
        let found = duration(text).ok().map(|duration| duration.as_micros());
        assert_eq!(found, expected, "{text:?}");
    }
    assert_eq!(
        show_duration(Duration::from_millis(5_400_250)),
        "1h30m250ms"
    );
}

#[test]
fn variables_are_replaced() {
    let env = |name: &str| (name == "A").then(|| "${B}".to_owned());
    for (text, expected) in [
        ("plain", Some("plain")),
        ("x${A}y", Some("x${B}y")),
        ("${A}${A}", Some("${B}${B}")),
        ("$A", Some("$A")),
        ("$$", Some("$")),
        ("$${A}", Some("${A}")),
        ("a$", Some("a$")),
        ("${A", None),
        ("${}", None),
        ("${1A}", None),
        ("${ABSENT}", None),
    ] {
        assert_eq!(expand(text, &env).ok().as_deref(), expected, "{text:?}");
    }
}
