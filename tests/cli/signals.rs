//! Signals, and the lock between two checks.

use std::time::Duration;

use rustix::process::Signal;
use triton_gate::simulate::Running;

use crate::program::{Folder, Program, Thresholds};
use crate::server::{model, serve, thresholds};

/// A server, and a measurement on it that takes longer than any test waits.
fn long(warmup: &str) -> (Running, Folder) {
    let server = serve([model("m")]);
    let folder = Folder::new();
    folder.write("t.toml", &endless(&server, warmup).text());
    (server, folder)
}

fn endless(server: &Running, warmup: &str) -> Thresholds {
    thresholds(server)
        .gate("on_missing", "\"new\"")
        .gate("budget", "\"10m\"")
        .measure("warmup", warmup)
        .measure("block", "\"500ms\"")
}

/// Starts the program and waits until it loads the server in this phase.
fn under_load(server: &Running, folder: &Folder, arguments: &[&str], phase: &str) -> Program {
    let mut program = folder.start(arguments);
    program.wait_for(phase);
    let seen = server.requests("m");
    while server.requests("m") < seen + 20 {
        std::thread::sleep(Duration::from_millis(5));
    }
    program
}

const CHECK: [&str; 5] = ["check", "-c", "t.toml", "--json", "-"];

#[test]
fn a_signal_during_the_warm_up() {
    let (server, folder) = long("\"60s\"");
    for signal in [Signal::INT, Signal::TERM] {
        let program = under_load(&server, &folder, &CHECK, "warming up");
        program.signal(signal);
        let ended = program.wait().code(130);
        assert!(ended.stderr.contains("stopping"), "{}", ended.stderr);
        let result = ended.json();
        assert_eq!(result["verdict"], "interrupted");
        assert_eq!(result["exit_code"], 130);
    }
}

#[test]
fn a_signal_during_the_measurement_keeps_what_was_measured() {
    let (server, folder) = long("\"250ms\"");
    for (index, signal) in [Signal::INT, Signal::TERM].into_iter().enumerate() {
        let program = under_load(&server, &folder, &CHECK, "measuring");
        // Three of the twelve blocks and some; a loaded machine only makes them end earlier.
        std::thread::sleep(Duration::from_millis(1800));
        program.signal(signal);
        let result = program.wait().code(130).json();
        assert_eq!(result["verdict"], "interrupted");
        let kept = folder.files("results", ".csv");
        assert_eq!(kept.len(), index + 1);
        let text = std::fs::read_to_string(&kept[index]).expect("a session");
        let mut rows = csv::Reader::from_reader(text.as_bytes());
        let column = rows
            .headers()
            .expect("a header")
            .iter()
            .position(|name| name == "complete")
            .expect("the column");
        let complete: Vec<String> = rows
            .records()
            .map(|row| row.expect("a row")[column].to_owned())
            .collect();
        assert!(!complete.is_empty());
        assert!(
            complete.iter().all(|value| value == "false"),
            "{complete:?}"
        );
    }
}

#[test]
fn an_interrupted_recording_is_no_baseline() {
    let (server, folder) = long("\"250ms\"");
    let record = ["baseline", "record", "-c", "t.toml"];
    let program = under_load(&server, &folder, &record, "measuring");
    std::thread::sleep(Duration::from_millis(1800));
    program.signal(Signal::INT);
    program.wait().code(130);
    folder
        .run(&["baseline", "list"])
        .code(0)
        .says(&["0 + 1 incomplete"]);
    let fails = endless(&server, "\"250ms\"").gate("on_missing", "\"fail\"");
    folder.write("t.toml", &fails.text());
    folder.run(&CHECK).code(5);
}

#[test]
fn two_checks_never_load_one_server_at_a_time() {
    let (server, folder) = long("\"60s\"");
    let first = under_load(&server, &folder, &CHECK, "warming up");
    let second = folder
        .run(&["check", "-c", "t.toml", "--lock-wait", "0s"])
        .code(3);
    assert!(second.stderr.contains("another check"), "{}", second.stderr);
    assert!(second.stderr.contains("--lock"), "{}", second.stderr);
    // One that waits says so, and can be stopped.
    let mut third = folder.start(&["check", "-c", "t.toml"]);
    third.wait_for("waiting for another check");
    third.signal(Signal::INT);
    third.wait().code(130);
    // And it gets its turn when the first is over.
    let mut fourth = folder.start(&["check", "-c", "t.toml"]);
    fourth.wait_for("waiting for another check");
    first.signal(Signal::INT);
    first.wait().code(130);
    fourth.wait_for("warming up");
    fourth.signal(Signal::INT);
    fourth.wait().code(130);
}
