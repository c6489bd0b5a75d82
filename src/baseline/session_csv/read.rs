use std::collections::HashMap;

use csv::StringRecord;

use super::cells::{CONCURRENCY, OF_THE_SESSION, REQUEST_RATE, REQUIRED};
use super::error::SessionCsvError;
use super::numbers::parse_classes;
use super::row::Row;
use crate::baseline::Place;
use crate::baseline::environment::{ADDRESS_FIELD, HASH_FIELD};
use crate::baseline::place::Lines;
use crate::data::{
    Block, ClientSide, ErrorClass, ErrorCounts, Facts, GpuSample, Latency, LoadIdentity,
    SESSION_SCHEMA, ServerMeans, Session, Side,
};

/// Reads a file that holds one session.
///
/// Environment and subject are known by their hashes only: the environment's stands in
/// `environment` as the field `environment.hash`, the subject's in `subject_hash`.
///
/// # Errors
/// Anything that is not one whole session file, with file and line.
pub fn read(text: &str, file: &str) -> Result<Session, SessionCsvError> {
    let (mut sessions, second) = grouped(text, file)?;
    let first = sessions.swap_remove(0);
    match second {
        None => Ok(first),
        Some((place, second)) => Err(SessionCsvError::TwoSessions {
            place,
            first: first.id,
            second,
        }),
    }
}

/// [`read`] of a file's bytes.
///
/// # Errors
/// As [`read`]; also bytes that are not UTF-8.
pub fn read_bytes(bytes: &[u8], file: &str) -> Result<Session, SessionCsvError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => read(text, file),
        Err(error) => {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = 1 + String::from_utf8_lossy(good).matches('\n').count() as u64;
            Err(SessionCsvError::NotText(Place::new(file, line)))
        }
    }
}

/// Reads a file that holds one or more sessions (`measure -o`), in the file's order.
///
/// # Errors
/// As [`read`], but for rows of several sessions.
pub fn read_all(text: &str, file: &str) -> Result<Vec<Session>, SessionCsvError> {
    grouped(text, file).map(|(sessions, _)| sessions)
}

/// Whether a file is one of ours: its header names a column `schema` and one `session`.
pub(crate) fn is_session_csv(text: &str) -> bool {
    let first = text
        .trim_start_matches('\u{feff}')
        .lines()
        .find(|line| !is_marker(line) && !line.trim().is_empty())
        .unwrap_or_default();
    let mut names = first.split(',').map(|name| name.trim().trim_matches('"'));
    names.clone().any(|name| name == "schema") && names.any(|name| name == "session")
}

/// The content address of the session's environment facts; empty where they are unknown.
pub(crate) fn environment_address(session: &Session) -> String {
    let facts = &session.environment;
    if facts.get(HASH_FIELD).is_some() {
        facts.get(ADDRESS_FIELD).unwrap_or_default().to_owned()
    } else if facts.0.is_empty() {
        String::new()
    } else {
        facts.hash()
    }
}

fn is_marker(line: &str) -> bool {
    ["<<<<<<<", ">>>>>>>", "|||||||"]
        .iter()
        .any(|marker| line.starts_with(marker))
        || line.trim_end() == "======="
}

/// The header and the rows with their line numbers, after every check of the text as a whole.
pub(super) fn records(text: &str, file: &str) -> Result<Vec<(u64, StringRecord)>, SessionCsvError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(SessionCsvError::Empty(Place::new(file, 1)));
    }
    if let Some(line) = text.lines().position(is_marker) {
        return Err(SessionCsvError::Conflict(Place::new(file, line as u64 + 1)));
    }
    if !text.ends_with('\n') {
        return Err(SessionCsvError::Truncated {
            place: Place::new(file, text.lines().count() as u64),
            what: "its last line is cut (no line break at the end)".to_owned(),
        });
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut lines = Lines::new(text);
    let mut records: Vec<(u64, StringRecord)> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| SessionCsvError::Csv {
            place: Place::new(file, error.position().map_or(1, csv::Position::line)),
            message: error.to_string(),
        })?;
        let line = lines.of(record.position());
        // A spreadsheet may leave rows of nothing but commas.
        if record.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        let expected = records
            .first()
            .map_or(record.len(), |(_, header)| header.len());
        if record.len() < expected {
            return Err(SessionCsvError::Truncated {
                place: Place::new(file, line),
                what: format!("this row has {} of {expected} cells", record.len()),
            });
        }
        if record
            .iter()
            .skip(expected)
            .any(|cell| !cell.trim().is_empty())
        {
            return Err(SessionCsvError::Csv {
                place: Place::new(file, line),
                message: format!("this row has {} cells, the header {expected}", record.len()),
            });
        }
        records.push((line, record));
    }
    if records.len() < 2 {
        return Err(SessionCsvError::HeaderOnly(Place::new(file, 1)));
    }
    Ok(records)
}

/// The names of the header.
pub(super) fn header_of(
    records: &[(u64, StringRecord)],
    file: &str,
) -> Result<Vec<String>, SessionCsvError> {
    let (_, header) = records
        .first()
        .ok_or_else(|| SessionCsvError::Empty(Place::new(file, 1)))?;
    Ok(header.iter().map(|name| name.trim().to_owned()).collect())
}

fn columns_of(
    records: &[(u64, StringRecord)],
    file: &str,
) -> Result<HashMap<String, usize>, SessionCsvError> {
    let place = || Place::new(file, 1);
    let mut columns = HashMap::new();
    for (index, name) in header_of(records, file)?.into_iter().enumerate() {
        if !name.is_empty() && columns.insert(name.clone(), index).is_some() {
            return Err(SessionCsvError::RepeatedColumn {
                place: place(),
                column: name,
            });
        }
    }
    for column in REQUIRED {
        if !columns.contains_key(column) {
            return Err(SessionCsvError::MissingColumn {
                place: place(),
                column,
            });
        }
    }
    Ok(columns)
}

/// The first row of a second session: where, and its id.
type Second = Option<(Place, String)>;

fn grouped(text: &str, file: &str) -> Result<(Vec<Session>, Second), SessionCsvError> {
    let records = records(text, file)?;
    // The schema first: a newer one may have renamed what is missed below.
    let header = header_of(&records, file)?;
    if let Some(schema) = header.iter().position(|name| name == "schema") {
        for (line, record) in records.iter().skip(1) {
            if let Some(found) = record.get(schema).and_then(|cell| cell.trim().parse().ok())
                && found > u64::from(SESSION_SCHEMA)
            {
                return Err(SessionCsvError::NewerSchema {
                    place: Place::new(file, *line),
                    found,
                });
            }
        }
    }
    let columns = columns_of(&records, file)?;
    let row = |line: u64, record| Row {
        columns: &columns,
        record,
        place: Place::new(file, line),
    };

    let mut sessions: Vec<(Session, Row<'_>)> = Vec::new();
    let mut second = None;
    let there = records.len() as u64 - 1;
    for (line, record) in records.iter().skip(1) {
        let row = row(*line, record);
        let schema: u32 = row.required_count("schema")?;
        if schema == 0 {
            return Err(row.bad("schema", format!("1 to {SESSION_SCHEMA}")));
        }
        let stated: u64 = row.required_count("rows")?;
        if stated != there {
            return Err(SessionCsvError::Truncated {
                place: row.place,
                what: format!("it holds {there} of {stated} rows"),
            });
        }
        let id = row.required_text("session")?;
        let scenario = row.required_text("scenario")?;
        let block = block(&row)?;
        let known = sessions
            .iter_mut()
            .find(|(session, _)| session.id == id && session.scenario == scenario);
        if let Some((session, first)) = known {
            agree(first, &row)?;
            if session
                .blocks
                .iter()
                .any(|other| other.side == block.side && other.index == block.index)
            {
                return Err(row.bad("block", "a number that no other row of this side has"));
            }
            session.blocks.push(block);
        } else {
            if second.is_none() && !sessions.is_empty() {
                second = Some((row.place.clone(), id.clone()));
            }
            let mut session = session(&row, id, scenario)?;
            session.blocks.push(block);
            sessions.push((session, row));
        }
    }
    let sessions = sessions.into_iter().map(|(session, _)| session).collect();
    Ok((sessions, second))
}

/// Checks that a row tells the same of its session as the first one.
fn agree(first: &Row<'_>, row: &Row<'_>) -> Result<(), SessionCsvError> {
    for column in OF_THE_SESSION.into_iter().chain(["batch"]) {
        if first.optional(column) != row.optional(column) {
            return Err(SessionCsvError::Disagreement {
                place: row.place.clone(),
                column: column.to_owned(),
                first: first.text(column),
                second: row.text(column),
            });
        }
    }
    Ok(())
}

fn session(row: &Row<'_>, id: String, scenario: String) -> Result<Session, SessionCsvError> {
    let mut environment = Facts::default();
    if let Some(hash) = row.optional("environment_hash")
        && hash != Facts::default().hash()
    {
        environment.set(HASH_FIELD, hash);
        if let Some(address) = row.optional("environment_address") {
            environment.set(ADDRESS_FIELD, address);
        }
    }
    let recorded_at = row.text("recorded_at");
    if !recorded_at.is_empty() && chrono::DateTime::parse_from_rfc3339(&recorded_at).is_err() {
        return Err(row.bad("recorded_at", "a time like 2026-01-31T12:00:00Z"));
    }
    Ok(Session {
        id,
        recorded_at,
        commit: row.optional("commit").map(str::to_owned),
        branch: row.optional("branch").map(str::to_owned),
        dirty: row.flag("dirty")?,
        tool_version: row.text("tool_version"),
        scenario,
        model: row.required_text("model")?,
        model_version: row.text("model_version"),
        load: LoadIdentity {
            concurrency: row.count(CONCURRENCY)?,
            rate_milli: row.milli(REQUEST_RATE)?,
            batch: row.required_count("batch")?,
            connections: row.count("connections")?.unwrap_or_default(),
            workers: row.count("workers")?.unwrap_or_default(),
            block_ns: row.count("block_ns")?.unwrap_or_default(),
            payload: row.text("payload"),
            engine: row.count("engine")?.unwrap_or_default(),
        },
        environment,
        subject: Facts::default(),
        subject_hash: row.text("subject_hash"),
        life: row.optional("life").map(str::to_owned),
        server_requests: row.count("server_requests")?,
        epoch: row.count("epoch")?.unwrap_or_default(),
        complete: row
            .flag("complete")?
            .ok_or_else(|| row.bad("complete", "true or false"))?,
        blocks: Vec::new(),
    })
}

fn block(row: &Row<'_>) -> Result<Block, SessionCsvError> {
    let side = match row.optional("side") {
        Some("baseline") => Side::Baseline,
        Some("candidate") => Side::Candidate,
        _ => return Err(row.bad("side", "baseline or candidate")),
    };
    let duration_ns: u64 = row.required_count("duration_ns")?;
    let throughput = row.number("Inferences/Second")?;
    Ok(Block {
        side,
        index: row.required_count("block")?,
        duration_ns,
        batch: row.required_count("batch")?,
        requests: row.required_count("requests")?,
        errors: errors(row)?,
        latency: Latency {
            p50: row.number("p50 latency")?,
            p90: row.number("p90 latency")?,
            p95: row.number("p95 latency")?,
            p99: row.number("p99 latency")?,
            p999: row.number("p999_us")?,
            mean: row.number("Avg latency")?,
            max: row.number("max_us")?,
        },
        histogram: None,
        client: ClientSide {
            send_us: row.number("Client Send")?,
            receive_us: row.number("Client Recv")?,
            cpu: row.number("client_cpu")?,
            little: row.number("little")?,
        },
        server: server(row)?,
        gpu: gpu(row)?,
        steal: row.number("steal")?,
        stated_throughput: if duration_ns == 0 { throughput } else { None },
    })
}

fn errors(row: &Row<'_>) -> Result<ErrorCounts, SessionCsvError> {
    let total: u64 = row.required_count("errors")?;
    let classes = row.text("error_classes");
    let mut errors = parse_classes(&classes)
        .ok_or_else(|| row.bad("error_classes", "class:count pairs with ; between them"))?;
    if classes.is_empty() && total > 0 {
        errors.0.insert(ErrorClass::Other, total);
    }
    if errors.total() != total {
        return Err(row.bad(
            "errors",
            format!("{}, the sum of error_classes", errors.total()),
        ));
    }
    Ok(errors)
}

fn server(row: &Row<'_>) -> Result<Option<ServerMeans>, SessionCsvError> {
    let executed_batch = row.number("executed_batch")?;
    let parts = (
        row.number("Server Queue")?,
        row.number("Server Compute Input")?,
        row.number("Server Compute Infer")?,
        row.number("Server Compute Output")?,
    );
    let (Some(queue_us), Some(compute_input_us), Some(compute_infer_us), Some(compute_output_us)) =
        parts
    else {
        return Ok(None);
    };
    let known = queue_us + compute_input_us + compute_infer_us + compute_output_us;
    Ok(Some(ServerMeans {
        queue_us,
        compute_input_us,
        compute_infer_us,
        compute_output_us,
        total_us: row.number("server_total_us")?.unwrap_or(known),
        executed_batch,
    }))
}

fn gpu(row: &Row<'_>) -> Result<Option<GpuSample>, SessionCsvError> {
    let sample = GpuSample {
        utilisation: row.number("gpu_utilisation")?,
        power_w: row.number("gpu_power_w")?,
        memory_bytes: row.number("gpu_memory_bytes")?,
        clock_mhz: row.number("gpu_clock_mhz")?,
        throttle: row.count("throttle")?,
    };
    Ok((sample != GpuSample::default()).then_some(sample))
}
