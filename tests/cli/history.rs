//! What earlier checks found.

use std::fs;

use serde_json::json;

use crate::program::Folder;
use crate::server::{check, recorded};

/// Thirty kept results; from the 20th on the median latency is a fifth higher.
fn kept(folder: &Folder) {
    for day in 1..=30 {
        let level = if day >= 20 { 1200.0 } else { 1000.0 };
        let p50 = level * (1.0 + 0.001 * f64::from(day % 3));
        let result = json!({
            "schema": 1,
            "command": "check",
            "started_at": format!("2026-03-{day:02}T10:00:00Z"),
            "environment_name": "l4",
            "commit": format!("{day:07}{:033}", 0),
            "branch": "main",
            "dirty": false,
            "scenarios": [{
                "name": "yolov9-c8",
                "model": "yolov9",
                "load": "concurrency 8, batch 1",
                "verdict": if day == 20 { "regression" } else { "pass" },
                "baseline": { "kind": "stored" },
                "metrics": [{ "metric": "p50", "candidate": p50, "verdict": "pass" }],
            }],
        });
        folder.write(&format!("results/l4/{day}.json"), &result.to_string());
    }
}

#[test]
fn a_history_names_the_commits_of_its_last_shift() {
    let folder = Folder::new();
    kept(&folder);
    folder.write("results/l4/half.json", "{\"schema\": 1, ");
    folder.write("results/l4/new.json", "{\"schema\": 7}");
    folder
        .run(&["history", "--csv", "h.csv", "--json", "h.json"])
        .code(0)
        .says(&[
            "yolov9-c8 on l4",
            "30 checks: 29 passed, 0 undecided, 1 failed",
            "last shift: +20.0 %",
            "git log --oneline 0000019000..0000020000",
            "half.json: not JSON",
            "new.json: schema 7",
        ]);
    assert_eq!(folder.read("h.csv").lines().count(), 31);
    let value = folder.json("h.json");
    let shift = &value["scenarios"][0]["series"][0]["metrics"][0]["last_shift"];
    assert_eq!(shift["by_commit"], format!("{:07}{:033}", 20, 0));
    assert_eq!(value["skipped"].as_array().map(Vec::len), Some(2));

    let data = folder
        .run(&["history", "--json", "-", "--last", "2"])
        .code(0);
    assert_eq!(
        data.json()["scenarios"][0]["series"][0]["metrics"][0]["points"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    let plain = folder
        .run_with(&[("LC_ALL", "C")], &["history", "--metric", "p50"])
        .code(0);
    assert!(plain.stdout.is_ascii(), "{}", plain.stdout);
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let folder = Folder::new();
    folder
        .run(&["history"])
        .code(5)
        .says(&["no check has been kept in results", "triton-gate check"]);
    kept(&folder);
    folder
        .run(&["history", "--scenario", "yolo"])
        .code(5)
        .says(&["nothing in results", "scenarios: yolov9-c8"]);
    folder
        .run(&["history", "--scenario", "yolo", "--scenario", "yolov9-c8"])
        .code(5)
        .says(&["no history of scenario \"yolo\"", "scenarios: yolov9-c8"]);
    folder
        .run(&["history", "--environment", "t4"])
        .code(5)
        .says(&["environments: l4"]);
    folder
        .run(&["history", "--metric", "p42"])
        .code(2)
        .says(&["unknown metric"]);
    folder
        .run(&["history", "--csv", "-", "--json", "-"])
        .code(2)
        .says(&["cannot both"]);
    folder
        .run(&["history", "--results", "results/l4/1.json"])
        .code(2)
        .says(&["failed to list the results folder"]);
}

#[test]
fn a_check_leaves_its_commit_for_the_history() {
    let (_server, thresholds, folder) = recorded();
    let git = |arguments: &[&str]| {
        let status = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(arguments)
            .current_dir(folder.path())
            .status()
            .expect("git runs");
        assert!(status.success(), "git {arguments:?}");
    };
    git(&["init", "-q", "-b", "trunk"]);
    git(&["add", "t.toml"]);
    git(&["commit", "-qm", "one"]);
    check(&folder, &thresholds, &[]).code(0);
    let file = folder
        .files("results", ".json")
        .pop()
        .expect("a kept result");
    let text = fs::read_to_string(file).expect("read");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["branch"], "trunk");
    assert_eq!(value["dirty"], false);
    let commit = value["commit"].as_str().expect("a commit");
    folder
        .run(&["history", "--branch", "trunk"])
        .code(0)
        .says(&["a on test", "1 check: 1 passed", &commit[..10]]);
    // The session that was recorded before there was a repository is a point without a commit.
    folder.run(&["history"]).code(0).says(&["baseline"]);
}
