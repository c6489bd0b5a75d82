//! The scripts that serve two Tritons for a job, with a docker that only notes what it is asked.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::scripts::{ran, script, text, write};

/// A docker whose containers answer at `health`, and that runs as `running` says.
fn docker(folder: &Path, health: &str, running: bool) -> PathBuf {
    let file = folder.join("docker");
    let log = folder.join("log");
    let content = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >>{log}\ncase $1 in\n\
         port) case $3 in 8001/tcp) echo 127.0.0.1:18001 ;; *) echo {health} ;; esac ;;\n\
         inspect) echo {running} ;;\nlogs) echo 'out of memory' ;;\nps) echo abc ;;\nesac\n",
        log = log.display()
    );
    write(&file, &content);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("executable");
    file
}

fn serve(folder: &Path, docker: &Path) -> Command {
    let mut command = script("serve");
    command
        .env("DOCKER", docker)
        .env("SERVE_ID", "t1")
        .env("SERVE_TIMEOUT", "20")
        .current_dir(folder);
    command
}

const IMAGE: &str = "nvcr.io/nvidia/tritonserver:24.10-py3";

#[tokio::test]
async fn an_image_is_served_and_ended_by_its_name() {
    let server = MockServer::start().await;
    let ready = "/v2/health/ready";
    // Not ready at first.
    Mock::given(path(ready))
        .respond_with(ResponseTemplate::new(400))
        .up_to_n_times(1)
        .with_priority(1)
        .mount(&server)
        .await;
    Mock::given(path(ready))
        .respond_with(ResponseTemplate::new(200))
        .mount(&server)
        .await;
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("models")).expect("a folder");
    let docker = docker(at, &server.address().to_string(), true);
    let output = ran(serve(at, &docker).args(["up", "new-one", "models", IMAGE, "18001"]));
    assert_eq!(text(&output.stdout), "NEW_ONE_URL=127.0.0.1:18001\n");
    let log = std::fs::read_to_string(at.join("log")).expect("noted");
    let run = log
        .lines()
        .find(|line| line.starts_with("run "))
        .expect("a run");
    for part in [
        "--name ci-t1-new-one ",
        "--publish 127.0.0.1:18001:8001 ",
        "/models:/models:ro ",
        "--gpus all ",
        &format!("{IMAGE} tritonserver --model-repository=/models"),
    ] {
        assert!(run.contains(part), "{part}: {run}");
    }
    ran(serve(at, &docker).args(["down", "new-one"]));
    let log = std::fs::read_to_string(at.join("log")).expect("noted");
    assert!(log.ends_with("rm --force ci-t1-new-one\n"), "{log}");
}

#[test]
fn a_container_that_ends_is_said_with_its_last_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("models")).expect("a folder");
    let docker = docker(at, "127.0.0.1:1", false);
    let output = serve(at, &docker)
        .args(["up", "new", "models", IMAGE])
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(1));
    let err = text(&output.stderr);
    assert!(
        err.contains("out of memory") && err.contains(IMAGE),
        "{err}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn what_cannot_be_served_is_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("models")).expect("a folder");
    for (arguments, code) in [
        (&["up", "new"][..], 2),
        (&["up", "a;b", "models"], 2),
        (&["up", "new", "nowhere"], 2),
        (&["up", "new", "models", "--privileged"], 2),
        (&["up", "new", "models", IMAGE, "80a"], 2),
        (&["up", "new", "models", IMAGE], 69),
        (&["what", "new"], 2),
    ] {
        let output = serve(at, Path::new("no-such-docker"))
            .args(arguments)
            .output()
            .expect("starts");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn turns_are_a_thresholds_file_that_the_gate_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("my models")).expect("a folder");
    write(
        &at.join("t.toml"),
        "schema = 1\n[environment]\nname = \"e\"\n[[scenario]]\nname = \"a\"\nmodel = \"m\"\n",
    );
    let turns = |config: &str| {
        let mut command = script("turns");
        command
            .args([config, "my models", "2.48.0", IMAGE, "turns.toml"])
            .current_dir(at);
        command
    };
    let output = ran(&mut turns("t.toml"));
    assert_eq!(text(&output.stdout), "GATE_TURNS=turns.toml\n");
    let explained = ran(Command::new(env!("CARGO_BIN_EXE_triton-gate"))
        .args(["check", "-c", "turns.toml", "--explain-config"])
        .env_remove("TRITON_URL")
        .current_dir(at));
    let out = text(&explained.stdout);
    for part in [
        "server.launch",
        "reference.launch",
        "2.48.0",
        IMAGE,
        "my models",
        "127.0.0.1:18001",
    ] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
    write(
        &at.join("own.toml"),
        "schema = 1\n[server]\nurl = \"a:1\"\n",
    );
    for config in ["own.toml", "none.toml", "my models"] {
        let output = turns(config).output().expect("starts");
        assert_eq!(output.status.code(), Some(2), "{config}");
    }
}
