//! Numbers and words of cells.

use crate::data::{ErrorClass, ErrorCounts};

/// At most `decimals` decimals, without trailing zeros.
pub(super) fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    // A value that rounds to zero from below.
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Thousandths as a decimal number, exactly.
pub(super) fn milli(value: u64) -> String {
    let (whole, rest) = (value / 1000, value % 1000);
    if rest == 0 {
        whole.to_string()
    } else {
        format!("{whole}.{rest:03}")
            .trim_end_matches('0')
            .to_owned()
    }
}

/// Reads what [`milli`] wrote; none where it is not a number of thousandths.
pub(super) fn parse_milli(text: &str) -> Option<u64> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    if rest.len() > 3 || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rest: u64 = format!("{rest:0<3}").parse().ok()?;
    if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1000)?.checked_add(rest)
}

/// Errors by class, `queue_full:3;timeout:1`.
pub(super) fn classes(errors: &ErrorCounts) -> String {
    errors
        .0
        .iter()
        .map(|(class, count)| format!("{}:{count}", class_name(*class)))
        .collect::<Vec<_>>()
        .join(";")
}

/// The name of a class in files, as serde writes it.
fn class_name(class: ErrorClass) -> String {
    match serde_json::to_value(class) {
        Ok(serde_json::Value::String(name)) => name,
        _ => "other".to_owned(),
    }
}

/// Reads what [`classes`] wrote. A class that this version does not know counts as other.
pub(super) fn parse_classes(text: &str) -> Option<ErrorCounts> {
    let mut errors = ErrorCounts::default();
    for part in text.split(';').filter(|part| !part.is_empty()) {
        let (name, count) = part.split_once(':')?;
        let class = serde_json::from_value(serde_json::Value::String(name.trim().to_owned()))
            .unwrap_or(ErrorClass::Other);
        let count: u64 = count.trim().parse().ok()?;
        let entry = errors.0.entry(class).or_default();
        *entry = entry.checked_add(count)?;
    }
    Some(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_lose_only_trailing_zeros() {
        for (value, expected) in [
            (0.0, "0"),
            (100.0, "100"),
            (1.5, "1.5"),
            (0.0004, "0"),
            (-0.0001, "0"),
            (1234.5678, "1234.568"),
        ] {
            assert_eq!(decimal(value, 3), expected);
        }
    }

    #[test]
    fn thousandths_round_trip() {
        for value in [0, 1, 10, 999, 1000, 1500, 12_345_670] {
            assert_eq!(parse_milli(&milli(value)), Some(value));
        }
        for text in ["", ".5", "-1", "1.0005", "1e3", "inf", "1.+5"] {
            assert_eq!(parse_milli(text), None, "{text}");
        }
    }

    #[test]
    fn error_classes_keep_their_counts() {
        let errors = parse_classes("timeout:2;queue_full:3;from_the_future:4").expect("read");
        assert_eq!(errors.total(), 9);
        assert_eq!(errors.0.get(&ErrorClass::Other), Some(&4));
        assert_eq!(classes(&errors), "timeout:2;queue_full:3;other:4");
        assert!(parse_classes("timeout").is_none());
        assert!(parse_classes("timeout:-1").is_none());
    }
}
