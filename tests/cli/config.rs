//! Thresholds files that are wrong: exit 2, with file and line, before anything is measured.

use crate::program::Folder;
use crate::server::at;

/// An address that no test listens on.
const NOWHERE: &str = "127.0.0.1:1";

#[test]
fn wrong_thresholds_are_usage_errors_with_their_place() {
    let good = at(NOWHERE);
    let line = |text: &str, part: &str| {
        let index = text.lines().position(|line| line.contains(part));
        1 + index.unwrap_or_else(|| panic!("{part:?} is not in\n{text}"))
    };
    let table = [
        (
            good.clone().gate("p50_rise", "\"5\"").text(),
            "p50_rise",
            "'gate.p50_rise'",
        ),
        (
            good.clone().gate("p99_ries", "\"5%\"").text(),
            "p99_ries",
            "did you mean 'p99_rise'?",
        ),
        (
            good.clone().gate("ttft_p50_rise", "\"5%\"").text(),
            "ttft_p50_rise",
            "not supported by this version",
        ),
        (
            good.clone().scenario("rate", "5").text(),
            "rate =",
            "not supported by this version",
        ),
        (
            good.clone().scenario("concurrency", "0").text(),
            "concurrency",
            "concurrency",
        ),
        (
            good.clone().gate("mode", "\"advice\"").text(),
            "mode",
            "'gate.mode'",
        ),
        (
            good.clone()
                .server("metadata", "{ a = \"${NOT_SET_ANYWHERE}\" }")
                .text(),
            "metadata",
            "NOT_SET_ANYWHERE",
        ),
        (
            good.text().replace("schema = 1", "schema = 9"),
            "schema",
            "newer",
        ),
        (
            format!("{}\nthis is not TOML\n", good.text()),
            "this is",
            "not valid TOML",
        ),
        (
            format!(
                "{}[[scenario]] # again\nname = \"a\"\nmodel = \"m\"\n",
                good.text()
            ),
            "# again",
            "taken by the scenario at",
        ),
    ];
    for (text, part, message) in table {
        let folder = Folder::new();
        folder.write("t.toml", &text);
        let place = format!("t.toml:{}", line(&text, part));
        folder
            .run(&["check", "-c", "t.toml"])
            .code(2)
            .says(&[&place, message]);
        assert!(folder.files("results", "").is_empty());
    }
}

#[test]
fn files_that_hold_no_scenario_are_usage_errors() {
    let folder = Folder::new();
    folder
        .run(&["check"])
        .code(2)
        .says(&["thresholds", "failed to read"]);
    folder
        .run(&["check", "-c", "nowhere.toml"])
        .code(2)
        .says(&["nowhere.toml"]);
    folder.write("empty.toml", "");
    folder
        .run(&["check", "-c", "empty.toml"])
        .code(2)
        .says(&["empty.toml", "no [[scenario]]"]);
    folder.write("thresholds/readme.txt", "nothing here");
    folder.run(&["check"]).code(2).says(&["no *.toml file"]);
    folder.write("t.toml", &at(NOWHERE).text());
    folder
        .run(&["check", "-c", "t.toml", "--only", "b"])
        .code(2)
        .says(&["\"b\""]);
    for wrong in [
        &["check", "--no-such-flag"][..],
        &["check", "--budget", "soon"],
        &["judge"],
        &[],
    ] {
        folder.run(wrong).code(2);
    }
}

#[test]
fn every_value_is_explained_with_its_origin() {
    let folder = Folder::new();
    folder.write("t.toml", &at(NOWHERE).text());
    let ended = folder
        .run_with(
            &[("TRITON_URL", "127.0.0.1:2")],
            &[
                "check",
                "-c",
                "t.toml",
                "--explain-config",
                "--budget",
                "7s",
            ],
        )
        .code(0);
    let row = |key: &str| {
        ended
            .stdout
            .lines()
            .find(|line| line.contains(key))
            .unwrap_or_else(|| panic!("{key} is missing:\n{}", ended.stdout))
            .to_owned()
    };
    assert!(
        row("server.url").contains("TRITON_URL"),
        "{}",
        row("server.url")
    );
    assert!(row("server.url").contains("127.0.0.1:2"));
    assert!(
        row("gate.budget").contains("--budget"),
        "{}",
        row("gate.budget")
    );
    assert!(
        row("gate.p50_rise").contains("t.toml:"),
        "{}",
        row("gate.p50_rise")
    );
    assert!(
        row("gate.false_alarm").contains("default"),
        "{}",
        row("gate.false_alarm")
    );
}
