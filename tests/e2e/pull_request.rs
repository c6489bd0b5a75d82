//! The steps of the workflow perf-gate: a pull request that makes a model slower and raises its own
//! limit, two real Tritons with the models of base and head, a repository to fetch from and push
//! to, and a mock of GitHub.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::program::{Folder, Thresholds};
use crate::triton::sleep_only;

const LIST: &str = "/repos/team/serving/issues/12/comments";
const NAMES: [&str; 2] = ["head", "base"];

/// The workspace of a job.
struct Workspace {
    folder: Folder,
    api: String,
}

impl Workspace {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn git(&self, place: &str, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(arguments)
            .current_dir(self.path(place))
            .output()
            .expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A step of the workflow: a script of this repository, in a folder of the workspace.
    fn step(&self, place: &str, name: &str, arguments: &[&str]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("scripts/ci")
            .join(name);
        let mut command = Command::new(script);
        command.args(arguments).current_dir(self.path(place));
        for (variable, _) in std::env::vars() {
            if ["TRITON", "GITHUB", "GATE"]
                .iter()
                .any(|start| variable.starts_with(start))
            {
                command.env_remove(variable);
            }
        }
        command
            .env("GATE_BINARY", env!("CARGO_BIN_EXE_triton-gate"))
            .env("GATE_ENVIRONMENT", "e2e")
            .env("SERVE_ID", format!("e2e-{}", std::process::id()))
            .stdin(Stdio::null());
        command
    }

    /// Serves a checkout's models and tells the address.
    fn serve(&self, name: &str) -> String {
        let models = format!("{name}/models");
        let out = done(&mut self.step(".", "serve", &["up", name, &models, ""]));
        let address = out
            .trim()
            .strip_prefix(&format!("{}_URL=", name.to_uppercase()));
        address.expect("an address").to_owned()
    }

    /// The step that checks, in a job of the pull request.
    fn check(&self, head_url: &str, base_url: &str) -> Output {
        let sha = self.git("base", &["rev-parse", "HEAD"]);
        self.folder.write(
            "event.json",
            &json!({"number": 12, "pull_request": {"number": 12,
                "head": {"sha": self.git("head", &["rev-parse", "HEAD"]),
                    "repo": {"full_name": "team/serving"}}}})
            .to_string(),
        );
        self.step(".", "check", &[])
            .envs([
                ("GATE_CONFIG", "base/thresholds"),
                ("GATE_URL", head_url),
                ("GATE_REFERENCE_URL", base_url),
                ("GATE_BASELINES", "stored"),
                ("GATE_RESULTS", "results"),
                ("GATE_CHANGED_SINCE", &sha),
                ("GATE_BASE", "base"),
                ("GATE_HEAD", "head"),
                ("GATE_COMMENT_ID", "perf-gate-e2e"),
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_REPOSITORY", "team/serving"),
                ("GITHUB_API_URL", &self.api),
                ("GITHUB_RUN_ID", "77"),
                ("GITHUB_TOKEN", "token"),
                ("GITHUB_EVENT_PATH", "event.json"),
                ("GITHUB_STEP_SUMMARY", "summary.md"),
                ("GITHUB_OUTPUT", "output"),
            ])
            .output()
            .expect("the check runs")
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = self
            .step(".", "serve", &["down", NAMES[0], NAMES[1]])
            .output();
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join(".triton");
        for name in NAMES {
            if !std::thread::panicking() {
                let folder = home.join(format!("ci-e2e-{}-{name}", std::process::id()));
                let _ = std::fs::remove_dir_all(folder);
            }
        }
    }
}

fn done(command: &mut Command) -> String {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn thresholds(limit: &str) -> String {
    Thresholds::of("sleep", "sleep")
        .gate("throughput_drop", &format!("{limit:?}"))
        .gate("p99_rise", "\"off\"")
        // Few pairs are enough for a model that takes three times as long.
        .gate("false_alarm", "\"10%\"")
        .gate("budget", "\"90s\"")
        .measure("warmup", "\"1s\"")
        .scenario("concurrency", "4")
        .scenario("paths", "[\"models/**\"]")
        .text()
}

/// A repository in which the branch `feature` makes the model slower and its limit milder, and the
/// branch `docs` touches neither; with checkouts of base and head.
fn workspace(api: String) -> Workspace {
    let workspace = Workspace {
        folder: Folder::new(),
        api,
    };
    workspace.git(".", &["init", "-q", "--bare", "-b", "main", "origin"]);
    workspace.git(".", &["clone", "-q", "origin", "seed"]);
    workspace
        .folder
        .write("seed/thresholds/t.toml", &thresholds("30%"));
    workspace.folder.write("seed/.gitignore", "__pycache__/\n");
    sleep_only(&workspace.path("seed"));
    let commit = |branch: &str| {
        workspace.git("seed", &["add", "-A"]);
        workspace.git("seed", &["commit", "-qm", branch]);
        workspace.git("seed", &["push", "-q", "origin", &format!("HEAD:{branch}")]);
    };
    commit("main");
    let model = "seed/models/sleep/1/model.py";
    let quick = workspace.folder.read(model);
    let slow = quick.replace("0.020", "0.060");
    assert_ne!(quick, slow);
    workspace.folder.write(model, &slow);
    workspace
        .folder
        .write("seed/thresholds/t.toml", &thresholds("90%"));
    commit("feature");
    workspace.git("seed", &["reset", "-q", "--hard", "HEAD~1"]);
    workspace.folder.write("seed/README.md", "words\n");
    commit("docs");
    for (name, branch) in [("base", "main"), ("head", "feature")] {
        workspace.git(".", &["clone", "-q", "-b", branch, "origin", name]);
    }
    workspace
}

async fn github(server: &MockServer, comments: Value) {
    server.reset().await;
    for (verb, route, status, answer) in [
        ("GET", "/user", 403, json!({})),
        ("GET", LIST, 200, comments),
        ("POST", LIST, 201, json!({"id": 9})),
        (
            "PATCH",
            "/repos/team/serving/issues/comments/9",
            200,
            json!({"id": 9}),
        ),
    ] {
        Mock::given(method(verb))
            .and(path(route))
            .respond_with(ResponseTemplate::new(status).set_body_json(answer))
            .mount(server)
            .await;
    }
}

/// Method and body of the one comment that was written.
async fn written(server: &MockServer) -> (String, String) {
    let requests = server.received_requests().await.expect("recorded");
    let mut writes = requests
        .iter()
        .filter(|request| request.method.as_str() != "GET");
    let one = writes.next().expect("a comment");
    assert!(writes.next().is_none());
    let content: Value = one.body_json().expect("JSON");
    let body = content["body"].as_str().expect("a body").to_owned();
    (one.method.to_string(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_is_judged_by_the_gate_of_its_base_beside_its_base() {
    let server = MockServer::start().await;
    github(&server, json!([])).await;
    let workspace = workspace(server.uri());
    let (head, base) = (workspace.serve("head"), workspace.serve("base"));

    // What perf-baseline does at every push to main.
    done(
        workspace
            .step("base", "record", &[])
            .env("GATE_URL", &base)
            .env("GATE_BASELINES", "../recorded"),
    );
    done(&mut workspace.step("base", "baselines", &["push", "../recorded"]));
    done(&mut workspace.step("base", "baselines", &["fetch", "../stored"]));
    assert_eq!(workspace.folder.files("stored/e2e", ".csv").len(), 1);

    let ended = workspace.check(&head, &base);
    let out = String::from_utf8_lossy(&ended.stdout).into_owned();
    let err = String::from_utf8_lossy(&ended.stderr).into_owned();
    // The limit of the pull request's own would let it pass.
    assert_eq!(ended.status.code(), Some(1), "{out}\n{err}");
    assert!(out.contains("\n::error title=sleep "), "{out}");
    let (verb, body) = written(&server).await;
    assert_eq!(verb, "POST");
    for part in [
        "❌ **REGRESSION: sleep: throughput",
        "This pull request changes the gate (judged by the gate of the commit that it is based on)",
        "sleep: throughput\\_drop 30% -&gt; 90% (milder)",
        "What explains it",
        "triton-gate check -c thresholds/t.toml --environment e2e --only sleep",
        "/actions/runs/77)",
    ] {
        assert!(body.contains(part), "{part} is missing:\n{body}");
    }
    assert!(workspace.folder.read("output").contains("\n1\n"));
    assert!(
        workspace
            .folder
            .read("summary.md")
            .contains("REGRESSION: sleep")
    );

    // A push that takes the change back: nothing is measured, and the comment follows.
    let ours =
        json!({"id": 9, "body": body, "user": {"login": "github-actions[bot]", "type": "Bot"}});
    github(&server, json!([ours])).await;
    workspace.git("head", &["checkout", "-q", "docs"]);
    let ended = workspace.check("127.0.0.1:1", "127.0.0.1:2");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let (verb, body) = written(&server).await;
    assert_eq!(verb, "PATCH");
    assert!(body.contains("ℹ️ **NOT AFFECTED: 1 scenario"), "{body}");
    assert!(!body.contains("changes the gate"), "{body}");
}
