//! What every command that talks to a server needs: a runtime, the signals, the thresholds.

use std::path::Path;

use tokio::runtime::{Builder, Handle, Runtime};

use super::args::{ConfigArgs, LockArgs};
use super::failure::Failure;
use super::terminal::Terminal;
use crate::check::{Servers, Surroundings, environment_name};
use crate::config::{Config, Overrides, load};
use crate::data::Facts;
use crate::lab::lock_name;
use crate::load::Stop;
use crate::probe::{HostLock, LockError, Repository};
use crate::report::Exit;
use crate::triton::Endpoint;

/// A runtime for calls beside the load, and the flag that signals set.
pub struct Context {
    runtime: Runtime,
    /// Set by the first signal.
    pub stop: Stop,
}

impl Context {
    /// Starts the runtime and listens for signals.
    ///
    /// The first signal asks for an orderly end; the second ends at once.
    pub fn start(terminal: Terminal) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("control")
            .enable_all()
            .build()
            .map_err(|error| {
                Failure::not_measured(format!("failed to start the runtime: {error}"))
                    .next("check the limits on threads and files")
            })?;
        let stop = Stop::new();
        runtime.spawn(listen(stop.clone(), terminal));
        Ok(Self { runtime, stop })
    }

    /// Runs calls on the runtime.
    pub fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }
}

async fn listen(stop: Stop, terminal: Terminal) {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let streams: Vec<_> = kinds
        .into_iter()
        .filter_map(|kind| signal(kind).ok())
        .collect();
    let (say, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for mut stream in streams {
        let say = say.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if say.send(()).is_err() {
                    return;
                }
            }
        });
    }
    drop(say);
    if heard.recv().await.is_some() {
        stop.set();
        terminal.say("stopping: requests in flight get up to 2 s (once more to end at once)");
    }
    if heard.recv().await.is_some() {
        std::process::exit(i32::from(Exit::Interrupted.code()));
    }
}

/// Reads the thresholds; the environment's name is detected where nobody gave one.
pub fn thresholds(
    arguments: &ConfigArgs,
    mut overrides: Overrides,
    servers: &mut Servers,
) -> Result<Config, Failure> {
    let config = offline(arguments, &mut overrides)?;
    if config.environment_name.is_some() {
        return Ok(config);
    }
    let facts = config
        .scenarios
        .first()
        .map(|scenario| servers.hardware(&scenario.server))
        .unwrap_or_default();
    overrides.detected_environment = environment_name(&facts);
    read(arguments, &overrides)
}

/// Reads the thresholds and asks no server: the environment may have no name.
pub fn offline(arguments: &ConfigArgs, overrides: &mut Overrides) -> Result<Config, Failure> {
    overrides.url.clone_from(&arguments.url);
    overrides.environment.clone_from(&arguments.environment);
    overrides.only.clone_from(&arguments.only);
    overrides.budget = arguments.budget;
    read(arguments, overrides)
}

fn read(arguments: &ConfigArgs, overrides: &Overrides) -> Result<Config, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    load(&arguments.config, overrides, &variable).map_err(Failure::usage)
}

/// The environment's name, or what to do where nobody gave one and it cannot be seen.
pub fn environment(config: &Config) -> Result<String, Failure> {
    config.environment_name.clone().ok_or_else(|| {
        let server = config
            .scenarios
            .first()
            .map_or("", |scenario| scenario.server.url.as_str());
        Failure::usage(format!(
            "the environment has no name: the hardware behind {server} cannot be seen from here"
        ))
        .next(
            "name it after the server's GPU: --environment h100, TRITON_GATE_ENV, or [environment] \
             name",
        )
    })
}

/// What surrounds every visit.
pub fn surroundings(config: &Config, servers: &mut Servers) -> Surroundings {
    let hardware = config
        .scenarios
        .first()
        .map_or_else(Facts::default, |scenario| {
            servers.hardware(&scenario.server)
        });
    Surroundings {
        repository: Repository::at(Path::new(".")),
        hardware,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Takes the lock that keeps other checks off the GPU.
pub fn lock(
    arguments: &LockArgs,
    config: &Config,
    hardware: &Facts,
    stop: &Stop,
    terminal: Terminal,
) -> Result<HostLock, Failure> {
    let name = match &arguments.lock {
        Some(name) => name.clone(),
        None => config
            .scenarios
            .first()
            .and_then(|scenario| Endpoint::new(&scenario.server).ok())
            .map_or_else(
                || "server".to_owned(),
                |endpoint| lock_name(hardware, &endpoint),
            ),
    };
    let mut waiting = |holder: &str| {
        terminal.say(format!(
            "waiting for another check ({holder}) that holds the lock {name:?}, at most {} s",
            arguments.lock_wait.as_secs()
        ));
    };
    HostLock::take(&name, arguments.lock_wait, &mut waiting, &|| stop.is_set()).map_err(|error| {
        let exit = match &error {
            LockError::Interrupted(_) => Exit::Interrupted,
            LockError::Busy { .. } | LockError::File { .. } => Exit::NotMeasured,
        };
        Failure::new(exit, error)
    })
}
