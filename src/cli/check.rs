//! `triton-gate check`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chrono::Utc;

use super::args::{CheckArgs, InconclusiveChoice, PolicyChoice, RuleChoice};
use super::checkouts::Checkouts;
use super::context::{Context, environment, lock, offline, surroundings, thresholds};
use super::failure::Failure;
use super::files;
use super::github;
use super::output;
use super::progress::Display;
use super::terminal::Terminal;
use crate::baseline::Store;
use crate::check::{Options, Servers, Surroundings, check, not_affected, nothing_affected};
use crate::config::{Config, Overrides, explain_table};
use crate::data::{CheckResult, Facts, GateChanges, OnInconclusive, Policy, Reason, Rule};
use crate::github as hub;
use crate::probe::{Changes, Repository};
use crate::report::json;

/// Measures every scenario and answers with the exit code.
pub fn run(terminal: Terminal, arguments: &CheckArgs) -> Result<u8, Failure> {
    let mut inputs: Vec<&Path> = arguments
        .config
        .config
        .iter()
        .map(PathBuf::as_path)
        .collect();
    inputs.push(&arguments.baselines);
    files::distinct(&arguments.output.files(), &inputs)?;
    let context = Context::start(terminal)?;
    match measure(terminal, arguments, &context) {
        Ok(shown) => shown,
        Err(failure) => {
            if arguments.github && !arguments.explain_config {
                github::publish_failure(terminal, &context.handle(), &place(arguments), &failure);
            }
            Err(failure)
        }
    }
}

/// Where a result goes on GitHub.
fn place(arguments: &CheckArgs) -> github::Place {
    let given = arguments
        .config
        .config
        .iter()
        .map(|path| path.display().to_string());
    github::Place {
        id: github::comment_id(arguments.comment_id.as_deref(), given),
        comment: !arguments.no_comment,
        data_on_stdout: [
            &arguments.output.json,
            &arguments.output.junit,
            &arguments.output.markdown,
        ]
        .into_iter()
        .flatten()
        .any(|path| path.as_os_str() == "-"),
    }
}

/// The outer error is a check without a result; the inner one came after the result was there.
fn measure(
    terminal: Terminal,
    arguments: &CheckArgs,
    context: &Context,
) -> Result<Result<u8, Failure>, Failure> {
    let mut servers = Servers::new(context.handle(), context.stop.clone());
    let mut overrides = Overrides {
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
        on_inconclusive: arguments.on_inconclusive.map(|choice| match choice {
            InconclusiveChoice::Report => OnInconclusive::Report,
            InconclusiveChoice::Fail => OnInconclusive::Fail,
            InconclusiveChoice::Pass => OnInconclusive::Pass,
        }),
        total_budget: arguments.total_budget,
        ..Overrides::default()
    };
    let checkouts = Checkouts::of(arguments)?;
    let mut untouched = BTreeMap::new();
    if let Some(revision) = arguments
        .changed_since
        .as_deref()
        .filter(|_| !arguments.explain_config)
    {
        // Asked before any server: where nothing is affected none needs to run.
        let config = offline(&arguments.config, &mut overrides)?;
        untouched = since(arguments, checkouts.as_ref(), revision, &config)?;
        if untouched.len() == config.scenarios.len() {
            let surroundings = Surroundings {
                repository: repository(checkouts.as_ref()),
                hardware: Facts::default(),
                tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            };
            let mut result = nothing_affected(&config, &untouched, &surroundings);
            result.gate_changes = gate_changes(arguments, checkouts.as_ref(), &config)?;
            name_files(checkouts.as_ref(), &mut result);
            return Ok(finish(terminal, arguments, context, &result));
        }
    }
    let config = thresholds(&arguments.config, overrides, &mut servers)?;
    if arguments.explain_config {
        for scenario in &config.scenarios {
            terminal.data(&format!(
                "{}\n{}\n",
                scenario.name,
                explain_table(&config.explain(&scenario.name))
            ))?;
        }
        return Ok(Ok(0));
    }
    let gate_changes = gate_changes(arguments, checkouts.as_ref(), &config)?;
    let environment = environment(&config)?;
    let store = Store::locate(&arguments.baselines).map_err(Failure::usage)?;
    let results = Store::open(&arguments.results).map_err(Failure::usage)?;
    let mut surroundings = surroundings(&config, &mut servers);
    surroundings.repository = repository(checkouts.as_ref());
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
        selected: !arguments.config.only.is_empty(),
        today: Utc::now().date_naive(),
        not_affected: untouched,
    };
    let mut display = Display::new(terminal);
    let mut result = check(
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
    result.gate_changes = gate_changes;
    name_files(checkouts.as_ref(), &mut result);
    Ok(finish(terminal, arguments, context, &result))
}

/// The repository whose commit is checked.
fn repository(checkouts: Option<&Checkouts>) -> Repository {
    Repository::at(checkouts.map_or(Path::new("."), Checkouts::head))
}

/// What the change alters in the gate itself; none where no other checkout was given.
fn gate_changes(
    arguments: &CheckArgs,
    checkouts: Option<&Checkouts>,
    config: &Config,
) -> Result<Option<GateChanges>, Failure> {
    checkouts
        .map(|checkouts| {
            checkouts.changes(
                &arguments.config.config,
                &arguments.baselines,
                config.environment_name.as_deref(),
            )
        })
        .transpose()
}

/// A report names files as a reader finds them in his own checkout.
fn name_files(checkouts: Option<&Checkouts>, result: &mut CheckResult) {
    if let Some(checkouts) = checkouts {
        checkouts.inner(&mut result.configs);
    }
}

/// The scenarios that the change since `revision` does not touch.
fn since(
    arguments: &CheckArgs,
    checkouts: Option<&Checkouts>,
    revision: &str,
    config: &Config,
) -> Result<BTreeMap<String, Reason>, Failure> {
    let folder = checkouts.map_or(Path::new("."), Checkouts::head);
    let changes = Changes::since(folder, revision).map_err(|error| {
        Failure::usage(format!(
            "failed to see what changed since {revision:?}: {error}"
        ))
        .next(error.next())
    })?;
    // What judges may lie in the other checkout; what changed is asked of this one.
    let (scenarios, baselines) = match checkouts {
        Some(checkouts) => (
            checkouts.scenarios_in_head(&config.scenarios),
            checkouts.in_head(&arguments.baselines),
        ),
        None => (config.scenarios.clone(), None),
    };
    let baselines = baselines.as_deref().unwrap_or(&arguments.baselines);
    not_affected(&scenarios, &changes, baselines).map_err(|error| {
        Failure::usage(error).next("correct the pattern, such as paths = [\"models/yolov9/**\"]")
    })
}

/// Keeps, shows and publishes a result.
fn finish(
    terminal: Terminal,
    arguments: &CheckArgs,
    context: &Context,
    result: &CheckResult,
) -> Result<u8, Failure> {
    let stem = stem(arguments, result);
    let kept = keep(terminal, &stem.with_extension("json"), result);
    let shown = output::show(terminal, &arguments.output, result);
    if arguments.github {
        let report_path = stem.with_extension("md");
        let report = hub::report(std::slice::from_ref(result));
        let written = github::keep_report(terminal, &report_path, &report);
        let files = hub::Files {
            report: written.then_some(report_path.as_path()),
            result: kept.as_deref(),
        };
        github::publish(
            terminal,
            &context.handle(),
            &place(arguments),
            result,
            &report,
            files,
        );
    }
    shown.or_else(|failure| {
        // A page that could not be shown must not hide a verdict that fails.
        if result.exit_code == 0 {
            return Err(failure);
        }
        terminal.fail(&failure);
        Ok(result.exit_code)
    })
}

/// The files of this check in the results folder, without their endings.
fn stem(arguments: &CheckArgs, result: &CheckResult) -> PathBuf {
    let name = format!(
        "{}-{}",
        Utc::now().format("%Y%m%dT%H%M%S%3fZ"),
        std::process::id()
    );
    arguments.results.join(&result.environment_name).join(name)
}

/// The result of every check stays in the results folder, so that history can be read later.
fn keep(terminal: Terminal, path: &Path, result: &CheckResult) -> Option<PathBuf> {
    let text = json(result).ok()?;
    match files::write(terminal, path, &text) {
        Ok(()) => Some(path.to_owned()),
        Err(failure) => {
            terminal.warn(format!("the result was not kept: {}", failure.message));
            None
        }
    }
}
