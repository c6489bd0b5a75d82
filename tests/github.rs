//! The binary against a mock of GitHub's API, and the scripts and files of its workflows.

#[path = "github/check.rs"]
mod check;
#[path = "github/comment.rs"]
mod comment;
#[path = "github/job.rs"]
mod job;
#[path = "github/scripts.rs"]
mod scripts;
#[path = "github/servers.rs"]
mod servers;
#[path = "github/workflows.rs"]
mod workflows;
