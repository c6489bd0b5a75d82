//! `comment` with results from files.

use serde_json::{Value, json};
use wiremock::matchers::{method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::job::{Job, LIST, bot, comment, mount, pull_request, repository, written};

const MARKER: &str = "<!-- triton-gate:thresholds/vision.toml -->";
const REGRESSION: &str = "tests/fixtures/github/regression.json";
const PASS: &str = "tests/fixtures/github/pass.json";

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

#[tokio::test]
async fn an_enterprise_server_is_asked_at_its_own_address() {
    let server = MockServer::start().await;
    let inner = |route: &str| format!("/api/v3{route}");
    mount(&server, "GET", &inner("/user"), ResponseTemplate::new(403)).await;
    let empty = ResponseTemplate::new(200).set_body_json(json!([]));
    mount(&server, "GET", &inner(LIST), empty).await;
    let made = ResponseTemplate::new(201).set_body_json(json!({"id": 9}));
    mount(&server, "POST", &inner(LIST), made).await;
    let api = format!("{}/api/v3", server.uri());
    let answer = Job::new(&api, &pull_request("team/serving")).run(&["comment", REGRESSION]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let requests = server.received_requests().await.expect("recorded");
    assert!(
        requests
            .iter()
            .all(|request| request.url.path().starts_with("/api/v3/"))
    );
    assert_eq!(written(&server).await.len(), 1);
}

#[tokio::test]
async fn a_repository_that_is_none_is_said_and_asks_nobody() {
    let server = repository(json!([])).await;
    for name in [
        "",
        "serving",
        "a/../b",
        "team/serving?x=1",
        "team/serving/../../user",
    ] {
        let mut job = Job::of_pull_request(&server);
        job.repository = name.to_owned();
        let answer = job.run(&["comment", REGRESSION]);
        assert_eq!(answer.code, Some(2), "{name}: {}", answer.err);
        assert!(
            answer.err.contains("GITHUB_REPOSITORY"),
            "{name}: {}",
            answer.err
        );
    }
    assert!(
        server
            .received_requests()
            .await
            .expect("recorded")
            .is_empty()
    );
}

#[tokio::test]
async fn a_result_of_a_stranger_breaks_out_of_nothing() {
    let server = repository(json!([])).await;
    let job = Job::of_pull_request(&server);
    let text = std::fs::read_to_string(REGRESSION).expect("a result");
    let mut result: Value = serde_json::from_str(&text).expect("JSON");
    let hostile = "x|y @all #1 </details>\n-->\n<!-- triton-gate:other -->\n::error::a\u{202e}";
    for field in ["headline", "environment_name"] {
        result[field] = hostile.into();
    }
    for field in ["name", "model", "load"] {
        result["scenarios"][0][field] = hostile.into();
    }
    // The pull request and the gate's name are never taken from a result.
    result["pull_request"] = 99.into();
    std::fs::write(job.path("r.json"), result.to_string()).expect("written");
    let file = job.path("r.json");
    let file = file.to_str().expect("a name");
    let answer = job.run(&["comment", "--comment-id", "mine", file]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let (_, route, body) = written(&server).await.remove(0);
    assert_eq!(route, LIST);
    assert!(body.starts_with("<!-- triton-gate:mine -->\n"));
    let shown = body.lines().skip(2).collect::<Vec<_>>().join("\n");
    let (report, command) = shown.split_once("```sh\n").expect("a command");
    assert!(
        !report.contains("<!--") && !report.contains("-->"),
        "{report}"
    );
    assert!(
        !report.contains("@all") && !report.contains(" #1"),
        "{report}"
    );
    assert!(command.contains("--only 'x|y @all #1"), "{command}");
    for line in report.lines().filter(|line| line.starts_with('|')) {
        assert_eq!(line.matches('|').count(), 9, "{line}");
    }
    // Neither stream may hold a line that a runner takes for a command.
    for line in answer.out.lines().chain(answer.err.lines()) {
        assert!(!line.starts_with("::"), "{line}");
    }
}
