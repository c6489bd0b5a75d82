//! `triton-gate measure`.

use super::args::MeasureArgs;
use super::context::{Context, environment, lock, surroundings, thresholds};
use super::failure::Failure;
use super::files;
use super::output;
use super::progress::Display;
use super::terminal::Terminal;
use crate::baseline::session_csv;
use crate::check::{Servers, measure};
use crate::config::Overrides;

/// Measures every scenario for a fixed time and shows what came of it.
pub fn run(terminal: Terminal, arguments: &MeasureArgs) -> Result<u8, Failure> {
    let context = Context::start(terminal)?;
    let mut servers = Servers::new(context.handle(), context.stop.clone());
    let config = thresholds(&arguments.config, Overrides::default(), &mut servers)?;
    let environment = environment(&config)?;
    let surroundings = surroundings(&config, &mut servers);
    let _lock = lock(
        &arguments.lock,
        &config,
        &surroundings.hardware,
        &context.stop,
        terminal,
    )?;
    let mut display = Display::new(terminal);
    let (result, sessions) = measure(
        &context.handle(),
        &context.stop,
        &config,
        &environment,
        arguments.duration,
        &surroundings,
        &mut servers,
        &mut display,
    );
    drop(display);
    if let Some(path) = &arguments.output
        && !sessions.is_empty()
    {
        let text = session_csv::write_all(&sessions).map_err(Failure::not_measured)?;
        files::write(terminal, path, &text)?;
    }
    output::page(terminal, arguments.output.as_deref(), &result)?;
    Ok(result.exit_code)
}
