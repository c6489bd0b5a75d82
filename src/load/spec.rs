use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::LoadError;
use crate::data::{Auto, ServerSpec, Side};

/// The measuring engine's number; raised whenever a change of ours moves numbers.
pub const ENGINE_NUMBER: u32 = 1;

/// From this size of a request on, each request in flight gets a connection of its own: HTTP/2
/// interleaves the bodies on one connection, so that every one of them slows.
const LARGE_REQUEST: usize = 256 * 1024;
const MOST_CONNECTIONS: u32 = 64;
const IN_FLIGHT_PER_CONNECTION: u32 = 16;
const IN_FLIGHT_PER_WORKER: u32 = 32;
/// Moving megabytes costs a core a few GB/s, so fewer of them fit one worker.
const LARGE_IN_FLIGHT_PER_WORKER: u32 = 4;

/// What an engine sends and how.
#[derive(Clone)]
pub struct LoadSpec {
    /// Where to.
    pub server: ServerSpec,
    /// Complete gRPC messages (5-byte prefix and protobuf), sent in turn.
    pub frames: Vec<Bytes>,
    /// Inferences per request.
    pub batch: u32,
    /// Requests in flight.
    pub concurrency: u32,
    /// Worker threads.
    pub workers: Auto<u32>,
    /// Connections, all workers together.
    pub connections: Auto<u32>,
    /// Deadline of one request.
    pub request_timeout: Duration,
}

impl fmt::Debug for LoadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadSpec")
            .field("server", &self.server)
            .field("frames", &self.frames.len())
            .field("batch", &self.batch)
            .field("concurrency", &self.concurrency)
            .field("workers", &self.workers)
            .field("connections", &self.connections)
            .field("request_timeout", &self.request_timeout)
            .finish()
    }
}

/// Workers and connections of a load, part of its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Worker threads.
    pub workers: u32,
    /// Connections, all workers together.
    pub connections: u32,
}

impl LoadSpec {
    /// Resolves workers and connections; the same for the same load on machines with the same
    /// number of cores.
    ///
    /// Automatic connections: one per request in flight where a request has 256 KiB or more (at
    /// most 64), else one per 16 in flight; at least one a worker. Automatic workers: one per 32
    /// requests in flight (per 4 large ones), at most the cores less one.
    pub fn shape(&self) -> Result<Shape, LoadError> {
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        self.shape_on(u32::try_from(cores).unwrap_or(u32::MAX))
    }

    pub(crate) fn shape_on(&self, cores: u32) -> Result<Shape, LoadError> {
        self.check()?;
        let large = self.frames.iter().any(|frame| frame.len() >= LARGE_REQUEST);
        let per_worker = if large {
            LARGE_IN_FLIGHT_PER_WORKER
        } else {
            IN_FLIGHT_PER_WORKER
        };
        let wanted_workers = match self.workers {
            Auto::Fixed(workers) => workers,
            Auto::Auto => self
                .concurrency
                .div_ceil(per_worker)
                .min(cores.saturating_sub(1))
                .max(1),
        };
        let connections = match self.connections {
            Auto::Fixed(connections) => connections,
            Auto::Auto if large => self.concurrency.min(MOST_CONNECTIONS).max(wanted_workers),
            Auto::Auto => self
                .concurrency
                .div_ceil(IN_FLIGHT_PER_CONNECTION)
                .max(wanted_workers),
        };
        let workers = match self.workers {
            Auto::Fixed(workers) => workers,
            Auto::Auto => wanted_workers.min(connections),
        };
        if workers > connections {
            return Err(invalid(
                format!("{workers} workers cannot share {connections} connections"),
                "give every worker at least one connection",
            ));
        }
        if connections > self.concurrency {
            return Err(invalid(
                format!(
                    "{connections} connections are more than the {} requests in flight",
                    self.concurrency
                ),
                "lower connections and workers, or raise the concurrency",
            ));
        }
        Ok(Shape {
            workers,
            connections,
        })
    }

    fn check(&self) -> Result<(), LoadError> {
        let positive = "it must be at least 1";
        for (name, value) in [
            ("concurrency", Some(self.concurrency)),
            ("batch", Some(self.batch)),
            ("workers", fixed(self.workers)),
            ("connections", fixed(self.connections)),
        ] {
            if value == Some(0) {
                return Err(invalid(format!("{name} is 0"), positive));
            }
        }
        if self.request_timeout.is_zero() {
            return Err(invalid(
                "the request timeout is 0".to_owned(),
                "it must be longer",
            ));
        }
        if self.frames.is_empty() {
            return Err(invalid(
                "there is no request to send".to_owned(),
                "at least one payload is needed",
            ));
        }
        for (index, frame) in self.frames.iter().enumerate() {
            if !is_complete_message(frame) {
                return Err(invalid(
                    format!("payload {index} is not one complete gRPC message"),
                    "it must start with its own length",
                ));
            }
        }
        Ok(())
    }
}

fn fixed(value: Auto<u32>) -> Option<u32> {
    match value {
        Auto::Auto => None,
        Auto::Fixed(value) => Some(value),
    }
}

fn invalid(what: String, next: &'static str) -> LoadError {
    LoadError::Invalid { what, next }
}

fn is_complete_message(frame: &[u8]) -> bool {
    match frame {
        [0 | 1, a, b, c, d, rest @ ..] => {
            u32::from_be_bytes([*a, *b, *c, *d]) as usize == rest.len()
        }
        _ => false,
    }
}

/// One stretch of load: ramp, blocks, drain.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// Which side the blocks belong to.
    pub side: Side,
    /// Index of the first block.
    pub first_index: u32,
    /// What is discarded at the start (with [`Counting::Sent`]: of each block).
    pub ramp: Ramp,
    /// Number of blocks.
    pub blocks: u32,
    /// Length of a block.
    pub block: Duration,
    /// Which requests count for a block.
    pub counting: Counting,
    /// When to give up, whatever is in flight then; none for never. Requests still have theirs.
    pub deadline: Option<Instant>,
}

/// The discarded start of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ramp {
    /// Counting starts with the first request.
    None,
    /// 200 ms or 2 x concurrency completed requests, whichever is first.
    Standard,
    /// Exactly this long.
    Fixed(Duration),
}

/// Which requests count for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// Blocks follow each other without a gap, with edges fixed beforehand. A request counts for
    /// the block in which it ends; a block is exactly as long as asked for.
    Contiguous,
    /// Each block has its own drain. A request counts for the block in which it was sent, also
    /// where it ends in the drain; a block is as long as from its start to the last of its
    /// requests. Nothing is in flight afterwards.
    Sent,
}

/// Asks a running stretch to end early. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to stop; safe to call from a signal handler's thread, and more than once.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether stopping was asked for.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
