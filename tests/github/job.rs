//! A job of GitHub Actions that runs the binary, and a mock of the API that it talks to.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;
use wiremock::matchers::{method, path, path_regex};
use wiremock::{Mock, MockServer, ResponseTemplate};

const CANARY: &str = "canary-token-4711";
pub const LIST: &str = "/repos/team/serving/issues/12/comments";

/// A job of GitHub Actions.
pub struct Job {
    pub folder: TempDir,
    pub api: String,
    pub repository: String,
    pub token: bool,
}

impl Job {
    pub fn new(api: &str, event: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("event.json"), event.to_string()).expect("an event");
        Self {
            folder,
            api: api.to_owned(),
            repository: "team/serving".to_owned(),
            token: true,
        }
    }

    pub fn of_pull_request(server: &MockServer) -> Self {
        Self::new(&server.uri(), &pull_request("team/serving"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn run(&self, arguments: &[&str]) -> Answer {
        let mut command = Command::new(env!("CARGO_BIN_EXE_triton-gate"));
        command
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_remove("TRITON_URL")
            .env_remove("TRITON_GATE_ENV")
            .env_remove("GITHUB_TOKEN")
            .env_remove("GITHUB_SHA")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_REPOSITORY", &self.repository)
            .env("GITHUB_API_URL", &self.api)
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_RUN_ATTEMPT", "2")
            .env("GITHUB_EVENT_PATH", self.path("event.json"))
            .env("GITHUB_STEP_SUMMARY", self.path("summary.md"))
            .env("GITHUB_OUTPUT", self.path("output"));
        if self.token {
            command.env("GITHUB_TOKEN", CANARY);
        }
        let answer = Answer::of(&command.output().expect("the binary runs"));
        for text in [&answer.out, &answer.err, &self.summary(), &self.outputs()] {
            assert!(!text.contains(CANARY), "the token was printed: {text}");
        }
        answer
    }

    pub fn summary(&self) -> String {
        std::fs::read_to_string(self.path("summary.md")).unwrap_or_default()
    }

    pub fn outputs(&self) -> String {
        std::fs::read_to_string(self.path("output")).unwrap_or_default()
    }

    /// One output of the step.
    pub fn output(&self, name: &str) -> Option<String> {
        let text = self.outputs();
        let mut lines = text.lines();
        lines.find(|line| line.starts_with(&format!("{name}<<")))?;
        lines.next().map(str::to_owned)
    }
}

pub struct Answer {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Answer {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

pub fn pull_request(head: &str) -> Value {
    json!({"number": 12, "pull_request": {"number": 12,
        "head": {"sha": "abc123", "repo": {"full_name": head}}}})
}

pub async fn mount(server: &MockServer, verb: &str, route: &str, answer: ResponseTemplate) {
    Mock::given(method(verb))
        .and(path(route))
        .respond_with(answer)
        .mount(server)
        .await;
}

/// A repository whose pull request has these comments and takes new ones.
pub async fn repository(comments: Value) -> MockServer {
    let server = MockServer::start().await;
    mount(&server, "GET", "/user", ResponseTemplate::new(403)).await;
    let list = ResponseTemplate::new(200).set_body_json(comments);
    mount(&server, "GET", LIST, list).await;
    let made = ResponseTemplate::new(201).set_body_json(json!({"id": 9}));
    mount(&server, "POST", LIST, made).await;
    Mock::given(method("PATCH"))
        .and(path_regex("^/repos/team/serving/issues/comments/[0-9]+$"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"id": 9})))
        .mount(&server)
        .await;
    server
}

/// Method, path and body of everything that changed something.
pub async fn written(server: &MockServer) -> Vec<(String, String, String)> {
    server
        .received_requests()
        .await
        .expect("recorded")
        .into_iter()
        .filter(|request| request.method.as_str() != "GET")
        .map(|request| {
            let content: Value = request.body_json().expect("JSON");
            (
                request.method.to_string(),
                request.url.path().to_owned(),
                content["body"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

pub fn comment(id: u64, login: &str, kind: &str, text: &str) -> Value {
    json!({"id": id, "body": text, "user": {"login": login, "type": kind}})
}

pub fn bot(id: u64, text: &str) -> Value {
    comment(id, "github-actions[bot]", "Bot", text)
}
