//! The binary against a mock of GitHub's API: `comment` with results from files, and
//! `check --github` against the simulated server.

#[path = "github/scripts.rs"]
mod scripts;
#[path = "github/servers.rs"]
mod servers;
#[path = "github/workflows.rs"]
mod workflows;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use wiremock::matchers::{method, path, path_regex, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

const CANARY: &str = "canary-token-4711";
const LIST: &str = "/repos/team/serving/issues/12/comments";
const MARKER: &str = "<!-- triton-gate:thresholds/vision.toml -->";
const REGRESSION: &str = "tests/fixtures/github/regression.json";
const PASS: &str = "tests/fixtures/github/pass.json";

/// A job of GitHub Actions.
struct Job {
    folder: TempDir,
    api: String,
    token: bool,
}

impl Job {
    fn new(api: &str, event: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("event.json"), event.to_string()).expect("an event");
        Self {
            folder,
            api: api.to_owned(),
            token: true,
        }
    }

    fn of_pull_request(server: &MockServer) -> Self {
        Self::new(&server.uri(), &pull_request("team/serving"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        let mut command = Command::new(env!("CARGO_BIN_EXE_triton-gate"));
        command
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_remove("TRITON_URL")
            .env_remove("TRITON_GATE_ENV")
            .env_remove("GITHUB_TOKEN")
            .env_remove("GITHUB_SHA")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_REPOSITORY", "team/serving")
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

    fn summary(&self) -> String {
        std::fs::read_to_string(self.path("summary.md")).unwrap_or_default()
    }

    fn outputs(&self) -> String {
        std::fs::read_to_string(self.path("output")).unwrap_or_default()
    }

    /// One output of the step.
    fn output(&self, name: &str) -> Option<String> {
        let text = self.outputs();
        let mut lines = text.lines();
        lines.find(|line| line.starts_with(&format!("{name}<<")))?;
        lines.next().map(str::to_owned)
    }
}

struct Answer {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Answer {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

fn pull_request(head: &str) -> Value {
    json!({"number": 12, "pull_request": {"number": 12,
        "head": {"sha": "abc123", "repo": {"full_name": head}}}})
}

async fn mount(server: &MockServer, verb: &str, route: &str, answer: ResponseTemplate) {
    Mock::given(method(verb))
        .and(path(route))
        .respond_with(answer)
        .mount(server)
        .await;
}

/// A repository whose pull request has these comments and takes new ones.
async fn repository(comments: Value) -> MockServer {
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
async fn written(server: &MockServer) -> Vec<(String, String, String)> {
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

fn comment(id: u64, login: &str, kind: &str, text: &str) -> Value {
    json!({"id": id, "body": text, "user": {"login": login, "type": kind}})
}

fn bot(id: u64, text: &str) -> Value {
    comment(id, "github-actions[bot]", "Bot", text)
}

#[tokio::test]
async fn the_first_comment_holds_verdict_way_back_and_job() {
    let server = repository(json!([])).await;
    let job = Job::of_pull_request(&server);
    let answer = job.run(&["comment", REGRESSION]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert!(
        answer.err.contains("commented on pull request 12"),
        "{}",
        answer.err
    );
    let written = written(&server).await;
    assert_eq!(written.len(), 1);
    let (verb, route, text) = &written[0];
    assert_eq!((verb.as_str(), route.as_str()), ("POST", LIST));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(MARKER));
    assert!(lines.next().is_some_and(|line| line.starts_with("<!-- ")));
    let verdict = lines.next().unwrap_or_default();
    assert!(
        verdict.starts_with("❌ **REGRESSION: yolov9-c8: P99 +18.2 %")
            && verdict.contains("Next: "),
        "{verdict}"
    );
    for part in [
        "triton-gate check -c thresholds/vision.toml --environment h100 --only yolov9-c8",
        "[job, attempt 2](https://github.com/team/serving/actions/runs/77)",
        "commit abc123",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(job.summary().contains("REGRESSION: yolov9-c8"));
}

#[tokio::test]
async fn the_next_attempt_updates_and_lists_the_attempts() {
    let server = repository(json!([])).await;
    let job = Job::of_pull_request(&server);
    job.run(&["comment", REGRESSION]);
    let first = written(&server).await.remove(0).2;

    let server = repository(json!([
        comment(1, "someone", "User", &first),
        bot(2, "<!-- triton-gate:other.toml -->\nanother gate"),
        bot(3, &format!("quoted:\n{first}")),
        bot(4, &first),
    ]))
    .await;
    let job = Job::of_pull_request(&server);
    let answer = job.run(&["comment", PASS]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let written = written(&server).await;
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].1, "/repos/team/serving/issues/comments/4");
    assert!(
        written[0]
            .2
            .contains("Attempt 2 on this commit: regression, pass.")
    );
}

#[tokio::test]
async fn two_gates_have_two_comments() {
    let server = repository(json!([bot(4, &format!("{MARKER}\nold"))])).await;
    let job = Job::of_pull_request(&server);
    job.run(&["comment", REGRESSION]);
    job.run(&["comment", "--comment-id", "nightly", REGRESSION]);
    let written = written(&server).await;
    assert_eq!(written[0].0, "PATCH");
    assert_eq!(written[1].0, "POST");
    assert!(written[1].2.starts_with("<!-- triton-gate:nightly -->\n"));
}

#[tokio::test]
async fn a_comment_behind_a_hundred_others_is_found() {
    let server = MockServer::start().await;
    mount(&server, "GET", "/user", ResponseTemplate::new(403)).await;
    let first: Vec<Value> = (0..100).map(|id| bot(id, "hello")).collect();
    let second = json!([bot(500, &format!("{MARKER}\nold"))]);
    for (page, comments) in [("1", json!(first)), ("2", second)] {
        Mock::given(method("GET"))
            .and(path(LIST))
            .and(query_param("page", page))
            .respond_with(ResponseTemplate::new(200).set_body_json(comments))
            .mount(&server)
            .await;
    }
    let route = "/repos/team/serving/issues/comments/500";
    let done = ResponseTemplate::new(200).set_body_json(json!({}));
    mount(&server, "PATCH", route, done).await;
    let answer = Job::of_pull_request(&server).run(&["comment", REGRESSION]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert_eq!(written(&server).await[0].1, route);
}

#[tokio::test]
async fn several_environments_share_a_comment() {
    let server = repository(json!([])).await;
    let job = Job::of_pull_request(&server);
    let answer = job.run(&["comment", PASS, REGRESSION]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let text = written(&server).await.remove(0).2;
    assert!(text.starts_with(MARKER));
    assert!(text.contains("❌ **2 environments checked: h100: regression; a100: pass**"));
    let failed = text.find("### h100").expect("a section");
    assert!(failed < text.find("### a100").expect("a section"));
}

#[tokio::test]
async fn a_refusal_is_named() {
    for (status, expected) in [
        (403, "pull-requests: write"),
        (404, "is the pull request in this repository"),
        (422, "locked"),
    ] {
        let server = MockServer::start().await;
        mount(&server, "GET", "/user", ResponseTemplate::new(403)).await;
        let no = ResponseTemplate::new(status).set_body_json(json!({"message": "No."}));
        mount(&server, "GET", LIST, no).await;
        let job = Job::of_pull_request(&server);
        let answer = job.run(&["comment", REGRESSION]);
        assert_eq!(answer.code, Some(3), "{status}");
        assert!(answer.err.contains(expected), "{status}: {}", answer.err);
        assert!(job.summary().contains("No comment: "), "{status}");
    }
}

#[tokio::test]
async fn patience_pays_and_has_an_end() {
    for status in [429, 503] {
        let server = MockServer::start().await;
        mount(&server, "GET", "/user", ResponseTemplate::new(403)).await;
        Mock::given(method("GET"))
            .and(path(LIST))
            .respond_with(ResponseTemplate::new(status).insert_header("retry-after", "0"))
            .up_to_n_times(2)
            .with_priority(1)
            .mount(&server)
            .await;
        let empty = ResponseTemplate::new(200).set_body_json(json!([]));
        mount(&server, "GET", LIST, empty).await;
        let made = ResponseTemplate::new(201).set_body_json(json!({"id": 1}));
        mount(&server, "POST", LIST, made).await;
        let answer = Job::of_pull_request(&server).run(&["comment", REGRESSION]);
        assert_eq!(answer.code, Some(0), "{status}: {}", answer.err);
    }
    let server = MockServer::start().await;
    let down = ResponseTemplate::new(500).insert_header("retry-after", "0");
    mount(&server, "GET", LIST, down).await;
    let answer = Job::of_pull_request(&server).run(&["comment", REGRESSION]);
    assert_eq!(answer.code, Some(3));
    assert!(answer.err.contains("GitHub answered 500"), "{}", answer.err);
}

#[tokio::test]
async fn a_fork_and_a_push_have_nowhere_to_post_and_that_is_no_failure() {
    let server = repository(json!([])).await;
    let mut fork = Job::new(&server.uri(), &pull_request("guest/serving"));
    fork.token = false;
    let answer = fork.run(&["comment", REGRESSION]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert!(
        answer
            .err
            .contains("no comment: a pull request from a fork"),
        "{}",
        answer.err
    );
    assert!(fork.summary().contains("REGRESSION: yolov9-c8"));
    let push = Job::new(&server.uri(), &json!({"ref": "refs/heads/main"}));
    let answer = push.run(&["comment", REGRESSION]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert!(
        answer.err.contains("the event has no pull request"),
        "{}",
        answer.err
    );
    assert!(written(&server).await.is_empty());
    let answer = push.run(&["comment", "--pull-request", "12", REGRESSION]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert_eq!(written(&server).await.len(), 1);
}

#[tokio::test]
async fn a_following_workflow_finds_the_pull_request_of_a_fork() {
    let event = json!({"workflow_run": {"head_sha": "abc123", "head_branch": "fix",
        "pull_requests": [],
        "head_repository": {"full_name": "guest/serving", "owner": {"login": "guest"}}}});
    for (sha, posts) in [("abc123", 1), ("newer", 0)] {
        let server = repository(json!([])).await;
        Mock::given(method("GET"))
            .and(path("/repos/team/serving/pulls"))
            .and(query_param("head", "guest:fix"))
            .respond_with(
                ResponseTemplate::new(200)
                    .set_body_json(json!([{"number": 12, "head": {"sha": sha}}])),
            )
            .mount(&server)
            .await;
        let answer = Job::new(&server.uri(), &event).run(&["comment", REGRESSION]);
        assert_eq!(answer.code, Some(0), "{}", answer.err);
        assert_eq!(written(&server).await.len(), posts, "{sha}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_result_is_named_and_nothing_is_posted() {
    let server = repository(json!([])).await;
    let job = Job::of_pull_request(&server);
    std::fs::write(job.path("new.json"), r#"{"schema": 2}"#).expect("written");
    std::fs::write(job.path("bad.json"), "{").expect("written");
    for (name, expected) in [
        ("new.json", "schema 2"),
        ("bad.json", "not JSON"),
        ("none.json", "failed to read"),
    ] {
        let file = job.path(name);
        let file = file.to_str().expect("a name");
        let answer = job.run(&["comment", REGRESSION, file]);
        assert_eq!(answer.code, Some(2), "{}", answer.err);
        assert!(
            answer.err.contains(expected) && answer.err.contains(name),
            "{}",
            answer.err
        );
    }
    assert!(written(&server).await.is_empty());
}

/// The simulated server, ended with the test.
struct Simulated {
    child: Child,
    url: String,
}

impl Simulated {
    fn start(folder: &Path) -> Self {
        let file = folder.join("port");
        let child = Command::new(env!("CARGO_BIN_EXE_triton-gate"))
            .args(["simulate", "--listen", "127.0.0.1:0", "--port-file"])
            .arg(&file)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("starts");
        let mut simulated = Self {
            child,
            url: String::new(),
        };
        let begun = Instant::now();
        while simulated.url.is_empty() {
            assert!(
                begun.elapsed() < Duration::from_mins(1),
                "the simulated server did not start"
            );
            std::thread::sleep(Duration::from_millis(20));
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if let Ok(port) = text.trim().parse::<u16>() {
                simulated.url = format!("127.0.0.1:{port}");
            }
        }
        simulated
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_check_publishes_itself_and_keeps_its_exit_code_when_github_fails() {
    let github = repository(json!([])).await;
    let broken = MockServer::start().await;
    for (server, posted) in [(&github, true), (&broken, false)] {
        let job = Job::of_pull_request(server);
        let simulated = Simulated::start(job.folder.path());
        let thresholds = job.path("vision.toml");
        std::fs::write(
            &thresholds,
            "schema = 1\n[[scenario]]\nname = \"missing-c1\"\nmodel = \"no-such-model\"\n\
             concurrency = 1\n",
        )
        .expect("written");
        let results = job.path("results");
        let answer = job.run(&[
            "check",
            "-c",
            thresholds.to_str().expect("a name"),
            "--url",
            &simulated.url,
            "--environment",
            "sim",
            "--baselines",
            job.path("baselines").to_str().expect("a name"),
            "--results",
            results.to_str().expect("a name"),
            "--lock",
            &format!("test-{}-{posted}", std::process::id()),
            "--github",
            "--comment-id",
            "here",
        ]);
        let code = answer.code.expect("a code");
        assert!(matches!(code, 3 | 5), "{code}: {}", answer.err);
        assert!(
            answer.out.contains("\n::error title=missing-c1"),
            "{}",
            answer.out
        );
        assert_eq!(job.output("exit-code"), Some(code.to_string()));
        let report = job.output("report-path").expect("an output");
        let report = std::fs::read_to_string(report).expect("the report is kept");
        assert!(job.summary().contains(report.trim_end()));
        assert!(Path::new(&job.output("result-path").expect("an output")).exists());
        if posted {
            assert!(written(server).await[0].2.contains(report.trim_end()));
        } else {
            assert!(
                answer.err.contains("warning: no comment: "),
                "{}",
                answer.err
            );
            assert!(job.summary().contains("No comment: "));
        }
    }
}

#[tokio::test]
async fn a_check_that_cannot_begin_does_not_leave_an_old_verdict_standing() {
    let server = repository(json!([bot(4, "<!-- triton-gate:here -->\n✅ **PASS**")])).await;
    let job = Job::of_pull_request(&server);
    let thresholds = job.path("bad.toml");
    std::fs::write(&thresholds, "schema = 1\nwhatever = 2\n").expect("written");
    let file = thresholds.to_str().expect("a name");
    let answer = job.run(&["check", "-c", file, "--github", "--comment-id", "here"]);
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert_eq!(job.output("verdict").as_deref(), Some("error"));
    assert!(
        answer.out.contains("::error title=triton-gate::"),
        "{}",
        answer.out
    );
    let written = written(&server).await;
    assert_eq!(written[0].0, "PATCH");
    assert!(written[0].2.contains("❌ **NOTHING CHECKED (exit 2)"));
}
