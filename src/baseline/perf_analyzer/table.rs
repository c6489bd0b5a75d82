use std::collections::BTreeMap;

use crate::baseline::LevelKey;
use crate::data::Latency;

/// A file of `perf_analyzer`, one row a measurement, in the file's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The file's name as the user knows it.
    pub file: String,
    /// The measurements.
    pub rows: Vec<Row>,
}

/// One measurement: one level of load.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The line in the file.
    pub line: u64,
    /// What was measured: the load, and the columns `model`, `batch`, `version` and those that
    /// people put before the load's.
    pub key: LevelKey,
    /// Inferences per second, as the file states them.
    pub throughput: f64,
    /// Responses per second of a decoupled model.
    pub response_throughput: Option<f64>,
    /// Latency, microseconds; none where the file has no such column.
    pub latency: Latency,
    /// Percentiles beyond the usual ones (`--percentile=85`), microseconds.
    pub other_percentiles: BTreeMap<u8, f64>,
    /// Time to hand over a request, microseconds.
    pub client_send_us: Option<f64>,
    /// Time to take a response, microseconds.
    pub client_receive_us: Option<f64>,
    /// Network and whatever of the server is in no other column, microseconds.
    pub network_us: Option<f64>,
    /// From the server's statistics; none where the server gave none.
    pub server: Option<Server>,
    /// The GPUs together; none where no cell is filled.
    pub gpu: Option<Gpu>,
}

/// Means from the server's statistics, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Server {
    /// Queue.
    pub queue_us: f64,
    /// Preparing inputs; 0 in files of 2019, which have one column for all three.
    pub compute_input_us: f64,
    /// Running the model; all of compute in files of 2019.
    pub compute_infer_us: f64,
    /// Extracting outputs; 0 in files of 2019.
    pub compute_output_us: f64,
}

/// All GPUs of a row together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gpu {
    /// Mean utilisation over the GPUs, 0 to 1.
    pub utilisation: Option<f64>,
    /// Power of all of them, watts.
    pub power_w: Option<f64>,
    /// Memory in use on all of them, bytes.
    pub memory_bytes: Option<f64>,
}

/// A level that was measured more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// The level.
    pub key: LevelKey,
    /// Its lines.
    pub lines: Vec<u64>,
}

impl Table {
    /// Levels that are there more than once, by load.
    pub fn repeats(&self) -> Vec<Repeat> {
        let mut lines: BTreeMap<&LevelKey, Vec<u64>> = BTreeMap::new();
        for row in &self.rows {
            lines.entry(&row.key).or_default().push(row.line);
        }
        lines
            .into_iter()
            .filter(|(_, lines)| lines.len() > 1)
            .map(|(key, lines)| Repeat {
                key: key.clone(),
                lines,
            })
            .collect()
    }
}
