//! The life of a baseline: importing, accepting, pinning, and a store on a branch.

use std::fs;
use std::path::Path;
use std::process::Command;

use triton_gate::simulate::Running;

use crate::program::{Ended, Folder, Thresholds};
use crate::server::{check, recorded as recorded_by_evidence};

/// The bare comparison of medians: what is tested here is what becomes of a verdict, and a busy
/// machine may leave the evidence undecided.
fn recorded() -> (Running, Thresholds, Folder) {
    let (server, same, folder) = recorded_by_evidence();
    (server, same.gate("rule", "\"point\""), folder)
}

fn slow(same: &Thresholds) -> Thresholds {
    same.clone().scenario("version", "\"2\"")
}

fn record(folder: &Folder, thresholds: &Thresholds, more: &[&str]) -> Ended {
    folder.write("record.toml", &thresholds.text());
    let mut arguments = vec!["baseline", "record", "-c", "record.toml"];
    arguments.extend(more);
    folder.run(&arguments)
}

fn fixture(name: &str) -> String {
    format!(
        "{}/tests/fixtures/perf_analyzer/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git runs");
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_session_that_regresses_is_refused_until_it_is_accepted() {
    let (_server, same, folder) = recorded();
    // Refused, and kept for whoever wants it.
    record(&folder, &slow(&same), &[]).code(1).says(&[
        "regresses against the baseline",
        "baseline accept",
        "results",
    ]);
    assert_eq!(folder.files("baselines", ".csv").len(), 1);
    let kept = folder.files("results", ".csv");
    assert_eq!(kept.len(), 1);

    check(&folder, &slow(&same), &[]).code(1);
    check(&folder, &same, &[]).code(0);
    let results = folder.files("results/test", ".json");
    assert_eq!(results.len(), 2);
    let (worse, fine) = (
        results[0].display().to_string(),
        results[1].display().to_string(),
    );
    folder
        .run(&["baseline", "accept", &fine])
        .code(2)
        .says(&["no shift to accept"]);
    folder
        .run(&["baseline", "accept", &worse])
        .code(0)
        .says(&["accepted a", "epoch 1"]);
    folder
        .run(&["baseline", "accept", &worse])
        .code(2)
        .says(&["in the baseline already"]);
    check(&folder, &slow(&same), &[])
        .code(0)
        .says(&["since the last accepted shift"]);
    folder
        .run(&["baseline", "list"])
        .code(0)
        .says(&["1 since the last accepted shift"]);
    folder
        .run(&["baseline", "show", "a"])
        .code(0)
        .says(&["epoch 1"]);
    // The refused one by its own file, a shift further.
    let csv = kept[0].display().to_string();
    folder
        .run(&["baseline", "accept", &csv])
        .code(0)
        .says(&["epoch 2"]);
}

#[test]
fn recording_may_accept_and_keeps_so_many_sessions() {
    let (_server, same, folder) = recorded();
    record(&folder, &slow(&same), &["--accept"])
        .code(0)
        .says(&["level starts anew"]);
    check(&folder, &slow(&same), &[]).code(0);
    // Both are visits to one server, but not of one level.
    record(&folder, &slow(&same), &["--keep", "1"])
        .code(0)
        .says(&["deleted"]);
    assert_eq!(folder.files("baselines", ".csv").len(), 1);
}

#[test]
fn slow_creep_is_a_regression_against_the_pinned_release() {
    let (_server, same, folder) = recorded();
    let session = folder.files("baselines", ".csv").remove(0);
    let id = session
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    folder
        .run(&["baseline", "pin", "nothing", "v1"])
        .code(5)
        .says(&["no stored session"]);
    folder.run(&["baseline", "pin", &id, "v/1"]).code(2);
    folder.run(&["baseline", "pin", &id, "v1"]).code(0);
    folder.run(&["baseline", "list"]).code(0).says(&["v1 (1)"]);
    let rows = |ended: &Ended| -> Vec<(String, String)> {
        let metrics = ended.json()["scenarios"][0]["metrics"].clone();
        metrics
            .as_array()
            .expect("rows")
            .iter()
            .map(|row| {
                let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
                (text("pin"), text("verdict"))
            })
            .collect()
    };
    let same_level = check(&folder, &same, &["--json", "-"]).code(0);
    assert_eq!(rows(&same_level).len(), 4);

    // The baseline follows the slowdown down, the pin does not.
    record(&folder, &slow(&same), &["--accept", "--keep", "1"]).code(0);
    let crept = check(&folder, &slow(&same), &["--json", "-"]).code(1);
    let crept_rows = rows(&crept);
    assert!(
        crept_rows
            .iter()
            .all(|(pin, verdict)| (pin == "v1") == (verdict == "regression")),
        "{crept_rows:?}"
    );
    crept.says(&["pin_regression"]);
    let told = check(&folder, &slow(&same), &[]).code(1);
    assert!(told.stdout.contains("throughput vs v1"), "{}", told.stdout);

    // No pruning takes it, renaming keeps it, unpinning lets it go.
    folder.run(&["baseline", "prune", "--keep", "1"]).code(0);
    folder.run(&["baseline", "rename", "a", "b"]).code(0);
    folder.run(&["baseline", "rename", "b", "a"]).code(0);
    check(&folder, &slow(&same), &[]).code(1);
    folder.run(&["baseline", "unpin", "v1"]).code(0);
    folder.run(&["baseline", "unpin", "v1"]).code(5);
    check(&folder, &slow(&same), &[]).code(0);
}

#[test]
fn files_are_imported_once_and_say_what_they_do_not_know() {
    let (_server, same, folder) = recorded();
    folder.write("m.toml", &same.text());
    for file in ["one.csv", "two.csv"] {
        folder
            .run(&[
                "measure",
                "-c",
                "m.toml",
                "--duration",
                "1200ms",
                "-o",
                file,
            ])
            .code(0);
    }
    let import = |more: &[&str]| {
        let mut arguments = vec!["baseline", "import"];
        arguments.extend(more);
        folder.run(&arguments)
    };
    import(&["one.csv"]).code(2).says(&["--environment"]);
    // The server went on counting from the recorded session to both files.
    import(&["one.csv", "two.csv", "--environment", "test"])
        .code(0)
        .says(&["imported one.csv", "count as one session"]);
    import(&["one.csv", "--environment", "test"])
        .code(2)
        .says(&["in the store already"]);
    assert_eq!(folder.files("baselines", ".csv").len(), 3);
    folder
        .run(&["baseline", "list"])
        .code(0)
        .says(&["count as 1"]);
    let ended = check(&folder, &same, &["--json", "-"]).code(0);
    assert_eq!(ended.json()["scenarios"][0]["baseline"]["sessions"], 1);

    let base = fixture("base.csv");
    import(&[&base, "--environment", "e"])
        .code(2)
        .says(&["--scenario"]);
    import(&[&base, "--environment", "e", "--scenario", "s"])
        .code(2)
        .says(&["--model"]);
    let whole = [
        base.as_str(),
        "--environment",
        "e",
        "--scenario",
        "s",
        "--model",
        "m",
    ];
    import(&whole)
        .code(0)
        .says(&["left empty", "commit", "--allow load.engine"]);
    import(&[
        &fixture("not_genai_perf.csv"),
        "--environment",
        "e",
        "--scenario",
        "s",
    ])
    .code(2);
    folder.write("bad.csv", "a,b\n1,2\n");
    import(&["bad.csv", "--environment", "e", "--scenario", "s"]).code(2);
}

#[test]
fn a_store_on_a_branch_leaves_the_work_tree_alone_and_loses_nothing() {
    let (_server, same, folder) = recorded();
    let place = ["--baselines", "git:perf"];
    record(&folder, &same, &place)
        .code(2)
        .says(&["no git repository"]);
    git(folder.path(), &["init", "-q", "-b", "main"]);
    folder.write("staged.txt", "mine");
    git(folder.path(), &["add", "staged.txt"]);
    // The test's own files are not tracked.
    let status = || {
        git(
            folder.path(),
            &["status", "--porcelain", "--untracked-files=no"],
        )
    };
    let before = status();
    record(&folder, &same, &place)
        .code(0)
        .says(&["git:perf/test/a/"]);
    assert_eq!(status(), before);
    check(&folder, &same, &place).code(0);
    folder
        .run(&["baseline", "list", "--baselines", "git:perf"])
        .code(0)
        .says(&["test"]);
    folder
        .run(&["baseline", "list", "--baselines", "git:-x"])
        .code(2)
        .says(&["not the name of a branch"]);

    let base = fixture("base.csv");
    let running: Vec<_> = (0..4)
        .map(|number| {
            folder.start(&[
                "baseline",
                "import",
                &base,
                "--baselines",
                "git:perf",
                "--environment",
                "e",
                "--scenario",
                &format!("s{number}"),
                "--model",
                "m",
            ])
        })
        .collect();
    for program in running {
        program.wait().code(0);
    }
    let files = git(folder.path(), &["ls-tree", "-r", "--name-only", "perf"]);
    for number in 0..4 {
        assert!(files.contains(&format!("e/s{number}")), "{files}");
    }
    assert!(files.contains("test/a/"), "{files}");
    assert_eq!(status(), before);

    // A branch that is checked out would be left behind by a commit.
    git(folder.path(), &["worktree", "add", "-q", "copy", "perf"]);
    folder
        .run(&["baseline", "rename", "a", "b", "--baselines", "git:perf"])
        .code(2)
        .says(&["is checked out", "is kept in"]);
}

#[test]
fn baselines_and_scenarios_that_miss_each_other_are_told() {
    let (_server, same, folder) = recorded();
    let renamed = same.clone().scenario("name", "\"new\"");
    check(&folder, &renamed, &[]).code(5).says(&[
        "baseline rename a new",
        "without a scenario in these files: a",
    ]);
    let other = renamed.scenario("concurrency", "2");
    let ended = check(&folder, &other, &[]).code(5);
    assert!(
        !ended.stdout.contains("baseline rename a"),
        "{}",
        ended.stdout
    );
    let only = check(&folder, &other, &["--only", "new"]).code(5);
    assert!(
        !only.stdout.contains("without a scenario"),
        "{}",
        only.stdout
    );
    assert!(fs::read_dir(folder.path().join("baselines")).is_ok());
}
