use tonic::Code;

use crate::data::ErrorClass;

/// The class of a failed call, from its status code and its text.
///
/// The code alone does not tell: `UNAVAILABLE` covers a full queue, a queue timeout, a shutdown,
/// a model that is not ready, a restricted protocol and a broken transport. So the start of the
/// text decides wherever Triton has its own words, and the code decides the rest.
pub fn classify(code: Code, message: &str) -> ErrorClass {
    let text = strip_prefixes(message);
    KNOWN
        .iter()
        .find(|known| known.code == code && text.starts_with(known.start))
        .map_or_else(|| by_code(code, text), |known| known.class)
}

/// A text of Triton, tonic, or another gRPC implementation, known by its start.
struct Known {
    code: Code,
    start: &'static str,
    class: ErrorClass,
}

const fn known(code: Code, start: &'static str, class: ErrorClass) -> Known {
    Known { code, start, class }
}

const KNOWN: &[Known] = &[
    known(
        Code::NotFound,
        "Unable to find shared memory region",
        ErrorClass::InvalidRequest,
    ),
    known(
        Code::InvalidArgument,
        "requested model",
        ErrorClass::ModelUnavailable,
    ),
    known(
        Code::InvalidArgument,
        "Response has byte size",
        ErrorClass::MessageTooLarge,
    ),
    known(
        Code::Unavailable,
        "Request for unknown model",
        ErrorClass::ModelUnavailable,
    ),
    known(
        Code::Unavailable,
        "Exceeds maximum queue size",
        ErrorClass::QueueFull,
    ),
    known(
        Code::Unavailable,
        "Request timeout expired",
        ErrorClass::QueueTimeout,
    ),
    known(
        Code::Unavailable,
        "timeout of the corresponding sequence",
        ErrorClass::QueueTimeout,
    ),
    known(
        Code::Unavailable,
        "Server is stopping",
        ErrorClass::ServerUnavailable,
    ),
    known(
        Code::Unavailable,
        "Server exiting",
        ErrorClass::ServerUnavailable,
    ),
    known(
        Code::Unavailable,
        "Server not ready",
        ErrorClass::ServerUnavailable,
    ),
    known(
        Code::Unavailable,
        "GRPC server is shutting down",
        ErrorClass::ServerUnavailable,
    ),
    known(
        Code::Unavailable,
        "This protocol is restricted",
        ErrorClass::Unauthorized,
    ),
    // tonic's words for an HTTP error of a proxy that does not speak gRPC.
    known(
        Code::Unavailable,
        "grpc-status header missing, mapped from HTTP status code 429",
        ErrorClass::RateLimited,
    ),
    known(
        Code::Unavailable,
        "grpc-status header missing",
        ErrorClass::ServerUnavailable,
    ),
    known(
        Code::Unknown,
        "grpc-status header missing",
        ErrorClass::Protocol,
    ),
    known(
        Code::Internal,
        "grpc-status header missing",
        ErrorClass::Protocol,
    ),
    known(
        Code::Unimplemented,
        "ModelInfer RPC doesn't support",
        ErrorClass::InvalidRequest,
    ),
    known(
        Code::Internal,
        "Unable to parse request",
        ErrorClass::InvalidRequest,
    ),
    known(
        Code::Internal,
        "incomplete string data for inference input",
        ErrorClass::InvalidRequest,
    ),
    // Transport failures that tonic reports under other codes than UNAVAILABLE.
    known(Code::Internal, "h2 protocol error", ErrorClass::Protocol),
    known(Code::Internal, "protocol error", ErrorClass::Protocol),
    known(
        Code::Internal,
        "failed to decode Protobuf message",
        ErrorClass::Protocol,
    ),
    known(Code::Unknown, "transport error", ErrorClass::Connection),
    known(Code::Unknown, "connection error", ErrorClass::Connection),
    known(Code::Unknown, "h2 protocol error", ErrorClass::Connection),
    known(
        Code::Unknown,
        "error reading a body from connection",
        ErrorClass::Connection,
    ),
    known(Code::Cancelled, "Timeout expired", ErrorClass::Timeout),
    // Limits of gRPC libraries, on either side.
    known(
        Code::OutOfRange,
        "Error, decoded message length too large",
        ErrorClass::MessageTooLarge,
    ),
    known(
        Code::OutOfRange,
        "Error, encoded message length too large",
        ErrorClass::MessageTooLarge,
    ),
    known(
        Code::ResourceExhausted,
        "Received message larger than max",
        ErrorClass::MessageTooLarge,
    ),
    known(
        Code::ResourceExhausted,
        "Sent message larger than max",
        ErrorClass::MessageTooLarge,
    ),
    known(
        Code::ResourceExhausted,
        "Error, encoded message length too large",
        ErrorClass::MessageTooLarge,
    ),
    known(
        Code::ResourceExhausted,
        "grpc: received message larger than max",
        ErrorClass::MessageTooLarge,
    ),
];

/// The class of a code whose text says nothing more.
fn by_code(code: Code, text: &str) -> ErrorClass {
    match code {
        Code::NotFound => ErrorClass::ModelUnavailable,
        Code::Unavailable => ErrorClass::Connection,
        Code::DeadlineExceeded => ErrorClass::Timeout,
        Code::ResourceExhausted => ErrorClass::RateLimited,
        Code::Unauthenticated | Code::PermissionDenied => ErrorClass::Unauthorized,
        // An unknown method has an empty text; with one, it is a feature that a model lacks.
        Code::Unimplemented if text.is_empty() || text.starts_with("grpc-status") => {
            ErrorClass::Protocol
        }
        Code::InvalidArgument | Code::Unimplemented => ErrorClass::InvalidRequest,
        // Triton's codes for what a model or backend raised.
        Code::Internal | Code::Unknown => ErrorClass::Execution,
        Code::Ok
        | Code::Cancelled
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::DataLoss => ErrorClass::Other,
    }
}

/// Takes off `in ensemble '...', ` (any number of times) and `[request id: ...] `.
fn strip_prefixes(message: &str) -> &str {
    let mut rest = message;
    while let Some(after) = strip_ensemble(rest) {
        rest = after;
    }
    rest.strip_prefix("[request id: ")
        .and_then(|inner| inner.split_once("] "))
        .map_or(rest, |(_, after)| after)
}

fn strip_ensemble(text: &str) -> Option<&str> {
    let (_, after) = text.strip_prefix("in ensemble '")?.split_once('\'')?;
    after.strip_prefix(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_known_situation_has_its_class() {
        use ErrorClass as E;
        let table: &[(Code, &str, E)] = &[
            (
                Code::NotFound,
                "Request for unknown model: 'm' is not found",
                E::ModelUnavailable,
            ),
            (
                Code::NotFound,
                "Request for unknown model: 'm' version 9 is not found",
                E::ModelUnavailable,
            ),
            (
                Code::InvalidArgument,
                "failed to get model version from specified version string 'x' (details: stol), version should be an integral value > 0",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "invalid model version specified '-1' , version should be an integral value > 0",
                E::InvalidRequest,
            ),
            (
                Code::NotFound,
                "Request for unknown model: 'm' has no available versions",
                E::ModelUnavailable,
            ),
            (
                Code::Unavailable,
                "Request for unknown model: 'm' version 1 is not at ready state",
                E::ModelUnavailable,
            ),
            (
                Code::InvalidArgument,
                "requested model 'm' is not available",
                E::ModelUnavailable,
            ),
            (
                Code::InvalidArgument,
                "requested model version is not available for model 'm'",
                E::ModelUnavailable,
            ),
            (
                Code::InvalidArgument,
                "unexpected inference input 'X' for model 'm'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['A'], but missing required input(s) ['B']. Please provide all required input(s).",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 4] expected number of inputs between 1 and 3 but got 4 inputs for model 'm'. Got input(s) ['A'], but missing required input(s) ]. Please provide all required input(s).",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 4] expected 2 inputs but got 1 inputs for model 'm'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 4] input 'A' already exists in request",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "unable to find data for input tensor 'A' for model 'm' in request.",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "contents field must not be specified when using raw_input_contents for 'A' for model 'm'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "unexpected explicit tensor data for input tensor 'A' for model 'm' of type 'INT32', expected datatype 'FP32'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "unexpected inference output 'Y' for model 'm'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] unexpected shape for input 'A' for model 'm'. Expected [-1,16], got [1,15]. NOTE: Setting a non-zero max_batch_size",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] input 'A' has no shape but model requires batch dimension for 'm'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] All input dimensions should be specified for input 'A' for model 'm', got [1,-1]",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] input 'A' batch size does not match other inputs for 'm'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] inference request batch-size must be <= 8 for 'm'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] inference input 'A' data-type is 'FP32', but model 'm' expects 'INT32'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] inference input data-type is 'FP32', model expects 'INT32' for 'm'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] input byte size mismatch for input 'A' for model 'm'. Expected 64, got 60",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] incomplete string length indicator for inference input 'A' for model 'm', expecting 4 bytes but only 2 bytes available.",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] unexpected number of string elements 3 for inference input 'A' for model 'm', expecting 2",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "[request id: 1] expected 2 string elements for inference input 'A' for model 'm', got 1",
                E::InvalidRequest,
            ),
            (
                Code::Internal,
                "incomplete string data for inference input 'A', expecting string of length 9 but only 2 bytes available",
                E::InvalidRequest,
            ),
            (
                Code::Unavailable,
                "[request id: <id_unknown>] Exceeds maximum queue size",
                E::QueueFull,
            ),
            (
                Code::Unavailable,
                "in ensemble 'e', [request id: x] Exceeds maximum queue size",
                E::QueueFull,
            ),
            (
                Code::Unavailable,
                "in ensemble 'e', in ensemble 'f', [request id: x] Exceeds maximum queue size",
                E::QueueFull,
            ),
            (
                Code::Unavailable,
                "Request timeout expired",
                E::QueueTimeout,
            ),
            (
                Code::Unavailable,
                "timeout of the corresponding sequence has been expired",
                E::QueueTimeout,
            ),
            (
                Code::Unimplemented,
                "ModelInfer RPC doesn't support models with decoupled transaction policy",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "inference request to model 'm' must specify a non-zero or non-empty correlation ID",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "inference request for sequence 1 to model 'm' must specify the START flag on the first request of the sequence",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher",
                E::InvalidRequest,
            ),
            (Code::Internal, "the model's own words", E::Execution),
            (
                Code::Internal,
                "Failed to process the request(s) for model 'm_0', message: ValueError: no\n\nAt:\n  model.py(3): execute",
                E::Execution,
            ),
            (
                Code::NotFound,
                "Unable to find shared memory region: 'r'",
                E::InvalidRequest,
            ),
            (
                Code::InvalidArgument,
                "'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter for tensor 't'",
                E::InvalidRequest,
            ),
            (
                Code::Unavailable,
                "[request id: 7] Server is stopping, scheduler for model has stopped accepting new inference requests",
                E::ServerUnavailable,
            ),
            (Code::Unavailable, "Server exiting", E::ServerUnavailable),
            (Code::Unavailable, "Server not ready", E::ServerUnavailable),
            (
                Code::Unavailable,
                "GRPC server is shutting down and has stopped accepting new requests.",
                E::ServerUnavailable,
            ),
            (
                Code::Unavailable,
                "This protocol is restricted, expecting header 'triton-grpc-protocol-k'",
                E::Unauthorized,
            ),
            (Code::DeadlineExceeded, "Deadline Exceeded", E::Timeout),
            (Code::Cancelled, "Timeout expired", E::Timeout),
            (Code::Cancelled, "CANCELLED", E::Other),
            (Code::Internal, "Unable to parse request", E::InvalidRequest),
            (Code::Unimplemented, "", E::Protocol),
            (
                Code::InvalidArgument,
                "Response has byte size 3000000000 which exceeds gRPC's byte size limit 2147483647.",
                E::MessageTooLarge,
            ),
            (
                Code::OutOfRange,
                "Error, decoded message length too large: found 5 bytes, the limit is: 4 bytes",
                E::MessageTooLarge,
            ),
            (
                Code::ResourceExhausted,
                "Received message larger than max (5 vs. 4)",
                E::MessageTooLarge,
            ),
            (Code::ResourceExhausted, "quota", E::RateLimited),
            (
                Code::Unavailable,
                "grpc-status header missing, mapped from HTTP status code 429",
                E::RateLimited,
            ),
            (
                Code::Unavailable,
                "grpc-status header missing, mapped from HTTP status code 502",
                E::ServerUnavailable,
            ),
            (Code::Unauthenticated, "token expired", E::Unauthorized),
            (Code::PermissionDenied, "", E::Unauthorized),
            (Code::Unavailable, "tcp connect error", E::Connection),
            (Code::Unknown, "transport error", E::Connection),
            (
                Code::Internal,
                "h2 protocol error: http2 error",
                E::Protocol,
            ),
            (Code::Aborted, "x", E::Other),
        ];
        for (code, message, class) in table {
            assert_eq!(classify(*code, message), *class, "{code:?} {message}");
        }
    }

    #[test]
    fn a_cut_prefix_is_left_as_it_is() {
        for text in ["in ensemble 'e", "[request id: 4", "in ensemble 'e' x", ""] {
            assert_eq!(strip_prefixes(text), text);
        }
    }

    proptest! {
        #[test]
        fn prefixes_never_change_the_class(
            ensembles in proptest::collection::vec("[a-z_]{1,8}", 0..4),
            id in "[a-zA-Z0-9<>_]{0,8}",
        ) {
            use std::fmt::Write as _;
            let mut message = String::new();
            for name in &ensembles {
                let _ = write!(message, "in ensemble '{name}', ");
            }
            let _ = write!(message, "[request id: {id}] Exceeds maximum queue size");
            prop_assert_eq!(classify(Code::Unavailable, &message), ErrorClass::QueueFull);
        }

        #[test]
        fn no_text_breaks_it(code in 0..17, message in ".{0,64}") {
            let _ = classify(Code::from_i32(code), &message);
        }
    }
}
