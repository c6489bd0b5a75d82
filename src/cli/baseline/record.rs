//! `triton-gate baseline record`.

use super::args::RecordArgs;
use crate::baseline::Store;
use crate::check::{Observer as _, RecordPlan, Servers, record, worst_exit};
use crate::cli::context::{Context, environment, lock, surroundings, thresholds};
use crate::cli::failure::Failure;
use crate::cli::progress::Display;
use crate::cli::terminal::Terminal;
use crate::config::{Config, Overrides};
use crate::report::Exit;

/// Records as many sessions of every scenario as were asked for.
pub fn run(terminal: Terminal, arguments: &RecordArgs) -> Result<u8, Failure> {
    let context = Context::start(terminal)?;
    let mut servers = Servers::new(context.handle(), context.stop.clone());
    let config = thresholds(&arguments.config, Overrides::default(), &mut servers)?;
    let environment = environment(&config)?;
    if arguments.sessions > 1 {
        refuse_single_life(&config)?;
    }
    let store = Store::locate(&arguments.baselines).map_err(Failure::usage)?;
    let results = Store::open(&arguments.results).map_err(Failure::usage)?;
    let surroundings = surroundings(&config, &mut servers);
    let _lock = lock(
        &arguments.lock,
        &config,
        &surroundings.hardware,
        &context.stop,
        terminal,
    )?;
    let mut display = Display::new(terminal);
    let plan = RecordPlan {
        store: &store,
        results: &results,
        environment: &environment,
        duration: arguments.duration,
        gated_metrics: config.gated_metrics,
        accept: arguments.accept,
        keep: arguments.keep,
    };
    let mut codes = vec![0];
    let mut same_life = false;
    for session in 1..=arguments.sessions {
        if session > 1 {
            // The next session is to be another life of the server.
            if let Some(complaint) = servers.stop_launched() {
                display.note(&format!("warning: {complaint}"));
            }
        }
        for scenario in &config.scenarios {
            if context.stop.is_set() {
                codes.push(Exit::Interrupted.code());
                break;
            }
            let recorded = record(
                &context.handle(),
                &context.stop,
                &plan,
                scenario,
                &mut servers,
                &surroundings,
                &mut display,
            );
            same_life |= recorded.same_life;
            if recorded.new_epoch {
                display.note(&format!(
                    "accepted: {} regresses against the baseline, whose level starts anew with it",
                    recorded.scenario
                ));
            }
            for file in &recorded.pruned {
                display.note(&format!("deleted {} (--keep)", file.display()));
            }
            match recorded.file {
                Ok(file) => {
                    display.note(&format!(
                        "recorded {} (session {session} of {}): {}",
                        recorded.scenario,
                        arguments.sessions,
                        file.display()
                    ));
                }
                Err(reason) => {
                    let code = match reason.code.as_str() {
                        "interrupted" => Exit::Interrupted,
                        "regression" => Exit::Regression,
                        _ => Exit::NotMeasured,
                    };
                    codes.push(code.code());
                    display.note(&format!("error: {}: {}", recorded.scenario, reason.text));
                    if !reason.next.is_empty() {
                        display.note(&format!("  next: {}", reason.next));
                    }
                }
            }
        }
    }
    drop(display);
    if same_life {
        terminal.say(
            "note: the server was not restarted since the last session: both visits count as one \
             session. Restart it, or let the gate do so ([server] launch, model_control)",
        );
    }
    Ok(worst_exit(codes))
}

/// Several sessions need several lives of a server.
fn refuse_single_life(config: &Config) -> Result<(), Failure> {
    let single = config
        .scenarios
        .iter()
        .find(|scenario| scenario.server.launch.is_empty() && !scenario.server.explicit_models);
    match single {
        None => Ok(()),
        Some(scenario) => Err(Failure::usage(format!(
            "several sessions of {:?} need a server that the gate can restart: repeated visits to \
             one running server are one session",
            scenario.name
        ))
        .next(
            "set [server] launch or model_control = \"explicit\", or record once after each \
             restart of your own",
        )),
    }
}
