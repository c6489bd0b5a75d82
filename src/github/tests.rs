//! The comment against a mock of GitHub.

use std::time::Duration;

use serde_json::{Value, json};
use wiremock::matchers::{method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::client::{Client, GithubError, Posted};
use super::context::{Context, Head};
use super::sticky::marker;
use crate::data::{Secret, Verdict};

const CANARY: &str = "canary-token-4711";

fn context(server: &MockServer) -> Context {
    context_at(server.uri())
}

fn context_at(api_url: String) -> Context {
    Context {
        api_url,
        owner: "team".to_owned(),
        repository: "serving".to_owned(),
        pull_request: Some(12),
        head_commit: Some("abc".to_owned()),
        head: None,
        from_fork: false,
        run_url: None,
        in_actions: false,
        attempt: 1,
        token: Some(Secret::new(CANARY)),
        summary_file: None,
        output_file: None,
    }
}

async fn post(server: &MockServer, gate: &str) -> Result<Posted, GithubError> {
    Client::with_timing(
        &context(server),
        Duration::from_millis(1),
        Duration::from_secs(5),
    )
    .expect("a client")
    .post(gate, 12, "abc", Verdict::Pass, "report", "")
    .await
}

async fn mount(server: &MockServer, verb: &str, route: &str, answer: ResponseTemplate) {
    Mock::given(method(verb))
        .and(path(route))
        .respond_with(answer)
        .mount(server)
        .await;
}

const LIST: &str = "/repos/team/serving/issues/12/comments";

fn comment(id: u64, login: &str, kind: &str, text: &str) -> Value {
    json!({ "id": id, "body": text, "user": { "login": login, "type": kind } })
}

async fn job_token(server: &MockServer) {
    mount(server, "GET", "/user", ResponseTemplate::new(403)).await;
}

#[tokio::test]
async fn the_first_comment_is_made() {
    let server = MockServer::start().await;
    job_token(&server).await;
    mount(
        &server,
        "GET",
        LIST,
        ResponseTemplate::new(200).set_body_json(json!([])),
    )
    .await;
    mount(
        &server,
        "POST",
        LIST,
        ResponseTemplate::new(201).set_body_json(json!({"id": 9})),
    )
    .await;
    assert_eq!(
        post(&server, "g").await.expect("posted"),
        Posted::Created(9)
    );
    let requests = server.received_requests().await.expect("recorded");
    let sent: Value = requests
        .last()
        .expect("a request")
        .body_json()
        .expect("json");
    let text = sent["body"].as_str().expect("a body");
    assert!(text.starts_with(&marker("g")), "{text}");
    assert!(text.contains("report"));
}

#[tokio::test]
async fn ours_is_updated_and_a_quote_by_a_person_is_left_alone() {
    let server = MockServer::start().await;
    job_token(&server).await;
    let mine = format!("{}\nold", marker("g"));
    let other = format!("{}\nold", marker("other"));
    let comments = json!([
        comment(1, "someone", "User", &mine),
        comment(2, "github-actions[bot]", "Bot", &other),
        comment(3, "github-actions[bot]", "Bot", &mine),
    ]);
    mount(
        &server,
        "GET",
        LIST,
        ResponseTemplate::new(200).set_body_json(comments),
    )
    .await;
    let route = "/repos/team/serving/issues/comments/3";
    mount(
        &server,
        "PATCH",
        route,
        ResponseTemplate::new(200).set_body_json(json!({"id": 3})),
    )
    .await;
    assert_eq!(
        post(&server, "g").await.expect("posted"),
        Posted::Updated(3)
    );
}

#[tokio::test]
async fn a_personal_token_finds_its_own_comment() {
    let server = MockServer::start().await;
    let user = ResponseTemplate::new(200).set_body_json(json!({"login": "me"}));
    mount(&server, "GET", "/user", user).await;
    let mine = format!("{}\nold", marker("g"));
    let comments = json!([
        comment(1, "x[bot]", "Bot", &mine),
        comment(2, "me", "User", &mine)
    ]);
    mount(
        &server,
        "GET",
        LIST,
        ResponseTemplate::new(200).set_body_json(comments),
    )
    .await;
    let route = "/repos/team/serving/issues/comments/2";
    mount(
        &server,
        "PATCH",
        route,
        ResponseTemplate::new(200).set_body_json(json!({"id": 2})),
    )
    .await;
    assert_eq!(
        post(&server, "g").await.expect("posted"),
        Posted::Updated(2)
    );
}

#[tokio::test]
async fn the_second_page_is_searched() {
    let server = MockServer::start().await;
    job_token(&server).await;
    let first: Vec<Value> = (0..100)
        .map(|id| comment(id, "a", "User", "hello"))
        .collect();
    let mine = format!("{}\nold", marker("g"));
    for (page, comments) in [
        ("1", json!(first)),
        (
            "2",
            json!([comment(500, "github-actions[bot]", "Bot", &mine)]),
        ),
    ] {
        Mock::given(method("GET"))
            .and(path(LIST))
            .and(query_param("page", page))
            .respond_with(ResponseTemplate::new(200).set_body_json(comments))
            .mount(&server)
            .await;
    }
    let route = "/repos/team/serving/issues/comments/500";
    mount(
        &server,
        "PATCH",
        route,
        ResponseTemplate::new(200).set_body_json(json!({})),
    )
    .await;
    assert_eq!(
        post(&server, "g").await.expect("posted"),
        Posted::Updated(500)
    );
}

#[tokio::test]
async fn a_refusal_is_said_with_its_cause_and_without_the_token() {
    for (status, expected) in [
        (401, "is the token valid"),
        (403, "pull-requests: write"),
        (404, "is the pull request in this repository"),
        (422, "locked"),
    ] {
        let server = MockServer::start().await;
        job_token(&server).await;
        let answer = ResponseTemplate::new(status).set_body_json(json!({"message": "No."}));
        mount(&server, "GET", LIST, answer).await;
        let error = post(&server, "g").await.expect_err("refused");
        let text = format!("{error} {error:?}");
        assert!(text.contains(expected) && text.contains("No."), "{text}");
        assert!(!text.contains(CANARY), "{text}");
        let listed = server.received_requests().await.expect("recorded");
        assert_eq!(
            listed
                .iter()
                .filter(|request| request.url.path() == LIST)
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn patience_is_bounded_and_pays() {
    for (status, header) in [(429, Some("0")), (503, None), (403, Some("0"))] {
        let server = MockServer::start().await;
        job_token(&server).await;
        let mut refusal = ResponseTemplate::new(status).set_body_json(json!({"message": "slow"}));
        if let Some(seconds) = header {
            refusal = refusal.insert_header("retry-after", seconds);
        }
        Mock::given(method("GET"))
            .and(path(LIST))
            .respond_with(refusal)
            .up_to_n_times(2)
            .with_priority(1)
            .mount(&server)
            .await;
        mount(
            &server,
            "GET",
            LIST,
            ResponseTemplate::new(200).set_body_json(json!([])),
        )
        .await;
        let made = ResponseTemplate::new(201).set_body_json(json!({"id": 1}));
        mount(&server, "POST", LIST, made).await;
        assert_eq!(
            post(&server, "g").await.expect("posted"),
            Posted::Created(1)
        );
    }
}

#[tokio::test]
async fn a_server_that_stays_down_ends_after_four_tries() {
    let server = MockServer::start().await;
    job_token(&server).await;
    let answer = ResponseTemplate::new(502).set_body_string("<html>bad gateway</html>");
    mount(&server, "GET", LIST, answer).await;
    let error = post(&server, "g").await.expect_err("down");
    assert!(
        matches!(error, GithubError::Refused { status: 502, .. }),
        "{error}"
    );
    let listed = server.received_requests().await.expect("recorded");
    assert_eq!(
        listed
            .iter()
            .filter(|request| request.url.path() == LIST)
            .count(),
        4
    );
}

#[tokio::test]
async fn nonsense_is_not_understood() {
    let server = MockServer::start().await;
    job_token(&server).await;
    mount(
        &server,
        "GET",
        LIST,
        ResponseTemplate::new(200).set_body_string("hello"),
    )
    .await;
    let error = post(&server, "g").await.expect_err("nonsense");
    assert!(matches!(error, GithubError::Unexpected { .. }), "{error}");
}

#[tokio::test]
async fn a_silent_server_is_given_up_and_nothing_is_made_twice() {
    let server = MockServer::start().await;
    job_token(&server).await;
    let empty = ResponseTemplate::new(200).set_body_json(json!([]));
    mount(&server, "GET", LIST, empty).await;
    let late = ResponseTemplate::new(201)
        .set_body_json(json!({"id": 1}))
        .set_delay(Duration::from_mins(1));
    mount(&server, "POST", LIST, late).await;
    let error = Client::with_timing(
        &context(&server),
        Duration::from_millis(1),
        Duration::from_millis(300),
    )
    .expect("a client")
    .post("g", 12, "abc", Verdict::Pass, "report", "")
    .await
    .expect_err("silent");
    assert!(
        matches!(error, GithubError::NoAnswer { tries: 1, .. }),
        "{error}"
    );
}

/// A hub that makes the first comment and then breaks the connection without an answer, one
/// connection a request. Counts the comments that it made.
async fn breaking_hub(listener: tokio::net::TcpListener) -> u32 {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut made = 0;
    loop {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") && !request.ends_with(b"}") {
            let mut chunk = [0; 4096];
            let read = stream.read(&mut chunk).await.expect("a request");
            if read == 0 {
                break;
            }
            request.extend_from_slice(&chunk[..read]);
        }
        let request = String::from_utf8_lossy(&request);
        if request.starts_with("POST") {
            made += 1;
            continue;
        }
        let (status, text) = if request.starts_with("PATCH") {
            ("200 OK", json!({ "id": 7 }))
        } else if request.starts_with("GET /user") {
            ("403 Forbidden", json!({}))
        } else if made > 0 {
            let text = format!("{} made before", marker("g"));
            (
                "200 OK",
                json!([comment(7, "github-actions", "Bot", &text)]),
            )
        } else {
            ("200 OK", json!([]))
        };
        let text = text.to_string();
        let answer = format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.write_all(answer.as_bytes()).await.expect("written");
        if status.starts_with("200") && request.starts_with("PATCH") {
            return made;
        }
    }
}

#[tokio::test]
async fn a_comment_that_may_have_been_made_is_looked_for_before_another_is_made() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let hub = tokio::spawn(breaking_hub(listener));
    let posted = Client::with_timing(
        &context_at(format!("http://{address}")),
        Duration::from_millis(1),
        Duration::from_secs(5),
    )
    .expect("a client")
    .post("g", 12, "abc", Verdict::Pass, "report", "")
    .await
    .expect("posted");
    assert_eq!(posted, Posted::Updated(7));
    assert_eq!(hub.await.expect("the hub"), 1);
}

#[tokio::test]
async fn the_pull_request_of_a_fork_is_found_by_branch_and_commit() {
    let server = MockServer::start().await;
    let pulls = json!([
        {"number": 3, "head": {"sha": "old"}},
        {"number": 4, "head": {"sha": "abc"}},
    ]);
    Mock::given(method("GET"))
        .and(path("/repos/team/serving/pulls"))
        .and(query_param("head", "guest:fix/a&b"))
        .respond_with(ResponseTemplate::new(200).set_body_json(pulls))
        .mount(&server)
        .await;
    let head = Head {
        owner: "guest".to_owned(),
        branch: "fix/a&b".to_owned(),
    };
    let client = Client::new(&context(&server)).expect("a client");
    let found = client
        .pull_request_of(&head, "abc")
        .await
        .expect("an answer");
    assert_eq!(found, Some(4));
    let moved_on = client
        .pull_request_of(&head, "zzz")
        .await
        .expect("an answer");
    assert_eq!(moved_on, None);
}
