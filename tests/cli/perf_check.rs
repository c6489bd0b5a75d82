//! `scripts/perf-check` in a folder of its own, with a stand-in for `scripts/triton` that starts the
//! embedded server.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::program::{Ended, Folder, Program};

/// Starts and ends `triton-gate simulate`; a line of the file `starts` says whether a start is to fail.
const TRITON: &str = r#"#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
echo "$*" >>calls
mkdir -p servers
pid=servers/$3.pid
case $1 in
up)
    start=$(head -n 1 starts 2>/dev/null) || true
    [ -z "$start" ] || sed -i 1d starts
    [ "$start" != fail ] || exit 1
    rm -f servers/port
    "$REAL_GATE" simulate --listen 127.0.0.1:0 --port-file servers/port </dev/null >/dev/null 2>&1 8>&- &
    echo $! >"$pid"
    until [ -s servers/port ]; do sleep 0.02; done
    echo "TRITON_URL=127.0.0.1:$(cat servers/port)"
    ;;
down)
    [ -e "$pid" ] || exit 0
    kill -KILL "$(cat "$pid")"
    rm "$pid"
    ;;
esac
"#;

/// The gate, but that as many recordings fail as the file `fail-record` has lines.
const GATE: &str = r#"#!/usr/bin/env bash
if [ "$1 $2" = "baseline record" ] && [ -s fail-record ]; then
    sed -i 1d fail-record
    echo "error: the recording failed" >&2
    exit 3
fi
exec "$REAL_GATE" "$@"
"#;

/// Limits far from any noise: what is decided is not what is tested here.
const THRESHOLDS: &str = r#"
[gate]
throughput_drop = "90%"
p99_rise = "off"
p50_rise = "900%"
budget = "3s"
[measure]
warmup = "100ms"
block = "100ms"
"#;

/// A checkout with just what the script needs, and thresholds for these scenarios.
fn checkout(scenarios: &[&str]) -> Folder {
    let folder = Folder::new();
    for name in ["perf-check", "lib.sh"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("scripts")
            .join(name);
        folder.write(
            &format!("scripts/{name}"),
            &fs::read_to_string(source).expect("a script"),
        );
    }
    folder.write("scripts/triton", TRITON);
    folder.write("gate", GATE);
    for name in ["scripts/perf-check", "scripts/triton", "gate"] {
        let path = folder.path().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    folder.write("examples/models/sleep/config.pbtxt", "first");
    want(&folder, scenarios);
    folder
}

/// Thresholds for these scenarios, all of the same model and load.
fn want(folder: &Folder, scenarios: &[&str]) {
    let mut text = THRESHOLDS.to_owned();
    for name in scenarios {
        let _ = write!(
            text,
            "[[scenario]]\nname = {name:?}\nmodel = \"sleep\"\nversion = \"1\"\nconcurrency = 4\n"
        );
    }
    folder.write("t.toml", &text);
}

fn command(folder: &Folder, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(folder.path().join("scripts/perf-check"));
    for (name, _) in std::env::vars() {
        if name.starts_with("TRITON") || name.starts_with("GITHUB") || name == "CONFIG" {
            command.env_remove(name);
        }
    }
    command
        .env("REAL_GATE", env!("CARGO_BIN_EXE_triton-gate"))
        .env("TRITON_GATE", "./gate")
        .env("TRITON_GATE_ENV", "test")
        .env("PERF_CHECK_LAST_LINE", "1")
        .env("CONFIG", "t.toml")
        .env("SESSIONS", "2")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the script to its end; whatever happened no server is left and the code is said.
#[track_caller]
fn run(folder: &Folder, variables: &[(&str, &str)]) -> Ended {
    let ended = Program::start(command(folder, variables)).wait();
    tidy(folder, &ended);
    ended
}

#[track_caller]
fn tidy(folder: &Folder, ended: &Ended) {
    let left = folder.files("servers", ".pid");
    assert!(left.is_empty(), "{left:?} are left\n{}", ended.stderr);
    let code = ended.code.expect("no signal ended it");
    let last = format!("gate: exit {code}");
    assert_eq!(ended.stdout.lines().last(), Some(last.as_str()));
}

/// How often this was said.
fn times(ended: &Ended, text: &str) -> usize {
    ended.stderr.matches(text).count()
}

fn sessions(folder: &Folder, store: &str, scenario: &str) -> usize {
    folder
        .files(&format!("{store}/test/{scenario}"), ".csv")
        .len()
}

const STORE: &str = ".triton/baselines";

#[test]
fn a_failed_session_is_tried_again_and_the_models_are_kept_at_once() {
    let folder = checkout(&["a"]);
    // The first try fails, and so does the start of the server for the second one.
    folder.write("fail-record", "1\n");
    folder.write("starts", "succeed\nfail\n");
    let mut program = Program::start(command(&folder, &[]));
    program.wait_for("session 2 of 2");
    assert_eq!(
        folder.read(".triton/baselines-models/sleep/config.pbtxt"),
        "first"
    );
    let ended = program.wait();
    tidy(&folder, &ended);
    assert_eq!(sessions(&folder, STORE, "a"), 2, "{}", ended.stderr);
    assert_eq!(times(&ended, "session 1 failed"), 2, "{}", ended.stderr);
    assert!(folder.read("calls").contains("--repository"));

    // What fails every time ends in the gate's own code, and says what stands.
    let folder = checkout(&["a"]);
    folder.write("fail-record", "1\n2\n3\n4\n");
    let ended = run(&folder, &[]).code(3);
    assert_eq!(times(&ended, "the recording failed"), 3, "{}", ended.stderr);
    assert!(!folder.path().join(".triton/baselines-models").exists());
}

#[test]
fn only_what_lacks_a_baseline_is_recorded() {
    let folder = checkout(&["a"]);
    run(&folder, &[]);
    assert_eq!(sessions(&folder, STORE, "a"), 2);
    // A scenario more, a model that changed, and a new one.
    want(&folder, &["a", "b"]);
    folder.write("examples/models/sleep/config.pbtxt", "second");
    folder.write("examples/models/new/config.pbtxt", "new");
    let ended = run(&folder, &[]).says(&["no baseline in .triton/baselines for: b", "model sleep"]);
    assert_eq!(sessions(&folder, STORE, "a"), 2, "{}", ended.stderr);
    assert_eq!(sessions(&folder, STORE, "b"), 2, "{}", ended.stderr);
    let kept = |model: &str| {
        let name = format!(".triton/baselines-models/{model}/config.pbtxt");
        folder.read(&name)
    };
    assert_eq!(
        [kept("sleep"), kept("new")],
        ["first", "new"],
        "{}",
        ended.stderr
    );
    // Another store has models of its own, and without them it stands alone.
    let other = [("BASELINES", "other/"), ("SESSIONS", "1")];
    run(&folder, &other);
    assert_eq!(sessions(&folder, "other", "a"), 1);
    assert_eq!(folder.read("other-models/sleep/config.pbtxt"), "second");
    assert_eq!(kept("sleep"), "first");
    fs::remove_dir_all(folder.path().join("other-models")).expect("removed");
    let ended = run(&folder, &other).says(&["no copy of the models", "decides alone"]);
    assert_eq!(times(&ended, "recording"), 0, "{}", ended.stderr);
    assert!(!folder.path().join("other-models").exists());
}

#[test]
fn an_interrupted_script_leaves_nothing_behind() {
    let folder = checkout(&["a"]);
    // Still in the warm-up when the signal comes, however long a busy machine takes to send it.
    let slow = folder
        .read("t.toml")
        .replace("warmup = \"100ms\"", "warmup = \"60s\"")
        .replace("budget = \"3s\"", "budget = \"5m\"");
    folder.write("t.toml", &slow);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut program = Program::start(command(&folder, &[]));
        program.wait_for("warming up");
        program.signal(signal);
        let ended = program.wait().code(code);
        tidy(&folder, &ended);
    }
}
