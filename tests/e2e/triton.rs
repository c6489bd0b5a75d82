//! The real servers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::Thresholds;

/// The server that scripts/test started, shared by all tests.
pub fn shared() -> String {
    std::env::var("TRITON_GATE_TEST_URL").expect(
        "TRITON_GATE_TEST_URL is not set: run these tests with scripts/test, which starts a Triton",
    )
}

/// A scenario on `model` of the server at `url`: default limits, a few seconds of measurement.
pub fn thresholds(url: &str, name: &str, model: &str) -> Thresholds {
    Thresholds::of(name, model)
        .server("url", &format!("{url:?}"))
        .gate("budget", "\"10s\"")
        .measure("warmup", "\"1s\"")
        .measure("block", "\"500ms\"")
        .scenario("concurrency", "4")
}

/// A server of one test's own; ends with the value.
pub struct Private {
    name: String,
    pub url: String,
    pid: Pid,
}

impl Private {
    /// Starts a server for this repository of models, or for the examples.
    pub fn up(test: &str, repository: Option<&Path>, more: &[&str]) -> Self {
        let name = format!("{test}-{}", std::process::id());
        let mut command = script("up", &name);
        if let Some(repository) = repository {
            command.arg("--repository").arg(repository);
        }
        let output = command
            .args(more)
            .stderr(Stdio::inherit())
            .output()
            .expect("scripts/triton runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let value = |key: &str| {
            said.lines()
                .find_map(|line| line.strip_prefix(&format!("{key}=")))
                .unwrap_or_else(|| panic!("no {key} from scripts/triton up: {said}"))
                .to_owned()
        };
        let pid = value("TRITON_PID").parse().expect("a number");
        Self {
            name,
            url: value("TRITON_URL"),
            pid: Pid::from_raw(pid).expect("not zero"),
        }
    }

    /// Kills the server as the kernel does when memory is short.
    pub fn kill(&self) {
        kill_process(self.pid, Signal::KILL).expect("the server runs");
    }

    /// Ends the server, and tells what is left of it and of the processes of its models.
    pub fn down(&self) -> Vec<String> {
        let state = std::fs::read_to_string(self.folder().join("state")).expect("a state");
        let mark = state
            .lines()
            .find_map(|line| line.strip_prefix("shm="))
            .expect("the mark of its processes")
            .to_owned();
        let output = script("down", &self.name).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        processes(&mark)
    }

    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(".triton")
            .join(&self.name)
    }
}

/// The command lines of all processes that hold this text.
pub fn processes(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(text))
        .collect()
}

/// A repository with version 1 of `sleep` alone, in a folder of the test.
pub fn sleep_only(folder: &Path) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/models/sleep");
    let repository = folder.join("models");
    let model = repository.join("sleep");
    std::fs::create_dir_all(model.join("1")).expect("a folder");
    for file in ["config.pbtxt", "1/model.py"] {
        std::fs::copy(from.join(file), model.join(file)).expect("a copy");
    }
    repository
}

impl Drop for Private {
    fn drop(&mut self) {
        // A test that killed its server leaves nothing to end; the folder goes either way.
        let _ = script("down", &self.name).output();
        // The log is kept where the test failed.
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(self.folder());
        }
    }
}

fn script(verb: &str, name: &str) -> Command {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/triton");
    let mut command = Command::new(script);
    command.args([verb, "--name", name]).stdin(Stdio::null());
    command
}
