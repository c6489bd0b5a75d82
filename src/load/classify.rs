use tonic::Code;

use crate::data::ErrorClass;

/// How a status becomes a class: the one place to change the source of that knowledge.
pub(crate) fn classify(code: Code, message: &str) -> ErrorClass {
    CLASSIFY(code, message)
}

const CLASSIFY: fn(Code, &str) -> ErrorClass = by_code;

/// By code, with the texts of Triton that tell the meanings of `UNAVAILABLE` apart.
fn by_code(code: Code, message: &str) -> ErrorClass {
    match code {
        Code::Unavailable if message.contains("Exceeds maximum queue size") => {
            ErrorClass::QueueFull
        }
        Code::Unavailable if message.contains("Request timeout expired") => {
            ErrorClass::QueueTimeout
        }
        Code::Unavailable if message.contains("not at ready state") => ErrorClass::ModelUnavailable,
        Code::Unavailable => ErrorClass::ServerUnavailable,
        Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented => {
            ErrorClass::InvalidRequest
        }
        Code::NotFound => ErrorClass::ModelUnavailable,
        Code::DeadlineExceeded => ErrorClass::Timeout,
        Code::Unauthenticated | Code::PermissionDenied => ErrorClass::Unauthorized,
        Code::ResourceExhausted if message.contains("larger than max") => {
            ErrorClass::MessageTooLarge
        }
        Code::ResourceExhausted => ErrorClass::RateLimited,
        Code::Internal | Code::Aborted | Code::DataLoss => ErrorClass::Execution,
        _ => ErrorClass::Other,
    }
}
