use std::time::Duration;

use serde::Deserialize;

use super::duration;

/// Something that goes wrong, and when.
///
/// Requests of a model are numbered from 1 over all its versions, in the order in which they
/// pass validation. A fault strikes a request when every condition that is set holds; without
/// any it strikes each request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// What goes wrong.
    pub kind: FaultKind,
    /// Which error; only for `kind = "error"`.
    #[serde(default)]
    pub error: Option<ErrorKind>,
    /// Text of a `model_error`, else the text that a Python exception carries.
    #[serde(default)]
    pub message: Option<String>,
    /// Only requests of this version.
    #[serde(default)]
    pub version: Option<u32>,
    /// Every Nth request, counted from `after_request`.
    #[serde(default)]
    pub every: Option<u64>,
    /// Exactly this request.
    #[serde(default)]
    pub at_request: Option<u64>,
    /// Only requests with a higher number.
    #[serde(default)]
    pub after_request: Option<u64>,
    /// With this probability, 0 to 1, drawn from the seed and the request's number.
    #[serde(default)]
    pub probability: Option<f64>,
    /// Only from this time after the server's start.
    #[serde(default, deserialize_with = "duration::optional")]
    pub at: Option<Duration>,
    /// How long: of a stall, of a burst of errors from `at`, of not being ready.
    #[serde(default, deserialize_with = "duration::optional")]
    pub length: Option<Duration>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Answers with an error.
    Error,
    /// No execution makes progress for `length`: by time, of all versions; by request, of the
    /// request's version.
    Stall,
    /// Closes the client's connection abruptly.
    Disconnect,
    /// Never answers.
    Hang,
    /// The model says that it is not ready, for `length` from `at` (by time only).
    NotReady,
    /// The model is reloaded: its statistics restart at zero.
    Reload,
    /// Answers without outputs.
    EmptyOutputs,
    /// Answers with one byte less than the shape of each output needs.
    WrongSize,
}

/// The errors that a request can be answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// `NOT_FOUND`: the model is not known.
    UnknownModel,
    /// `NOT_FOUND`: the model is known but not this version.
    UnknownVersion,
    /// `NOT_FOUND`: the model has no version that is ready.
    NoVersions,
    /// `UNAVAILABLE`: this version is not ready.
    VersionNotReady,
    /// `UNAVAILABLE`: the queue is full; not counted by the server's statistics.
    QueueFull,
    /// `UNAVAILABLE`: the request waited too long; counted as failed.
    QueueTimeout,
    /// `UNAVAILABLE`: the server is stopping.
    ShuttingDown,
    /// `UNAVAILABLE`: the gRPC front end is closed to new work (25.05 and later).
    FrontEndClosed,
    /// `UNAVAILABLE`: the server is not ready.
    ServerNotReady,
    /// `UNAVAILABLE`: the protocol is restricted to clients with a header.
    Restricted,
    /// `INTERNAL`: an exception in a Python model, after an execution; counted as failed.
    Execution,
    /// `INTERNAL`: an error object that a Python model returned, after an execution; the server's
    /// statistics count it as a success.
    ModelError,
    /// `INTERNAL`: the request could not be parsed.
    BadRequest,
    /// `INVALID_ARGUMENT`: the response is larger than gRPC allows.
    ResponseTooLarge,
}

impl FaultSpec {
    /// A fault that strikes every request.
    pub fn new(kind: FaultKind) -> Self {
        Self {
            kind,
            error: None,
            message: None,
            version: None,
            every: None,
            at_request: None,
            after_request: None,
            probability: None,
            at: None,
            length: None,
        }
    }

    /// An error for every request.
    pub fn error(error: ErrorKind) -> Self {
        Self {
            error: Some(error),
            ..Self::new(FaultKind::Error)
        }
    }

    /// Only every Nth request.
    #[must_use]
    pub fn every(mut self, requests: u64) -> Self {
        self.every = Some(requests);
        self
    }

    /// Only this request.
    #[must_use]
    pub fn at_request(mut self, number: u64) -> Self {
        self.at_request = Some(number);
        self
    }

    /// Only requests after this one.
    #[must_use]
    pub fn after_request(mut self, number: u64) -> Self {
        self.after_request = Some(number);
        self
    }

    /// Only with this probability.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability);
        self
    }

    /// Only requests of this version.
    #[must_use]
    pub fn version(mut self, number: u32) -> Self {
        self.version = Some(number);
        self
    }

    /// Only from this time after the server's start.
    #[must_use]
    pub fn at(mut self, since_start: Duration) -> Self {
        self.at = Some(since_start);
        self
    }

    /// For this long.
    #[must_use]
    pub fn length(mut self, length: Duration) -> Self {
        self.length = Some(length);
        self
    }

    /// With this text.
    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        self.message = Some(message.to_owned());
        self
    }
}
