//! The commands around the check.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::program::Folder;
use crate::server::{model, serve};

#[test]
fn init_writes_thresholds_that_can_be_recorded_and_overwrites_nothing() {
    let server = serve([model("m")]);
    let folder = Folder::new();
    let url = server.url();
    folder
        .run(&["init", "--url", &url])
        .code(0)
        .says(&["wrote thresholds/triton.toml", "baseline record"]);
    let text = folder.read("thresholds/triton.toml");
    assert!(text.contains("model = \"m\""), "{text}");
    folder
        .run(&["init", "--url", &url])
        .code(2)
        .says(&["overwrites nothing"]);
    assert_eq!(folder.read("thresholds/triton.toml"), text);
    let ended = folder.run(&["init", "--url", &url, "-o", "-"]).code(0);
    assert!(ended.stdout.contains("[[scenario]]"));
    folder
        .run(&["check", "--explain-config", "--environment", "test"])
        .code(0)
        .says(&["server.url", &url]);
    drop(server);
    folder
        .run(&["init", "--url", &url, "-o", "other.toml"])
        .code(3)
        .says(&["nothing listens at"]);
    assert!(!folder.path().join("other.toml").exists());
}

#[test]
fn simulate_serves_until_a_signal() {
    let folder = Folder::new();
    let example = folder.run(&["simulate", "--example"]).code(0);
    folder.write("server.toml", &example.stdout);
    let program = folder.start(&[
        "simulate",
        "-c",
        "server.toml",
        "--listen",
        "127.0.0.1:0",
        "--port-file",
        "port",
    ]);
    let begun = Instant::now();
    while !folder.path().join("port").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no port file");
        std::thread::sleep(Duration::from_millis(10));
    }
    let url = format!("127.0.0.1:{}", folder.read("port").trim());
    let ended = folder.run(&["init", "--url", &url, "-o", "-"]).code(0);
    assert!(
        ended.stdout.contains("model = \"detector\""),
        "{}",
        ended.stdout
    );
    program.signal(Signal::TERM);
    program.wait().code(0);
    folder.write("server.toml", "modle = 1\n");
    folder
        .run(&["simulate", "-c", "server.toml"])
        .code(2)
        .says(&["server.toml", "line 1"]);
}

#[test]
fn help_version_completions_and_manual_are_answers() {
    let folder = Folder::new();
    for (arguments, text) in [
        (&["--help"][..], "Exit codes:"),
        (&["check", "--help"], "--record-missing"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["completions", "bash"], "triton-gate"),
        (&["man"], ".TH"),
    ] {
        let ended = folder.run(arguments).code(0);
        assert!(
            ended.stdout.contains(text),
            "{arguments:?}: {}",
            ended.stdout
        );
        assert_eq!(ended.stderr, "", "{arguments:?}");
    }
}
