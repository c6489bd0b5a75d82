//! Readers of single texts: durations, names, addresses, `${VAR}`. Pure, no file in sight.

use std::fmt::Write as _;
use std::time::Duration;

use super::error::{Problem, shown};

/// The longest duration that a file may name; beyond it a typing error is certain.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// Units of a duration, largest first: name and nanoseconds.
const UNITS: [(&str, f64); 6] = [
    ("h", 3600e9),
    ("m", 60e9),
    ("s", 1e9),
    ("ms", 1e6),
    ("us", 1e3),
    ("ns", 1.0),
];

/// A duration as text: `250ms`, `90s`, `5m`, `1h30m`. Units h, m, s, ms, us, ns, the larger first.
///
/// A bare number is refused: nobody could say whether seconds or milliseconds were meant.
pub fn duration(text: &str) -> Result<Duration, Problem> {
    let trimmed = text.trim();
    let bad = || {
        Problem::Value(format!(
            "{} is not a duration: expected a number and a unit (h, m, s, ms, us), like \"250ms\", \"90s\" or \"1h30m\"",
            shown(trimmed)
        ))
    };
    if trimmed.parse::<f64>().is_ok_and(f64::is_finite) {
        return Err(Problem::Value(format!(
            "{} has no unit: expected a duration like \"{}s\" or \"{}ms\"",
            shown(trimmed),
            shorten(trimmed),
            shorten(trimmed)
        )));
    }
    if trimmed.is_empty() {
        return Err(bad());
    }
    let mut rest = trimmed;
    let mut total = 0.0;
    let mut smallest_so_far = f64::INFINITY;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(bad)?;
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit = if matches!(unit, "µs" | "μs") {
            "us"
        } else {
            unit
        };
        let number: f64 = number.parse().map_err(|_| bad())?;
        let (_, nanoseconds) = UNITS
            .into_iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(bad)?;
        if nanoseconds >= smallest_so_far {
            return Err(bad());
        }
        smallest_so_far = nanoseconds;
        total += number * nanoseconds;
        rest = after;
    }
    if !total.is_finite() || total > LONGEST.as_nanos() as f64 {
        return Err(Problem::Value(format!(
            "{} is out of range: expected at most 365 days (8760h)",
            shown(trimmed)
        )));
    }
    Ok(Duration::from_nanos(total.round() as u64))
}

fn shorten(text: &str) -> String {
    text.trim_start_matches(['-', '+'])
        .chars()
        .take(20)
        .collect()
}

/// A duration as a file would write it: `1h30m`, `250ms`, `1.5ms`.
pub fn show_duration(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let mut rest = nanoseconds;
    let mut text = String::new();
    for (unit, length) in UNITS {
        let length = length as u128;
        let count = rest / length;
        if count > 0 {
            let _ = write!(text, "{count}{unit}");
            rest %= length;
        }
    }
    text
}

/// A name that is safe as a folder's name.
pub fn safe_name(text: &str) -> Result<String, Problem> {
    const MOST: usize = 100;
    let refused = |why: &str| {
        Err(Problem::Value(format!(
            "{} cannot be a name: {why} (it becomes the name of a folder)",
            shown(text)
        )))
    };
    if text.is_empty() {
        return refused("expected at least one character");
    }
    if text.len() > MOST {
        return refused("expected at most 100 characters");
    }
    if text.starts_with(['.', '-']) {
        return refused("expected it not to begin with a dot or a dash");
    }
    if text.ends_with('.') {
        return refused("expected it not to end with a dot");
    }
    if device(text) {
        return refused("it is a device on Windows, where the repository could not be checked out");
    }
    match text
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')))
    {
        Some(c) => refused(&format!(
            "expected letters, digits, '.', '_' and '-', found {c:?}"
        )),
        None => Ok(text.to_owned()),
    }
}

/// Names that Windows keeps for devices, with whatever ending.
fn device(text: &str) -> bool {
    let stem = text
        .split('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let numbered = ["com", "lpt"].iter().any(|start| {
        stem.strip_prefix(start)
            .is_some_and(|rest| matches!(rest.as_bytes(), [b'1'..=b'9']))
    });
    numbered || matches!(stem.as_str(), "con" | "prn" | "aux" | "nul")
}

/// A gRPC or HTTP address. Only what every reader of it would refuse is refused here.
pub fn address(text: &str) -> Result<String, Problem> {
    let trimmed = text.trim();
    let refused = |why: &str| {
        // The text itself stays out: it may hold a password.
        Err(Problem::Value(format!(
            "not an address: {why}; expected host:port, like \"localhost:8001\""
        )))
    };
    if trimmed.is_empty() {
        return refused("it is empty");
    }
    if trimmed.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return refused("it holds white space");
    }
    let authority = trimmed.split_once("://").map_or(trimmed, |(_, rest)| rest);
    if authority.is_empty() || authority.starts_with('/') {
        return refused("it names no host");
    }
    let host = authority.split('/').next().unwrap_or_default();
    if host.contains('@') {
        return refused("it holds credentials, which belong into server.metadata as ${VAR}");
    }
    // Colons within brackets, or several without, are an IPv6 address.
    let port = match host.rsplit_once(']') {
        Some((_, rest)) => rest.strip_prefix(':'),
        None => host
            .split_once(':')
            .map(|(_, port)| port)
            .filter(|port| !port.contains(':')),
    };
    if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port != 0)) {
        return refused("its port is no number from 1 to 65535");
    }
    Ok(trimmed.to_owned())
}

/// A model version: a positive whole number, as Triton names its folders.
pub fn version(text: &str) -> Result<String, Problem> {
    let fits = text.parse::<i64>().is_ok_and(|number| number > 0)
        && text.chars().all(|c| c.is_ascii_digit())
        && !text.starts_with('0');
    if fits {
        Ok(text.to_owned())
    } else {
        Err(Problem::Value(format!(
            "{} is not a model version: expected a positive whole number as text, like \"2\"",
            shown(text)
        )))
    }
}

/// A model's name: anything that can be one folder's name.
pub fn model(text: &str) -> Result<String, Problem> {
    let fits = !text.trim().is_empty()
        && text.len() <= 255
        && !text.chars().any(|c| c.is_control() || c == '/');
    if fits {
        Ok(text.to_owned())
    } else {
        Err(Problem::Value(format!(
            "{} cannot be a model: expected the name of the model in Triton's repository",
            shown(text)
        )))
    }
}

/// The name of a gRPC metadata entry.
pub fn metadata_name(text: &str) -> Result<(), Problem> {
    let why = if text.chars().any(|c| c.is_ascii_uppercase()) {
        "expected lower case"
    } else if text.is_empty()
        || !text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.'))
    {
        "expected lower-case letters, digits, '-', '_' and '.'"
    } else if text.starts_with("grpc-") {
        "names that begin with grpc- belong to gRPC itself"
    } else if text.ends_with("-bin") {
        "binary entries (-bin) cannot be sent"
    } else {
        return Ok(());
    };
    Err(Problem::Value(format!(
        "{} cannot be the name of a metadata entry: {why}",
        shown(text)
    )))
}

/// Replaces every `${NAME}` by the variable's value; `$$` is a plain dollar sign.
///
/// No message holds a value, neither the text's nor a variable's.
pub fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, Problem> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = from.strip_prefix("$$") {
            out.push('$');
            rest = after;
        } else if let Some(after) = from.strip_prefix("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| Problem::Value("${ without }: expected ${NAME}".to_owned()))?;
            check_variable(name)?;
            out.push_str(&env(name).ok_or_else(|| Problem::MissingVariable(name.to_owned()))?);
            rest = after;
        } else {
            out.push('$');
            rest = from.strip_prefix('$').unwrap_or_default();
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn check_variable(name: &str) -> Result<(), Problem> {
    let fits = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if fits {
        Ok(())
    } else {
        // What stands between the braces may be a part of a secret.
        Err(Problem::Value(
            "what stands in ${...} is not the name of an environment variable: expected letters, digits and _, like ${TRITON_TOKEN}"
                .to_owned(),
        ))
    }
}

/// A metadata value that may go over the wire: visible ASCII and spaces.
pub fn metadata_value(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(Problem::Value(
            "the value is empty: set it, or remove the entry".to_owned(),
        ));
    }
    if text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        Ok(())
    } else {
        Err(Problem::Value(
            "the value holds characters that cannot be sent: expected visible ASCII and spaces (a line end at the end of a variable is a common cause)"
                .to_owned(),
        ))
    }
}
