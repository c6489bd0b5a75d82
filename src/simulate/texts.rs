//! The status codes and texts that clients of Triton match on.

use tonic::{Code, Status};

use super::spec::{ErrorKind, TensorSpec};

/// A status code with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, text)
    }

    /// With the request's id in front, as most texts have it.
    #[must_use]
    pub(crate) fn of_request(mut self, id: &str) -> Self {
        self.text = format!("{}{}", request_prefix(id), self.text);
        self
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code, refusal.text)
    }
}

fn request_prefix(id: &str) -> String {
    let id = if id.is_empty() { "<id_unknown>" } else { id };
    format!("[request id: {id}] ")
}

pub(crate) const SERVER_EXITING: &str = "Server exiting";
pub(crate) const SERVER_NOT_READY: &str = "Server not ready";
const STOPPING: &str =
    "Server is stopping, scheduler for model has stopped accepting new inference requests";
const LARGEST_MESSAGE: u64 = 2_147_483_647;

pub(crate) fn unknown_model(model: &str) -> Refusal {
    Refusal::new(
        Code::NotFound,
        format!("Request for unknown model: '{model}' is not found"),
    )
}

pub(crate) fn unknown_version(model: &str, version: &str) -> Refusal {
    let text = format!("Request for unknown model: '{model}' version {version} is not found");
    Refusal::new(Code::NotFound, text)
}

pub(crate) fn no_versions(model: &str) -> Refusal {
    let text = format!("Request for unknown model: '{model}' has no available versions");
    Refusal::new(Code::NotFound, text)
}

pub(crate) fn version_not_ready(model: &str, version: &str) -> Refusal {
    let text =
        format!("Request for unknown model: '{model}' version {version} is not at ready state");
    Refusal::new(Code::Unavailable, text)
}

pub(crate) fn version_not_a_number(version: &str) -> Refusal {
    Refusal::invalid(format!(
        "failed to get model version from specified version string '{version}' (details: stol), \
         version should be an integral value > 0"
    ))
}

pub(crate) fn version_negative(version: &str) -> Refusal {
    Refusal::invalid(format!(
        "invalid model version specified '{version}' , version should be an integral value > 0"
    ))
}

pub(crate) fn queue_full() -> Refusal {
    Refusal::new(Code::Unavailable, "Exceeds maximum queue size")
}

pub(crate) fn queue_timeout() -> Refusal {
    Refusal::new(Code::Unavailable, "Request timeout expired")
}

pub(crate) fn stopping() -> Refusal {
    Refusal::new(Code::Unavailable, STOPPING)
}

pub(crate) fn server_not_ready() -> Refusal {
    Refusal::new(Code::Unavailable, SERVER_NOT_READY)
}

pub(crate) fn server_exiting() -> Refusal {
    Refusal::new(Code::Unavailable, SERVER_EXITING)
}

pub(crate) fn decoupled_over_unary() -> Refusal {
    Refusal::new(
        Code::Unimplemented,
        "ModelInfer RPC doesn't support models with decoupled transaction policy",
    )
}

pub(crate) fn response_too_large(bytes: u64) -> Refusal {
    Refusal::invalid(format!(
        "Response has byte size {bytes} which exceeds gRPC's byte size limit {LARGEST_MESSAGE}."
    ))
}

/// Whether an answer of this size can be sent at all.
pub(crate) fn fits_in_a_message(bytes: u64) -> bool {
    bytes <= LARGEST_MESSAGE
}

/// The answer that a fault asks for.
pub(crate) fn of_fault(
    kind: ErrorKind,
    message: Option<&str>,
    model: &str,
    version: &str,
    id: &str,
) -> Refusal {
    match kind {
        ErrorKind::UnknownModel => unknown_model(model),
        ErrorKind::UnknownVersion => unknown_version(model, version),
        ErrorKind::NoVersions => no_versions(model),
        ErrorKind::VersionNotReady => version_not_ready(model, version),
        ErrorKind::QueueFull => queue_full().of_request(id),
        ErrorKind::QueueTimeout => queue_timeout(),
        ErrorKind::ShuttingDown => stopping().of_request(id),
        ErrorKind::FrontEndClosed => Refusal::new(
            Code::Unavailable,
            "GRPC server is shutting down and has stopped accepting new requests.",
        ),
        ErrorKind::ServerNotReady => server_not_ready(),
        ErrorKind::Restricted => Refusal::new(
            Code::Unavailable,
            "This protocol is restricted, expecting header 'triton-grpc-protocol-key'",
        ),
        ErrorKind::Execution => Refusal::new(
            Code::Internal,
            format!(
                "Failed to process the request(s) for model '{model}_0_0', message: {}\n\nAt:\n  \
                 /models/{model}/{version}/model.py(1): execute\n",
                message.unwrap_or("RuntimeError: simulated failure"),
            ),
        ),
        ErrorKind::ModelError => {
            Refusal::new(Code::Internal, message.unwrap_or("simulated model error"))
        }
        ErrorKind::BadRequest => Refusal::new(Code::Internal, "Unable to parse request"),
        ErrorKind::ResponseTooLarge => response_too_large(LARGEST_MESSAGE + 1),
    }
}

/// The wrong-number-of-inputs text, which lists what came and what is missing.
pub(crate) fn input_count(model: &str, specs: &[TensorSpec], got: &[&str]) -> Refusal {
    let required = specs.iter().filter(|spec| !spec.optional).count();
    let missing: Vec<&str> = specs
        .iter()
        .filter(|spec| !spec.optional && !got.contains(&spec.name.as_str()))
        .map(|spec| spec.name.as_str())
        .collect();
    let expected = if required == specs.len() {
        format!("expected {required} inputs")
    } else {
        format!(
            "expected number of inputs between {required} and {}",
            specs.len()
        )
    };
    Refusal::invalid(format!(
        "{expected} but got {} inputs for model '{model}'. Got input(s) {}, but missing required \
         input(s) {}. Please provide all required input(s).",
        got.len(),
        list(got),
        list(&missing),
    ))
}

/// `['A','B']`; an empty list is the lone `]` that Triton prints.
fn list(names: &[&str]) -> String {
    if names.is_empty() {
        return "]".to_owned();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(","))
}

/// `[1,3,640]`.
pub(crate) fn shape(dims: &[i64]) -> String {
    let values: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("[{}]", values.join(","))
}

/// The shape text; the note follows only where a batch dimension is wanted.
pub(crate) fn shape_mismatch(
    input: &str,
    model: &str,
    expected: &[i64],
    got: &[i64],
    batching: bool,
) -> Refusal {
    let note = if batching {
        "NOTE: Setting a non-zero max_batch_size means that a batch dimension comes first in \
         every input shape."
    } else {
        ""
    };
    Refusal::invalid(format!(
        "unexpected shape for input '{input}' for model '{model}'. Expected {}, got {}. {note}",
        shape(expected),
        shape(got),
    ))
}
