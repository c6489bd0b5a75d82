//! `triton-gate simulate`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use super::args::SimulateArgs;
use super::context::Context;
use super::failure::Failure;
use super::files;
use super::terminal::Terminal;
use crate::simulate::{Server, SimulateError, SimulateSpec};

/// Serves until a signal asks for the end.
pub fn run(terminal: Terminal, arguments: &SimulateArgs) -> Result<u8, Failure> {
    if arguments.example {
        terminal.data(SimulateSpec::example_toml())?;
        return Ok(0);
    }
    let mut spec = match &arguments.config {
        Some(path) => {
            let text = files::read(path, "server description")?;
            SimulateSpec::from_toml(&text, &path.display().to_string()).map_err(Failure::usage)?
        }
        None => SimulateSpec::builtin(),
    };
    if let Some(address) = &arguments.listen {
        spec.listen = resolve(address)?;
    } else if arguments.config.is_none() {
        spec.listen.set_port(8001);
    }
    let context = Context::start(terminal)?;
    let stop = context.stop.clone();
    let port_file: Option<PathBuf> = arguments.port_file.clone();
    let running = Server::start(spec).map_err(|error| match error {
        SimulateError::Spec { .. } | SimulateError::Tls { .. } => Failure::usage(error),
        _ => Failure::not_measured(error),
    })?;
    terminal.say(format!(
        "an embedded server answers at {} (it computes nothing; Ctrl-C ends it)",
        running.url()
    ));
    if let Some(path) = port_file {
        files::write(terminal, &path, &format!("{}\n", running.addr().port()))?;
    }
    while !stop.is_set() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    running.shutdown().map_err(Failure::not_measured)?;
    Ok(0)
}

fn resolve(address: &str) -> Result<SocketAddr, Failure> {
    address
        .to_socket_addrs()
        .ok()
        .and_then(|mut found| found.next())
        .ok_or_else(|| {
            Failure::usage(format!(
                "--listen {address:?} is no address of this machine"
            ))
            .next("write it like 127.0.0.1:8001; port 0 takes a free one")
        })
}
