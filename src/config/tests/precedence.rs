use std::time::Duration;

use super::{SCENARIO, load, load_all, messages};
use crate::config::schema::NOT_YET;
use crate::config::{Config, Overrides, explain_table};
use crate::data::{Bound, Fraction, Metric, Rule};

const FILE: &str = "\
[server]
url = \"file:1\"
metadata = { a = \"from file\", b = \"from file\" }
[environment.t4.server]
url = \"environment:1\"
[environment.t4.gate]
p99_rise = \"20%\"
p50_rise = \"7%\"
budget = \"2m\"
[gate]
p99_rise = \"15%\"
budget = \"1m\"
rule = \"point\"
[[scenario]]
name = \"plain\"
model = \"m\"
[[scenario]]
name = \"own\"
model = \"m\"
[scenario.server]
url = \"scenario:1\"
metadata = { b = \"from scenario ${TOKEN}\" }
[scenario.gate]
p99_rise = \"25%\"
throughput_drop = \"off\"
";

fn config(overrides: &Overrides, variables: &[(&str, &str)]) -> Config {
    let env = |name: &str| {
        let mut all = variables.iter().chain([&("TOKEN", "t0k3n")]);
        all.find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    };
    load_all(&[("a.toml", FILE)], overrides, &env, NOT_YET).expect("loads")
}

fn urls(config: &Config) -> Vec<&str> {
    config
        .scenarios
        .iter()
        .map(|s| s.server.url.as_str())
        .collect()
}

fn p99(config: &Config) -> Vec<f64> {
    let limits = config.scenarios.iter().flat_map(|s| &s.gate.limits);
    limits
        .filter_map(|limit| match (limit.metric, limit.bound) {
            (Metric::P99, Bound::Relative(fraction)) => Some(fraction.get()),
            _ => None,
        })
        .collect()
}

#[test]
fn flag_variable_scenario_environment_file_default() {
    let none = Overrides::default();
    let flag = Overrides {
        url: Some("flag:1".to_owned()),
        environment: Some("t4".to_owned()),
        budget: Some(Duration::from_secs(9)),
        rule: Some(Rule::Evidence),
        ..Overrides::default()
    };
    let detected = Overrides {
        detected_environment: Some("t4".to_owned()),
        ..Overrides::default()
    };

    let plain = config(&none, &[]);
    assert_eq!(urls(&plain), ["file:1", "scenario:1"]);
    assert_eq!(p99(&plain), [0.15, 0.25]);
    assert_eq!(plain.environment_name, None);
    assert_eq!(plain.environment_sections, ["t4"]);
    assert_eq!(plain.scenarios[0].gate.budget, Duration::from_mins(1));
    assert_eq!(plain.scenarios[0].gate.false_alarm, Fraction::new(0.01));

    let t4 = config(&none, &[("TRITON_GATE_ENV", "t4")]);
    assert_eq!(urls(&t4), ["environment:1", "scenario:1"]);
    assert_eq!(p99(&t4), [0.20, 0.25]);
    assert_eq!(t4.scenarios[0].gate.budget, Duration::from_mins(2));
    assert_eq!(t4.scenarios[0].gate.rule, Rule::Point);

    let other = config(&detected, &[("TRITON_GATE_ENV", "a100")]);
    assert_eq!(other.environment_name.as_deref(), Some("a100"));
    assert_eq!(p99(&other), [0.15, 0.25]);
    assert_eq!(p99(&config(&detected, &[])), [0.20, 0.25]);

    let variable = config(&none, &[("TRITON_URL", "variable:1")]);
    assert_eq!(urls(&variable), ["variable:1", "variable:1"]);
    // An empty variable is as good as none.
    assert_eq!(urls(&config(&none, &[("TRITON_URL", "")])), urls(&plain));

    let flag = config(
        &flag,
        &[("TRITON_URL", "variable:1"), ("TRITON_GATE_ENV", "x")],
    );
    assert_eq!(urls(&flag), ["flag:1", "flag:1"]);
    assert_eq!(flag.environment_name.as_deref(), Some("t4"));
    assert_eq!(flag.scenarios[1].gate.budget, Duration::from_secs(9));
    assert_eq!(flag.scenarios[1].gate.rule, Rule::Evidence);
}

#[test]
fn a_limit_can_be_switched_off_and_metadata_is_laid_over_by_entry() {
    let config = config(&Overrides::default(), &[]);
    let own = &config.scenarios[1];
    assert!(
        own.gate
            .limits
            .iter()
            .all(|limit| limit.metric == Metric::P99)
    );
    assert_eq!(config.gated_metrics, 3);
    let metadata: Vec<_> = own
        .server
        .metadata
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert_eq!(metadata, [("a", "from file"), ("b", "from scenario t0k3n")]);
}

#[test]
fn explains_every_value_and_shows_no_secret() {
    let overrides = Overrides {
        environment: Some("t4".to_owned()),
        url: Some("flag:1".to_owned()),
        ..Overrides::default()
    };
    let rows = config(&overrides, &[]).explain("own");
    insta::assert_snapshot!(explain_table(&rows), @r"
    name                     own      a.toml:18
    model                    m        a.toml:19
    version                  -        default
    concurrency              1        default
    batch                    1        default
    paths                    -        default
    environment.name         t4       --environment
    server.url               flag:1   --url
    server.metrics_url       -        default
    server.tls               -        default
    server.launch            -        default
    server.stop              -        default
    server.model_control     none     default
    server.metadata.a        ***      a.toml:3
    server.metadata.b        ***      a.toml:22
    gate.throughput_drop     off      a.toml:25
    gate.p50_rise            7%       a.toml:8
    gate.p99_rise            25%      a.toml:24
    gate.mode                enforce  default
    gate.false_alarm         1%       default
    gate.missed_regression   5%       default
    gate.budget              2m       a.toml:9
    gate.on_inconclusive     report   default
    gate.on_missing          fail     default
    gate.rule                point    a.toml:13
    gate.policy              enforce  default
    gate.assumed_noise       -        default
    gate.suspicious_gain     25%      default
    measure.warmup           auto     default
    measure.block            auto     default
    measure.connections      auto     default
    measure.workers          auto     default
    measure.request_timeout  30s      default
    measure.max_error_rate   0%       default
    measure.allow_saturated  false    default
    measure.seed             0        default
    ");
}

#[test]
fn bad_flags_and_variables_are_named() {
    let overrides = Overrides {
        url: Some("me:secret@host".to_owned()),
        environment: Some("a/b".to_owned()),
        budget: Some(Duration::ZERO),
        ..Overrides::default()
    };
    let found = messages(load_all(
        &[("a.toml", SCENARIO)],
        &overrides,
        &|_| None,
        NOT_YET,
    ));
    assert_eq!(
        found,
        "\
--url: not an address: it holds credentials, which belong into server.metadata as ${VAR}; expected host:port, like \"localhost:8001\"
--budget: out of range: expected at least 1ms
--environment: \"a/b\" cannot be a name: expected letters, digits, '.', '_' and '-', found '/' (it becomes the name of a folder)"
    );
    let env = |name: &str| (name == "TRITON_URL").then(|| "two words".to_owned());
    let found = load_all(
        &[("a.toml", SCENARIO)],
        &Overrides::default(),
        &env,
        NOT_YET,
    );
    assert_eq!(
        messages(found),
        "TRITON_URL: not an address: it holds white space; expected host:port, like \"localhost:8001\""
    );
}

#[test]
fn a_variable_that_cannot_be_sent_is_named_without_its_value() {
    let text = format!("[server]\nmetadata = {{ a = \"${{TOKEN}}\" }}\n{SCENARIO}");
    let env = |name: &str| (name == "TOKEN").then(|| "s3cret\n".to_owned());
    let found = messages(load_all(
        &[("a.toml", &text)],
        &Overrides::default(),
        &env,
        NOT_YET,
    ));
    assert!(
        found.starts_with("a.toml:2: key 'server.metadata.a' of scenario 's': the value holds")
    );
    assert!(!found.contains("s3cret"));
    assert!(load(SCENARIO).is_ok());
}
