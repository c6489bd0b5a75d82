//! The servers of a check: started where the thresholds say so, awaited, stopped; and models
//! loaded for their scenarios.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::baseline::environment::slug;
use crate::data::{Facts, Reason, Scenario, ServerSpec};
use crate::lab::{LOAD_TIMEOUT, Launched, Target, client_reason, connect, hardware};
use crate::load::Stop;
use crate::triton::Endpoint;

/// How long a launched server may take until it is ready.
const READY_TIMEOUT: Duration = Duration::from_mins(10);

/// The servers that a check has started or talked to.
pub struct Servers {
    runtime: Handle,
    stop: Stop,
    launched: Option<(Vec<String>, Launched)>,
    hardware: BTreeMap<String, Facts>,
}

impl Servers {
    /// None yet.
    pub fn new(runtime: Handle, stop: Stop) -> Self {
        Self {
            runtime,
            stop,
            launched: None,
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

    /// Ends the server that was launched, so that the next one is a new life.
    pub fn stop_launched(&mut self) {
        if let Some((_, server)) = self.launched.take() {
            server.stop();
        }
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
        self.stop_launched();
        let failed = |error: crate::lab::LaunchError| Reason {
            code: "launch".to_owned(),
            text: error.to_string(),
            next: "correct [server] launch, or start the server yourself".to_owned(),
        };
        let mut running = Launched::start(&server.launch).map_err(failed)?;
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

/// The default name of the environment behind a server; none where the server is elsewhere, so
/// that its hardware cannot be seen from here.
pub fn environment_name(hardware: &Facts) -> Option<String> {
    slug(hardware)
}
