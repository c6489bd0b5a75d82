use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use super::super::log::Log;
use super::super::pacer::Pacer;
use super::super::spec::SimulateSpec;
use super::super::tensors::Filler;
use super::super::texts::{self, Refusal};
use super::{LoadState, Model, Version};

/// Everything that requests share.
pub(crate) struct Core {
    pub(crate) spec: SimulateSpec,
    pub(crate) epoch: Instant,
    pub(crate) pacer: Pacer,
    pub(crate) filler: Filler,
    pub(crate) log: Option<Log>,
    pub(crate) models: BTreeMap<String, Arc<Model>>,
    pub(super) in_flight: AtomicUsize,
    stopping: AtomicBool,
}

impl Core {
    pub(crate) fn new(spec: SimulateSpec, epoch: Instant, pacer: Pacer, log: Option<Log>) -> Self {
        let models = spec
            .models
            .iter()
            .map(|model| {
                let built = Model::new(model.clone(), spec.seed, epoch, &pacer);
                (model.name.clone(), Arc::new(built))
            })
            .collect();
        Self {
            spec,
            epoch,
            pacer,
            filler: Filler::default(),
            log,
            models,
            in_flight: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    /// From now on no request is let in.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.epoch.elapsed() >= self.spec.ready_after
    }

    /// Requests let in and not yet answered.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// The model and version that a request means; an empty version is the highest.
    pub(crate) fn find(&self, name: &str, version: &str) -> Result<Found, Refusal> {
        let wanted = parse_version(version)?;
        let model = self
            .models
            .get(name)
            .filter(|model| model.state() != LoadState::NeverLoaded)
            .ok_or_else(|| texts::unknown_model(name))?;
        let number = match wanted {
            None => None,
            Some(number) => Some(
                u32::try_from(number)
                    .ok()
                    .filter(|number| model.versions.contains_key(number))
                    .ok_or_else(|| texts::unknown_version(name, version))?,
            ),
        };
        if !model.is_ready(self.epoch) {
            return Err(match number {
                None => texts::no_versions(name),
                Some(_) => texts::version_not_ready(name, version),
            });
        }
        let number = number.or_else(|| model.versions.keys().next_back().copied());
        let number = number.ok_or_else(|| texts::no_versions(name))?;
        Ok(Found {
            model: Arc::clone(model),
            number,
        })
    }
}

/// A model and one of its versions.
pub(crate) struct Found {
    pub(crate) model: Arc<Model>,
    pub(crate) number: u32,
}

impl Found {
    pub(crate) fn version(&self) -> Result<&Version, Refusal> {
        self.model
            .versions
            .get(&self.number)
            .ok_or_else(|| texts::no_versions(&self.model.spec.name))
    }
}

/// None where the server is to choose.
fn parse_version(text: &str) -> Result<Option<i64>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let number: i64 = text
        .parse()
        .map_err(|_| texts::version_not_a_number(text))?;
    if number < 0 {
        return Err(texts::version_negative(text));
    }
    Ok(Some(number))
}
