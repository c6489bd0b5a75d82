//! What the command line and the environment variables say over the files.

use std::time::Duration;

use super::error::{ConfigError, Problem, Subject};
use super::file::{Levels, NotYet};
use super::layer::{At, Origin};
use super::{schema, text};
use crate::data::{Mode, OnInconclusive, Policy, Rule};

/// The variable that names the server.
pub const URL_VARIABLE: &str = "TRITON_URL";
/// The variable that names the environment.
pub const ENVIRONMENT_VARIABLE: &str = "TRITON_GATE_ENV";

/// Flags of the command line that override the files, for every scenario.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--url`: the server.
    pub url: Option<String>,
    /// `--environment`: the environment's name.
    pub environment: Option<String>,
    /// No flag: the name that was derived from the GPU, used where nobody gave one. Files can
    /// only be read fully (`[environment.NAME.gate]`) once it is known, so a caller that has to
    /// ask the server first loads twice.
    pub detected_environment: Option<String>,
    /// `--only`: names of scenarios, or of one before its lists were expanded; empty for all.
    pub only: Vec<String>,
    /// `--mode`.
    pub mode: Option<Mode>,
    /// `--rule`.
    pub rule: Option<Rule>,
    /// `--policy`.
    pub policy: Option<Policy>,
    /// `--on-inconclusive`.
    pub on_inconclusive: Option<OnInconclusive>,
    /// `--budget`: time for each scenario.
    pub budget: Option<Duration>,
    /// `--total-budget`: time for the check.
    pub total_budget: Option<Duration>,
    /// `--reference-url`.
    pub reference_url: Option<String>,
    /// `--reference-model`.
    pub reference_model: Option<String>,
    /// `--reference-version`.
    pub reference_version: Option<String>,
}

/// A flag's value with its origin.
fn flag<T>(value: Option<T>, name: &'static str) -> Option<At<T>> {
    value.map(|value| At {
        value,
        origin: Origin::Flag(name),
    })
}

/// A flag's text through a reader; a bad one is noted as an error.
fn read<T>(
    value: Option<&String>,
    name: &'static str,
    read: fn(&str) -> Result<T, Problem>,
    errors: &mut Vec<ConfigError>,
) -> Option<At<T>> {
    match read(value?) {
        Ok(value) => flag(Some(value), name),
        Err(problem) => {
            errors.push(ConfigError::outside(Subject::Flag(name), problem));
            None
        }
    }
}

fn some<T>(at: Option<At<T>>) -> Option<At<Option<T>>> {
    at.map(|At { value, origin }| At {
        value: Some(value),
        origin,
    })
}

impl Overrides {
    /// The flags as a level.
    pub(crate) fn flags(&self, not_yet: NotYet, errors: &mut Vec<ConfigError>) -> Levels {
        let mut levels = Levels::default();
        levels.server.keys.url = read(self.url.as_ref(), "--url", text::address, errors);
        let gate = &mut levels.gate.keys;
        gate.mode = flag(self.mode, "--mode");
        gate.rule = flag(self.rule, "--rule");
        gate.policy = flag(self.policy, "--policy");
        gate.on_inconclusive = flag(self.on_inconclusive, "--on-inconclusive");
        gate.budget = budget(self.budget, "--budget", errors);
        let reference = [
            ("--reference-url", self.reference_url.is_some()),
            ("--reference-model", self.reference_model.is_some()),
            ("--reference-version", self.reference_version.is_some()),
        ];
        if let Some(what) = schema::not_yet(not_yet, &["reference"]) {
            for (name, given) in reference {
                if given {
                    let problem = Problem::NotYet(what);
                    errors.push(ConfigError::outside(Subject::Flag(name), problem));
                }
            }
            return levels;
        }
        levels.reference.url = some(read(
            self.reference_url.as_ref(),
            "--reference-url",
            text::address,
            errors,
        ));
        levels.reference.model = some(read(
            self.reference_model.as_ref(),
            "--reference-model",
            text::model,
            errors,
        ));
        levels.reference.version = some(read(
            self.reference_version.as_ref(),
            "--reference-version",
            text::version,
            errors,
        ));
        levels
    }

    /// `--total-budget`.
    pub(crate) fn total_budget(&self, errors: &mut Vec<ConfigError>) -> Option<At<Duration>> {
        budget(self.total_budget, "--total-budget", errors)
    }

    /// The environment's name by flag or variable.
    pub(crate) fn environment(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        errors: &mut Vec<ConfigError>,
    ) -> Option<At<String>> {
        if self.environment.is_some() {
            let name = self.environment.as_ref();
            return read(name, "--environment", text::safe_name, errors);
        }
        variable(ENVIRONMENT_VARIABLE, text::safe_name, env, errors)
    }

    /// The environment variables as a level.
    pub(crate) fn variables(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        errors: &mut Vec<ConfigError>,
    ) -> Levels {
        let mut levels = Levels::default();
        // A variable that a flag overrules is not even looked at.
        if self.url.is_none() {
            levels.server.keys.url = variable(URL_VARIABLE, text::address, env, errors);
        }
        levels
    }
}

fn budget(
    value: Option<Duration>,
    name: &'static str,
    errors: &mut Vec<ConfigError>,
) -> Option<At<Duration>> {
    if value.is_some_and(|value| value < Duration::from_millis(1)) {
        let problem = Problem::Value("out of range: expected at least 1ms".to_owned());
        errors.push(ConfigError::outside(Subject::Flag(name), problem));
        return None;
    }
    flag(value, name)
}

/// A variable through a reader; an empty one counts as not set.
fn variable<T>(
    name: &'static str,
    read: fn(&str) -> Result<T, Problem>,
    env: &dyn Fn(&str) -> Option<String>,
    errors: &mut Vec<ConfigError>,
) -> Option<At<T>> {
    let text = env(name).filter(|text| !text.trim().is_empty())?;
    match read(text.trim()) {
        Ok(value) => Some(At {
            value,
            origin: Origin::Variable(name),
        }),
        Err(problem) => {
            errors.push(ConfigError::outside(Subject::Variable(name), problem));
            None
        }
    }
}
