//! The server's own counters: snapshots, what happened between two, and whose traffic it was.

use std::collections::BTreeMap;

use super::proto::inference::{ModelStatistics, StatisticDuration};
use super::signature::ModelSignature;
use crate::data::ServerMeans;

/// The counters of model versions at one moment. All are cumulative since that version was
/// loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    versions: BTreeMap<(String, String), Counts>,
}

/// What one model version counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inferences (samples) of successful requests that were not answered from the cache.
    pub inferences: u64,
    /// Executions of the model.
    pub executions: u64,
    /// Requests completed without error, and their time in the server's core.
    pub success: Span,
    /// Requests that failed after they had entered the scheduler. Refused requests and those
    /// that found the queue full are not in it.
    pub fail: Span,
    /// Waiting in the scheduler's queue.
    pub queue: Span,
    /// Preparing inputs.
    pub compute_input: Span,
    /// Running the model; every request of a batch is charged the whole batch.
    pub compute_infer: Span,
    /// Extracting outputs.
    pub compute_output: Span,
    /// Requests answered from the cache.
    pub cache_hit: Span,
    /// Requests that the cache could not answer.
    pub cache_miss: Span,
    /// Executions by batch size, with the time that they ran.
    pub batches: BTreeMap<u64, Span>,
}

/// A number of events and the time that they took together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// Events.
    pub count: u64,
    /// Nanoseconds.
    pub ns: u64,
}

/// What happened between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    versions: BTreeMap<(String, String), Counts>,
}

/// Why two snapshots cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatisticsError {
    /// A counter went down.
    #[error(
        "model `{model}` version {version} was reloaded, or the server restarted, during the measurement: {counter} fell from {before} to {after}"
    )]
    Reloaded {
        /// The model.
        model: String,
        /// Its version.
        version: String,
        /// The first counter that fell.
        counter: &'static str,
        /// Its value in the earlier snapshot.
        before: u64,
        /// Its value in the later one.
        after: u64,
    },
    /// A version is no longer there.
    #[error("model `{model}` version {version} was unloaded during the measurement")]
    Vanished {
        /// The model.
        model: String,
        /// Its version.
        version: String,
    },
    /// A version that was not there has already answered requests.
    #[error("model `{model}` version {version} was loaded during the measurement")]
    Appeared {
        /// The model.
        model: String,
        /// Its version.
        version: String,
    },
    /// Counters that add up to more than 64 bits.
    #[error("the server's counters of model `{model}` are too large to add up")]
    Overflow {
        /// The model.
        model: String,
    },
}

impl Snapshot {
    /// Takes in what the server answered about a model.
    pub fn add(&mut self, statistics: &[ModelStatistics]) {
        for model in statistics {
            self.versions.insert(
                (model.name.clone(), model.version.clone()),
                Counts::read(model),
            );
        }
    }

    /// Whether it holds a model.
    pub fn has(&self, model: &str) -> bool {
        self.versions.keys().any(|(name, _)| name == model)
    }

    /// The counters of one version.
    pub fn version(&self, model: &str, version: &str) -> Option<&Counts> {
        self.versions.get(&(model.to_owned(), version.to_owned()))
    }

    /// Whether `later` continues this one: no reload, restart, load or unload in between. The
    /// mark of one session.
    pub fn continues(&self, later: &Self) -> bool {
        difference(self, later).is_ok()
    }
}

/// What happened between two snapshots; any decrease is an error that names it.
pub fn difference(before: &Snapshot, after: &Snapshot) -> Result<Delta, StatisticsError> {
    let mut delta = Delta::default();
    for (key, old) in &before.versions {
        let (model, version) = key;
        let new = after
            .versions
            .get(key)
            .ok_or_else(|| StatisticsError::Vanished {
                model: model.clone(),
                version: version.clone(),
            })?;
        let counts = new.minus(old).map_err(|fell| StatisticsError::Reloaded {
            model: model.clone(),
            version: version.clone(),
            counter: fell.counter,
            before: fell.before,
            after: fell.after,
        })?;
        delta.versions.insert(key.clone(), counts);
    }
    for (key, new) in &after.versions {
        if before.versions.contains_key(key) {
            continue;
        }
        if *new != Counts::default() {
            return Err(StatisticsError::Appeared {
                model: key.0.clone(),
                version: key.1.clone(),
            });
        }
        delta.versions.insert(key.clone(), new.clone());
    }
    Ok(delta)
}

impl Delta {
    /// What all versions of a model counted together.
    pub fn model(&self, model: &str) -> Result<Counts, StatisticsError> {
        self.versions
            .iter()
            .filter(|((name, _), _)| name == model)
            .try_fold(Counts::default(), |sum, (_, counts)| sum.plus(counts))
            .ok_or_else(|| StatisticsError::Overflow {
                model: model.to_owned(),
            })
    }

    /// The same with one version of a model alone; other models stay.
    #[must_use]
    pub fn of_version(mut self, model: &str, version: &str) -> Self {
        self.versions
            .retain(|(name, other), _| name != model || other == version);
        self
    }

    /// The versions of a model that answered anything, in order.
    pub fn versions_used(&self, model: &str) -> Vec<&str> {
        self.versions
            .iter()
            .filter(|((name, _), counts)| {
                name == model && (counts.success.count > 0 || counts.fail.count > 0)
            })
            .map(|((_, version), _)| version.as_str())
            .collect()
    }

    /// Requests of a model that were answered from the cache: an ensemble's steps included, for
    /// a step that was not run was not measured.
    pub fn cache_hits(&self) -> u64 {
        self.versions
            .values()
            .fold(0, |sum, counts| sum.saturating_add(counts.cache_hit.count))
    }

    /// The share of the model's successful requests that were not ours, 0 to 1; none where the
    /// server counted none.
    ///
    /// `ours` is every request that we sent and that was answered, with an error or without:
    /// servers count some failures as success, and those must not look like somebody else's.
    pub fn foreign_share(&self, model: &str, ours: u64) -> Result<Option<f64>, StatisticsError> {
        let served = self.model(model)?.success.count;
        Ok((served > 0).then(|| served.saturating_sub(ours) as f64 / served as f64))
    }

    /// Means per successful request, microseconds; none where nothing succeeded.
    ///
    /// An ensemble's entry counts the compute time of all its steps, but of the queues only its
    /// own hand-over; the queues of its steps are added here. Steps that other clients call as
    /// well blur that. Its executed batch is unknown: it counts requests, not executions.
    pub fn means(&self, model: &ModelSignature) -> Result<Option<ServerMeans>, StatisticsError> {
        let own = self.model(&model.name)?;
        if own.success.count == 0 {
            return Ok(None);
        }
        let ensemble = !model.ensemble_steps.is_empty();
        let mut queue_us = own.queue.mean_us();
        if ensemble {
            for (_, counts) in self
                .versions
                .iter()
                .filter(|((name, _), _)| *name != model.name)
            {
                // Per request of the ensemble, however often that called the step.
                queue_us += counts.queue.ns as f64 / own.success.count as f64 / 1e3;
            }
        }
        Ok(Some(ServerMeans {
            queue_us,
            compute_input_us: own.compute_input.mean_us(),
            compute_infer_us: own.compute_infer.mean_us(),
            compute_output_us: own.compute_output.mean_us(),
            total_us: own.success.mean_us(),
            executed_batch: (!ensemble && own.executions > 0)
                .then(|| own.inferences as f64 / own.executions as f64),
        }))
    }
}

/// A counter that went down.
struct Fell {
    counter: &'static str,
    before: u64,
    after: u64,
}

impl Span {
    fn read(duration: Option<&StatisticDuration>) -> Self {
        duration.map_or_else(Self::default, |duration| Self {
            count: duration.count,
            ns: duration.ns,
        })
    }

    /// Mean in microseconds; 0 where nothing was counted.
    pub fn mean_us(self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.ns as f64 / self.count as f64 / 1e3
        }
    }

    fn minus(self, before: Self, counter: &'static str) -> Result<Self, Fell> {
        Ok(Self {
            count: minus(self.count, before.count, counter)?,
            ns: minus(self.ns, before.ns, counter)?,
        })
    }

    fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            count: self.count.checked_add(other.count)?,
            ns: self.ns.checked_add(other.ns)?,
        })
    }
}

fn minus(after: u64, before: u64, counter: &'static str) -> Result<u64, Fell> {
    after.checked_sub(before).ok_or(Fell {
        counter,
        before,
        after,
    })
}

impl Counts {
    fn read(model: &ModelStatistics) -> Self {
        let stats = model.inference_stats.unwrap_or_default();
        let mut batches: BTreeMap<u64, Span> = BTreeMap::new();
        for batch in &model.batch_stats {
            let run = Span::read(batch.compute_infer.as_ref());
            batches.insert(batch.batch_size, run);
        }
        Self {
            inferences: model.inference_count,
            executions: model.execution_count,
            success: Span::read(stats.success.as_ref()),
            fail: Span::read(stats.fail.as_ref()),
            queue: Span::read(stats.queue.as_ref()),
            compute_input: Span::read(stats.compute_input.as_ref()),
            compute_infer: Span::read(stats.compute_infer.as_ref()),
            compute_output: Span::read(stats.compute_output.as_ref()),
            cache_hit: Span::read(stats.cache_hit.as_ref()),
            cache_miss: Span::read(stats.cache_miss.as_ref()),
            batches,
        }
    }

    fn minus(&self, before: &Self) -> Result<Self, Fell> {
        let delta = Self {
            inferences: minus(self.inferences, before.inferences, "inference_count")?,
            executions: minus(self.executions, before.executions, "execution_count")?,
            success: self.success.minus(before.success, "success")?,
            fail: self.fail.minus(before.fail, "fail")?,
            queue: self.queue.minus(before.queue, "queue")?,
            compute_input: self
                .compute_input
                .minus(before.compute_input, "compute_input")?,
            compute_infer: self
                .compute_infer
                .minus(before.compute_infer, "compute_infer")?,
            compute_output: self
                .compute_output
                .minus(before.compute_output, "compute_output")?,
            cache_hit: self.cache_hit.minus(before.cache_hit, "cache_hit")?,
            cache_miss: self.cache_miss.minus(before.cache_miss, "cache_miss")?,
            batches: BTreeMap::new(),
        };
        let mut batches = BTreeMap::new();
        for (size, old) in &before.batches {
            let new = self.batches.get(size).copied().unwrap_or_default();
            batches.insert(*size, new.minus(*old, "batch_stats")?);
        }
        for (size, new) in &self.batches {
            batches.entry(*size).or_insert(*new);
        }
        batches.retain(|_, run| run.count > 0);
        Ok(Self { batches, ..delta })
    }

    fn plus(mut self, other: &Self) -> Option<Self> {
        for (size, run) in &other.batches {
            let sum = self.batches.entry(*size).or_default();
            *sum = sum.plus(*run)?;
        }
        Some(Self {
            inferences: self.inferences.checked_add(other.inferences)?,
            executions: self.executions.checked_add(other.executions)?,
            success: self.success.plus(other.success)?,
            fail: self.fail.plus(other.fail)?,
            queue: self.queue.plus(other.queue)?,
            compute_input: self.compute_input.plus(other.compute_input)?,
            compute_infer: self.compute_infer.plus(other.compute_infer)?,
            compute_output: self.compute_output.plus(other.compute_output)?,
            cache_hit: self.cache_hit.plus(other.cache_hit)?,
            cache_miss: self.cache_miss.plus(other.cache_miss)?,
            batches: self.batches,
        })
    }
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod tests;
