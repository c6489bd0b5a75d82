//! Readers of single TOML values, each with its own words for what was expected.

use std::time::Duration;

use toml::de::{DeInteger, DeValue};

use super::error::{Problem, nearest, shown};
use super::layer::ModelControl;
use super::text;
use crate::data::{Auto, Fraction, Mode, OnInconclusive, OnMissing, Policy, Rule, Tls};

/// The largest rise or gain that a file may name, 10 000 %; beyond it a typing error is certain.
pub const LARGEST_RISE: f64 = 100.0;

/// The type of a value, with its article.
pub fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The error for a value of the wrong type.
pub fn wrong(value: &DeValue<'_>, expected: impl Into<String>) -> Problem {
    Problem::WrongType {
        found: kind(value),
        expected: expected.into(),
    }
}

/// A text as it stands.
pub fn text<'a>(value: &'a DeValue<'_>, expected: &str) -> Result<&'a str, Problem> {
    value.as_str().ok_or_else(|| wrong(value, expected))
}

/// A text through a reader, for keys that may be absent.
pub fn optional<T>(
    value: &DeValue<'_>,
    expected: &str,
    read: fn(&str) -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    read(text(value, expected)?).map(Some)
}

/// A whole number of TOML, whatever its base.
pub fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A whole number between two bounds.
pub fn whole(value: &DeValue<'_>, least: u32, most: u32) -> Result<u32, Problem> {
    let expected = format!("a whole number from {least} to {most}");
    let DeValue::Integer(number) = value else {
        return Err(wrong(value, expected));
    };
    integer(number)
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            Problem::Value(format!(
                "{} is out of range: expected {expected}",
                shorten(number)
            ))
        })
}

fn shorten(number: &DeInteger<'_>) -> String {
    number.to_string().chars().take(40).collect()
}

/// A seed: any whole number from 0.
pub fn seed(value: &DeValue<'_>) -> Result<u64, Problem> {
    const EXPECTED: &str = "a whole number from 0 to 9223372036854775807";
    let DeValue::Integer(number) = value else {
        return Err(wrong(value, EXPECTED));
    };
    integer(number)
        .and_then(|number| u64::try_from(number).ok())
        .ok_or_else(|| {
            Problem::Value(format!(
                "{} is out of range: expected {EXPECTED}",
                shorten(number)
            ))
        })
}

/// A finite number, whole or not.
pub fn number(value: &DeValue<'_>, expected: &str) -> Result<f64, Problem> {
    let number = match value {
        DeValue::Integer(number) => integer(number)
            .map(|number| number as f64)
            // Too large for 64 bits: a bound will say so.
            .or_else(|| number.as_str().parse().ok()),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => return Err(wrong(value, expected)),
    };
    number
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| Problem::Value(format!("not a finite number: expected {expected}")))
}

/// True or false.
pub fn boolean(value: &DeValue<'_>) -> Result<bool, Problem> {
    value
        .as_bool()
        .ok_or_else(|| wrong(value, "true or false, without quotes"))
}

/// One of a few words.
fn choice<T: Copy>(value: &DeValue<'_>, words: &[(&str, T)]) -> Result<T, Problem> {
    let expected = words
        .iter()
        .map(|(word, _)| format!("\"{word}\""))
        .collect::<Vec<_>>()
        .join(" or ");
    let found = text(value, &expected)?;
    words
        .iter()
        .find(|(word, _)| *word == found)
        .map(|(_, choice)| *choice)
        .ok_or_else(|| {
            let found = shown(found);
            Problem::Value(format!("{found} is not known: expected {expected}"))
        })
}

pub fn mode(value: &DeValue<'_>) -> Result<Mode, Problem> {
    choice(
        value,
        &[("enforce", Mode::Enforce), ("advise", Mode::Advise)],
    )
}

pub fn rule(value: &DeValue<'_>) -> Result<Rule, Problem> {
    choice(
        value,
        &[("evidence", Rule::Evidence), ("point", Rule::Point)],
    )
}

pub fn policy(value: &DeValue<'_>) -> Result<Policy, Problem> {
    choice(
        value,
        &[("enforce", Policy::Enforce), ("detect", Policy::Detect)],
    )
}

pub fn on_inconclusive(value: &DeValue<'_>) -> Result<OnInconclusive, Problem> {
    choice(
        value,
        &[
            ("report", OnInconclusive::Report),
            ("fail", OnInconclusive::Fail),
            ("pass", OnInconclusive::Pass),
        ],
    )
}

pub fn on_missing(value: &DeValue<'_>) -> Result<OnMissing, Problem> {
    choice(value, &[("fail", OnMissing::Fail), ("new", OnMissing::New)])
}

/// Whether models are loaded and unloaded by the gate.
pub fn model_control(value: &DeValue<'_>) -> Result<ModelControl, Problem> {
    choice(
        value,
        &[
            ("none", ModelControl::None),
            ("explicit", ModelControl::Explicit),
        ],
    )
}

/// A percentage, `"5%"`. A bare number has a message of its own.
pub fn percent(value: &DeValue<'_>) -> Result<Fraction, Problem> {
    match value {
        DeValue::String(text) if text.chars().count() <= 40 => text
            .parse::<Fraction>()
            .map_err(|error| Problem::Value(error.to_string())),
        DeValue::String(text) => Err(Problem::Value(format!(
            "{} is not a percentage: expected a number and %, like \"5%\"",
            shown(text)
        ))),
        DeValue::Integer(number) => Err(wrong(
            value,
            format!("a percentage as text: write \"{}%\"", shorten(number)),
        )),
        _ => Err(wrong(value, "a percentage as text, like \"5%\"")),
    }
}

fn percent_within(
    value: &DeValue<'_>,
    fits: impl Fn(f64) -> bool,
    expected: &str,
) -> Result<Fraction, Problem> {
    let fraction = percent(value)?;
    if fits(fraction.get()) {
        return Ok(fraction);
    }
    Err(Problem::Value(format!(
        "\"{}\" is out of range: expected {expected}",
        text(value, expected)?
    )))
}

/// An error probability of the decision.
pub fn probability(value: &DeValue<'_>) -> Result<Fraction, Problem> {
    percent_within(
        value,
        |x| x > 0.0 && x < 0.5,
        "more than 0% and less than 50%",
    )
}

/// A share that may be nothing but not all.
pub fn share(value: &DeValue<'_>) -> Result<Fraction, Problem> {
    percent_within(value, |x| x < 1.0, "less than 100%")
}

/// A fall: more than nothing, less than all.
pub fn drop(value: &DeValue<'_>) -> Result<Fraction, Problem> {
    percent_within(
        value,
        |x| x > 0.0 && x < 1.0,
        "more than 0% and less than 100%",
    )
}

/// A rise or a gain: more than nothing.
pub fn rise(value: &DeValue<'_>) -> Result<Fraction, Problem> {
    percent_within(
        value,
        |x| x > 0.0 && x <= LARGEST_RISE,
        "more than 0% and at most 10000%",
    )
}

const DURATION: &str = "a duration as text, like \"90s\"";

/// A duration, `"250ms"`; nothing is allowed.
pub fn duration(value: &DeValue<'_>) -> Result<Duration, Problem> {
    text::duration(text(value, DURATION)?)
}

/// A duration of at least a millisecond.
pub fn duration_above_zero(value: &DeValue<'_>) -> Result<Duration, Problem> {
    let duration = duration(value)?;
    if duration >= Duration::from_millis(1) {
        return Ok(duration);
    }
    Err(Problem::Value(format!(
        "{} is out of range: expected at least 1ms",
        shown(text(value, DURATION)?)
    )))
}

/// A limit on latency, in microseconds.
pub fn latency(value: &DeValue<'_>) -> Result<f64, Problem> {
    const EXPECTED: &str = "a latency as text, like \"25ms\" or \"800us\"";
    let duration = text::duration(text(value, EXPECTED)?)?;
    if duration.is_zero() {
        return Err(Problem::Value(format!(
            "a limit of 0 cannot be kept: expected {EXPECTED}"
        )));
    }
    Ok(duration.as_nanos() as f64 / 1000.0)
}

/// A limit on throughput, in inferences per second.
pub fn rate(value: &DeValue<'_>) -> Result<f64, Problem> {
    const EXPECTED: &str = "a number of inferences per second above 0, like 250 or 99.5";
    let rate = number(value, EXPECTED)?;
    if rate > 0.0 && rate <= 1e12 {
        Ok(rate)
    } else {
        Err(Problem::Value(format!("out of range: expected {EXPECTED}")))
    }
}

/// `"auto"`, or what `read` reads.
fn auto<T>(
    value: &DeValue<'_>,
    expected: &str,
    read: impl Fn(&DeValue<'_>) -> Result<T, Problem>,
) -> Result<Auto<T>, Problem> {
    if value.as_str() == Some("auto") {
        return Ok(Auto::Auto);
    }
    read(value)
        .map(Auto::Fixed)
        .map_err(|problem| match problem {
            Problem::WrongType { found, .. } => Problem::WrongType {
                found,
                expected: expected.to_owned(),
            },
            other => other,
        })
}

pub fn auto_duration(value: &DeValue<'_>) -> Result<Auto<Duration>, Problem> {
    auto(
        value,
        "\"auto\" or a duration as text, like \"2s\"",
        duration,
    )
}

pub fn auto_duration_above_zero(value: &DeValue<'_>) -> Result<Auto<Duration>, Problem> {
    auto(
        value,
        "\"auto\" or a duration as text, like \"2s\"",
        duration_above_zero,
    )
}

pub fn auto_count(value: &DeValue<'_>) -> Result<Auto<u32>, Problem> {
    auto(
        value,
        "\"auto\" or a whole number from 1 to 1024",
        |value| whole(value, 1, 1024),
    )
}

/// A list of texts, none of them empty.
pub fn texts(value: &DeValue<'_>, expected: &str) -> Result<Vec<String>, Problem> {
    let list = value.as_array().ok_or_else(|| wrong(value, expected))?;
    list.iter()
        .map(|item| {
            let text = text(item.get_ref(), expected)?;
            if text.trim().is_empty() {
                return Err(Problem::Value(format!(
                    "an empty text in the list: expected {expected}"
                )));
            }
            Ok(text.to_owned())
        })
        .collect()
}

/// A command: the program, then its arguments.
pub fn command(value: &DeValue<'_>) -> Result<Vec<String>, Problem> {
    const EXPECTED: &str =
        "a list of texts, like [\"tritonserver\", \"--model-repository=models\"]";
    let list = value.as_array().ok_or_else(|| wrong(value, EXPECTED))?;
    let words = list
        .iter()
        .map(|item| text(item.get_ref(), EXPECTED).map(str::to_owned))
        .collect::<Result<Vec<_>, _>>()?;
    if words
        .first()
        .is_none_or(|program| program.trim().is_empty())
    {
        return Err(Problem::Value(format!(
            "names no program: expected {EXPECTED}"
        )));
    }
    Ok(words)
}

/// Checks the keys of an inline table.
fn only(table: &toml::de::DeTable<'_>, allowed: &[&str]) -> Result<(), Problem> {
    for key in table.keys() {
        let key = key.get_ref().as_ref();
        if !allowed.contains(&key) {
            return Err(Problem::UnknownName {
                what: "key",
                name: key.to_owned(),
                suggestion: nearest(key, allowed.iter().copied()).map(str::to_owned),
                allowed: allowed.iter().map(|&key| key.to_owned()).collect(),
            });
        }
    }
    Ok(())
}

/// The files and the name of a TLS connection.
pub fn tls(value: &DeValue<'_>) -> Result<Option<Tls>, Problem> {
    const EXPECTED: &str = "a table like { ca = \"ca.pem\" }, with any of ca, cert, key, domain";
    let table = value.as_table().ok_or_else(|| wrong(value, EXPECTED))?;
    only(table, &["ca", "cert", "key", "domain"])?;
    let entry = |name: &str| -> Result<Option<String>, Problem> {
        let Some(value) = table.get(name) else {
            return Ok(None);
        };
        let found = text(value.get_ref(), EXPECTED)?;
        if found.trim().is_empty() {
            return Err(Problem::Value(format!(
                "{name} is empty: expected {EXPECTED}"
            )));
        }
        Ok(Some(found.to_owned()))
    };
    let tls = Tls {
        ca: entry("ca")?.map(Into::into),
        cert: entry("cert")?.map(Into::into),
        key: entry("key")?.map(Into::into),
        domain: entry("domain")?,
    };
    if tls.cert.is_some() != tls.key.is_some() {
        return Err(Problem::Value(
            "cert and key belong together: expected both or none".to_owned(),
        ));
    }
    Ok(Some(tls))
}

/// Assumed spread between sessions: one percentage for both, or one of throughput and one of
/// latency. A percentage is the standard deviation of the logarithm.
pub fn assumed_noise(value: &DeValue<'_>) -> Result<Option<(f64, f64)>, Problem> {
    const EXPECTED: &str = "a percentage like \"2%\", or { throughput = \"1%\", latency = \"3%\" }";
    match value {
        DeValue::String(_) => drop(value).map(|noise| Some((noise.get(), noise.get()))),
        DeValue::Table(table) => {
            only(table, &["throughput", "latency"])?;
            match (table.get("throughput"), table.get("latency")) {
                (Some(throughput), Some(latency)) => Ok(Some((
                    drop(throughput.get_ref())?.get(),
                    drop(latency.get_ref())?.get(),
                ))),
                _ => Err(Problem::Value(format!(
                    "one of throughput and latency is missing: expected {EXPECTED}"
                ))),
            }
        }
        _ => Err(wrong(value, EXPECTED)),
    }
}
