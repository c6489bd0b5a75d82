use http::{HeaderMap, StatusCode};
use tonic::Code;

use super::classify::classify;
use crate::data::ErrorClass;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self {
            class: ErrorClass::Protocol,
            message: message.into(),
        }
    }

    /// A broken connection, told from the outermost to the innermost cause.
    pub(crate) fn connection(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            class: ErrorClass::Connection,
            message: causes(error),
        }
    }
}

/// The outcome that trailers (or headers that are also trailers) tell; none where they tell none.
///
/// Written by hand because a malformed `grpc-status-details-bin` makes tonic's reader panic.
pub(crate) fn from_trailers(headers: &HeaderMap) -> Option<Result<(), Failure>> {
    let status = headers.get("grpc-status")?;
    if status.as_bytes() == b"0" {
        return Some(Ok(()));
    }
    let code = status
        .to_str()
        .ok()
        .and_then(|text| text.parse::<i32>().ok())
        .map_or(Code::Unknown, Code::from_i32);
    let message = headers
        .get("grpc-message")
        .map(|value| percent_decode(value.as_bytes()))
        .unwrap_or_default();
    let class = classify(code, &message);
    let message = if message.is_empty() {
        format!("gRPC status {}", code.description())
    } else {
        message
    };
    Some(Err(Failure { class, message }))
}

/// What an HTTP status other than 200 means where no gRPC status says more: something in front
/// of the server answered.
pub(crate) fn from_http(status: StatusCode) -> Failure {
    let class = match status.as_u16() {
        401 | 403 => ErrorClass::Unauthorized,
        413 => ErrorClass::MessageTooLarge,
        429 => ErrorClass::RateLimited,
        502..=504 => ErrorClass::ServerUnavailable,
        _ => ErrorClass::Protocol,
    };
    Failure {
        class,
        message: format!("HTTP status {status} without a gRPC status"),
    }
}

/// Undoes the percent-encoding of `grpc-message`; what is no valid escape stays as it is.
fn percent_decode(bytes: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        let escaped = match after {
            [high, low, ..] if *byte == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            decoded.push(high << 4 | low);
            rest = after.get(2..).unwrap_or_default();
        } else {
            decoded.push(*byte);
            rest = after;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// A message that is safe to show: one line, no control characters, not longer than 400
/// characters.
pub(crate) fn sanitize(message: &str) -> String {
    const LONGEST: usize = 400;
    let mut clean = String::new();
    let mut length = 0;
    for word in message.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if length > 0 {
            clean.push(' ');
            length += 1;
        }
        for c in word.chars() {
            if length >= LONGEST {
                clean.push('\u{2026}');
                return clean;
            }
            clean.push(c);
            length += 1;
        }
    }
    clean
}

/// An error with its causes, each said once.
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn trailers(pairs: &[(&'static str, &'static [u8])]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    http::HeaderName::from_static(name),
                    HeaderValue::from_bytes(value).unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn a_status_is_read_with_its_message() {
        assert_eq!(from_trailers(&trailers(&[])), None);
        assert_eq!(
            from_trailers(&trailers(&[("grpc-status", b"0")])),
            Some(Ok(()))
        );
        let failure = from_trailers(&trailers(&[
            ("grpc-status", b"14"),
            ("grpc-message", b"Exceeds maximum%20queue size %zz %"),
            ("grpc-status-details-bin", b"!!not base64!!"),
        ]));
        assert_eq!(
            failure,
            Some(Err(Failure {
                class: ErrorClass::QueueFull,
                message: "Exceeds maximum queue size %zz %".to_owned()
            }))
        );
    }

    #[test]
    fn a_status_that_is_no_number_is_an_error() {
        for status in [&b""[..], b"ok", b"00x", b"-1", b"99999999999"] {
            let headers = trailers(&[("grpc-status", status)]);
            assert!(
                matches!(from_trailers(&headers), Some(Err(_))),
                "{status:?}"
            );
        }
    }

    #[test]
    fn decoded_bytes_need_not_be_text() {
        assert_eq!(percent_decode(b"%e2%82%ac"), "\u{20ac}");
        assert_eq!(percent_decode(b"%ff"), "\u{fffd}");
    }

    #[test]
    fn shown_messages_are_one_clean_bounded_line() {
        assert_eq!(sanitize("a\n\n\tb \u{1b}[31mc\u{0}"), "a b [31mc");
        let long = sanitize(&"x".repeat(5000));
        assert_eq!(long.chars().count(), 401);
        assert!(long.ends_with('\u{2026}'));
    }

    #[test]
    fn proxies_are_told_apart() {
        for (status, class) in [
            (401, ErrorClass::Unauthorized),
            (429, ErrorClass::RateLimited),
            (503, ErrorClass::ServerUnavailable),
            (404, ErrorClass::Protocol),
        ] {
            assert_eq!(
                from_http(StatusCode::from_u16(status).unwrap()).class,
                class
            );
        }
    }
}
