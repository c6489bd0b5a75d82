//! Numbers for people. Plain ASCII throughout, so that every terminal and log can show them.

use crate::data::{Direction, Metric};

/// What stands where a value is not known.
pub const UNKNOWN: &str = "-";

/// A latency given in microseconds, in the unit that reads best: `812 us`, `4.31 ms`, `1.20 s`.
pub fn latency(micros: f64) -> String {
    if !micros.is_finite() {
        return UNKNOWN.to_owned();
    }
    // The limits lie where three digits would round up to the next unit's 1.00.
    let size = micros.abs();
    if size < 999.5 {
        format!("{} us", three_digits(micros))
    } else if size < 999_500.0 {
        format!("{} ms", three_digits(micros / 1e3))
    } else {
        format!("{} s", three_digits(micros / 1e6))
    }
}

/// A difference of latencies given in microseconds, always with its sign: `+410 us`.
pub fn latency_change(micros: f64) -> String {
    let text = latency(micros);
    if micros > 0.0 && micros.is_finite() {
        format!("+{text}")
    } else {
        text
    }
}

/// Inferences per second to four digits: `2 504 infer/s`, `31.2 infer/s`.
pub fn throughput(per_second: f64) -> String {
    number_with(per_second, "infer/s", " ")
}

/// The value of a metric in its unit for people.
pub fn value(metric: Metric, value: f64) -> String {
    match metric.unit() {
        "infer/s" => throughput(value),
        "fraction" => percent(value),
        _ => latency(value),
    }
}

/// The same, short enough for a narrow column: throughput as `2 504/s`.
pub fn short_value(metric: Metric, amount: f64) -> String {
    match metric.unit() {
        "infer/s" => number_with(amount, "/s", ""),
        _ => value(metric, amount),
    }
}

/// A relative change with its sign, one decimal: `+10.4 %`, `-3.1 %`; what rounds to nothing is
/// `0.0 %`.
pub fn change(fraction: f64) -> String {
    if fraction.is_nan() {
        return UNKNOWN.to_owned();
    }
    if fraction.is_infinite() {
        return if fraction > 0.0 { "+inf" } else { "-inf" }.to_owned();
    }
    let percent = fraction * 100.0;
    let digits = if percent.abs() < 99.95 {
        format!("{:.1}", percent.abs())
    } else {
        grouped(percent.abs())
    };
    let sign = match percent {
        _ if digits == "0.0" => "",
        _ if percent < 0.0 => "-",
        _ => "+",
    };
    format!("{sign}{digits} %")
}

/// A threshold with its sign, as written: `-5 %`, `+12.5 %`.
pub fn threshold(fraction: f64) -> String {
    if !fraction.is_finite() {
        return UNKNOWN.to_owned();
    }
    let percent = trimmed(fraction * 100.0, 4);
    if fraction > 0.0 {
        format!("+{percent} %")
    } else {
        format!("{percent} %")
    }
}

/// An absolute limit with the side that is accepted: `<= 25.0 ms`, `>= 2 000 infer/s`.
pub fn limit(metric: Metric, bound: f64) -> String {
    let sign = match metric.direction() {
        Direction::HigherIsBetter => ">=",
        Direction::LowerIsBetter => "<=",
    };
    format!("{sign} {}", value(metric, bound))
}

/// An interval of changes, `[-3.4 %, -2.8 %]`; an unbounded end is `-inf` or `+inf`.
pub fn interval(ends: [Option<f64>; 2]) -> String {
    let [low, high] = ends;
    if low.is_none() && high.is_none() {
        return UNKNOWN.to_owned();
    }
    let low = low.map_or_else(|| "-inf".to_owned(), change);
    let high = high.map_or_else(|| "+inf".to_owned(), change);
    format!("[{low}, {high}]")
}

/// A share without sign: `3.1 %`, `0.02 %`.
pub fn percent(fraction: f64) -> String {
    if !fraction.is_finite() {
        return UNKNOWN.to_owned();
    }
    let percent = fraction * 100.0;
    let size = percent.abs();
    let decimals = match size {
        _ if size >= 99.95 => 0,
        _ if size >= 0.95 || size == 0.0 => 1,
        _ => 2,
    };
    format!("{} %", fixed(percent, decimals))
}

/// A whole number in groups of three: `12 345`.
pub fn count(number: u64) -> String {
    group(&number.to_string())
}

/// A count with its noun in the singular or plural: `1 scenario`, `3 scenarios`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// A short length of time given in milliseconds: `20 ms`, `1.5 ms`, `2 s`.
pub fn duration_ms(milliseconds: f64) -> String {
    if milliseconds >= 1000.0 {
        format!("{} s", trimmed(milliseconds / 1e3, 3))
    } else {
        format!("{} ms", trimmed(milliseconds, 3))
    }
}

/// A length of time given in seconds: `0.4 s`, `42 s`, `3 min 20 s`, `1 h 05 min`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return UNKNOWN.to_owned();
    }
    if seconds < 9.95 {
        return format!("{:.1} s", seconds.abs());
    }
    let whole = seconds.round() as u64;
    match whole {
        0..=119 => format!("{whole} s"),
        120..=3599 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => {
            let minutes = whole / 60 + u64::from(whole % 60 >= 30);
            format!("{} h {:02} min", minutes / 60, minutes % 60)
        }
    }
}

/// A bare number, at most `decimals` decimals, trailing zeros dropped.
pub(crate) fn trimmed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Requests per second to three digits: `174 req/s`, `0.33 req/s`.
pub fn request_rate(per_second: f64) -> String {
    format!("{} req/s", three_digits(per_second))
}

fn number_with(number: f64, unit: &str, gap: &str) -> String {
    if number.is_finite() {
        format!("{}{gap}{unit}", four_digits(number))
    } else {
        UNKNOWN.to_owned()
    }
}

/// Three significant digits where there are decimals, whole numbers above.
fn three_digits(number: f64) -> String {
    let size = number.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if size < 9.995 => fixed(number, 2),
        _ if size < 99.95 => fixed(number, 1),
        _ => grouped(number),
    }
}

/// Four significant digits, grouped.
fn four_digits(number: f64) -> String {
    let size = number.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if size < 9.9995 => fixed(number, 3),
        _ if size < 99.995 => fixed(number, 2),
        _ if size < 999.95 => fixed(number, 1),
        _ => {
            let step = 10f64.powf((size.log10().floor() - 3.0).max(0.0));
            grouped((number / step).round() * step)
        }
    }
}

/// A fixed number of decimals, and no sign before a zero.
fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", number.abs());
    let zero = text.chars().all(|c| matches!(c, '0' | '.'));
    if number < 0.0 && !zero {
        format!("-{text}")
    } else {
        text
    }
}

fn grouped(number: f64) -> String {
    let text = format!("{:.0}", number.abs());
    let sign = if number < 0.0 && text != "0" { "-" } else { "" };
    format!("{sign}{}", group(&text))
}

fn group(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// The number of a percentile: `99`, `99.9`.
pub fn quantile(quantile: f64) -> String {
    let text = format!("{:.3}", quantile * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn latencies_change_unit_without_a_seam() {
        for (micros, text) in [
            (0.0, "0 us"),
            (0.4, "0.40 us"),
            (8.126, "8.13 us"),
            (81.2, "81.2 us"),
            (99.96, "100 us"),
            (812.4, "812 us"),
            (999.4, "999 us"),
            (999.6, "1.00 ms"),
            (4312.0, "4.31 ms"),
            (43_120.0, "43.1 ms"),
            (999_499.0, "999 ms"),
            (999_600.0, "1.00 s"),
            (1_200_000.0, "1.20 s"),
            (3_600_000_000.0, "3 600 s"),
            (-410.0, "-410 us"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(latency(micros), text, "{micros}");
        }
        assert_eq!(latency_change(410.0), "+410 us");
        assert_eq!(latency_change(-410.0), "-410 us");
        assert_eq!(latency_change(0.0), "0 us");
    }

    #[test]
    fn throughput_has_four_digits() {
        for (rate, text) in [
            (0.0, "0 infer/s"),
            (0.5, "0.500 infer/s"),
            (31.234, "31.23 infer/s"),
            (250.44, "250.4 infer/s"),
            (999.96, "1 000 infer/s"),
            (2503.6, "2 504 infer/s"),
            (12_345.6, "12 350 infer/s"),
            (1_234_567.0, "1 235 000 infer/s"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(throughput(rate), text, "{rate}");
        }
        assert_eq!(short_value(Metric::Throughput, 2504.0), "2 504/s");
        assert_eq!(short_value(Metric::P99, 4310.0), "4.31 ms");
        assert_eq!(value(Metric::ErrorRate, 0.0002), "0.02 %");
    }

    #[test]
    fn changes_carry_their_sign_and_never_minus_zero() {
        for (fraction, text) in [
            (0.104, "+10.4 %"),
            (-0.031, "-3.1 %"),
            (0.0, "0.0 %"),
            (-0.0, "0.0 %"),
            (-0.0004, "0.0 %"),
            (0.0004, "0.0 %"),
            (0.9996, "+100 %"),
            (12.4, "+1 240 %"),
            (f64::NAN, "-"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(change(fraction), text, "{fraction}");
        }
    }

    #[test]
    fn thresholds_limits_and_intervals() {
        assert_eq!(threshold(-0.05), "-5 %");
        assert_eq!(threshold(0.125), "+12.5 %");
        assert_eq!(threshold(0.0), "0 %");
        assert_eq!(threshold(0.10), "+10 %");
        assert_eq!(limit(Metric::P99, 25_000.0), "<= 25.0 ms");
        assert_eq!(limit(Metric::Throughput, 2000.0), ">= 2 000 infer/s");
        assert_eq!(interval([Some(-0.034), Some(-0.028)]), "[-3.4 %, -2.8 %]");
        assert_eq!(interval([None, Some(0.2)]), "[-inf, +20.0 %]");
        assert_eq!(interval([Some(0.2), None]), "[+20.0 %, +inf]");
        assert_eq!(interval([None, None]), "-");
    }

    #[test]
    fn shares_counts_and_durations() {
        assert_eq!(percent(0.031), "3.1 %");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(percent(0.0002), "0.02 %");
        assert_eq!(percent(-0.000_001), "0.00 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(999), "999");
        assert_eq!(counted(1, "scenario"), "1 scenario");
        assert_eq!(counted(0, "scenario"), "0 scenarios");
        for (seconds, text) in [
            (0.42, "0.4 s"),
            (42.4, "42 s"),
            (119.6, "2 min 00 s"),
            (200.0, "3 min 20 s"),
            (3599.6, "1 h 00 min"),
            (3900.0, "1 h 05 min"),
            (-1.0, "-"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }

    proptest! {
        #[test]
        fn no_number_breaks_them(number in proptest::num::f64::ANY) {
            for text in [
                latency(number),
                throughput(number),
                change(number),
                threshold(number),
                percent(number),
                duration(number),
            ] {
                prop_assert!(text.is_ascii() && !text.is_empty());
                prop_assert!(text.chars().any(|c| ('1'..='9').contains(&c)) || !text.starts_with("-0"));
            }
        }
    }
}
