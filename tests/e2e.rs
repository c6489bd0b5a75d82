//! The program against a real Triton with the models of examples/models. Run by scripts/test,
//! which starts that server; a test that kills a server or needs other options starts its own.

#[path = "support/program.rs"]
mod program;

#[path = "e2e/models.rs"]
mod models;
#[path = "e2e/pull_request.rs"]
mod pull_request;
#[path = "e2e/servers.rs"]
mod servers;
#[path = "e2e/triton.rs"]
mod triton;
#[path = "e2e/versions.rs"]
mod versions;
