//! `triton-gate check`.

use chrono::Utc;

use super::args::{CheckArgs, PolicyChoice, RuleChoice};
use super::context::{Context, environment, lock, surroundings, thresholds};
use super::failure::Failure;
use super::files;
use super::output;
use super::progress::Display;
use super::terminal::Terminal;
use crate::baseline::Store;
use crate::check::{Options, Servers, check};
use crate::config::{Overrides, explain_table};
use crate::data::{CheckResult, Policy, Rule};
use crate::report::json;

/// Measures every scenario and answers with the exit code.
pub fn run(terminal: Terminal, arguments: &CheckArgs) -> Result<u8, Failure> {
    let context = Context::start(terminal)?;
    let mut servers = Servers::new(context.handle(), context.stop.clone());
    let overrides = Overrides {
        rule: arguments.rule.map(|rule| match rule {
            RuleChoice::Evidence => Rule::Evidence,
            RuleChoice::Point => Rule::Point,
        }),
        policy: arguments.policy.map(|policy| match policy {
            PolicyChoice::Enforce => Policy::Enforce,
            PolicyChoice::Detect => Policy::Detect,
        }),
        reference_url: arguments.reference_url.clone(),
        reference_model: arguments.reference_model.clone(),
        reference_version: arguments.reference_version.clone(),
        total_budget: arguments.total_budget,
        ..Overrides::default()
    };
    let config = thresholds(&arguments.config, overrides, &mut servers)?;
    if arguments.explain_config {
        for scenario in &config.scenarios {
            terminal.data(&format!(
                "{}\n{}\n",
                scenario.name,
                explain_table(&config.explain(&scenario.name))
            ))?;
        }
        return Ok(0);
    }
    let environment = environment(&config)?;
    let store = Store::open(&arguments.baselines).map_err(Failure::usage)?;
    let results = Store::open(&arguments.results).map_err(Failure::usage)?;
    let surroundings = surroundings(&config, &mut servers);
    let _lock = lock(
        &arguments.lock,
        &config,
        &surroundings.hardware,
        &context.stop,
        terminal,
    )?;
    let options = Options {
        allow: arguments.allow.clone(),
        record_missing: arguments.record_missing,
        today: Utc::now().date_naive(),
    };
    let mut display = Display::new(terminal);
    let result = check(
        &context.handle(),
        &context.stop,
        &config,
        &environment,
        &store,
        &results,
        &options,
        &surroundings,
        &mut servers,
        &mut display,
    )
    .map_err(|error| Failure::usage(error).next("mend what is named; nothing was measured"))?;
    drop(display);
    keep(terminal, arguments, &result);
    output::show(terminal, &arguments.output, &result)
}

/// The result of every check stays in the results folder, so that history can be read later.
fn keep(terminal: Terminal, arguments: &CheckArgs, result: &CheckResult) {
    let Ok(text) = json(result) else { return };
    let name = format!(
        "{}-{}.json",
        Utc::now().format("%Y%m%dT%H%M%S%3fZ"),
        std::process::id()
    );
    let path = arguments.results.join(&result.environment_name).join(name);
    if let Err(failure) = files::write(terminal, &path, &text) {
        terminal.warn(format!("the result was not kept: {}", failure.message));
    }
}
