//! What the workflow files promise, read as text: `make test-web` has their schema.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scripts::{echo, text, write};

/// The most lines of a `run:`; more is a script, which a test can execute.
const LONGEST: usize = 3;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The workflows and the action, with their text.
fn files() -> Vec<(PathBuf, String)> {
    let workflows = fs::read_dir(root().join(".github/workflows")).expect("workflows");
    let mut paths: Vec<PathBuf> = workflows
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.push(root().join(".github/actions/triton-gate/action.yml"));
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("readable");
            (path, text)
        })
        .collect()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[test]
fn a_step_that_does_much_is_a_script() {
    for (path, text) in files() {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if !line
                .trim_start()
                .trim_start_matches("- ")
                .starts_with("run: |")
            {
                continue;
            }
            let length = lines[at + 1..]
                .iter()
                .take_while(|next| next.is_empty() || indent(next) > indent(line) + 1)
                .count();
            assert!(
                length <= LONGEST,
                "{}:{}: {length} lines",
                path.display(),
                at + 1
            );
        }
    }
}

#[test]
fn scripts_that_are_named_are_there_and_can_be_executed() {
    let mut named = 0;
    for (path, text) in files() {
        for word in text.split([' ', '"', '\n', '&']) {
            let Some((_, name)) = word.split_once("scripts/ci/") else {
                continue;
            };
            let script = root().join("scripts/ci").join(name);
            let mode = fs::metadata(&script)
                .unwrap_or_else(|error| panic!("{}: {}: {error}", path.display(), script.display()))
                .permissions()
                .mode();
            assert!(mode & 0o111 != 0, "{}", script.display());
            named += 1;
        }
    }
    assert!(named >= 10, "{named}");
}

#[test]
fn actions_are_pinned_and_rights_are_few() {
    for (path, text) in files() {
        let shown = path.display();
        for line in text.lines() {
            let Some((_, action)) = line.split_once("uses: ") else {
                continue;
            };
            let pinned = action.split_once('@').is_some_and(|(_, commit)| {
                let hash: String = commit.chars().take(40).collect();
                hash.len() == 40 && hash.chars().all(|c| c.is_ascii_hexdigit())
            });
            assert!(pinned || action.starts_with("./"), "{shown}: {action}");
        }
        if path.ends_with("action.yml") {
            continue;
        }
        assert!(
            text.contains("\npermissions:\n  contents: read\n"),
            "{shown}"
        );
        assert!(!text.contains("pull_request_target"), "{shown}");
        // A value of an event within a script is a script of whoever chose it.
        for line in text.lines().filter(|line| line.contains("run: ")) {
            assert!(!line.contains("${{"), "{shown}: {line}");
        }
    }
}

#[test]
fn every_input_of_the_action_reaches_the_check() {
    let action = fs::read_to_string(root().join(".github/actions/triton-gate/action.yml"))
        .expect("readable");
    let check = fs::read_to_string(root().join("scripts/ci/check")).expect("readable");
    let (inputs, steps) = action.split_once("\noutputs:\n").expect("outputs");
    let names: Vec<&str> = inputs
        .lines()
        .filter(|line| indent(line) == 2)
        .filter_map(|line| line.trim().strip_suffix(':'))
        .collect();
    for wanted in [
        "config",
        "url",
        "baselines",
        "reference-url",
        "reference-model",
        "reference-version",
        "environment",
        "comment",
        "on-inconclusive",
        "version",
    ] {
        assert!(names.contains(&wanted), "{wanted}");
    }
    for name in names {
        assert!(
            steps.contains(&format!("${{{{ inputs.{name} }}}}")),
            "{name} is never used"
        );
    }
    for line in steps
        .lines()
        .filter(|line| line.trim().starts_with("GATE_"))
    {
        let variable = line.trim().split(':').next().unwrap_or_default();
        assert!(
            check.contains(&format!("${{{variable}:-")),
            "{variable} is never read"
        );
    }
}

/// The outputs that the action names are the ones that the program writes.
#[test]
fn every_output_of_the_action_is_written() {
    let action = fs::read_to_string(root().join(".github/actions/triton-gate/action.yml"))
        .expect("readable");
    let source = fs::read_to_string(root().join("src/github/outputs.rs")).expect("readable");
    let mut seen = 0;
    for (_, rest) in action
        .match_indices("steps.check.outputs.")
        .map(|(at, found)| action.split_at(at + found.len()))
    {
        let name: String = rest
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || *c == '-')
            .collect();
        assert!(
            source.contains(&format!("(\"{name}\"")) || source.contains(&format!("\"{name}\",")),
            "{name}"
        );
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

/// The steps find their scripts wherever GitHub put the action, and become the program.
#[test]
fn the_action_runs_from_another_repository() {
    let folder = tempfile::tempdir().expect("a folder");
    let action = root().join(".github/actions/triton-gate");
    let content = fs::read_to_string(action.join("action.yml")).expect("readable");
    let steps: Vec<&str> = content
        .lines()
        .filter_map(|line| line.trim().strip_prefix("run: "))
        .collect();
    assert_eq!(steps.len(), 2, "{steps:?}");
    for step in &steps {
        let inner = step
            .strip_prefix("exec \"$GITHUB_ACTION_PATH/")
            .and_then(|rest| rest.strip_suffix('"'));
        let script = action.join(inner.expect("a script of its own"));
        assert!(script.exists(), "{}", script.display());
    }
    let child = Command::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", steps[1]])
        .env("GITHUB_ACTION_PATH", &action)
        .env("GATE_BINARY", echo(folder.path()))
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    let process = child.id().to_string();
    let out = text(&child.wait_with_output().expect("ends").stdout);
    // The same process: a signal to the step reaches the program.
    assert_eq!(out.lines().next(), Some(process.as_str()), "{out}");
    assert!(out.contains("check\n--github\n"), "{out}");
}

/// The job for other systems in docs/ci.md does what it says.
#[test]
fn the_shell_job_of_the_guide_passes_the_verdict_on() {
    let guide = fs::read_to_string(root().join("docs/ci.md")).expect("readable");
    let (_, rest) = guide.split_once("## Anything else").expect("a section");
    let (_, rest) = rest.split_once("```sh\n").expect("a job");
    let (job, _) = rest.split_once("```").expect("its end");
    let folder = tempfile::tempdir().expect("a folder");
    for (code, expected) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0), (5, 5)] {
        let gate = folder.path().join("triton-gate");
        write(&gate, &format!("#!/bin/sh\nexit {code}\n"));
        fs::set_permissions(&gate, fs::Permissions::from_mode(0o755)).expect("executable");
        let status = Command::new("sh")
            .args(["-e", "-c", job])
            .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
            .stdout(std::process::Stdio::null())
            .status()
            .expect("a shell");
        assert_eq!(status.code(), Some(expected), "{code}");
    }
}
