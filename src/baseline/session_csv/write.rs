use std::collections::BTreeMap;

use super::cells::{COLUMNS, CONCURRENCY, REQUEST_RATE};
use super::error::SessionCsvError;
use super::numbers::{classes, decimal, milli};
use super::read::{environment_address, header_of};
use crate::baseline::environment::identity_hash;
use crate::data::{Block, SESSION_SCHEMA, Session, Side};

/// One session as CSV.
///
/// # Errors
/// A session that cannot be put down without loss: no blocks, a number that is not finite, a
/// line break in a text.
pub fn write(session: &Session) -> Result<String, SessionCsvError> {
    write_all(std::slice::from_ref(session))
}

/// Several sessions as one CSV, for `measure -o`.
///
/// # Errors
/// As [`write()`]; also no sessions at all.
pub fn write_all(sessions: &[Session]) -> Result<String, SessionCsvError> {
    let rows: usize = sessions.iter().map(|session| session.blocks.len()).sum();
    let mut header: Vec<&str> = Vec::new();
    if sessions
        .iter()
        .any(|session| session.load.rate_milli.is_none())
    {
        header.push(CONCURRENCY);
    }
    if sessions
        .iter()
        .any(|session| session.load.rate_milli.is_some())
    {
        header.push(REQUEST_RATE);
    }
    header.extend(COLUMNS);

    let mut lines = vec![header.iter().map(|name| (*name).to_owned()).collect()];
    for session in sessions {
        let not_writable = |why: String| SessionCsvError::NotWritable {
            session: session.id.clone(),
            why,
        };
        if session.blocks.is_empty() {
            return Err(not_writable(
                "it has no blocks: nothing was measured".into(),
            ));
        }
        for block in &session.blocks {
            let cells = row(session, block, rows).map_err(not_writable)?;
            let line: Vec<String> = header
                .iter()
                .map(|name| cells.get(name).cloned().unwrap_or_default())
                .collect();
            if let Some(position) = line.iter().position(|cell| cell.contains(char::is_control)) {
                let name = header.get(position).copied().unwrap_or_default();
                return Err(not_writable(format!(
                    "`{name}` holds a line break or another control character"
                )));
            }
            lines.push(line);
        }
    }
    if rows == 0 {
        return Err(SessionCsvError::NotWritable {
            session: String::new(),
            why: "there is none: nothing was measured".to_owned(),
        });
    }
    Ok(joined(&lines))
}

/// The same file under another scenario's name, every other cell and column as it is.
pub(crate) fn with_scenario(
    text: &str,
    file: &str,
    scenario: &str,
) -> Result<String, SessionCsvError> {
    let records = super::read::records(text, file)?;
    let header = header_of(&records, file)?;
    let column = header.iter().position(|name| name == "scenario");
    let mut lines: Vec<Vec<String>> = Vec::new();
    for (index, (_, record)) in records.iter().enumerate() {
        let mut line: Vec<String> = record.iter().map(str::to_owned).collect();
        if index > 0
            && let Some(cell) = column.and_then(|column| line.get_mut(column))
        {
            scenario.clone_into(cell);
        }
        lines.push(line);
    }
    Ok(joined(&lines))
}

/// Lines of cells as text, quoted where needed.
fn joined(lines: &[Vec<String>]) -> String {
    let mut text = String::new();
    for line in lines {
        for (index, cell) in line.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            if cell.contains([',', '"', '\n', '\r']) || cell.trim() != cell {
                text.push('"');
                text.push_str(&cell.replace('"', "\"\""));
                text.push('"');
            } else {
                text.push_str(cell);
            }
        }
        text.push('\n');
    }
    text
}

type Cells = BTreeMap<&'static str, String>;

fn row(session: &Session, block: &Block, rows: usize) -> Result<Cells, String> {
    let mut cells = Cells::new();
    session_cells(&mut cells, session, rows);
    block_cells(&mut cells, session, block)?;
    Ok(cells)
}

fn session_cells(cells: &mut Cells, session: &Session, rows: usize) {
    let load = &session.load;
    let subject_hash = if session.subject.0.is_empty() {
        session.subject_hash.clone()
    } else {
        session.subject.hash()
    };
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    cells.extend([
        (
            CONCURRENCY,
            load.concurrency
                .map(|value| value.to_string())
                .unwrap_or_default(),
        ),
        (REQUEST_RATE, load.rate_milli.map(milli).unwrap_or_default()),
        ("schema", SESSION_SCHEMA.to_string()),
        ("session", session.id.clone()),
        ("rows", rows.to_string()),
        ("recorded_at", session.recorded_at.clone()),
        ("commit", optional(&session.commit)),
        ("branch", optional(&session.branch)),
        (
            "dirty",
            session
                .dirty
                .map(|value| value.to_string())
                .unwrap_or_default(),
        ),
        ("tool_version", session.tool_version.clone()),
        ("scenario", session.scenario.clone()),
        ("model", session.model.clone()),
        ("model_version", session.model_version.clone()),
        ("connections", load.connections.to_string()),
        ("workers", load.workers.to_string()),
        ("block_ns", load.block_ns.to_string()),
        ("payload", load.payload.clone()),
        ("engine", load.engine.to_string()),
        ("environment_hash", identity_hash(&session.environment)),
        ("environment_address", environment_address(session)),
        ("subject_hash", subject_hash),
        ("load_hash", load.facts().hash()),
        ("life", optional(&session.life)),
        (
            "server_requests",
            session
                .server_requests
                .map(|count| count.to_string())
                .unwrap_or_default(),
        ),
        ("epoch", session.epoch.to_string()),
        ("complete", session.complete.to_string()),
    ]);
}

fn block_cells(cells: &mut Cells, session: &Session, block: &Block) -> Result<(), String> {
    if block.batch != session.load.batch {
        return Err(format!(
            "block {} has batch {}, the load has batch {}",
            block.index, block.batch, session.load.batch
        ));
    }
    let side = match block.side {
        Side::Baseline => "baseline",
        Side::Candidate => "candidate",
    };
    cells.extend([
        ("side", side.to_owned()),
        ("block", block.index.to_string()),
        ("batch", block.batch.to_string()),
        ("duration_ns", block.duration_ns.to_string()),
        ("requests", block.requests.to_string()),
        ("errors", block.errors.total().to_string()),
        ("error_classes", classes(&block.errors)),
        (
            "throttle",
            block
                .gpu
                .and_then(|gpu| gpu.throttle)
                .map(|mask| mask.to_string())
                .unwrap_or_default(),
        ),
    ]);

    let latency = block.latency;
    let server = block.server;
    let client = block.client;
    let gpu = block.gpu.unwrap_or_default();
    // perf_analyzer's own arithmetic: what the mean latency leaves after all known parts.
    let network = match (latency.mean, client.send_us, client.receive_us, server) {
        (Some(mean), Some(send), Some(receive), Some(server)) => {
            Some((mean - send - receive - server.queue_us - server.compute_us()).max(0.0))
        }
        _ => None,
    };
    let throughput = (block.duration_ns > 0).then(|| block.throughput());
    let numbers = [
        ("Inferences/Second", throughput, 3),
        ("Client Send", client.send_us, 3),
        ("Network+Server Send/Recv", network, 3),
        ("Server Queue", server.map(|server| server.queue_us), 3),
        (
            "Server Compute Input",
            server.map(|server| server.compute_input_us),
            3,
        ),
        (
            "Server Compute Infer",
            server.map(|server| server.compute_infer_us),
            3,
        ),
        (
            "Server Compute Output",
            server.map(|server| server.compute_output_us),
            3,
        ),
        ("Client Recv", client.receive_us, 3),
        ("p50 latency", latency.p50, 3),
        ("p90 latency", latency.p90, 3),
        ("p95 latency", latency.p95, 3),
        ("p99 latency", latency.p99, 3),
        ("Avg latency", latency.mean, 3),
        ("p999_us", latency.p999, 3),
        ("max_us", latency.max, 3),
        (
            "executed_batch",
            server.and_then(|server| server.executed_batch),
            3,
        ),
        ("server_total_us", server.map(|server| server.total_us), 3),
        ("client_cpu", client.cpu, 6),
        ("little", client.little, 6),
        ("steal", block.steal, 6),
        ("gpu_utilisation", gpu.utilisation, 6),
        ("gpu_power_w", gpu.power_w, 6),
        ("gpu_memory_bytes", gpu.memory_bytes, 3),
        ("gpu_clock_mhz", gpu.clock_mhz, 3),
    ];
    for (column, value, decimals) in numbers {
        let Some(value) = value else { continue };
        if !value.is_finite() || value < 0.0 {
            return Err(format!(
                "`{column}` of block {} is {value}: expected a finite number of at least 0",
                block.index
            ));
        }
        cells.insert(column, decimal(value, decimals));
    }
    if block.duration_ns == 0
        && let Some(stated) = block.stated_throughput
    {
        if !stated.is_finite() || stated < 0.0 {
            return Err(format!(
                "the stated throughput of block {} is {stated}",
                block.index
            ));
        }
        // Another tool's number, digit for digit.
        cells.insert("Inferences/Second", stated.to_string());
    }
    Ok(())
}
