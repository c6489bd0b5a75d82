//! Values that parse but make no sense.

use std::collections::BTreeSet;

use super::server::SCHEMA;
use super::{FaultKind, FaultSpec, LatencySpec, ModelSpec, SimulateSpec, TensorSpec};

/// One step of a key's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A key of a table.
    Key(&'static str),
    /// A position in an array.
    Index(usize),
}

/// A value that makes no sense: where, and what was expected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) path: Vec<Step>,
    pub(crate) message: String,
}

impl Complaint {
    /// The path as text: `model[0].latency.sigma`.
    pub(crate) fn key(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if text.is_empty() => text.push_str(key),
                Step::Key(key) => {
                    text.push('.');
                    text.push_str(key);
                }
                Step::Index(index) => {
                    text.push('[');
                    text.push_str(&index.to_string());
                    text.push(']');
                }
            }
        }
        text
    }
}

/// Where a check is, so that a complaint can say so.
#[derive(Clone)]
struct At(Vec<Step>);

impl At {
    fn key(&self, key: &'static str) -> Self {
        let mut path = self.0.clone();
        path.push(Step::Key(key));
        Self(path)
    }

    fn item(&self, key: &'static str, index: usize) -> Self {
        let mut at = self.key(key);
        at.0.push(Step::Index(index));
        at
    }

    fn ensure(&self, holds: bool, key: &'static str, message: &str) -> Result<(), Complaint> {
        if holds {
            return Ok(());
        }
        Err(Complaint {
            path: self.key(key).0,
            message: message.to_owned(),
        })
    }
}

/// The first value that makes no sense.
pub(crate) fn check(spec: &SimulateSpec) -> Result<(), Complaint> {
    let at = At(Vec::new());
    at.ensure(spec.schema >= 1, "schema", "must be 1")?;
    at.ensure(
        spec.schema <= SCHEMA,
        "schema",
        "is newer than this version reads (1): update triton-gate",
    )?;
    at.ensure(
        (1..=256).contains(&spec.threads),
        "threads",
        "must be 1 to 256",
    )?;
    at.ensure(
        !spec.models.is_empty(),
        "model",
        "is missing: name at least one model",
    )?;
    let mut names = BTreeSet::new();
    for (index, model) in spec.models.iter().enumerate() {
        let at = at.item("model", index);
        at.ensure(!model.name.is_empty(), "name", "must not be empty")?;
        at.ensure(
            names.insert(&model.name),
            "name",
            "is taken by an earlier model",
        )?;
        check_model(&at, model)?;
    }
    Ok(())
}

fn check_model(at: &At, model: &ModelSpec) -> Result<(), Complaint> {
    at.ensure(
        (1..=4096).contains(&model.instances),
        "instances",
        "must be 1 to 4096",
    )?;
    at.ensure(
        i32::try_from(model.max_batch_size).is_ok(),
        "max_batch_size",
        "must fit in 31 bits, as on the wire",
    )?;
    at.ensure(
        model.dynamic_batching.is_none() || model.max_batch_size > 0,
        "dynamic_batching",
        "needs max_batch_size of at least 1",
    )?;
    check_tensors(at, "input", &model.inputs)?;
    check_tensors(at, "output", &model.outputs)?;
    check_latency(&at.key("latency"), &model.latency)?;
    let mut numbers = BTreeSet::new();
    for (index, version) in model.versions.iter().enumerate() {
        let at = at.item("version", index);
        at.ensure(version.number >= 1, "number", "must be at least 1")?;
        at.ensure(
            numbers.insert(version.number),
            "number",
            "is taken by an earlier version",
        )?;
        if let Some(latency) = &version.latency {
            check_latency(&at.key("latency"), latency)?;
        }
    }
    if numbers.is_empty() {
        numbers.insert(1);
    }
    for (index, fault) in model.faults.iter().enumerate() {
        let at = at.item("fault", index);
        let known = fault
            .version
            .is_none_or(|version| numbers.contains(&version));
        at.ensure(known, "version", "is not a version of this model")?;
        check_fault(&at, fault)?;
    }
    Ok(())
}

fn check_tensors(at: &At, key: &'static str, tensors: &[TensorSpec]) -> Result<(), Complaint> {
    let mut names = BTreeSet::new();
    for (index, tensor) in tensors.iter().enumerate() {
        let at = at.item(key, index);
        at.ensure(!tensor.name.is_empty(), "name", "must not be empty")?;
        at.ensure(
            names.insert(&tensor.name),
            "name",
            "is taken by an earlier tensor",
        )?;
        let sound = tensor.dims.iter().all(|dim| *dim >= -1 && *dim != 0);
        at.ensure(
            sound,
            "dims",
            "must hold values of at least 1, or -1 for variable",
        )?;
    }
    Ok(())
}

fn check_latency(at: &At, latency: &LatencySpec) -> Result<(), Complaint> {
    let factor = |value: f64| value.is_finite() && (0.0..=1e6).contains(&value);
    at.ensure(
        (0.0..=5.0).contains(&latency.sigma),
        "sigma",
        "must be 0 to 5",
    )?;
    at.ensure(
        (0.0..=1.0).contains(&latency.slow_share),
        "slow_share",
        "must be 0 to 1",
    )?;
    at.ensure(
        factor(latency.slow_factor),
        "slow_factor",
        "must be 0 to 1000000",
    )?;
    at.ensure(
        (-1.0..=1.0).contains(&latency.drift),
        "drift",
        "must be -1 to 1",
    )?;
    at.ensure(
        factor(latency.burst_factor),
        "burst_factor",
        "must be 0 to 1000000",
    )?;
    at.ensure(
        latency.burst_every.is_zero() || latency.burst_length < latency.burst_every,
        "burst_length",
        "must be shorter than burst_every",
    )?;
    at.ensure(
        !latency.burst_every.is_zero() || latency.burst_length.is_zero(),
        "burst_every",
        "is missing beside burst_length",
    )
}

fn check_fault(at: &At, fault: &FaultSpec) -> Result<(), Complaint> {
    let kind = fault.kind;
    let is_error = kind == FaultKind::Error;
    at.ensure(fault.every != Some(0), "every", "must be at least 1")?;
    at.ensure(fault.at_request != Some(0), "at_request", "counts from 1")?;
    let probable = fault.probability.is_none_or(|p| (0.0..=1.0).contains(&p));
    at.ensure(probable, "probability", "must be 0 to 1")?;
    at.ensure(
        fault.error.is_some() || !is_error,
        "error",
        "is missing: which error?",
    )?;
    at.ensure(
        fault.error.is_none() || is_error,
        "error",
        "belongs to kind = \"error\"",
    )?;
    at.ensure(
        fault.message.is_none() || is_error,
        "message",
        "belongs to kind = \"error\"",
    )?;
    let by_request = fault.every.is_some()
        || fault.at_request.is_some()
        || fault.after_request.is_some()
        || fault.probability.is_some();
    if kind == FaultKind::Stall {
        at.ensure(
            fault.length.is_some(),
            "length",
            "is missing: how long is the stall?",
        )?;
        at.ensure(
            fault.at.is_some() || fault.every.is_some() || fault.at_request.is_some(),
            "at",
            "is missing: a stall begins by `at`, `at_request`, or `every`",
        )?;
        return at.ensure(
            fault.at.is_none() || !by_request,
            "at",
            "cannot be joined with conditions on requests for a stall",
        );
    }
    if kind == FaultKind::NotReady {
        let whole = !by_request && fault.version.is_none();
        return at.ensure(
            whole,
            "kind",
            "not_ready goes by time: only `at` and `length`",
        );
    }
    if kind == FaultKind::Reload {
        at.ensure(
            fault.every.is_some() || fault.at_request.is_some(),
            "at_request",
            "is missing: a reload happens by `at_request` or `every`",
        )?;
    }
    at.ensure(
        fault.length.is_none() || fault.at.is_some(),
        "length",
        "needs `at`, from which it counts",
    )
}
