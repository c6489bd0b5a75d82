//! Compiles `proto/` without `protoc` and stamps the build with its commit.

use std::path::Path;
use std::process::Command;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-env-changed=TRITON_GATE_COMMIT");
    let descriptors = protox::compile(["grpc_service.proto", "health.proto"], ["proto"])?;
    let mut config = prost_build::Config::new();
    // Payloads are shared, never copied.
    config.bytes(["."]);
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .compile_fds_with_config(descriptors, config)?;
    println!("cargo:rustc-env=TRITON_GATE_COMMIT={}", commit());
    Ok(())
}

/// The short commit: given by the packager, else asked from git, else "unknown".
fn commit() -> String {
    if let Ok(given) = std::env::var("TRITON_GATE_COMMIT")
        && !given.is_empty()
    {
        return given;
    }
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && Path::new(&head).exists()
    {
        println!("cargo:rerun-if-changed={head}");
    }
    git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}
