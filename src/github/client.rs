use std::fmt::Write as _;
use std::time::Duration;

use http::StatusCode;
use octocrab::Octocrab;
use serde_json::{Value, json};

use super::context::{Context, Head};
use super::sticky::{Memory, body, marker};
use crate::data::Verdict;

/// Tries of one request.
const TRIES: u32 = 4;
/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// One request's deadline.
const DEADLINE: Duration = Duration::from_secs(20);
/// Pages of comments that are searched for ours, 100 a page.
const PAGES: u32 = 50;

/// Comments of one repository.
#[derive(Debug)]
pub struct Client {
    octocrab: Octocrab,
    base: String,
    owner: String,
    repository: String,
    pause: Duration,
    deadline: Duration,
}

/// What became of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// There was none; a new one was made.
    Created(u64),
    /// Ours was found and updated.
    Updated(u64),
}

/// Why GitHub did not take a comment. Never changes a verdict.
#[derive(Debug, thiserror::Error)]
pub enum GithubError {
    /// The client could not be set up.
    #[error("failed to set up the GitHub client for {0}")]
    Setup(String),
    /// GitHub did not answer.
    #[error("failed to {action}: GitHub did not answer after {tries} tries ({cause})")]
    NoAnswer {
        /// What was being done.
        action: &'static str,
        /// How often it was tried.
        tries: u32,
        /// The last cause.
        cause: String,
    },
    /// The connection broke, or none came about, while something was being made.
    #[error("failed to {action}: the connection to GitHub failed ({cause})")]
    Broken {
        /// What was being done.
        action: &'static str,
        /// The cause.
        cause: String,
    },
    /// GitHub refused.
    #[error("failed to {action}: GitHub answered {status}: {message}{}", hint(*status))]
    Refused {
        /// What was being done.
        action: &'static str,
        /// The status.
        status: u16,
        /// What GitHub said.
        message: String,
    },
    /// The answer was not what the API promises.
    #[error("failed to {action}: GitHub's answer was not understood ({cause})")]
    Unexpected {
        /// What was being done.
        action: &'static str,
        /// Why.
        cause: String,
    },
}

fn hint(status: u16) -> &'static str {
    match status {
        401 => " (is the token valid?)",
        403 => " (the job needs `permissions: pull-requests: write`; forks have no such token)",
        404 => " (is the pull request in this repository, and may the token see it?)",
        422 => " (is the pull request locked?)",
        _ => "",
    }
}

impl Client {
    /// For the repository of a context, with its token.
    pub fn new(context: &Context) -> Result<Self, GithubError> {
        Self::with_timing(context, Duration::from_secs(1), DEADLINE)
    }

    /// The same with another first wait between tries and another deadline of a request.
    pub(crate) fn with_timing(
        context: &Context,
        pause: Duration,
        deadline: Duration,
    ) -> Result<Self, GithubError> {
        let setup = || GithubError::Setup(context.api_url.clone());
        let base = context.api_url.trim_end_matches('/').to_owned();
        let mut builder = Octocrab::builder()
            .base_uri(base.as_str())
            .map_err(|_| setup())?
            .set_connect_timeout(Some(deadline));
        if let Some(token) = &context.token {
            builder = builder.personal_token(token.expose().to_owned());
        }
        Ok(Self {
            octocrab: builder.build().map_err(|_| setup())?,
            base,
            owner: context.owner.clone(),
            repository: context.repository.clone(),
            pause,
            deadline,
        })
    }

    /// Makes or updates the one comment of `gate` on a pull request.
    pub async fn post(
        &self,
        gate: &str,
        pull_request: u64,
        commit: &str,
        verdict: Verdict,
        report: &str,
        footer: &str,
    ) -> Result<Posted, GithubError> {
        let mut tries = 1;
        loop {
            let found = self.find(gate, pull_request).await?;
            let memory = found
                .as_ref()
                .map(|(_, text)| Memory::of(text))
                .unwrap_or_default();
            let text = body(gate, &memory.with(commit, verdict), report, footer);
            let content = json!({ "body": text });
            if let Some((id, _)) = found {
                let path = format!("issues/comments/{id}");
                self.call("update the comment", "PATCH", &path, Some(&content))
                    .await?;
                return Ok(Posted::Updated(id));
            }
            let path = format!("issues/{pull_request}/comments");
            match self
                .call("make a comment", "POST", &path, Some(&content))
                .await
            {
                Ok(answer) => {
                    let id = answer.get("id").and_then(Value::as_u64).unwrap_or_default();
                    return Ok(Posted::Created(id));
                }
                // It may have been made: it is looked for again before another is made.
                Err(GithubError::Broken { .. }) if tries < TRIES => {
                    tokio::time::sleep(self.pause).await;
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The open pull request whose head is `commit` of that branch; none where there is none any
    /// more, or where it has moved on to another commit.
    pub async fn pull_request_of(
        &self,
        head: &Head,
        commit: &str,
    ) -> Result<Option<u64>, GithubError> {
        const ACTION: &str = "find the pull request";
        let path = format!(
            "pulls?state=open&per_page=100&head={}%3A{}",
            head.owner,
            encoded(&head.branch)
        );
        let answer = self.call(ACTION, "GET", &path, None).await?;
        let pulls = answer.as_array().ok_or_else(|| GithubError::Unexpected {
            action: ACTION,
            cause: "expected a list".to_owned(),
        })?;
        Ok(pulls
            .iter()
            .find(|pull| pull.pointer("/head/sha").and_then(Value::as_str) == Some(commit))
            .and_then(|pull| pull.get("number"))
            .and_then(Value::as_u64))
    }

    /// Our own comment: it begins with the marker and was written by whoever holds the token,
    /// so that a person who quotes it keeps his text.
    async fn find(
        &self,
        gate: &str,
        pull_request: u64,
    ) -> Result<Option<(u64, String)>, GithubError> {
        let marker = marker(gate);
        let me = self.login().await;
        for page in 1..=PAGES {
            let path = format!("issues/{pull_request}/comments?per_page=100&page={page}");
            let answer = self.call("list the comments", "GET", &path, None).await?;
            let comments = answer.as_array().ok_or_else(|| GithubError::Unexpected {
                action: "list the comments",
                cause: "expected a list".to_owned(),
            })?;
            for comment in comments {
                let text = comment
                    .get("body")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let id = comment.get("id").and_then(Value::as_u64);
                if let Some(id) = id
                    && text.starts_with(&marker)
                    && is_ours(comment, me.as_deref())
                {
                    return Ok(Some((id, text.to_owned())));
                }
            }
            if comments.len() < 100 {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Whose token this is; none for the token of an app or a job, which may not ask.
    async fn login(&self) -> Option<String> {
        let uri = format!("{}/user", self.base);
        let answer = tokio::time::timeout(self.deadline, self.octocrab._get(uri))
            .await
            .ok()?
            .ok()?;
        if answer.status() != StatusCode::OK {
            return None;
        }
        let text = self.octocrab.body_to_string(answer).await.ok()?;
        let user: Value = serde_json::from_str(&text).ok()?;
        user.get("login").and_then(Value::as_str).map(str::to_owned)
    }

    /// One request of the API with bounded retries where GitHub asks for patience.
    async fn call(
        &self,
        action: &'static str,
        method: &str,
        path: &str,
        content: Option<&Value>,
    ) -> Result<Value, GithubError> {
        let uri = format!(
            "{}/repos/{}/{}/{path}",
            self.base, self.owner, self.repository
        );
        let mut wait = self.pause;
        let mut cause = String::new();
        for attempt in 1..=TRIES {
            let exchange = async {
                let answer = match method {
                    "GET" => self.octocrab._get(uri.as_str()).await,
                    "PATCH" => self.octocrab._patch(uri.as_str(), content).await,
                    _ => self.octocrab._post(uri.as_str(), content).await,
                }?;
                let status = answer.status();
                let patience = patience(&answer);
                let text = self.octocrab.body_to_string(answer).await?;
                Ok::<_, octocrab::Error>((status, patience, text))
            };
            let asked = match tokio::time::timeout(self.deadline, exchange).await {
                Err(_) => {
                    "no answer in time".clone_into(&mut cause);
                    // A comment that may have been made must not be made twice.
                    if method == "POST" {
                        return Err(GithubError::NoAnswer {
                            action,
                            tries: attempt,
                            cause,
                        });
                    }
                    None
                }
                Ok(Err(error)) => {
                    cause = shortly(&error.to_string());
                    if method == "POST" {
                        return Err(GithubError::Broken { action, cause });
                    }
                    None
                }
                Ok(Ok((status, patience, text))) => {
                    if status.is_success() {
                        return serde_json::from_str(&text).map_err(|error| {
                            GithubError::Unexpected {
                                action,
                                cause: error.to_string(),
                            }
                        });
                    }
                    let message = message(&text);
                    if !should_retry(status, patience) || attempt == TRIES {
                        return Err(GithubError::Refused {
                            action,
                            status: status.as_u16(),
                            message,
                        });
                    }
                    cause = format!("{status}: {message}");
                    patience
                }
            };
            if attempt < TRIES {
                tokio::time::sleep(asked.unwrap_or(wait).min(LONGEST_WAIT)).await;
                wait *= 2;
            }
        }
        Err(GithubError::NoAnswer {
            action,
            tries: TRIES,
            cause,
        })
    }
}

/// A value of a query, every byte beyond letters, digits, `-`, `.` and `_` as `%XX`.
fn encoded(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Whether a comment is by the holder of the token.
fn is_ours(comment: &Value, me: Option<&str>) -> bool {
    match me {
        Some(login) => comment.pointer("/user/login").and_then(Value::as_str) == Some(login),
        None => comment.pointer("/user/type").and_then(Value::as_str) == Some("Bot"),
    }
}

/// How long GitHub asks to wait; only set where it does.
fn patience<B>(answer: &http::Response<B>) -> Option<Duration> {
    let header = |name: &str| {
        answer
            .headers()
            .get(name)?
            .to_str()
            .ok()?
            .parse::<u64>()
            .ok()
    };
    header("retry-after").map(Duration::from_secs).or_else(|| {
        // The primary limit answers 403 or 429 with nothing remaining.
        (header("x-ratelimit-remaining") == Some(0)).then_some(LONGEST_WAIT)
    })
}

fn should_retry(status: StatusCode, patience: Option<Duration>) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || (status == StatusCode::FORBIDDEN && patience.is_some())
}

fn message(text: &str) -> String {
    let said = serde_json::from_str::<Value>(text).ok().and_then(|value| {
        value
            .get("message")
            .and_then(Value::as_str)
            .map(str::to_owned)
    });
    shortly(&said.unwrap_or_else(|| "no message".to_owned()))
}

fn shortly(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
