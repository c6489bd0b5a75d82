//! What a change of the thresholds means for the gate.

use super::load;
use crate::config::changes;
use crate::data::{GateChange, GateChangeKind};

const BASE: &str = "schema = 1\n[[scenario]]\nname = \"a\"\nmodel = \"m\"\n";

fn found(base: &str, head: &str) -> Vec<GateChange> {
    let base = load(base).expect("the base is right");
    let head = load(head).expect("the head is right");
    changes(Some(&base), Some(&head))
}

/// Key, base, head and whether it is milder, of the only change.
fn only(base: &str, head: &str) -> (String, Option<String>, Option<String>, bool) {
    let mut found = found(&format!("{BASE}{base}"), &format!("{BASE}{head}"));
    assert_eq!(found.len(), 1, "{base} -> {head}: {found:?}");
    let change = found.remove(0);
    assert_eq!(change.scenario.as_deref(), Some("a"));
    (change.key, change.base, change.head, change.milder)
}

#[test]
fn a_value_is_told_with_its_direction() {
    let gate = |line: &str| format!("[scenario.gate]\n{line}\n");
    for (base, head, was, is, milder) in [
        ("", "p99_rise = \"50%\"", Some("10%"), Some("50%"), true),
        ("", "p99_rise = \"5%\"", Some("10%"), Some("5%"), false),
        ("", "p99_rise = \"off\"", Some("10%"), Some("off"), true),
        (
            "",
            "mode = \"advise\"",
            Some("enforce"),
            Some("advise"),
            true,
        ),
        (
            "mode = \"advise\"",
            "",
            Some("advise"),
            Some("enforce"),
            false,
        ),
        ("", "p99_max = \"25ms\"", None, Some("25ms"), false),
        (
            "p99_max = \"25ms\"",
            "p99_max = \"30ms\"",
            Some("25ms"),
            Some("30ms"),
            true,
        ),
        ("p99_max = \"25ms\"", "", Some("25ms"), None, true),
        (
            "throughput_min = 100",
            "throughput_min = 50",
            Some("100 infer/s"),
            Some("50 infer/s"),
            true,
        ),
        (
            "",
            "on_inconclusive = \"pass\"",
            Some("report"),
            Some("pass"),
            true,
        ),
        (
            "",
            "on_inconclusive = \"fail\"",
            Some("report"),
            Some("fail"),
            false,
        ),
        ("", "on_missing = \"new\"", Some("fail"), Some("new"), true),
        (
            "policy = \"detect\"",
            "",
            Some("detect"),
            Some("enforce"),
            true,
        ),
        ("", "budget = \"1m\"", Some("5m"), Some("1m"), false),
    ] {
        let (key, base, head, softer) = only(&gate(base), &gate(head));
        assert!(key.starts_with("gate."), "{key}");
        assert_eq!(
            (base.as_deref(), head.as_deref(), softer),
            (was, is, milder),
            "{key}"
        );
    }
}

#[test]
fn narrower_paths_are_milder() {
    let paths = |list: &str| match list {
        "" => String::new(),
        list => format!("paths = [{list}]\n"),
    };
    for (base, head, milder) in [
        ("", "\"models/a\"", true),
        ("\"models/a\"", "", false),
        ("\"models/a\"", "\"models/a\", \"lib\"", false),
        ("\"models/a\", \"lib\"", "\"models/a\"", true),
        ("\"models/a/**\"", "\"models/**\"", false),
        ("\"models/a/**\"", "\"models\"", false),
        ("\"models/**\"", "\"models/a/**\"", true),
        ("\"models\"", "\"models/**\"", false),
        ("\"models/a\"", "\"**\"", false),
        ("\"models/abc\"", "\"models/a\"", true),
        ("\"models/a/b\"", "\"models/*\"", true),
    ] {
        let (key, _, _, softer) = only(&paths(base), &paths(head));
        assert_eq!(key, "paths");
        assert_eq!(softer, milder, "{base} -> {head}");
    }
    let (_, base, head, _) = only("", "paths = [\"x\"]\n");
    assert_eq!(
        (base.as_deref(), head.as_deref()),
        (Some("every file"), Some("x"))
    );
}

#[test]
fn scenarios_come_and_go_and_what_is_milder_stands_first() {
    let two = format!("{BASE}[[scenario]]\nname = \"b\"\nmodel = \"m\"\n");
    let other = format!("{BASE}concurrency = 2\n[[scenario]]\nname = \"c\"\nmodel = \"m\"\n");
    let kinds: Vec<GateChangeKind> = found(&two, &other)
        .iter()
        .map(|change| change.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            GateChangeKind::ScenarioRemoved,
            GateChangeKind::Setting,
            GateChangeKind::ScenarioAdded
        ]
    );
    assert!(found(&two, &two).is_empty());
    let config = load(BASE).expect("right");
    let all = changes(Some(&config), None);
    assert_eq!(all[0].kind, GateChangeKind::ScenarioRemoved);
    let all = changes(None, Some(&config));
    assert_eq!(all[0].kind, GateChangeKind::ScenarioAdded);
}

#[test]
fn accepted_slowdowns_are_told() {
    let accept = |up_to: &str, expires: &str| {
        format!(
            "[[accept]]\nscenario = \"a\"\nmetric = \"p99\"\nup_to = \"{up_to}\"\nreason = \"why\"\n\
             expires = \"{expires}\"\n"
        )
    };
    let one = accept("25%", "2027-01-31");
    for (base, head, milder) in [
        ("", one.as_str(), true),
        (one.as_str(), "", false),
        (one.as_str(), accept("30%", "2027-01-31").as_str(), true),
        (one.as_str(), accept("25%", "2028-01-31").as_str(), true),
        (one.as_str(), accept("20%", "2027-01-31").as_str(), false),
    ] {
        assert_eq!(only(base, head).3, milder, "{base} -> {head}");
    }
    assert_eq!(
        only("", &one).2.as_deref(),
        Some("up to 25% until 2027-01-31 (why)")
    );
}

#[test]
fn inputs_that_no_row_shows_are_told() {
    let input = |range: &str| format!("[scenario.inputs.x]\nshape = [4]\nrange = {range}\n");
    assert_eq!(only(&input("[0, 1]"), &input("[0, 2]")).0, "inputs");
}
