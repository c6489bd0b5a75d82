//! From files, variables and flags to scenarios in which every value is settled.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::accept::AcceptSpec;
use super::error::{ConfigError, ConfigErrors, Place, Problem, Subject, nearest};
use super::expand::{self, Named};
use super::explain::{self, Explained};
use super::file::{File, Levels};
use super::inputs::InputFiles;
use super::layer::{At, Layer as _, ModelControl, Origin};
use super::limits::Limits;
use super::overrides::Overrides;
use super::show::Show as _;
use super::text;
use crate::data::{
    Bound, GateSpec, InputSpec, Limit, Load, MeasureSpec, Scenario, Secret, ServerSpec,
};

/// A live baseline: whatever differs from the scenario's own server, model and version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReferenceSpec {
    /// Another server; none for the scenario's.
    pub url: Option<String>,
    /// Another model; none for the scenario's.
    pub model: Option<String>,
    /// Another version; none for the scenario's.
    pub version: Option<String>,
    /// The command that starts the reference's server; empty for none.
    pub launch: Vec<String>,
    /// The command that stops it; empty to end what `launch` started.
    pub stop: Vec<String>,
}

/// Everything that the thresholds files, the variables and the flags say together.
#[derive(Debug, Clone)]
pub struct Config {
    /// The files that were read, in order.
    pub files: Vec<PathBuf>,
    /// The scenarios in the files' order, lists expanded, `--only` applied. At least one.
    pub scenarios: Vec<Scenario>,
    /// The environment's name, if any was given or detected.
    pub environment_name: Option<String>,
    /// Names for which a file has `[environment.NAME.*]`, sorted. Where there are some and
    /// `environment_name` is none, their values could not be considered yet.
    pub environment_sections: Vec<String>,
    /// Time for the whole check; none for the sum of the scenarios'.
    pub total_budget: Option<Duration>,
    /// The live baselines, by scenario.
    pub references: BTreeMap<String, ReferenceSpec>,
    /// Accepted slowdowns of the selected scenarios, by expanded name.
    pub accepts: Vec<AcceptSpec>,
    /// Gated metrics over all selected scenarios: what the false-alarm rate is divided among.
    pub gated_metrics: u32,
    explained: BTreeMap<String, Vec<Explained>>,
}

impl Config {
    /// The live baseline of a scenario, if it has one.
    pub fn reference(&self, scenario: &str) -> Option<&ReferenceSpec> {
        self.references.get(scenario)
    }

    /// Every value of a scenario and where it came from; empty for an unknown scenario.
    pub fn explain(&self, scenario: &str) -> Vec<Explained> {
        self.explained.get(scenario).cloned().unwrap_or_default()
    }
}

/// A file that was read: its path and what is in it.
pub(crate) type Parsed = (PathBuf, File);

/// What the flags, the variables and the environment's name are, once for all scenarios.
struct Above {
    flags: Levels,
    variables: Levels,
    environment: Option<At<String>>,
    total_budget: Option<At<Duration>>,
}

/// Settles every scenario. `errors` holds those found so far.
pub(crate) fn resolve(
    parsed: &[Parsed],
    overrides: &Overrides,
    env: &dyn Fn(&str) -> Option<String>,
    not_yet: super::file::NotYet,
    mut errors: Vec<ConfigError>,
) -> Result<Config, ConfigErrors> {
    let flags = overrides.flags(not_yet, &mut errors);
    let variables = overrides.variables(env, &mut errors);
    let given = overrides.environment(env, &mut errors);
    let written = same(
        parsed
            .iter()
            .filter_map(|(_, file)| file.environment.as_ref()),
        "environment.name",
        &mut errors,
    );
    let detected = overrides.detected_environment.clone().map(|value| At {
        value,
        origin: Origin::Detected,
    });
    let budget = same(
        parsed
            .iter()
            .filter_map(|(_, file)| file.total_budget.as_ref()),
        "gate.total_budget",
        &mut errors,
    );
    let above = Above {
        flags,
        variables,
        environment: given.or(written).or(detected),
        total_budget: overrides.total_budget(&mut errors).or(budget),
    };
    let all = expand::all(parsed, &mut errors);
    let selected = expand::only(&all, &overrides.only, &mut errors);
    if !errors.is_empty() {
        return Err(ConfigErrors(errors));
    }

    let mut config = Config {
        files: parsed.iter().map(|(path, _)| path.clone()).collect(),
        scenarios: Vec::new(),
        environment_name: above.environment.as_ref().map(|at| at.value.clone()),
        environment_sections: environment_sections(parsed),
        total_budget: above.total_budget.as_ref().map(|at| at.value),
        references: BTreeMap::new(),
        accepts: accepts(parsed, &all, &selected, &mut errors),
        gated_metrics: 0,
        explained: BTreeMap::new(),
    };
    let mut files = InputFiles::default();
    for named in &selected {
        settle(named, &above, env, &mut files, &mut config, &mut errors);
    }
    if errors.is_empty() {
        not_gated(&config, &mut errors);
    }
    if errors.is_empty() {
        Ok(config)
    } else {
        Err(ConfigErrors(errors))
    }
}

/// A value that several files may give, if they all give the same.
fn same<'a, T: PartialEq + Clone + super::show::Show + 'a>(
    values: impl Iterator<Item = &'a At<T>>,
    key: &str,
    errors: &mut Vec<ConfigError>,
) -> Option<At<T>> {
    let mut first: Option<&At<T>> = None;
    for value in values {
        match first {
            None => first = Some(value),
            Some(first) if first.value != value.value => errors.push(ConfigError {
                place: place(&value.origin),
                subject: Some(Subject::Key(key.to_owned())),
                scenario: None,
                problem: Problem::Value(format!(
                    "{} here, but {} at {}: expected one value for the whole check",
                    value.value.show(),
                    first.value.show(),
                    first.origin
                )),
            }),
            Some(_) => {}
        }
    }
    first.cloned()
}

fn place(origin: &Origin) -> Option<Place> {
    match origin {
        Origin::File(place) => Some(place.clone()),
        _ => None,
    }
}

fn environment_sections(parsed: &[Parsed]) -> Vec<String> {
    let mut names: Vec<String> = parsed
        .iter()
        .flat_map(|(_, file)| file.environments.iter().map(|(name, _)| name.clone()))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Looks up the scenarios of every `[[accept]]`; one that names a scenario with lists holds for
/// each of its expansions.
fn accepts(
    parsed: &[Parsed],
    all: &[Named<'_>],
    selected: &[&Named<'_>],
    errors: &mut Vec<ConfigError>,
) -> Vec<AcceptSpec> {
    let mut accepts: Vec<AcceptSpec> = Vec::new();
    for raw in parsed.iter().flat_map(|(_, file)| &file.accepts) {
        let wanted = &raw.scenario.value;
        let mut error = |key: &str, problem| {
            errors.push(ConfigError {
                place: Some(raw.place.clone()),
                subject: Some(Subject::Key(format!("accept.{key}"))),
                scenario: None,
                problem,
            });
        };
        if !all.iter().any(|named| named.is(wanted)) {
            error("scenario", expand::unknown(wanted, all));
            continue;
        }
        for named in selected.iter().filter(|named| named.is(wanted)) {
            let twice = accepts
                .iter()
                .find(|known| known.scenario == named.name && known.metric == raw.metric);
            if let Some(twice) = twice {
                let text = format!(
                    "{} of {} is accepted at {} already: expected one [[accept]] for it",
                    raw.metric, named.name, twice.place
                );
                error("metric", Problem::Value(text));
                continue;
            }
            accepts.push(AcceptSpec {
                scenario: named.name.clone(),
                metric: raw.metric,
                up_to: raw.up_to,
                reason: raw.reason.clone(),
                expires: raw.expires,
                place: raw.place.clone(),
            });
        }
    }
    accepts
}

/// An accepted slowdown of a metric without a relative limit would accept nothing.
fn not_gated(config: &Config, errors: &mut Vec<ConfigError>) {
    for accept in &config.accepts {
        let limits = config
            .scenarios
            .iter()
            .filter(|scenario| scenario.name == accept.scenario)
            .flat_map(|scenario| &scenario.gate.limits);
        let relative = |limit: &&Limit| matches!(limit.bound, Bound::Relative(_));
        let gated: Vec<String> = limits
            .filter(relative)
            .map(|limit| limit.metric.to_string())
            .collect();
        if gated.contains(&accept.metric.to_string()) {
            continue;
        }
        errors.push(ConfigError {
            place: Some(accept.place.clone()),
            subject: Some(Subject::Key("accept.metric".to_owned())),
            scenario: Some(accept.scenario.clone()),
            problem: Problem::Value(format!(
                "{} has no relative limit, so that nothing can be accepted: expected {}",
                accept.metric,
                if gated.is_empty() {
                    "a limit like p99_rise first".to_owned()
                } else {
                    format!("one of {}", gated.join(", "))
                }
            )),
        });
    }
}

/// Settles one scenario and adds it to the configuration.
fn settle(
    named: &Named<'_>,
    above: &Above,
    env: &dyn Fn(&str) -> Option<String>,
    files: &mut InputFiles,
    config: &mut Config,
    errors: &mut Vec<ConfigError>,
) {
    let file = named.file;
    let environment = above
        .environment
        .as_ref()
        .and_then(|at| file.environments.iter().find(|(name, _)| *name == at.value))
        .map(|(_, levels)| levels.clone())
        .unwrap_or_default();
    let levels = above
        .flags
        .clone()
        .over(&above.variables)
        .over(&named.raw.levels)
        .over(&environment)
        .over(&file.levels);
    let limits = levels.gate.limits.clone().over(&Limits::defaults());
    let server = levels.server.keys.clone().settle();
    let gate = levels.gate.keys.clone().settle();
    let measure = levels.measure.clone().settle();
    let reference = levels.reference.clone().settle();

    let mut fail = |origin: Option<&Origin>, key: Option<&str>, problem: Problem| {
        errors.push(ConfigError {
            place: origin
                .and_then(place)
                .or_else(|| Some(named.raw.place.clone())),
            subject: key.map(|key| Subject::Key(key.to_owned())),
            scenario: Some(named.name.clone()),
            problem,
        });
    };
    let mut unread = Vec::new();
    let input_data = files.scenario(named.raw.input_data.as_ref(), &mut unread);
    let inputs: Vec<InputSpec> = named
        .raw
        .inputs
        .iter()
        .map(|raw| files.input(&raw.value, &mut unread))
        .collect();
    for (origin, key, problem) in unread {
        fail(Some(&origin), Some(&format!("scenario.{key}")), problem);
    }
    let mut metadata = Vec::new();
    for (name, template) in &levels.server.metadata {
        let value = text::expand(&template.value, env)
            .and_then(|value| text::metadata_value(&value).map(|()| value));
        match value {
            Ok(value) => metadata.push((name.clone(), Secret::new(value))),
            Err(problem) => {
                let key = format!("server.metadata.{name}");
                fail(Some(&template.origin), Some(&key), problem);
            }
        }
    }
    let active = limits.active();
    if active.is_empty() {
        let problem = Problem::Value(
            "every limit is off, so that nothing is gated: expected at least one, like p99_rise = \"10%\""
                .to_owned(),
        );
        fail(None, None, problem);
    }
    if let Some(at) = limits.error_rate()
        && let Some(crate::data::Bound::Absolute(limit)) = at.value
        && limit > measure.max_error_rate.value.get()
    {
        let problem = Problem::Value(format!(
            "can never decide: a measurement with more failed requests than measure.max_error_rate ({}) is invalid; raise that to at least this limit",
            measure.max_error_rate.value
        ));
        fail(Some(&at.origin), Some("gate.error_rate_max"), problem);
    }
    let spec = ReferenceSpec {
        url: reference.url.value.clone(),
        model: reference.model.value.clone(),
        version: reference.version.value.clone(),
        launch: reference.launch.value.clone(),
        stop: reference.stop.value.clone(),
    };
    if let Some(problem) = launch_problem(&spec, &server.launch.value) {
        fail(None, Some("reference"), problem);
    }
    if let Some(problem) = reference_problem(&spec, named, &server.url.value) {
        fail(None, Some("reference"), problem);
    }

    let mut rows = named.rows(&inputs, input_data.as_deref());
    rows.extend(above.environment.iter().map(|at| Explained {
        key: "environment.name".to_owned(),
        value: at.value.clone(),
        origin: at.origin.clone(),
    }));
    rows.extend(explain::section("server", server.rows()));
    rows.extend(levels.server.metadata.iter().map(|(name, at)| Explained {
        key: format!("server.metadata.{name}"),
        value: "***".to_owned(),
        origin: at.origin.clone(),
    }));
    rows.extend(explain::section("gate", limits.rows()));
    rows.extend(explain::section("gate", gate.rows()));
    rows.extend(above.total_budget.iter().map(|at| Explained {
        key: "gate.total_budget".to_owned(),
        value: at.value.show(),
        origin: at.origin.clone(),
    }));
    rows.extend(explain::section("measure", measure.rows()));
    if spec != ReferenceSpec::default() {
        rows.extend(explain::section("reference", reference.rows()));
        config.references.insert(named.name.clone(), spec);
    }
    config.explained.insert(named.name.clone(), rows);
    config.gated_metrics += active.len() as u32;
    config.scenarios.push(Scenario {
        name: named.name.clone(),
        model: named.raw.model.value.clone(),
        version: named.raw.version.value.clone(),
        load: Load::Closed {
            concurrency: named.concurrency,
        },
        batch: named.batch,
        inputs,
        input_data,
        server: ServerSpec {
            url: server.url.value,
            metrics_url: server.metrics_url.value,
            tls: server.tls.value,
            metadata,
            launch: server.launch.value,
            stop: server.stop.value,
            explicit_models: server.model_control.value == ModelControl::Explicit,
        },
        gate: GateSpec {
            mode: gate.mode.value,
            limits: active,
            false_alarm: gate.false_alarm.value,
            missed_regression: gate.missed_regression.value,
            budget: gate.budget.value,
            on_inconclusive: gate.on_inconclusive.value,
            on_missing: gate.on_missing.value,
            rule: gate.rule.value,
            policy: gate.policy.value,
            assumed_noise: gate.assumed_noise.value,
            suspicious_gain: gate.suspicious_gain.value,
        },
        measure: MeasureSpec {
            warmup: measure.warmup.value,
            block: measure.block.value,
            connections: measure.connections.value,
            workers: measure.workers.value,
            request_timeout: measure.request_timeout.value,
            max_error_rate: measure.max_error_rate.value,
            allow_saturated: measure.allow_saturated.value,
            seed: measure.seed.value,
        },
        paths: named.raw.paths.value.clone(),
        file: named.path.to_owned(),
        input_files: named.raw.input_files(),
    });
}

/// Servers that take turns are both started by the gate, or it could not end the one to start the
/// other.
fn launch_problem(spec: &ReferenceSpec, launch: &[String]) -> Option<Problem> {
    let text = if spec.launch.is_empty() {
        if spec.stop.is_empty() {
            return None;
        }
        "has a stop command without launch: expected both, or neither"
    } else if launch.is_empty() {
        "has a launch command, so that both servers take turns, but [server] has none: expected \
         [server] launch too, or a reference that runs beside the candidate at a url of its own"
    } else {
        return None;
    };
    Some(Problem::Value(text.to_owned()))
}

/// A reference that names nothing, or what is under test itself, would compare a thing with
/// itself and always pass.
fn reference_problem(spec: &ReferenceSpec, named: &Named<'_>, url: &str) -> Option<Problem> {
    if *spec == ReferenceSpec::default() || !spec.launch.is_empty() {
        return None;
    }
    let scenario = named.raw;
    let other = spec.url.as_deref().is_some_and(|other| other != url)
        || spec
            .model
            .as_ref()
            .is_some_and(|other| *other != scenario.model.value)
        || (spec.version.is_some() && spec.version != scenario.version.value);
    (!other).then(|| {
        Problem::Value(
            "names what is under test itself: expected another url, model or version".to_owned(),
        )
    })
}

/// The nearest scenario, for `--only` and `[[accept]]`.
pub(crate) fn nearest_scenario(wanted: &str, all: &[Named<'_>]) -> Option<String> {
    nearest(wanted, all.iter().map(|named| named.name.as_str())).map(str::to_owned)
}
