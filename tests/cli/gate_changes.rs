//! `--gate-base`: what a change alters in the gate itself is told beside the verdict.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::program::{Folder, Thresholds};
use crate::server::{at, recorded};

const CHECK: [&str; 7] = [
    "check",
    "--gate-base",
    "base",
    "--gate-head",
    "head",
    "--json",
    "r.json",
];

fn git(folder: &Folder, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments)
        .current_dir(folder.path().join("head"))
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A folder with two checkouts of the same thresholds, in which nothing is affected by a change:
/// no server is needed to see what is told.
fn checkouts() -> (Folder, Thresholds) {
    let folder = Folder::new();
    let thresholds = at("127.0.0.1:1").scenario("paths", "[\"models/**\"]");
    for side in ["base", "head"] {
        folder.write(&format!("{side}/thresholds/t.toml"), &thresholds.text());
    }
    git(&folder, &["init", "-q", "-b", "trunk"]);
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-qm", "base"]);
    (folder, thresholds)
}

fn told(folder: &Folder, arguments: &[&str]) -> (Value, String) {
    let _ = fs::remove_file(folder.path().join("r.json"));
    let answer = folder.run(&[&CHECK[..], arguments, &["--environment", "sim"]].concat());
    // Without a server: not affected, or without a baseline.
    assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
    let changes = folder.json("r.json")["gate_changes"].clone();
    (changes, answer.stdout)
}

const BY_BASE: [&str; 4] = ["-c", "base/thresholds", "--changed-since", "HEAD"];

#[test]
fn what_a_change_alters_is_told_beside_the_verdict() {
    let (folder, thresholds) = checkouts();
    let (changes, out) = told(&folder, &BY_BASE);
    assert_eq!(changes["changes"], serde_json::json!([]));
    assert!(!out.contains("changes the gate"), "{out}");
    // As a reader finds it in his own checkout.
    assert_eq!(folder.json("r.json")["configs"][0], "thresholds/t.toml");

    let milder = thresholds
        .gate("p50_rise", "\"900%\"")
        .gate("mode", "\"advise\"")
        .scenario("paths", "[\"models/a/**\"]");
    folder.write("head/thresholds/t.toml", &milder.text());
    folder.write("head/baselines/sim/s/1.csv", "x");
    // Committed, so that git sees no further change: the thresholds still touch the scenario.
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-qm", "a change"]);
    let (changes, out) = told(&folder, &BY_BASE);
    assert_eq!(changes["judged_by"], "base");
    for line in [
        "this pull request changes the gate (judged by the gate of the commit that it is based on):",
        "a: p50_rise 200% -> 900% (milder)",
        "a: mode enforce -> advise (milder)",
        "a: paths narrower, fewer changes are measured: models/** -> models/a/**",
        "stored baselines: files in baselines: 1 added",
    ] {
        assert!(out.contains(line), "{line}:\n{out}");
    }
    let (changes, out) = told(
        &folder,
        &["-c", "head/thresholds", "--changed-since", "HEAD"],
    );
    assert_eq!(changes["judged_by"], "head");
    assert!(out.contains("judged by the changed gate"), "{out}");
}

#[test]
fn a_removed_scenario_and_other_environments_are_told() {
    let (folder, thresholds) = checkouts();
    let more = format!(
        "{}[[scenario]]\nname = \"gone\"\nmodel = \"m\"\npaths = [\"models\"]\n",
        thresholds.text()
    );
    folder.write("base/thresholds/t.toml", &more);
    let section = format!(
        "{}[environment.t4.gate]\np50_rise = \"900%\"\n",
        thresholds.text()
    );
    folder.write("head/thresholds/t.toml", &section);
    git(&folder, &["commit", "-qam", "a change"]);
    let (_, out) = told(&folder, &BY_BASE);
    for line in [
        "gone: scenario removed, no longer gated",
        "a: p50_rise 200% -> 900% (milder) in the environment t4",
    ] {
        assert!(out.contains(line), "{line}:\n{out}");
    }
}

#[test]
fn a_side_that_cannot_be_read_is_told_and_shows_nothing_from_elsewhere() {
    let (folder, _) = checkouts();
    let file = folder.path().join("head/thresholds/t.toml");
    folder.write("head/thresholds/t.toml", "schema = 1\nwhat = 1\n");
    git(&folder, &["commit", "-qam", "broken"]);
    let (changes, out) = told(&folder, &BY_BASE);
    assert_eq!(changes["changes"][0]["kind"], "unreadable");
    assert!(
        out.contains("the thresholds of the pull request cannot be read:") && out.contains("what"),
        "{out}"
    );
    folder.write("secret", "hunter2 = 1\n");
    fs::remove_file(&file).expect("removed");
    symlink(folder.path().join("secret"), &file).expect("linked");
    symlink("/", folder.path().join("head/baselines")).expect("linked");
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-qm", "links"]);
    let (_, out) = told(&folder, &BY_BASE);
    assert!(out.contains("leads out of the checkout"), "{out}");
    assert!(
        !out.contains("hunter2") && !out.contains("stored baselines"),
        "{out}"
    );
    fs::remove_dir_all(folder.path().join("head/thresholds")).expect("removed");
    git(&folder, &["commit", "-qam", "gone"]);
    let (_, out) = told(&folder, &BY_BASE);
    assert!(out.contains("a: scenario removed"), "{out}");
}

#[test]
fn the_base_may_lie_within_the_checkout_and_a_verdict_stays_what_it_is() {
    let (_server, thresholds, folder) = recorded();
    folder.write("base/t.toml", &thresholds.text());
    let stricter = thresholds.gate("p50_rise", "\"400%\"");
    folder.write("t.toml", &stricter.text());
    let answer = folder
        .run(&[
            "check",
            "-c",
            "t.toml",
            "--gate-base",
            "base",
            "--json",
            "r.json",
        ])
        .code(0)
        .says(&["PASS"]);
    assert!(
        answer.stdout.contains("judged by the changed gate"),
        "{}",
        answer.stdout
    );
    let result = folder.json("r.json");
    assert_eq!(result["gate_changes"]["judged_by"], "head");
    assert_eq!(result["configs"][0], "t.toml");
}

#[test]
fn folders_that_do_not_fit_are_usage() {
    let (folder, thresholds) = checkouts();
    folder.write("elsewhere.toml", &thresholds.text());
    folder
        .run(&["check", "-c", "base/thresholds", "--gate-base", "none"])
        .code(2)
        .says(&["--gate-base: none is not a folder"]);
    folder
        .run(
            &[
                &CHECK[..],
                &["-c", "elsewhere.toml", "--changed-since", "HEAD"],
            ]
            .concat(),
        )
        .code(2)
        .says(&["elsewhere.toml lies neither in base nor in head"]);
    folder
        .run(&["check", "-c", "base/thresholds", "--gate-head", "head"])
        .code(2);
}
