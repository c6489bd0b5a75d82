//! The scripts of the action and the workflows, against folders and repositories of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const GATE: &str = env!("CARGO_BIN_EXE_triton-gate");

pub fn script(name: &str) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(root.join("scripts/ci").join(name));
    for variable in [
        "GITHUB_STEP_SUMMARY",
        "GITHUB_OUTPUT",
        "GITHUB_ACTION_REF",
        "GITHUB_TOKEN",
        "GITHUB_RUN_ID",
        "TRITON_URL",
        "TRITON_GATE_ENV",
    ] {
        command.env_remove(variable);
    }
    command.env("GATE_BINARY", GATE);
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn ran(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

pub fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(path, content).expect("written");
}

fn git(folder: &Path, arguments: &[&str]) -> Output {
    ran(Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args(arguments)
        .current_dir(folder))
}

/// A bare repository and two checkouts of it.
fn repositories(folder: &Path) -> (PathBuf, PathBuf) {
    git(
        folder,
        &["init", "--quiet", "--bare", "-b", "main", "origin"],
    );
    let one = folder.join("one");
    git(folder, &["clone", "--quiet", "origin", "one"]);
    write(&one.join("README"), "x");
    git(&one, &["add", "."]);
    git(&one, &["commit", "--quiet", "-m", "first"]);
    git(&one, &["push", "--quiet", "origin", "HEAD:main"]);
    git(folder, &["clone", "--quiet", "origin", "two"]);
    (one, folder.join("two"))
}

#[test]
fn sessions_of_two_jobs_meet_on_the_branch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = repositories(folder.path());
    let into = folder.path().join("got");
    ran(script("baselines")
        .arg("fetch")
        .arg(&into)
        .current_dir(&one));
    assert_eq!(std::fs::read_dir(&into).expect("made").count(), 0);
    let jobs: Vec<_> = [(&one, "a"), (&two, "b")]
        .into_iter()
        .map(|(checkout, name)| {
            let sessions = folder.path().join(name);
            write(&sessions.join(format!("h100/s/{name}.csv")), name);
            write(&sessions.join("h100/environment.toml"), name);
            script("baselines")
                .arg("push")
                .arg(&sessions)
                .current_dir(checkout)
                .spawn()
                .expect("starts")
        })
        .collect();
    for mut job in jobs {
        assert!(job.wait().expect("ends").success());
    }
    ran(script("baselines")
        .arg("fetch")
        .arg(&into)
        .current_dir(&two));
    for name in ["a", "b"] {
        let file = into.join(format!("h100/s/{name}.csv"));
        assert_eq!(std::fs::read_to_string(file).expect("there"), name);
    }
    assert!(!into.join("README").exists());
}

#[test]
fn an_unreachable_remote_is_not_an_empty_branch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, _) = repositories(folder.path());
    std::fs::rename(folder.path().join("origin"), folder.path().join("gone")).expect("moved");
    write(&folder.path().join("a/e/s/a.csv"), "a");
    for (what, name) in [("fetch", "got"), ("push", "a")] {
        let output = script("baselines")
            .args([what, folder.path().join(name).to_str().expect("a name")])
            .env("BASELINES_TRIES", "1")
            .current_dir(&one)
            .output()
            .expect("starts");
        assert_eq!(
            output.status.code(),
            Some(3),
            "{what}: {}",
            text(&output.stderr)
        );
    }
}

/// A program that prints its arguments, one a line, and its process number first.
pub fn echo(folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("echo");
    write(&path, "#!/bin/sh\necho $$\nprintf '%s\\n' \"$@\"\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

#[test]
fn inputs_become_arguments_and_the_binary_takes_the_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = script("check")
        .env("GATE_BINARY", echo(folder.path()))
        .env("GATE_CONFIG", "a b.toml\nc.toml\n")
        .env("GATE_URL", "")
        .env("GATE_COMMENT", "false")
        .env("GATE_REFERENCE_URL", "old:8001")
        .env("GATE_CHANGED_SINCE", "abc")
        .env("GATE_BASE", "base")
        .env("GATE_HEAD", "head")
        .env("GATE_ARGUMENTS", "--budget\n90s")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    let process = child.id().to_string();
    let out = text(&child.wait_with_output().expect("ends").stdout);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.first(), Some(&process.as_str()));
    assert_eq!(
        lines.get(1..).unwrap_or_default().join("|"),
        "check|--github|-c|a b.toml|-c|c.toml|--reference-url|old:8001|--changed-since|abc\
         |--gate-base|base|--gate-head|head|--no-comment|--on-inconclusive|pass|--budget|90s"
    );
    for variable in ["GATE_COMMENT", "GATE_ON_INCONCLUSIVE"] {
        let output = script("check")
            .env(variable, "maybe")
            .output()
            .expect("starts");
        assert_eq!(output.status.code(), Some(2), "{variable}");
    }
}

#[test]
fn a_release_is_used_only_with_its_checksum() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let machine = text(&ran(Command::new("uname").arg("-m")).stdout);
    let name = format!("triton-gate-{}-unknown-linux-musl.tar.gz", machine.trim());
    let release = at.join("releases/v1.2.3");
    std::fs::create_dir_all(&release).expect("a folder");
    std::fs::rename(echo(at), at.join("triton-gate")).expect("named");
    ran(Command::new("tar")
        .args([
            "-czf",
            release.join(&name).to_str().expect("a name"),
            "triton-gate",
        ])
        .current_dir(at));
    let install = |version: &str| {
        script("install")
            .env("VERSION", version)
            .env(
                "RELEASES",
                format!("file://{}", at.join("releases").display()),
            )
            .env("RUNNER_TEMP", at.join("temp"))
            .env("GITHUB_OUTPUT", at.join("output"))
            .output()
            .expect("starts")
    };
    let sums = release.join(format!("{name}.sha256"));
    write(&sums, &format!("{}  {name}\n", "0".repeat(64)));
    let output = install("v1.2.3");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("does not fit its checksum"));
    let sum = ran(Command::new("sha256sum").arg(release.join(&name)));
    write(&sums, &text(&sum.stdout));
    let output = install("v1.2.3");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let binary = at.join("temp/triton-gate/triton-gate");
    assert_eq!(
        text(&output.stdout).trim(),
        binary.to_str().expect("a name")
    );
    let outputs = std::fs::read_to_string(at.join("output")).expect("written");
    assert_eq!(outputs, format!("binary={}\n", binary.display()));
    for (version, code) in [("v9.9.9", 3), ("main", 2), ("v1/../..", 2)] {
        assert_eq!(install(version).status.code(), Some(code), "{version}");
    }
}

#[test]
fn a_build_stands_in_where_there_is_no_release() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let cargo = at.join("cargo");
    write(
        &cargo,
        "#!/bin/sh\necho \"$@\" >&2\nmkdir -p \"$CARGO_TARGET_DIR/release\"\n\
         printf '#!/bin/sh\\necho built\\n' >\"$CARGO_TARGET_DIR/release/triton-gate\"\n\
         chmod +x \"$CARGO_TARGET_DIR/release/triton-gate\"\n",
    );
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("executable");
    // By a branch, by a commit, by a tag that has no release for this machine, and by wish.
    for (version, reference) in [
        ("", "main"),
        ("", "0a1b2c3"),
        ("", "v9.9.9"),
        ("source", "v9.9.9"),
    ] {
        let output = ran(script("install")
            .env("VERSION", version)
            .env("GITHUB_ACTION_REF", reference)
            .env("RELEASES", format!("file://{}", at.join("none").display()))
            .env("RUNNER_TEMP", at.join("temp"))
            .env("CARGO", &cargo)
            .env("CARGO_TARGET_DIR", at.join("target")));
        let binary = at.join("target/release/triton-gate");
        assert_eq!(
            text(&output.stdout).trim(),
            binary.to_str().expect("a name")
        );
        assert!(
            text(&output.stderr).contains("build --release --locked"),
            "{reference}"
        );
    }
    let output = script("install")
        .env("VERSION", "source")
        .env("CARGO", at.join("no-cargo"))
        .env("RUNNER_TEMP", at.join("temp"))
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("rustup"));
}

#[test]
fn results_under_a_folder_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = script("comment")
        .arg(folder.path())
        .output()
        .expect("starts");
    assert_eq!(empty.status.code(), Some(3));
    write(&folder.path().join("e/a b.json"), "{}");
    let output = ran(script("comment")
        .arg(folder.path())
        .env("GATE_BINARY", echo(folder.path()))
        .env("GATE_COMMENT_ID", "mine"));
    let out = text(&output.stdout);
    let arguments: Vec<&str> = out.lines().skip(1).collect();
    let file = folder.path().join("e/a b.json");
    assert_eq!(
        arguments,
        [
            "comment",
            "--comment-id",
            "mine",
            "--",
            file.to_str().expect("a name")
        ]
    );
}

#[tokio::test]
async fn a_token_reaches_a_repository_that_is_not_public() {
    let server = wiremock::MockServer::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (one, _) = repositories(folder.path());
    let origin = format!("{}/team/serving", server.uri());
    git(&one, &["remote", "set-url", "origin", &origin]);
    let output = script("baselines")
        .args(["fetch", "got"])
        .env("GITHUB_SERVER_URL", server.uri())
        .env("GITHUB_TOKEN", "canary-token-4711")
        .current_dir(&one)
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("canary"));
    let requests = server.received_requests().await.expect("recorded");
    // base64 of x-access-token:canary-token-4711
    assert_eq!(
        requests[0].headers["authorization"].to_str().expect("text"),
        "basic eC1hY2Nlc3MtdG9rZW46Y2FuYXJ5LXRva2VuLTQ3MTE="
    );
}
