//! `triton-gate baseline missing`.

use super::args::MissingArgs;
use crate::baseline::Store;
use crate::check::{Servers, needs_baseline};
use crate::cli::context::{Context, environment, thresholds};
use crate::cli::failure::Failure;
use crate::cli::terminal::Terminal;
use crate::config::Overrides;
use crate::report::Exit;

/// Names the scenarios without a baseline, so that a script can record just those.
pub fn run(terminal: Terminal, arguments: &MissingArgs) -> Result<u8, Failure> {
    let context = Context::start(terminal)?;
    let mut servers = Servers::new(context.handle(), context.stop.clone());
    let config = thresholds(&arguments.config, Overrides::default(), &mut servers)?;
    let environment = environment(&config)?;
    let store = Store::locate(&arguments.baselines).map_err(Failure::usage)?;
    let mut names = String::new();
    for scenario in &config.scenarios {
        let stored = store
            .sessions(&environment, &scenario.name)
            .map_err(Failure::usage)?;
        let alone = stored.is_empty() && config.reference(&scenario.name).is_none();
        if alone && needs_baseline(scenario) {
            names.push_str(&scenario.name);
            names.push('\n');
        }
    }
    if names.is_empty() {
        terminal.say("every scenario has a baseline");
        return Ok(0);
    }
    terminal.data(&names)?;
    Ok(Exit::NoBaseline.code())
}
