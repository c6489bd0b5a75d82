//! `calibrate`: the same model on both sides of the real paired measurement.

use rustix::process::Signal;
use triton_gate::simulate::{ErrorKind, FaultSpec, Running};

use crate::program::{Folder, Thresholds};
use crate::server::{model, serve, thresholds};

fn wide(server: &Running) -> Thresholds {
    // Twelve units of 4 s are a first look.
    thresholds(server).gate("budget", "\"2m\"")
}

fn calibrate(folder: &Folder, thresholds: &Thresholds, more: &[&str]) -> crate::program::Ended {
    folder.write("t.toml", &thresholds.text());
    let mut arguments = vec!["calibrate", "-c", "t.toml"];
    arguments.extend(more);
    folder.run(&arguments)
}

#[test]
fn a_server_is_calibrated_and_the_lines_are_a_thresholds_file() {
    let server = serve([model("m")]);
    let folder = Folder::new();
    let ended = calibrate(
        &folder,
        &wide(&server),
        &["--time", "80s", "--checks", "100", "--json", "c.json"],
    )
    .code(0)
    .says(&[
        "false alarm",
        "noise floor",
        "throughput_drop",
        "warming up",
    ]);
    let result = folder.json("c.json");
    assert_eq!(result["command"], "calibrate");
    let scenario = &result["scenarios"][0];
    assert_eq!(scenario["complete"], true, "{}", ended.stderr);
    assert_eq!(scenario["model_version"], "1");
    // The simulated models cannot be loaded on request, and that is said.
    assert_eq!(scenario["loads_seen"], 1);
    ended.says(&["spread between loads of the model was not seen"]);
    let toml = scenario["toml"].as_str().expect("lines");
    folder.write("pasted.toml", &format!("{}{toml}", wide(&server).text()));
    folder
        .run(&["check", "-c", "pasted.toml", "--explain-config"])
        .code(0);
}

#[test]
fn little_time_still_shows_the_noise_and_says_what_is_missing() {
    let server = serve([model("m")]);
    let folder = Folder::new();
    let ended = calibrate(&folder, &wide(&server), &["--time", "9s", "--json", "-"]).code(0);
    let result = ended.json();
    let scenario = &result["scenarios"][0];
    assert!(scenario["rates"].is_null());
    let codes: Vec<&str> = scenario["flags"]
        .as_array()
        .expect("flags")
        .iter()
        .filter_map(|flag| flag["code"].as_str())
        .collect();
    assert!(
        codes.contains(&"few_units") || codes.contains(&"no_best_block"),
        "{codes:?}"
    );
}

#[test]
fn what_cannot_be_calibrated_ends_with_its_code() {
    let folder = Folder::new();
    let server = serve([model("m")]);
    let absolute = wide(&server)
        .gate("throughput_drop", "\"off\"")
        .gate("p50_rise", "\"off\"")
        .gate("p50_max", "\"1s\"");
    calibrate(&folder, &absolute, &["--time", "5s"])
        .code(2)
        .says(&["no relative limit"]);
    calibrate(&folder, &wide(&server), &["--checks", "5"]).code(2);
    let missing = wide(&server).scenario("model", "\"other\"");
    calibrate(&folder, &missing, &["--time", "5s"])
        .code(3)
        .says(&["other"]);
    let failing = serve([model("m").fault(FaultSpec::error(ErrorKind::Execution))]);
    calibrate(&folder, &wide(&failing), &["--time", "5s"])
        .code(3)
        .says(&["requests failed"]);
    let thresholds = wide(&server);
    drop(server);
    calibrate(&folder, &thresholds, &["--time", "5s"])
        .code(3)
        .says(&["nothing listens at"]);
}

#[test]
fn an_interruption_shows_what_was_measured() {
    let server = serve([model("m")]);
    let folder = Folder::new();
    folder.write("t.toml", &wide(&server).text());
    let mut program = folder.start(&["calibrate", "-c", "t.toml", "--time", "90s", "--json", "-"]);
    program.wait_for("load 1 of the model");
    let seen = server.requests("m");
    while server.requests("m") < seen + 20 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    program.signal(Signal::INT);
    let ended = program.wait().code(130);
    let result = ended.json();
    assert_eq!(result["exit_code"], 130);
    assert_eq!(result["scenarios"][0]["complete"], false);
    assert_eq!(result["scenarios"][0]["reason"]["code"], "interrupted");
}
