use super::{SCENARIO, load, load_all, load_open, messages};
use crate::config::Overrides;
use crate::config::schema::NOT_YET;
use crate::data::{Fraction, Metric};

#[test]
fn a_key_whose_feature_is_not_built_is_an_error() {
    // A table of its own, so that the test outlives the rows of the real one.
    let not_yet = &[
        ("server.tls", "TLS is"),
        ("reference", "a live reference is"),
        ("gate.ttft_*", "limits on the time to the first token are"),
    ];
    for (before, within, expected) in [
        (
            "[server]\ntls = { ca = \"ca.pem\" }",
            "",
            "a.toml:2: key 'server.tls': TLS is not supported by this version of triton-gate yet: remove it",
        ),
        (
            "[reference]\nversion = \"1\"",
            "",
            "a.toml:1: key 'reference': a live reference is not supported by this version of triton-gate yet: remove it",
        ),
        (
            "[environment.t4.gate]\nttft_p50_rise = \"5%\"",
            "",
            "a.toml:2: key 'environment.t4.gate.ttft_p50_rise': limits on the time to the first token are not supported by this version of triton-gate yet: remove it",
        ),
        (
            "",
            "[scenario.server]\ntls = { ca = \"ca.pem\" }",
            "a.toml:6: key 'scenario.server.tls' of scenario 's': TLS is not supported by this version of triton-gate yet: remove it",
        ),
    ] {
        let text = format!("{before}\n{SCENARIO}{within}");
        let files = [("a.toml", text.as_str())];
        let found = messages(load_all(&files, &Overrides::default(), &|_| None, not_yet));
        assert_eq!(found, expected);
    }
    let overrides = Overrides {
        reference_version: Some("1".to_owned()),
        ..Overrides::default()
    };
    let found = messages(load_all(
        &[("a.toml", SCENARIO)],
        &overrides,
        &|_| None,
        not_yet,
    ));
    assert_eq!(
        found,
        "--reference-version: a live reference is not supported by this version of triton-gate yet: remove it"
    );
}

#[test]
fn every_row_of_the_real_table_is_an_error() {
    for (pattern, what) in NOT_YET {
        let key = pattern.replace('*', "x");
        let (before, within) = match key.strip_prefix("scenario.") {
            Some(key) => (String::new(), format!("{key} = {{ x = 1 }}")),
            None if *pattern == "accept" => ("[[accept]]".to_owned(), String::new()),
            None => (format!("{key} = {{ x = 1 }}"), String::new()),
        };
        let found = messages(load(&format!("{before}\n{SCENARIO}{within}\n")));
        assert!(found.contains(what), "{pattern}: {found}");
    }
}

#[test]
fn what_is_gated_by_the_table_only_is_read() {
    let text = "\
[server]
tls = { ca = \"ca.pem\", cert = \"c.pem\", key = \"k.pem\", domain = \"triton.internal\" }
launch = [\"tritonserver\", \"--model-repository=models\"]
model_control = \"explicit\"
[reference]
version = \"1\"
[[scenario]]
name = \"s\"
model = \"m\"
concurrency = [1, 8]
[scenario.reference]
url = \"other:8001\"
[[accept]]
scenario = \"s\"
metric = \"p99\"
up_to = \"25%\"
reason = \"larger model\"
expires = \"2027-01-31\"
[[accept]]
scenario = \"s-c8\"
metric = \"throughput\"
up_to = \"5%\"
reason = \"larger model\"
expires = 2027-02-28
";
    let config = load_open(text).expect("loads");
    let server = &config.scenarios[0].server;
    let tls = server.tls.as_ref().expect("tls");
    assert_eq!(tls.domain.as_deref(), Some("triton.internal"));
    assert!(server.explicit_models);
    assert_eq!(server.launch.len(), 2);
    let reference = config.reference("s-c1").expect("reference");
    assert_eq!(reference.version.as_deref(), Some("1"));
    assert_eq!(reference.url.as_deref(), Some("other:8001"));
    assert_eq!(reference.model, None);
    let accepts: Vec<_> = config
        .accepts
        .iter()
        .map(|accept| {
            (
                accept.scenario.as_str(),
                accept.metric,
                accept.expires.to_string(),
            )
        })
        .collect();
    assert_eq!(
        accepts,
        [
            ("s-c1", Metric::P99, "2027-01-31".to_owned()),
            ("s-c8", Metric::P99, "2027-01-31".to_owned()),
            ("s-c8", Metric::Throughput, "2027-02-28".to_owned()),
        ]
    );
    assert_eq!(config.accepts[0].up_to, Fraction::new(0.25));
}

const ACCEPT: &str = "scenario = \"s\"\nmetric = \"p99\"\nup_to = \"25%\"\nreason = \"r\"\nexpires = \"2027-01-31\"\n";

#[test]
fn bad_accepts_and_references_are_named() {
    for (text, expected) in [
        (
            format!(
                "[[accept]]\n{}",
                ACCEPT.replace("\"2027-01-31\"", "\"2027-02-30\"")
            ),
            "a.toml:9: key 'accept.expires': \"2027-02-30\" is not a date: expected year-month-day, like \"2027-01-31\"",
        ),
        (
            format!(
                "[[accept]]\n{}",
                ACCEPT.replace("\"2027-01-31\"", "2027-01-31T10:00:00Z")
            ),
            "a.toml:9: key 'accept.expires': \"2027-01-31T10:00:00Z\" is not a date: expected year-month-day, like \"2027-01-31\"",
        ),
        (
            format!("[[accept]]\n{}", ACCEPT.replace("\"p99\"", "\"p98\"")),
            "a.toml:6: key 'accept.metric': unknown metric \"p98\": did you mean 'p99'?",
        ),
        (
            format!("[[accept]]\n{}", ACCEPT.replace("\"s\"", "\"zzz\"")),
            "a.toml:4: key 'accept.scenario': unknown scenario \"zzz\": expected one of s",
        ),
        (
            format!("[[accept]]\n{}", ACCEPT.replace("reason = \"r\"\n", "")),
            "a.toml:4: key 'accept.reason': missing: expected why the slowdown is accepted, as text",
        ),
        (
            format!("[[accept]]\n{ACCEPT}[[accept]]\n{ACCEPT}"),
            "a.toml:10: key 'accept.metric': p99 of s is accepted at a.toml:4 already: expected one [[accept]] for it",
        ),
        (
            "[reference]\nmodel = \"m\"\n".to_owned(),
            "a.toml:1: key 'reference' of scenario 's': names what is under test itself: expected another url, model or version",
        ),
        (
            "[reference]\nurl = \"localhost:8001\"\n".to_owned(),
            "a.toml:1: key 'reference' of scenario 's': names what is under test itself: expected another url, model or version",
        ),
        (
            "[server]\ntls = { cert = \"c.pem\" }\n".to_owned(),
            "a.toml:5: key 'server.tls': cert and key belong together: expected both or none",
        ),
        (
            "[server]\nlaunch = []\n".to_owned(),
            "a.toml:5: key 'server.launch': names no program: expected a list of texts, like [\"tritonserver\", \"--model-repository=models\"]",
        ),
    ] {
        assert_eq!(
            messages(load_open(&format!("{SCENARIO}{text}"))),
            expected,
            "{text}"
        );
    }
}
