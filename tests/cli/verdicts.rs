//! Verdicts, their exit codes, and the files that tell them.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::program::Folder;
use crate::server::{check, model, recorded, serve, thresholds};

/// Noise so large that no sample can decide.
const UNDECIDABLE: &str = "\"60%\"";

#[test]
fn the_same_model_passes_and_a_slow_one_fails() {
    let (_server, same, folder) = recorded();
    let passed = check(&folder, &same, &["--json", "pass.json"]).code(0);
    assert!(passed.stdout.starts_with("PASS"), "{}", passed.stdout);
    let slow = same.scenario("version", "\"2\"");
    let failed = check(&folder, &slow, &["--json", "fail.json"]).code(1);
    assert!(failed.stdout.starts_with("REGRESSION"), "{}", failed.stdout);
    failed.says(&["throughput", "P50", "model.version 1 -> 2"]);

    for (file, verdict, code) in [("pass.json", "pass", 0), ("fail.json", "regression", 1)] {
        let result = folder.json(file);
        assert_eq!(result["verdict"], verdict);
        assert_eq!(result["exit_code"], code);
        assert_eq!(result["scenarios"][0]["verdict"], verdict);
    }
    // What was measured is kept for later, beside the result.
    assert_eq!(folder.files("results", ".csv").len(), 2);
    assert_eq!(folder.files("results/test", ".json").len(), 2);
}

#[test]
fn advice_tells_the_true_verdict_and_ends_in_0() {
    let (_server, same, folder) = recorded();
    let advised = same.gate("mode", "\"advise\"").scenario("version", "\"2\"");
    let ended = check(&folder, &advised, &["--json", "-"]).code(0);
    let result = ended.json();
    assert_eq!(result["verdict"], "regression");
    assert_eq!(result["exit_code"], 0);
    assert_eq!(result["scenarios"][0]["advisory"], true);
}

#[test]
fn what_is_not_decided_ends_as_the_thresholds_say() {
    let (_server, same, folder) = recorded();
    let undecided = same.gate("assumed_noise", UNDECIDABLE);
    for (choice, code) in [("report", 4), ("fail", 1), ("pass", 0)] {
        let thresholds = undecided
            .clone()
            .gate("on_inconclusive", &format!("{choice:?}"));
        let ended = check(&folder, &thresholds, &["--json", "-"]).code(code);
        let result = ended.json();
        assert_eq!(result["verdict"], "inconclusive", "{choice}");
        assert_eq!(result["exit_code"], code, "{choice}");
        assert_eq!(
            result["scenarios"][0]["reason"]["text"]
                .as_str()
                .map(str::is_empty),
            Some(false)
        );
    }
}

#[test]
fn the_point_rule_compares_medians() {
    let (_server, same, folder) = recorded();
    // The same noise that leaves the evidence undecided.
    let noisy = same.gate("assumed_noise", UNDECIDABLE);
    check(&folder, &noisy, &["--rule", "point"]).code(0);
    let slow = noisy.scenario("version", "\"2\"");
    check(&folder, &slow, &["--rule", "point"]).code(1);
}

#[test]
fn without_a_baseline_the_check_ends_in_5_and_says_how_to_record_one() {
    let server = serve([model("m")]);
    let folder = Folder::new();
    let thresholds = thresholds(&server);
    check(&folder, &thresholds, &[]).code(5).says(&[
        "no baseline",
        "\"a\"",
        "baseline record",
        "--record-missing",
    ]);
    assert_eq!(
        server.requests("m"),
        0,
        "nothing to compare: nothing measured"
    );
}

#[test]
fn a_new_scenario_may_pass_where_the_thresholds_say_so() {
    let server = serve([model("m")]);
    let folder = Folder::new();
    let new = thresholds(&server).gate("on_missing", "\"new\"");
    let ended = check(&folder, &new, &["--json", "-"]).code(0);
    let result = ended.json();
    assert_eq!(result["verdict"], "new");
    assert!(result["scenarios"][0]["requests"].as_u64() > Some(0));
    assert!(folder.files("baselines", ".csv").is_empty());
}

#[test]
fn a_missing_baseline_is_recorded_on_request_and_used_by_the_next_check() {
    let server = serve([model("m")]);
    let folder = Folder::new();
    let thresholds = thresholds(&server);
    check(&folder, &thresholds, &["--record-missing"]).code(5);
    assert_eq!(folder.files("baselines", ".csv").len(), 1);
    check(&folder, &thresholds, &["--record-missing"]).code(0);
    assert_eq!(
        folder.files("baselines", ".csv").len(),
        1,
        "only what is missing"
    );
}

#[test]
fn a_baseline_of_another_load_is_not_compared_unless_it_is_allowed() {
    let server = serve([{
        let mut model = model("m");
        model.max_batch_size = 8;
        model
    }]);
    let folder = Folder::new();
    let one = thresholds(&server);
    folder.write("t.toml", &one.text());
    folder.run(&["baseline", "record", "-c", "t.toml"]).code(0);
    let two = one.clone().scenario("batch", "2");
    let refused = check(&folder, &two, &["--json", "refused.json"]).code(5);
    refused.says(&["load.batch: 1 -> 2", "--allow"]);
    assert_eq!(folder.json("refused.json")["verdict"], "incompatible");
    // The payload of another batch is another payload.
    let allow = ["--allow", "load.batch", "--allow", "load.payload"];
    check(&folder, &two, &allow).code(0).says(&["load.batch"]);

    let other = one.scenario("inputs.x.data", "\"zero\"");
    check(&folder, &other, &[]).code(5).says(&["load.payload"]);
    let unknown = check(
        &folder,
        &other,
        &["--allow", "load.bach", "--allow", "gpu.nam"],
    );
    unknown.code(2).says(&["gpu.nam", "gpu.name"]);
}

#[test]
fn an_accepted_slowdown_passes_until_it_expires() {
    let (_server, same, folder) = recorded();
    let slow = same.scenario("version", "\"2\"").text();
    let accept = |expires: &str| {
        let entries: Vec<String> = [("p50", "5000%"), ("throughput", "99%")]
            .iter()
            .map(|(metric, up_to)| {
                format!(
                    "[[accept]]\nscenario = \"a\"\nmetric = \"{metric}\"\nup_to = \"{up_to}\"\n\
                     reason = \"a larger model\"\nexpires = \"{expires}\"\n"
                )
            })
            .collect();
        format!("{slow}{}", entries.concat())
    };
    folder.write("t.toml", &accept("9999-12-31"));
    folder
        .run(&["check", "-c", "t.toml"])
        .code(0)
        .says(&["a larger model"]);
    folder.write("t.toml", &accept("2020-01-01"));
    folder.run(&["check", "-c", "t.toml"]).code(1);
}

#[test]
fn absolute_limits_need_no_baseline() {
    let server = serve([model("m")]);
    let folder = Folder::new();
    let limits = |most: &str| {
        thresholds(&server)
            .gate("throughput_drop", "\"off\"")
            .gate("p50_rise", "\"off\"")
            .gate("p50_max", most)
    };
    check(&folder, &limits("\"10s\""), &[]).code(0);
    check(&folder, &limits("\"10us\""), &[]).code(1);
}

#[test]
fn the_worst_scenario_decides() {
    let (_server, same, folder) = recorded();
    let missing = "[[scenario]]\nname = \"b\"\nmodel = \"m\"\n";
    folder.write("t.toml", &format!("{}{missing}", same.text()));
    folder.run(&["check", "-c", "t.toml"]).code(5);
    let slow = same.scenario("version", "\"2\"");
    folder.write("t.toml", &format!("{}{missing}", slow.text()));
    let ended = folder
        .run(&["check", "-c", "t.toml", "--json", "-"])
        .code(1);
    let result = ended.json();
    let verdicts: Vec<_> = result["scenarios"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|scenario| scenario["verdict"].as_str().expect("a verdict"))
        .collect();
    assert_eq!(verdicts, ["regression", "no_baseline"]);
    folder
        .run(&["check", "-c", "t.toml", "--only", "b"])
        .code(5);
}

/// Checks the keys that an object of the result must have, by the published schema.
fn required(schema: &Value, object: &Value, path: &str) {
    let Some(keys) = schema["required"].as_array() else {
        return;
    };
    let keys: BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    for key in &keys {
        assert!(object.get(key).is_some(), "{path}.{key} is missing");
    }
}

#[test]
fn the_result_has_every_key_that_the_schema_requires() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/result.schema.json"
    ));
    let schema: Value = serde_json::from_str(&text.expect("the schema")).expect("JSON");
    let (_server, same, folder) = recorded();
    let slow = same.scenario("version", "\"2\"");
    let ended = check(&folder, &slow, &["--json", "-"]).code(1);
    let result = ended.json();
    required(&schema, &result, "result");
    required(&schema["properties"]["tool"], &result["tool"], "tool");
    let change = &schema["properties"]["subject_changes"]["items"];
    required(change, &result["subject_changes"][0], "subject_changes[0]");
    let scenario = &result["scenarios"][0];
    let definitions = &schema["$defs"];
    required(&definitions["scenario"], scenario, "scenario");
    required(&definitions["metric"], &scenario["metrics"][0], "metric");
    let parts = &definitions["scenario"]["properties"];
    required(&parts["baseline"], &scenario["baseline"], "baseline");
    required(&parts["breakdown"], &scenario["breakdown"], "breakdown");
    required(&parts["reason"], &scenario["reason"], "reason");
    assert!(
        scenario["metrics"]
            .as_array()
            .is_some_and(|all| all.len() == 2)
    );
    let change = scenario["metrics"][0]["change"].as_f64().expect("a number");
    assert!(change < -0.7, "a fraction with its raw sign: {change}");
}

#[test]
fn reports_are_written_where_they_were_asked_for() {
    let (_server, same, folder) = recorded();
    check(
        &folder,
        &same,
        &["--junit", "out/j.xml", "--markdown", "out/r.md", "-q"],
    )
    .code(0);
    assert!(folder.read("out/j.xml").contains("<testsuite"));
    assert!(folder.read("out/r.md").contains("throughput"));
    // A report that cannot be written spoils a pass, and never hides a regression.
    folder.write("file", "in the way");
    check(&folder, &same, &["--json", "file/x.json"])
        .code(3)
        .says(&["failed to write file/x.json"]);
    let slow = same.scenario("version", "\"2\"");
    check(&folder, &slow, &["--json", "file/x.json"])
        .code(1)
        .says(&["failed to write file/x.json"]);
}

#[test]
fn a_results_folder_that_cannot_be_written_is_said() {
    let (_server, same, folder) = recorded();
    folder.write("results", "a file in the way");
    let ended = check(&folder, &same, &[]);
    assert!(
        ended.stderr.contains("results"),
        "said: {}\n{}",
        ended.stdout,
        ended.stderr
    );
    assert_ne!(ended.code, Some(1), "the fault is not the model's");
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let (_server, same, folder) = recorded();
    folder.write("t.toml", &same.text());
    let program = env!("CARGO_BIN_EXE_triton-gate");
    let script = format!(
        "'{program}' check -c t.toml --json - 2>err | head -c 1 >/dev/null; \
         exit ${{PIPESTATUS[0]}}"
    );
    let status = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path())
        .status()
        .expect("bash runs");
    assert_eq!(status.code(), Some(0), "{}", folder.read("err"));
    assert!(
        !folder.read("err").contains("panic"),
        "{}",
        folder.read("err")
    );
}

#[test]
fn secrets_appear_in_no_output_and_no_file() {
    const CANARY: &str = "canary-5f2c9a";
    let (server, same, folder) = recorded();
    let secret = same.server("metadata", "{ authorization = \"Bearer ${CANARY}\" }");
    let variables = [("CANARY", CANARY)];
    folder.write("t.toml", &secret.text());
    let reports = ["--json", "r.json", "--junit", "r.xml", "--markdown", "r.md"];
    let mut arguments = vec!["check", "-vv", "-c", "t.toml"];
    arguments.extend(reports);
    let passed = folder.run_with(&variables, &arguments).code(0);
    let explained = folder
        .run_with(&variables, &["check", "-c", "t.toml", "--explain-config"])
        .code(0);
    // And where it fails.
    drop(server);
    let failed = folder.run_with(&variables, &arguments).code(3);
    for ended in [passed, explained, failed] {
        assert!(!ended.stdout.contains(CANARY), "{}", ended.stdout);
        assert!(!ended.stderr.contains(CANARY), "{}", ended.stderr);
    }
    for file in folder.files("", "") {
        let text = std::fs::read(&file).expect("a file");
        assert!(
            !String::from_utf8_lossy(&text).contains(CANARY),
            "{}",
            file.display()
        );
    }
}
