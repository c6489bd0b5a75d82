use std::path::Path;

use chrono::{DateTime, Utc};

use super::error::StoreError;

/// The longest name: file systems allow 255 bytes, and session files get an ending.
const LONGEST: usize = 200;

/// Names that the store uses itself.
const RESERVED: [&str; 3] = ["environment.toml", "subjects", "environments"];

/// Checks that a name can be a folder's or a file's on every system, and stays where it is put.
pub(super) fn check(what: &'static str, name: &str) -> Result<(), StoreError> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > LONGEST {
        "it is longer than 200 bytes"
    } else if name.starts_with(['.', '-', ' ']) {
        "it begins with a dot, a hyphen or a space"
    } else if name.ends_with(['.', ' ']) {
        "it ends with a dot or a space"
    } else if RESERVED.contains(&name) {
        "the store uses that name itself"
    } else if name.contains(|letter: char| letter.is_control() || "/\\:*?\"<>|".contains(letter)) {
        "it holds one of / \\ : * ? \" < > | or a control character"
    } else {
        return Ok(());
    };
    Err(StoreError::BadName {
        what,
        name: name.to_owned(),
        why,
    })
}

/// Checks that a name can be a pin's: it is shown in every report, so letters, digits and `.-_+`
/// alone.
pub(super) fn check_pin(name: &str) -> Result<(), StoreError> {
    check("pin", name)?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_+".contains(letter);
    if name.chars().all(plain) {
        return Ok(());
    }
    Err(StoreError::BadName {
        what: "pin",
        name: name.to_owned(),
        why: "it holds something else than letters, digits and . - _ +",
    })
}

/// Whether a name on the disk is one that the store could have given.
pub(super) fn is_safe(name: &str) -> bool {
    check("name", name).is_ok()
}

/// A new session's id: UTC time, short commit, random (`20260131T120000Z-1a2b3c4-9f8e7d`), so
/// that ids sort by time and two machines never choose the same one.
///
/// # Errors
/// The operating system's random numbers failed.
pub fn session_id(now: DateTime<Utc>, commit: Option<&str>) -> std::io::Result<String> {
    let mut random = [0_u8; 3];
    getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
    let commit: String = commit
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(7)
        .collect();
    let commit = if commit.is_empty() {
        "nocommit"
    } else {
        &commit
    };
    let [a, b, c] = random;
    Ok(format!(
        "{}-{commit}-{a:02x}{b:02x}{c:02x}",
        now.format("%Y%m%dT%H%M%SZ")
    ))
}

/// The session's name of a file, where the file is one: `SESSION.csv`.
pub(super) fn session_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".csv").filter(|stem| is_safe(stem))
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    #[test]
    fn names_stay_where_they_are_put() {
        for name in ["nvidia-l4", "resnet-c8", "größe 1,5", "a@b=2"] {
            assert!(check("scenario", name).is_ok(), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "-x",
            " x",
            "x ",
            "x.",
            ".hidden",
            "a\nb",
            "C:",
            "subjects",
            "environment.toml",
        ] {
            assert!(check("scenario", name).is_err(), "{name:?}");
        }
        assert!(check("scenario", &"x".repeat(201)).is_err());
    }

    #[test]
    fn ids_hold_time_and_commit() {
        let now = Utc
            .with_ymd_and_hms(2026, 1, 31, 12, 0, 0)
            .single()
            .expect("time");
        let id = session_id(now, Some("1a2b3c4d5e6f")).expect("random");
        assert!(id.starts_with("20260131T120000Z-1a2b3c4-"), "{id}");
        assert_eq!(id.len(), "20260131T120000Z-1a2b3c4-9f8e7d".len());
        let none = session_id(now, None).expect("random");
        assert!(none.starts_with("20260131T120000Z-nocommit-"), "{none}");
        assert!(is_safe(&id));
        assert_ne!(id, session_id(now, Some("1a2b3c4d5e6f")).expect("random"));
    }
}
