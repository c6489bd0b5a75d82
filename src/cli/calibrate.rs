//! `triton-gate calibrate`.

use super::args::CalibrateArgs;
use super::context::{Context, environment, lock, surroundings, thresholds};
use super::failure::Failure;
use super::files;
use super::output;
use super::progress::Display;
use super::terminal::Terminal;
use crate::calibrate::{Request, calibrate, text};
use crate::check::Servers;
use crate::config::Overrides;

/// Measures what the noise of a live server allows, and says so.
pub fn run(terminal: Terminal, arguments: &CalibrateArgs) -> Result<u8, Failure> {
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
    let request = Request {
        time: arguments.time,
        checks: arguments.checks,
        tool_version: surroundings.tool_version,
        environment,
    };
    let mut display = Display::new(terminal);
    let calibration = calibrate(
        &context.handle(),
        &context.stop,
        &config,
        &request,
        &mut servers,
        &mut display,
    );
    drop(display);
    let page = text(&calibration, output::style(terminal));
    let to_stdout = arguments
        .json
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-");
    if to_stdout {
        terminal.say(page.trim_end());
    } else {
        terminal.data(&page)?;
    }
    if let Some(path) = &arguments.json {
        let json = serde_json::to_string_pretty(&calibration)
            .map_err(|error| Failure::not_measured(format!("failed to write JSON: {error}")))?;
        files::write(terminal, path, &format!("{json}\n"))?;
    }
    for scenario in &calibration.scenarios {
        if let Some(reason) = &scenario.reason {
            terminal.fail(
                &Failure::not_measured(format!("{}: {}", scenario.name, reason.text))
                    .next(&reason.next),
            );
        }
    }
    Ok(calibration.exit_code)
}
