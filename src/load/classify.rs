use tonic::Code;

use crate::data::ErrorClass;

/// How a status becomes a class.
pub(crate) fn classify(code: Code, message: &str) -> ErrorClass {
    crate::triton::classify(code, message)
}
