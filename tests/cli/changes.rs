//! `--changed-since`: what a change does not touch is not measured, and what nobody can tell is never a
//! pass.

use std::fs;
use std::process::Command;

use crate::program::Folder;
use crate::server::{at, recorded};

fn git(folder: &Folder, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
}

fn commit(folder: &Folder) {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "a change"]);
}

const SINCE_HEAD: [&str; 5] = ["check", "-c", "t.toml", "--changed-since", "HEAD"];

#[test]
fn only_what_a_change_touches_is_measured() {
    let (server, thresholds, folder) = recorded();
    let thresholds = thresholds.scenario("paths", "[\"models/m/**\", \"shared\"]");
    folder.write("t.toml", &thresholds.text());
    folder.write(".gitignore", "results/\n");
    folder.write("models/m/1/model.py", "one");
    git(&folder, &["init", "-q", "-b", "trunk"]);
    commit(&folder);
    let requests = || server.requests("m");

    let before = requests();
    folder
        .run(&[&SINCE_HEAD[..], &["--json", "r.json"]].concat())
        .code(0)
        .says(&["NOT AFFECTED: 1 scenario"]);
    assert_eq!(requests(), before, "nothing was measured");
    let result = folder.json("r.json");
    assert_eq!(result["verdict"], "not_affected");
    assert_eq!(result["scenarios"][0]["reason"]["code"], "not_affected");
    fs::remove_file(folder.path().join("r.json")).expect("removed");

    // Elsewhere, new, committed, in a folder that is named without a pattern, deleted.
    folder.write("models/other/config", "x");
    folder.run(&SINCE_HEAD).code(0).says(&["NOT AFFECTED"]);
    folder.write("models/m/config", "x");
    folder.run(&SINCE_HEAD).code(0).says(&["PASS"]);
    commit(&folder);
    folder.run(&SINCE_HEAD).code(0).says(&["NOT AFFECTED"]);
    let since_before = ["check", "-c", "t.toml", "--changed-since", "HEAD~1"];
    folder.run(&since_before).code(0).says(&["PASS"]);
    folder.write("shared/deep/file", "x");
    folder.run(&SINCE_HEAD).code(0).says(&["PASS"]);
    commit(&folder);
    fs::remove_file(folder.path().join("models/m/1/model.py")).expect("removed");
    folder.run(&SINCE_HEAD).code(0).says(&["PASS"]);
    commit(&folder);

    // The thresholds, and the baseline.
    folder.write("t.toml", &format!("{}\n# a word\n", thresholds.text()));
    folder.run(&SINCE_HEAD).code(0).says(&["PASS"]);
    commit(&folder);
    let file = folder.files("baselines", ".csv").remove(0);
    let moved = file.with_file_name("20300101T000000Z-0000000-000000.csv");
    fs::rename(file, moved).expect("moved");
    let ended = folder.run(&SINCE_HEAD);
    assert!(!ended.stdout.contains("NOT AFFECTED"), "{}", ended.stdout);
}

#[test]
fn where_nothing_is_affected_no_server_is_needed() {
    let folder = Folder::new();
    let thresholds = at("127.0.0.1:1").scenario("paths", "[\"models/**\"]");
    folder.write("t.toml", &thresholds.text());
    git(&folder, &["init", "-q", "-b", "trunk"]);
    commit(&folder);
    folder.run(&SINCE_HEAD).code(0).says(&["NOT AFFECTED"]);
    // Without paths it is always measured, and there is no server.
    folder.write("t.toml", &at("127.0.0.1:1").text());
    commit(&folder);
    folder.run(&SINCE_HEAD).code(5);
}

#[test]
fn what_nobody_can_tell_is_never_a_pass() {
    let folder = Folder::new();
    let thresholds = at("127.0.0.1:1").scenario("paths", "[\"models/**\"]");
    folder.write("t.toml", &thresholds.text());
    folder
        .run(&SINCE_HEAD)
        .code(2)
        .says(&["not in a git work tree", "--changed-since"]);
    git(&folder, &["init", "-q", "-b", "trunk"]);
    folder.run(&SINCE_HEAD).code(2).says(&["knows no commit"]);
    commit(&folder);
    for revision in ["origin/main", "", "--output=x", "0000000000000000"] {
        let flag = format!("--changed-since={revision}");
        folder
            .run(&["check", "-c", "t.toml", &flag])
            .code(2)
            .says(&["knows no commit", "fetch-depth: 0"]);
    }
    git(&folder, &["checkout", "-q", "--orphan", "island"]);
    git(&folder, &["commit", "-qm", "an island"]);
    folder
        .run(&["check", "-c", "t.toml", "--changed-since", "trunk"])
        .code(2)
        .says(&["no common ancestor"]);
    folder
        .run_with(&[("PATH", "/nowhere")], &SINCE_HEAD)
        .code(2)
        .says(&["failed to run git"]);
    for pattern in ["!models/**", "../models/**", "models/{a"] {
        let thresholds = at("127.0.0.1:1").scenario("paths", &format!("[{pattern:?}]"));
        folder.write("t.toml", &thresholds.text());
        folder.run(&SINCE_HEAD).code(2).says(&["t.toml", pattern]);
    }
}
