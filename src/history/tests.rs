use std::fs;

use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};

use super::*;
use crate::baseline::Store;
use crate::data::{Metric, Tool, Verdict};
use crate::stats::ShiftSearch;

/// A day's result: `p99` in microseconds.
fn result(day: i64, commit: &str, verdict: &str, p99: f64) -> Value {
    let start = DateTime::parse_from_rfc3339("2026-03-01T10:00:00Z").expect("a time");
    json!({
        "schema": 1,
        "tool": { "version": "9.9.9", "commit": "" },
        "command": "check",
        "started_at": (start + Duration::days(day)).to_rfc3339(),
        "commit": commit,
        "branch": "main",
        "dirty": false,
        "environment_name": "l4",
        "later_field": [1, 2],
        "scenarios": [{
            "name": "a",
            "model": "m",
            "load": "concurrency 4, batch 1",
            "verdict": verdict,
            "baseline": { "kind": "stored", "sessions": 3 },
            "metrics": [
                { "metric": "p99", "candidate": p99, "change": 0.01, "verdict": "pass" },
                { "metric": "tokens_of_tomorrow", "candidate": 1.0, "verdict": "pass" },
            ],
        }],
    })
}

fn check(day: i64, commit: &str, verdict: &str, p99: f64) -> Check {
    let text = result(day, commit, verdict, p99).to_string();
    parse(&text, &format!("r{day}.json")).expect("a result")
}

fn commit(day: i64) -> String {
    format!("{day:07x}{:033}", 0)
}

/// Thirty days around 1 ms, and 1.2 ms from the given day on.
fn stepped(step: i64) -> Vec<Check> {
    (0..30)
        .map(|day| {
            let wobble = 1.0 + 0.002 * f64::from((day as i32 * 7) % 5);
            let level = if day >= step { 1200.0 } else { 1000.0 };
            check(day, &commit(day), "pass", level * wobble)
        })
        .collect()
}

fn of(checks: &[Check], sessions: &[StoredSession], filter: &Filter) -> Vec<ScenarioHistory> {
    assemble(checks, sessions, filter, &ShiftSearch::default()).expect("a history")
}

fn session(day: i64, commit: &str) -> StoredSession {
    StoredSession {
        file: format!("s{day}.csv"),
        at: check(day, "", "pass", 1.0).at + Duration::hours(1),
        environment: "l4".to_owned(),
        scenario: "a".to_owned(),
        model: "m".to_owned(),
        load: "concurrency 4, batch 1".to_owned(),
        commit: Some(commit.to_owned()),
        branch: Some("main".to_owned()),
        dirty: Some(false),
        values: Vec::new(),
    }
}

#[test]
fn files_that_are_no_results_say_why() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = result(0, "", "pass", 1.0);
        change(&mut value);
        value.to_string()
    };
    for (text, why) in [
        (String::new(), "not JSON"),
        ("{\"schema\": 1".to_owned(), "not JSON"),
        ("[]".to_owned(), "not a result"),
        ("{}".to_owned(), "no schema"),
        ("{\"schema\": 1}".to_owned(), "command"),
        (changed(&|v| v["schema"] = json!(2)), "newer triton-gate"),
        (changed(&|v| v["schema"] = json!(-1)), "not a result"),
        (changed(&|v| v["command"] = json!("compare")), "\"compare\""),
        (changed(&|v| v["started_at"] = json!("")), "started_at"),
        (changed(&|v| v["scenarios"] = json!(3)), "not a result"),
    ] {
        let error = parse(&text, "x.json").expect_err(&text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn what_a_later_version_adds_is_passed_over() {
    let mut value = result(0, "", "pass", 1.0);
    value["scenarios"][0]["verdict"] = json!("superb");
    value["scenarios"][0]["baseline"]["kind"] = json!("oracle");
    let check = parse(&value.to_string(), "x.json").expect("a result");
    let scenario = &check.scenarios[0];
    assert_eq!((scenario.verdict, scenario.kind), (None, None));
    let metrics: Vec<Metric> = scenario.values.iter().map(|(metric, _)| *metric).collect();
    assert_eq!(metrics, [Metric::P99]);
    assert_eq!(check.commit, None);
}

#[test]
fn a_shift_is_placed_between_two_commits() {
    let found = of(&stepped(20), &[], &Filter::default());
    let metric = &found[0].series[0].metrics[0];
    assert_eq!(
        (found.len(), metric.metric, metric.counted),
        (1, Metric::P99, 30)
    );
    let (shift, range) = metric.last_shift().expect("a shift");
    assert_eq!(shift.at, 20);
    assert!((shift.after / shift.before - 1.2).abs() < 0.01);
    assert_eq!(range.after_commit.as_deref(), Some(commit(19).as_str()));
    assert_eq!(range.by_commit.as_deref(), Some(commit(20).as_str()));
    assert_eq!(
        range.command().as_deref(),
        Some("git log --oneline 0000013000..0000014000")
    );
    assert!(!range.same_commit());
    let level = of(&stepped(99), &[], &Filter::default());
    assert!(level[0].series[0].metrics[0].last_shift().is_none());
}

#[test]
fn a_shift_within_one_commit_is_not_blamed_on_code() {
    let mut checks = stepped(20);
    for check in &mut checks {
        check.commit = Some(commit(1));
    }
    let found = of(&checks, &[], &Filter::default());
    let (_, range) = found[0].series[0].metrics[0].last_shift().expect("a shift");
    assert!(range.same_commit() && range.command().is_none());

    // What is no hash never reaches a command line.
    for check in &mut checks {
        check.commit = Some("$(reboot) ".to_owned());
    }
    let found = of(&checks, &[], &Filter::default());
    let (_, range) = found[0].series[0].metrics[0].last_shift().expect("a shift");
    assert!(!range.same_commit() && range.command().is_none());
}

#[test]
fn only_what_is_comparable_stands_in_one_series() {
    let mut checks = stepped(20);
    // From the step on another load: no shift, two series.
    for check in checks.iter_mut().skip(20) {
        check.scenarios[0].load = "concurrency 8, batch 1".to_owned();
    }
    let found = of(&checks, &[], &Filter::default());
    assert_eq!(found[0].series.len(), 2);
    assert!(
        found[0]
            .series
            .iter()
            .all(|s| s.metrics[0].shifts.is_empty())
    );
    assert_eq!(found[0].record.checks, 30);

    // Invalid measurements are shown and do not count.
    let mut checks = stepped(20);
    for check in checks.iter_mut().skip(20) {
        check.scenarios[0].verdict = Some(Verdict::Invalid);
    }
    let found = of(&checks, &[], &Filter::default());
    let series = &found[0].series[0];
    assert_eq!((series.points.len(), series.metrics[0].counted), (30, 20));
    assert!(series.metrics[0].shifts.is_empty());
}

#[test]
fn filters_choose() {
    let checks = stepped(20);
    let filter = |change: &dyn Fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        of(&checks, &[], &filter)
    };
    assert_eq!(filter(&|f| f.scenarios = vec!["b".to_owned()]), []);
    assert_eq!(filter(&|f| f.environment = Some("t4".to_owned())), []);
    assert_eq!(filter(&|f| f.branch = Some("topic".to_owned())), []);
    assert_eq!(filter(&|f| f.branch = Some("main".to_owned())).len(), 1);
    let none = filter(&|f| f.metrics = vec![Metric::P50]);
    assert!(none[0].series[0].metrics.is_empty());
}

#[test]
fn the_gates_record_is_kept() {
    let checks = [
        check(0, &commit(0), "pass", 1.0),
        check(1, &commit(1), "regression", 1.0),
        check(2, &commit(1), "pass", 1.0),
        check(3, &commit(3), "regression", 1.0),
        check(4, &commit(4), "inconclusive", 1.0),
        check(5, &commit(5), "accepted", 1.0),
        check(6, &commit(6), "regression", 1.0),
        check(7, &commit(7), "regression", 1.0),
        check(8, &commit(8), "invalid", 1.0),
        check(9, &commit(9), "not_affected", 1.0),
    ];
    let found = of(&checks, &[session(6, &commit(6))], &Filter::default());
    assert_eq!(
        found[0].record,
        GateRecord {
            checks: 10,
            passed: 2,
            undecided: 1,
            failed: 4,
            later_accepted: 2,
            later_passed: 1,
            accepted: 1,
            without_verdict: 1,
            not_affected: 1,
        }
    );
    // A session recorded before the failure accepts nothing.
    let found = of(&checks, &[session(1, &commit(6))], &Filter::default());
    assert_eq!(found[0].record.later_accepted, 1);
}

#[test]
fn files_are_ordered_by_time_and_count_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    };
    // The names are in the opposite order of the times.
    write("l4/b.json", &result(1, "", "pass", 1.0).to_string());
    write("l4/a.json", &result(2, "", "pass", 2.0).to_string());
    write("copy.json", &result(2, "", "pass", 2.0).to_string());
    write("l4/broken.json", "{");
    write("l4/notes.txt", "not read");
    write("l4/a/session.json", "deeper folders are not results");
    let mut found = Found::default();
    read_results(folder.path(), &mut found).expect("listed");
    let days: Vec<DateTime<Utc>> = found.checks.iter().map(|check| check.at).collect();
    assert_eq!(
        days,
        [check(1, "", "pass", 1.0).at, check(2, "", "pass", 2.0).at]
    );
    assert_eq!(found.skipped.len(), 1, "{:?}", found.skipped);
    assert!(found.skipped[0].file.ends_with("broken.json"));

    let mut none = Found::default();
    read_results(&folder.path().join("absent"), &mut none).expect("nothing");
    assert_eq!(none, Found::default());
    let file = folder.path().join("copy.json");
    assert!(read_results(&file, &mut none).is_err());
}

#[test]
fn stored_sessions_are_points() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let session = crate::baseline::test_session("20260131T120000Z-1a2b3c4-000001", 3);
    let file = store.append("l4", &session).expect("stored");
    fs::write(
        file.with_file_name("20260131T120000Z-1a2b3c4-000002.csv"),
        "schema\n",
    )
    .expect("written");
    let mut found = Found::default();
    read_baselines(&store, &mut found).expect("listed");
    assert_eq!(found.skipped.len(), 1, "{:?}", found.skipped);
    let stored = &found.sessions[0];
    assert_eq!(stored.load, "concurrency 8, batch 2");
    // 500 requests of two inferences in one second.
    let (metric, value) = stored.values[0];
    assert_eq!(metric, Metric::Throughput);
    assert!((value.value - 1000.0).abs() < 1e-6);
    let histories = of(&[], &found.sessions, &Filter::default());
    assert!(histories[0].series[0].points[0].session);
    assert_eq!(histories[0].record.checks, 0);
}

#[test]
fn the_page_names_the_shift_and_shows_only_ascii_where_asked() {
    let mut checks = stepped(20);
    checks[29].scenarios[0].verdict = Some(Verdict::Regression);
    checks[28].commit = Some("\u{1b}[31m\u{202e}\u{e9}".to_owned());
    let found = of(&checks, &[], &Filter::default());
    let style = PageStyle {
        ascii: false,
        rows: 5,
    };
    let text = page(&found, style);
    for expected in [
        "a on l4 (model m)",
        "30 checks: 29 passed, 0 undecided, 1 failed",
        "25 older ones are not shown",
        "last shift: +20.",
        "10 values since",
        "came in after 0000013000 (2026-03-20 10:00) and by 0000014000",
        "git log --oneline 0000013000..0000014000",
        "|",
    ] {
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
    let mut hostile = found;
    hostile[0].scenario = "\u{1b}[2J\u{e9}".to_owned();
    let text = page(
        &hostile,
        PageStyle {
            ascii: true,
            ..style
        },
    );
    assert!(text.is_ascii() && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn csv_and_json_hold_every_value() {
    let found = of(&stepped(20), &[session(5, &commit(5))], &Filter::default());
    let rows = csv(&found, usize::MAX).expect("CSV");
    assert_eq!(rows.lines().count(), 31);
    assert!(rows.starts_with("environment,scenario,load,measured,metric,unit,recorded_at,commit,"));
    assert_eq!(
        rows.lines().filter(|row| row.contains(",true,r")).count(),
        1
    );
    assert_eq!(csv(&found, 3).expect("CSV").lines().count(), 4);

    let skipped = [Skipped {
        file: "x".to_owned(),
        why: "y".to_owned(),
    }];
    let tool = Tool {
        version: "1".to_owned(),
        commit: String::new(),
    };
    let text = json(&found, &skipped, &tool, 2).expect("JSON");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let metric = &value["scenarios"][0]["series"][0]["metrics"][0];
    assert_eq!(metric["points"].as_array().map(Vec::len), Some(2));
    assert_eq!(metric["last_shift"]["by_commit"], commit(20));
    assert_eq!(metric["last_shift"]["at"], "2026-03-21T10:00:00Z");
    assert_eq!(value["scenarios"][0]["record"]["passed"], 30);
    assert_eq!(value["skipped"][0]["why"], "y");
}
