//! Durations as people write them: `250us`, `20ms`, `1.5s`, `2m`.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

const EXPECTED: &str = "a duration such as \"250us\", \"20ms\", \"1.5s\", or \"2m\"";
/// Ten years: far above any use, far below what an `Instant` can be moved by.
const LONGEST_S: f64 = 10.0 * 365.0 * 24.0 * 3600.0;

/// Reads a duration; a bare `0` needs no unit.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().ok()?;
    let scale = match unit.trim() {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "" if number == 0.0 => 0.0,
        _ => return None,
    };
    let seconds = number * scale;
    (seconds <= LONGEST_S).then(|| Duration::from_nanos((seconds * 1e9).round() as u64))
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &EXPECTED))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Duration, E> {
        if number == 0 {
            return Ok(Duration::ZERO);
        }
        Err(E::invalid_value(Unexpected::Signed(number), &EXPECTED))
    }
}

/// For `#[serde(deserialize_with)]` on a `Duration`.
pub(crate) fn required<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    from.deserialize_any(DurationVisitor)
}

/// For `#[serde(deserialize_with)]` on an `Option<Duration>`; absence comes from `default`.
pub(crate) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    required(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        for (text, nanoseconds) in [
            ("0", Some(0)),
            ("250us", Some(250_000)),
            ("20 ms", Some(20_000_000)),
            ("1.5s", Some(1_500_000_000)),
            ("2m", Some(120_000_000_000)),
            ("7ns", Some(7)),
            ("20", None),
            ("ms", None),
            ("-1ms", None),
            ("1.2.3s", None),
            ("5 weeks", None),
            ("99999999999h", None),
        ] {
            let expected = nanoseconds.map(Duration::from_nanos);
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
