//! True times, written to a CSV file by a thread of its own.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tonic::Code;

use super::spec::SimulateError;

const HEADER: [&str; 8] = [
    "ordinal",
    "id",
    "model",
    "version",
    "arrival_ns",
    "start_ns",
    "end_ns",
    "status",
];

/// How long a row may wait in memory while nothing else happens.
const FLUSH_AFTER: Duration = Duration::from_millis(200);

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The model's number of the request; 0 when it was refused before it got one.
    pub(crate) ordinal: u64,
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) version: String,
    pub(crate) arrival: Instant,
    pub(crate) start: Option<Instant>,
    pub(crate) end: Instant,
    pub(crate) status: Code,
}

enum Message {
    Row(Row),
    Close,
}

/// Where rows go.
#[derive(Clone)]
pub(crate) struct Log(Sender<Message>);

impl Log {
    /// Creates the file and starts the thread.
    ///
    /// Times are nanoseconds of the system's monotonic clock, so that they can be joined with
    /// those of another process on the same host.
    pub(crate) fn create(
        path: &Path,
        epoch: Instant,
    ) -> Result<(Self, JoinHandle<()>), SimulateError> {
        let at = |source| SimulateError::Log {
            path: path.to_owned(),
            source,
        };
        let file = File::create(path).map_err(at)?;
        let epoch_ns = monotonic_ns().saturating_sub(epoch.elapsed().as_nanos());
        let (sender, rows) = mpsc::channel();
        let mut writer = Writer {
            csv: csv::Writer::from_writer(BufWriter::new(file)),
            epoch,
            epoch_ns,
        };
        let path = path.to_owned();
        let thread = std::thread::Builder::new()
            .name("simulate-log".to_owned())
            .spawn(move || {
                if let Err(error) = writer.run(&rows) {
                    tracing::error!(
                        "failed to write the request log {}: {error}",
                        path.display()
                    );
                }
            })
            .map_err(|source| SimulateError::Thread {
                what: "the log writer",
                source,
            })?;
        Ok((Self(sender), thread))
    }

    pub(crate) fn row(&self, row: Row) {
        // The writer ends early only when the disk fails, which it has said.
        let _ = self.0.send(Message::Row(row));
    }

    /// Ends the writer once it has written what was sent.
    pub(crate) fn close(&self) {
        let _ = self.0.send(Message::Close);
    }
}

/// The clock behind `Instant`, where the system has it.
fn monotonic_ns() -> u128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u128 * 1_000_000_000 + now.tv_nsec as u128
}

struct Writer<W: Write> {
    csv: csv::Writer<W>,
    epoch: Instant,
    epoch_ns: u128,
}

impl<W: Write> Writer<W> {
    fn run(&mut self, rows: &mpsc::Receiver<Message>) -> csv::Result<()> {
        self.csv.write_record(HEADER)?;
        let mut dirty = true;
        loop {
            match rows.recv_timeout(FLUSH_AFTER) {
                Ok(Message::Row(row)) => {
                    self.write(&row)?;
                    dirty = true;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if dirty {
                        self.csv.flush()?;
                        dirty = false;
                    }
                }
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => {
                    self.csv.flush()?;
                    return Ok(());
                }
            }
        }
    }

    fn write(&mut self, row: &Row) -> csv::Result<()> {
        let ns = |at: Instant| {
            (self.epoch_ns + at.saturating_duration_since(self.epoch).as_nanos()).to_string()
        };
        self.csv.write_record([
            row.ordinal.to_string().as_str(),
            &row.id,
            &row.model,
            &row.version,
            &ns(row.arrival),
            &row.start.map(ns).unwrap_or_default(),
            &ns(row.end),
            code_name(row.status),
        ])
    }
}

/// gRPC's name of a status code.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
