//! Servers of a test's own: killed, changed, and with models loaded on request.

use std::collections::BTreeSet;

use crate::program::Folder;
use crate::triton::{Private, processes, sleep_only, thresholds};

#[test]
fn a_server_killed_while_it_is_measured() {
    let folder = Folder::new();
    let server = Private::up("killed", Some(&sleep_only(folder.path())), &[]);
    let long = thresholds(&server.url, "sleep", "sleep").gate("on_missing", "\"new\"");
    folder.write(
        "t.toml",
        &long
            .measure("block", "\"2s\"")
            .gate("budget", "\"60s\"")
            .text(),
    );
    let mut program = folder.start(&["check", "-c", "t.toml", "--json", "-"]);
    program.wait_for("measuring");
    std::thread::sleep(std::time::Duration::from_secs(1));
    server.kill();
    let ended = program.wait().code(3);
    assert_eq!(ended.json()["verdict"], "invalid");
    assert!(ended.stderr.contains("next:"), "{}", ended.stderr);
    // Nothing of ours is left, nor of the server once it is swept up.
    let ours = folder.path().to_string_lossy().into_owned();
    assert_eq!(processes(&format!("triton-gate check -c {ours}")), [""; 0]);
    assert_eq!(server.down(), [""; 0]);
}

#[test]
fn a_changed_configuration_is_judged_and_named() {
    let folder = Folder::new();
    let repository = sleep_only(folder.path());
    let before = Private::up("before", Some(&repository), &[]);
    let of = |url: &str| thresholds(url, "sleep", "sleep").text();
    folder.write("t.toml", &of(&before.url));
    folder.run(&["baseline", "record", "-c", "t.toml"]).code(0);
    drop(before);

    let config = "models/sleep/config.pbtxt";
    let text = folder.read(config);
    let fewer = text.replace("count: 4", "count: 2");
    assert_ne!(text, fewer);
    folder.write(config, &fewer);
    let after = Private::up("after", Some(&repository), &[]);
    folder.write("t.toml", &of(&after.url));
    let ended = folder.run(&["check", "-c", "t.toml", "--json", "r.json"]);
    // Half the instances for the same load: comparable, and no pass.
    assert!(matches!(ended.code, Some(1 | 4)), "{ended:?}");
    ended.says(&["what changed", "instance_group"]);
    let changes = &folder.json("r.json")["subject_changes"];
    let counts: Vec<_> = changes
        .as_array()
        .expect("a list")
        .iter()
        .filter(|change| {
            change["field"]
                .as_str()
                .is_some_and(|field| field.contains("instance"))
        })
        .collect();
    assert!(!counts.is_empty(), "{changes}");
}

#[test]
fn sessions_with_models_loaded_on_request_are_lives_of_their_own() {
    let folder = Folder::new();
    let repository = sleep_only(folder.path());
    let server = Private::up("explicit", Some(&repository), &["--explicit"]);
    let explicit =
        thresholds(&server.url, "sleep", "sleep").server("model_control", "\"explicit\"");
    folder.write("t.toml", &explicit.text());
    let ended = folder
        .run(&[
            "baseline",
            "record",
            "-c",
            "t.toml",
            "--sessions",
            "2",
            "--duration",
            "2s",
        ])
        .code(0);
    assert!(!ended.stderr.contains("count as one"), "{}", ended.stderr);
    let lives: BTreeSet<String> = folder
        .files("baselines", ".csv")
        .iter()
        .map(|file| {
            let mut rows = csv::Reader::from_path(file).expect("a session");
            let header = rows.headers().expect("a header").clone();
            let column = header.iter().position(|name| name == "life").expect("life");
            let row = rows.records().next().expect("a row").expect("CSV");
            row[column].to_owned()
        })
        .collect();
    assert_eq!(lives.len(), 2, "{lives:?}");
    assert!(!lives.contains(""), "{lives:?}");
    // Unloaded again: the next check loads it.
    let ended = folder.run(&["check", "-c", "t.toml"]);
    assert!(matches!(ended.code, Some(0 | 1 | 4)), "{ended:?}");
}
