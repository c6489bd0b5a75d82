//! The servers of a check: started where the thresholds say so, awaited, stopped; and models
//! loaded for their scenarios.

use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::baseline::environment::slug;
use crate::data::{Facts, Reason, Scenario, ServerSpec};
use crate::lab::{LOAD_TIMEOUT, Launched, Target, client_reason, connect, hardware};
use crate::load::Stop;
use crate::triton::Endpoint;

/// How long a launched server may take until it is ready.
const READY_TIMEOUT: Duration = Duration::from_mins(10);

/// How long the address of a server that was ended may stay in use.
const FREE_TIMEOUT: Duration = Duration::from_secs(30);

/// The servers that a check has started or talked to.
pub struct Servers {
    runtime: Handle,
    stop: Stop,
    launched: Option<(Vec<String>, Launched)>,
    /// True once a server of ours was ended: its address may take a moment to be free.
    ended: bool,
    hardware: BTreeMap<String, Facts>,
}

impl Servers {
    /// None yet.
    pub fn new(runtime: Handle, stop: Stop) -> Self {
        Self {
            runtime,
            stop,
            launched: None,
            ended: false,
            hardware: BTreeMap::new(),
        }
    }

    /// Facts of the hardware behind a server; asked once a host.
    pub fn hardware(&mut self, server: &ServerSpec) -> Facts {
        let Ok(endpoint) = Endpoint::new(server) else {
            return Facts::default();
        };
        let host = endpoint.host().to_owned();
        self.hardware
            .entry(host.clone())
            .or_insert_with(|| hardware(&host))
            .clone()
    }

    /// Makes sure that the scenario's server runs and its model is loaded, and describes it.
    pub fn target(&mut self, scenario: &Scenario) -> Result<Target, Reason> {
        self.launch(&scenario.server)?;
        let (mut client, info) = connect(&self.runtime, &scenario.server)?;
        if scenario.server.explicit_models {
            self.runtime
                .block_on(client.load(&scenario.model, LOAD_TIMEOUT))
                .map_err(|error| client_reason(&error))?;
        }
        Target::describe(&self.runtime, scenario, client, info)
    }

    /// After a scenario: its model is unloaded where the gate loaded it.
    pub fn release(&mut self, scenario: &Scenario) {
        if !scenario.server.explicit_models {
            return;
        }
        if let Ok((mut client, _)) = connect(&self.runtime, &scenario.server) {
            // A model that stays loaded costs memory, not truth.
            let _ = self.runtime.block_on(client.unload(&scenario.model));
        }
    }

    /// Ends the server that was launched, so that the next one is a new life. What comes back says
    /// that its stop command failed.
    pub fn stop_launched(&mut self) -> Option<String> {
        if let Some((_, server)) = self.launched.take() {
            self.ended = true;
            return server.stop().err().map(|error| error.to_string());
        }
        None
    }

    /// Waits until nothing answers at the address of a server that is to be started: else what
    /// listens there would be measured in its place.
    fn await_free(&self, server: &ServerSpec) -> Result<(), Reason> {
        let Ok(endpoint) = Endpoint::new(server) else {
            return Ok(());
        };
        let deadline = Instant::now() + FREE_TIMEOUT;
        while answers(&endpoint.address()) {
            if Instant::now() >= deadline || self.stop.is_set() || !self.ended {
                return Err(Reason {
                    code: "address_in_use".to_owned(),
                    text: format!(
                        "a server answers at {} before the one of [server] launch is started",
                        endpoint.address()
                    ),
                    next: "end it, or give the launched server another port (in its launch \
                           command and its url)"
                        .to_owned(),
                });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn launch(&mut self, server: &ServerSpec) -> Result<(), Reason> {
        if server.launch.is_empty() {
            return Ok(());
        }
        let same = self
            .launched
            .as_ref()
            .is_some_and(|(command, _)| *command == server.launch);
        if same {
            return Ok(());
        }
        if let Some(text) = self.stop_launched() {
            return Err(Reason {
                code: "launch".to_owned(),
                text,
                next: "correct the stop command".to_owned(),
            });
        }
        let failed = |error: crate::lab::LaunchError| Reason {
            code: "launch".to_owned(),
            text: error.to_string(),
            next: "correct [server] launch, or start the server yourself".to_owned(),
        };
        self.await_free(server)?;
        let mut running = Launched::start(&server.launch, &server.stop).map_err(failed)?;
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            running.check_running().map_err(failed)?;
            if self.stop.is_set() {
                return Err(Reason {
                    code: "interrupted".to_owned(),
                    text: "stopped while the server was starting".to_owned(),
                    next: "start the check again".to_owned(),
                });
            }
            let ready = connect(&self.runtime, server).and_then(|(mut client, _)| {
                self.runtime
                    .block_on(client.ready())
                    .map_err(|error| client_reason(&error))
            });
            match ready {
                Ok(true) => break,
                Err(reason) if Instant::now() >= deadline => return Err(reason),
                Ok(false) if Instant::now() >= deadline => {
                    return Err(Reason {
                        code: "server_not_ready".to_owned(),
                        text: format!(
                            "the launched server was not ready within {} s",
                            READY_TIMEOUT.as_secs()
                        ),
                        next: "look at its log".to_owned(),
                    });
                }
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
        self.launched = Some((server.launch.clone(), running));
        Ok(())
    }
}

/// Whether something accepts connections there.
fn answers(address: &str) -> bool {
    let Ok(resolved) = address.to_socket_addrs() else {
        return false;
    };
    resolved
        .into_iter()
        .any(|address| TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok())
}

/// The default name of the environment behind a server; none where the server is elsewhere, so
/// that its hardware cannot be seen from here.
pub fn environment_name(hardware: &Facts) -> Option<String> {
    slug(hardware)
}
