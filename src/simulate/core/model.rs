use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use super::super::counters::Counters;
use super::super::faults::Faults;
use super::super::latency::{hash_text, mix};
use super::super::pacer::Pacer;
use super::super::scheduler::{Scheduler, Setup};
use super::super::spec::{ModelSpec, VersionSpec};
use super::super::validate::Accepted;

/// Answers that the response cache keeps, for each model.
const CACHE_ENTRIES: usize = 1024;

/// Where a model is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoadState {
    NeverLoaded,
    Ready,
    Unloaded,
    /// The reason for which the last load failed.
    Failed(String),
}

/// A model at run time.
pub(crate) struct Model {
    pub(crate) spec: ModelSpec,
    pub(crate) faults: Faults,
    pub(crate) versions: BTreeMap<u32, Version>,
    state: RwLock<LoadState>,
    requests: AtomicU64,
    cache: Option<Mutex<Cache>>,
}

/// One version of it.
pub(crate) struct Version {
    pub(crate) text: String,
    pub(crate) counters: Arc<Counters>,
    pub(crate) scheduler: Scheduler,
}

impl Model {
    pub(crate) fn new(spec: ModelSpec, seed: u64, epoch: Instant, pacer: &Pacer) -> Self {
        let seed = mix(&[seed, hash_text(&spec.name)]);
        let faults = Faults::new(spec.faults.clone(), seed);
        let first = [VersionSpec {
            number: 1,
            latency: None,
        }];
        let numbers = if spec.versions.is_empty() {
            &first[..]
        } else {
            &spec.versions[..]
        };
        let versions = numbers
            .iter()
            .map(|version| {
                (
                    version.number,
                    build(&spec, version, &faults, seed, epoch, pacer),
                )
            })
            .collect();
        let state = match (&spec.load_error, spec.loaded) {
            (_, false) => LoadState::NeverLoaded,
            (Some(reason), true) => LoadState::Failed(reason.clone()),
            (None, true) => LoadState::Ready,
        };
        Self {
            versions,
            faults,
            state: RwLock::new(state),
            requests: AtomicU64::new(0),
            cache: spec.response_cache.then(Mutex::default),
            spec,
        }
    }

    pub(crate) fn state(&self) -> LoadState {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn is_ready(&self, epoch: Instant) -> bool {
        self.state() == LoadState::Ready && !self.faults.not_ready(epoch.elapsed())
    }

    fn set_state(&self, state: LoadState) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Loads or reloads: statistics restart at zero and the cache forgets.
    pub(crate) fn load(&self) -> Result<(), String> {
        if let Some(reason) = &self.spec.load_error {
            self.set_state(LoadState::Failed(reason.clone()));
            return Err(reason.clone());
        }
        self.restart();
        self.set_state(LoadState::Ready);
        Ok(())
    }

    pub(crate) fn restart(&self) {
        for version in self.versions.values() {
            version.counters.restart();
        }
        if let Some(cache) = &self.cache {
            *cache.lock().unwrap_or_else(PoisonError::into_inner) = Cache::default();
        }
    }

    pub(crate) fn unload(&self) {
        if self.state() != LoadState::NeverLoaded {
            self.set_state(LoadState::Unloaded);
        }
    }

    /// Numbers a request, from 1.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The key of a request where the model has a cache, and whether the cache knows it.
    pub(crate) fn cached(&self, version: u32, request: &Accepted) -> Option<(u64, bool)> {
        let cache = self.cache.as_ref()?;
        let mut hasher = DefaultHasher::new();
        (version, &request.outputs).hash(&mut hasher);
        for input in &request.inputs {
            (input.datatype, &input.shape, &input.raw).hash(&mut hasher);
        }
        let key = hasher.finish();
        let known = cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .keys
            .contains(&key);
        Some((key, known))
    }

    /// Remembers an answer.
    pub(crate) fn remember(&self, key: u64) {
        if let Some(cache) = &self.cache {
            cache
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(key);
        }
    }
}

fn build(
    spec: &ModelSpec,
    version: &VersionSpec,
    faults: &Faults,
    seed: u64,
    epoch: Instant,
    pacer: &Pacer,
) -> Version {
    let counters = Arc::new(Counters::default());
    let stalls = faults
        .planned_stalls()
        .into_iter()
        .filter(|(.., only)| only.is_none_or(|only| only == version.number))
        .map(|(from, until, _)| (epoch + from, epoch + until))
        .collect();
    let setup = Setup {
        latency: version.latency.as_ref().unwrap_or(&spec.latency),
        seed: mix(&[seed, u64::from(version.number)]),
        stalls,
        can_stall: faults.can_stall(),
    };
    let scheduler = Scheduler::new(spec, setup, epoch, pacer.clone(), Arc::clone(&counters));
    Version {
        text: version.number.to_string(),
        counters,
        scheduler,
    }
}

/// Which requests were answered before; the oldest is forgotten first.
#[derive(Debug, Default)]
struct Cache {
    keys: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Cache {
    fn insert(&mut self, key: u64) {
        if !self.keys.insert(key) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > CACHE_ENTRIES
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }
}
