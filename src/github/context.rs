use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::data::Secret;

/// Where the program runs, as GitHub Actions says through the environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// Base address of the API (`https://api.github.com`, or an Enterprise server's).
    pub api_url: String,
    /// Owner of the repository.
    pub owner: String,
    /// Name of the repository.
    pub repository: String,
    /// The pull request that is gated, where there is one.
    pub pull_request: Option<u64>,
    /// The commit that is gated: the head of the pull request, not the merge commit.
    pub head_commit: Option<String>,
    /// The branch that a preceding workflow ran for, where the event names one instead of a pull
    /// request: GitHub leaves the number out for a fork.
    pub head: Option<Head>,
    /// Whether the pull request comes from another repository.
    pub from_fork: bool,
    /// Address of the job that runs this.
    pub run_url: Option<String>,
    /// Whether a runner reads what this program prints (`GITHUB_ACTIONS`).
    pub in_actions: bool,
    /// Which attempt of the job this is.
    pub attempt: u32,
    /// Token of the API; none on most forks.
    pub token: Option<Secret>,
    /// File that becomes the step summary.
    pub summary_file: Option<PathBuf>,
    /// File that takes the step's outputs.
    pub output_file: Option<PathBuf>,
}

/// Where the commits of a pull request come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Owner of the repository that holds the branch.
    pub owner: String,
    /// The branch.
    pub branch: String,
}

/// Why the environment is not one of GitHub Actions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// A variable is missing.
    #[error("{0} is not set: --github works inside a GitHub Actions job")]
    Missing(&'static str),
    /// `GITHUB_REPOSITORY` is not `owner/name`.
    #[error("GITHUB_REPOSITORY is {0:?}, expected owner/name")]
    Repository(String),
}

impl Context {
    /// Reads the environment; `read` gives the text of a file.
    ///
    /// The pull request is taken from the event alone: what a build of a pull request wrote
    /// must not choose where the report goes.
    pub fn from_environment(
        variable: &dyn Fn(&str) -> Option<String>,
        read: &dyn Fn(&Path) -> Option<String>,
    ) -> Result<Self, ContextError> {
        let full =
            variable("GITHUB_REPOSITORY").ok_or(ContextError::Missing("GITHUB_REPOSITORY"))?;
        let (owner, repository) = full
            .split_once('/')
            .filter(|(owner, name)| is_plain(owner) && is_plain(name))
            .ok_or_else(|| ContextError::Repository(full.clone()))?;
        let event = variable("GITHUB_EVENT_PATH")
            .and_then(|path| read(Path::new(&path)))
            .and_then(|text| serde_json::from_str::<Value>(&text).ok())
            .unwrap_or(Value::Null);
        let server = variable("GITHUB_SERVER_URL")
            .filter(|url| is_address(url))
            .unwrap_or_else(|| "https://github.com".to_owned());
        let run_url = variable("GITHUB_RUN_ID")
            .filter(|run| !run.is_empty() && run.chars().all(|c| c.is_ascii_digit()))
            .map(|run| format!("{server}/{owner}/{repository}/actions/runs/{run}"));
        Ok(Self {
            api_url: variable("GITHUB_API_URL")
                .filter(|url| !url.is_empty())
                .unwrap_or_else(|| "https://api.github.com".to_owned()),
            owner: owner.to_owned(),
            repository: repository.to_owned(),
            pull_request: pull_request(&event),
            head_commit: head_commit(&event).or_else(|| variable("GITHUB_SHA")),
            head: head(&event),
            from_fork: from_fork(&event, &full),
            run_url,
            in_actions: variable("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
            attempt: variable("GITHUB_RUN_ATTEMPT")
                .and_then(|attempt| attempt.parse().ok())
                .unwrap_or(1),
            token: variable("GITHUB_TOKEN")
                .filter(|token| !token.is_empty())
                .map(Secret::new),
            summary_file: path(variable("GITHUB_STEP_SUMMARY")),
            output_file: path(variable("GITHUB_OUTPUT")),
        })
    }
}

fn path(variable: Option<String>) -> Option<PathBuf> {
    variable.filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A web address that cannot end a Markdown link.
fn is_address(url: &str) -> bool {
    (url.starts_with("https://") || url.starts_with("http://"))
        && url
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | '.' | '-' | '_'))
}

/// Letters that GitHub allows in owners and repositories; keeps paths of the API intact.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn pull_request(event: &Value) -> Option<u64> {
    event
        .pointer("/pull_request/number")
        .or_else(|| event.pointer("/workflow_run/pull_requests/0/number"))
        .or_else(|| {
            event
                .get("number")
                .filter(|_| event.get("pull_request").is_some())
        })
        .or_else(|| {
            // A comment on a pull request triggers `issue_comment`.
            event
                .pointer("/issue/pull_request")
                .and(event.pointer("/issue/number"))
        })
        .and_then(Value::as_u64)
}

fn head_commit(event: &Value) -> Option<String> {
    event
        .pointer("/pull_request/head/sha")
        .or_else(|| event.pointer("/workflow_run/head_sha"))
        .or_else(|| event.pointer("/merge_group/head_sha"))
        .and_then(Value::as_str)
        .map(str::to_owned)
}

fn head(event: &Value) -> Option<Head> {
    let text = |pointer| event.pointer(pointer).and_then(Value::as_str);
    let owner = text("/workflow_run/head_repository/owner/login")?;
    let branch = text("/workflow_run/head_branch")?;
    is_plain(owner).then(|| Head {
        owner: owner.to_owned(),
        branch: branch.to_owned(),
    })
}

fn from_fork(event: &Value, full: &str) -> bool {
    event
        .pointer("/pull_request/head/repo/full_name")
        .or_else(|| event.pointer("/workflow_run/head_repository/full_name"))
        .and_then(Value::as_str)
        .is_some_and(|head| !head.eq_ignore_ascii_case(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(variables: &[(&str, &str)], event: &str) -> Result<Context, ContextError> {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Context::from_environment(&variable, &|_| Some(event.to_owned()))
    }

    const BASE: [(&str, &str); 4] = [
        ("GITHUB_REPOSITORY", "team/serving"),
        ("GITHUB_EVENT_PATH", "event.json"),
        ("GITHUB_RUN_ID", "77"),
        ("GITHUB_RUN_ATTEMPT", "2"),
    ];

    #[test]
    fn a_pull_request_is_read_from_the_event() {
        let event = r#"{"number": 12, "pull_request": {"number": 12,
            "head": {"sha": "abc", "repo": {"full_name": "team/serving"}}}}"#;
        let context = context(&BASE, event).expect("a context");
        assert_eq!(context.pull_request, Some(12));
        assert_eq!(context.head_commit.as_deref(), Some("abc"));
        assert!(!context.from_fork);
        assert_eq!(context.attempt, 2);
        assert_eq!(
            context.run_url.as_deref(),
            Some("https://github.com/team/serving/actions/runs/77")
        );
    }

    #[test]
    fn a_fork_and_a_following_workflow_are_seen() {
        let event = r#"{"workflow_run": {"head_sha": "def", "pull_requests": [{"number": 5}],
            "head_repository": {"full_name": "guest/serving"}}}"#;
        let context = context(&BASE, event).expect("a context");
        assert_eq!(context.pull_request, Some(5));
        assert!(context.from_fork);
    }

    #[test]
    fn a_run_for_a_fork_names_its_branch_instead_of_a_number() {
        let event = r#"{"workflow_run": {"head_sha": "def", "pull_requests": [],
            "head_branch": "fix/a&b", "head_repository": {"full_name": "guest/serving",
            "owner": {"login": "guest"}}}}"#;
        let context = context(&BASE, event).expect("a context");
        assert_eq!(context.pull_request, None);
        let head = context.head.expect("a head");
        assert_eq!(
            (head.owner.as_str(), head.branch.as_str()),
            ("guest", "fix/a&b")
        );
    }

    #[test]
    fn an_odd_address_or_number_makes_no_link() {
        let odd = [
            ("GITHUB_REPOSITORY", "team/serving"),
            ("GITHUB_SERVER_URL", "https://x.example) @all"),
            ("GITHUB_RUN_ID", "77"),
            ("GITHUB_STEP_SUMMARY", ""),
        ];
        let context_ = context(&odd, "{}").expect("a context");
        assert_eq!(
            context_.run_url.as_deref(),
            Some("https://github.com/team/serving/actions/runs/77")
        );
        assert_eq!(context_.summary_file, None);
        let odd = [
            ("GITHUB_REPOSITORY", "team/serving"),
            ("GITHUB_RUN_ID", "7)"),
        ];
        assert_eq!(context(&odd, "{}").expect("a context").run_url, None);
    }

    #[test]
    fn a_push_has_no_pull_request_and_outside_of_actions_it_is_said() {
        assert_eq!(context(&BASE, "{}").expect("a context").pull_request, None);
        assert_eq!(
            context(&BASE, "not json").expect("a context").pull_request,
            None
        );
        assert_eq!(
            context(&[], "{}"),
            Err(ContextError::Missing("GITHUB_REPOSITORY"))
        );
        let odd = [("GITHUB_REPOSITORY", "a/../b")];
        assert_eq!(
            context(&odd, "{}"),
            Err(ContextError::Repository("a/../b".to_owned()))
        );
    }
}
