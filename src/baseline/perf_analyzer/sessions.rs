use std::collections::BTreeMap;

use super::table::{Row, Table};
use crate::baseline::{Level, LevelKey, LevelLoad};
use crate::data::{
    Block, ClientSide, ErrorCounts, Facts, GpuSample, LoadIdentity, ServerMeans, Session, Side,
};

/// A request rate below this share of what was asked for was not reached.
const REACHED: f64 = 0.99;

/// What a `perf_analyzer` file does not say of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportInfo {
    /// The side that its blocks are of.
    pub side: Side,
    /// The scenario's name; with several levels each gets its own (`NAME-c8`).
    pub scenario: String,
    /// The model, where the file has no such column.
    pub model: String,
    /// When it was measured, RFC 3339, UTC; empty where unknown.
    pub recorded_at: String,
    /// The commit that was measured, if known.
    pub commit: Option<String>,
    /// Begins each session's id; the level is appended.
    pub id: String,
    /// Where it was measured; empty where unknown.
    pub environment: Facts,
}

/// The levels of a file, by load: each a session with one block a row, so that repeats of a
/// level are its blocks.
///
/// Requests, length and batch are not in the file: blocks carry the throughput as stated, and no
/// requests. Connections, workers, payload and engine are 0 or empty, so that nothing takes them
/// for a measurement of this program. A request rate that was missed by more than 1 % makes a
/// level invalid: the load generator was the limit, or the server could not keep up, and the
/// file does not tell which.
pub fn levels(table: &Table, info: &ImportInfo) -> Vec<Level> {
    let mut groups: BTreeMap<&LevelKey, Vec<&Row>> = BTreeMap::new();
    for row in &table.rows {
        groups.entry(&row.key).or_default().push(row);
    }
    let several = groups.len() > 1;
    groups
        .into_iter()
        .map(|(key, rows)| {
            let scenario = if several {
                format!("{}-{}", info.scenario, level_name(key))
            } else {
                info.scenario.clone()
            };
            Level {
                key: key.clone(),
                invalid: rows.iter().find_map(|row| missed_rate(table, row)),
                session: session(key, &rows, info, scenario),
            }
        })
        .collect()
}

/// A level in a few letters that can be a file's: load, then every other word that tells it
/// apart.
fn level_name(key: &LevelKey) -> String {
    let mut name = key.slug();
    for (label, value) in key.labels.iter().filter(|(label, _)| *label != "batch") {
        name.push('-');
        if label != "model" {
            name.push_str(label);
        }
        name.push_str(value);
    }
    name.chars()
        .map(|letter| match letter {
            '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' => '_',
            letter if letter.is_control() => '_',
            letter => letter,
        })
        .collect()
}

/// The batch that a row names; 1 where it names none.
fn batch(key: &LevelKey) -> u32 {
    key.labels
        .get("batch")
        .and_then(|batch| batch.parse().ok())
        .filter(|batch| *batch > 0)
        .unwrap_or(1)
}

fn missed_rate(table: &Table, row: &Row) -> Option<String> {
    let LevelLoad::RateMilli(rate) = row.key.load else {
        return None;
    };
    let asked = rate as f64 / 1000.0 * f64::from(batch(&row.key));
    (row.throughput < REACHED * asked).then(|| {
        format!(
            "{}:{}: asked for {asked} infer/s, got {} ({:.0} %): the request rate was not \
             reached; ask for less, or measure at a fixed concurrency",
            table.file,
            row.line,
            row.throughput,
            100.0 * row.throughput / asked
        )
    })
}

fn session(key: &LevelKey, rows: &[&Row], info: &ImportInfo, scenario: String) -> Session {
    let (concurrency, rate_milli) = match key.load {
        LevelLoad::Concurrency(concurrency) => (Some(concurrency), None),
        LevelLoad::RateMilli(rate) => (None, Some(rate)),
    };
    let label = |name: &str| key.labels.get(name).cloned();
    Session {
        id: format!("{}-{}", info.id, level_name(key)),
        recorded_at: info.recorded_at.clone(),
        commit: info.commit.clone(),
        branch: None,
        dirty: None,
        tool_version: "perf_analyzer".to_owned(),
        scenario,
        model: label("model").unwrap_or_else(|| info.model.clone()),
        model_version: label("version").unwrap_or_default(),
        load: LoadIdentity {
            concurrency,
            rate_milli,
            batch: batch(key),
            connections: 0,
            workers: 0,
            block_ns: 0,
            payload: String::new(),
            engine: 0,
        },
        environment: info.environment.clone(),
        subject: Facts::default(),
        subject_hash: String::new(),
        life: None,
        server_requests: None,
        epoch: 0,
        complete: true,
        blocks: rows
            .iter()
            .enumerate()
            .map(|(index, row)| block(row, info.side, index as u32))
            .collect(),
    }
}

fn block(row: &Row, side: Side, index: u32) -> Block {
    Block {
        side,
        index,
        duration_ns: 0,
        batch: batch(&row.key),
        requests: 0,
        errors: ErrorCounts::default(),
        latency: row.latency,
        histogram: None,
        client: ClientSide {
            send_us: row.client_send_us,
            receive_us: row.client_receive_us,
            ..ClientSide::default()
        },
        server: row.server.map(|server| ServerMeans {
            queue_us: server.queue_us,
            compute_input_us: server.compute_input_us,
            compute_infer_us: server.compute_infer_us,
            compute_output_us: server.compute_output_us,
            // The file counts the server's overhead to the network.
            total_us: server.queue_us
                + server.compute_input_us
                + server.compute_infer_us
                + server.compute_output_us,
            executed_batch: None,
        }),
        gpu: row.gpu.map(|gpu| GpuSample {
            utilisation: gpu.utilisation,
            power_w: gpu.power_w,
            memory_bytes: gpu.memory_bytes,
            clock_mhz: None,
            throttle: None,
        }),
        steal: None,
        stated_throughput: Some(row.throughput),
    }
}
