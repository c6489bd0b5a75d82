//! Verdicts about the versions of `sleep`: 20 ms, 60 ms, and 26 ms.

use crate::program::Folder;
use crate::triton::{shared, thresholds};

#[test]
fn a_slower_version_fails_and_the_same_does_not() {
    let folder = Folder::new();
    let of = |version: &str| thresholds(&shared(), "sleep", "sleep").scenario("version", version);
    folder.write("t.toml", &of("\"1\"").text());
    folder
        .run(&["baseline", "record", "-c", "t.toml"])
        .code(0)
        .says(&["recorded sleep"]);
    let check = |version: &str| {
        folder.write("t.toml", &of(version).text());
        folder.run(&["check", "-c", "t.toml", "--json", "r.json"])
    };

    let same = check("\"1\"");
    assert!(matches!(same.code, Some(0 | 4)), "{same:?}");

    let slow = check("\"2\"").code(1);
    slow.says(&["REGRESSION", "throughput", "P99", "model.version 1 -> 2"]);
    let result = folder.json("r.json");
    let metrics = result["scenarios"][0]["metrics"]
        .as_array()
        .expect("metrics");
    let verdict = |metric: &str| {
        let row = metrics.iter().find(|row| row["metric"] == metric);
        let row = row.unwrap_or_else(|| panic!("no {metric}: {result}"));
        row["verdict"].clone()
    };
    assert_eq!(verdict("throughput"), "regression");
    // The first metric that fails ends the search: on a busy machine the P99 may still be open.
    assert!(
        ["regression", "inconclusive"].contains(&verdict("p99").as_str().unwrap_or("")),
        "{result}"
    );
    // The server says where the time went: in the model.
    assert!(result["scenarios"][0]["breakdown"].is_object(), "{result}");

    let slower = check("\"3\"");
    assert!(matches!(slower.code, Some(1 | 4)), "{slower:?}");
}

#[test]
fn an_interleaved_reference_tells_two_versions_apart() {
    let folder = Folder::new();
    let candidate = thresholds(&shared(), "sleep", "sleep")
        .gate("p99_rise", "\"off\"")
        .gate("throughput_drop", "\"30%\"")
        // Few pairs are enough at this level.
        .gate("false_alarm", "\"10%\"")
        .gate("budget", "\"40s\"")
        .measure("block", "\"auto\"")
        .scenario("version", "\"2\"");
    folder.write("t.toml", &candidate.text());
    folder
        .run(&["check", "-c", "t.toml", "--reference-version", "1"])
        .code(1)
        .says(&["REGRESSION"]);
    assert!(folder.files("baselines", ".csv").is_empty());
}

#[test]
fn without_a_baseline_nothing_is_measured() {
    let folder = Folder::new();
    // The address comes from the environment, over the file's.
    let thresholds = thresholds("localhost:1", "sleep", "sleep");
    folder.write("t.toml", &thresholds.text());
    folder
        .run_with(&[("TRITON_URL", &shared())], &["check", "-c", "t.toml"])
        .code(5)
        .says(&["no baseline", "baseline record"]);
}
