//! Files that a command writes for its user: whole or not at all.

use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::terminal::Terminal;

/// Writes `text` to `path` by way of a temporary file beside it; `-` is standard output.
pub fn write(terminal: Terminal, path: &Path, text: &str) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return terminal.data(text);
    }
    write_file(path, text).map_err(|error| {
        Failure::not_measured(format!("failed to write {}: {error}", path.display()))
            .next("check that the folder exists, is writable, and has space")
    })
}

fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder)?;
    }
    crate::baseline::write_over(path, text.as_bytes())
}

/// Refuses files to write that would take each other's place, or that of something the command
/// reads: said before anything is measured, because afterwards it would cost the result.
///
/// `outputs` are options with their files; `inputs` are files, or folders whose TOML and CSV files
/// are read.
pub fn distinct(outputs: &[(&str, Option<&Path>)], inputs: &[&Path]) -> Result<(), Failure> {
    let given: Vec<(&str, &Path)> = outputs
        .iter()
        .filter_map(|(option, path)| path.map(|path| (*option, path)))
        .collect();
    for (index, (option, path)) in given.iter().enumerate() {
        if path.as_os_str() != "-" && path.is_dir() {
            return Err(
                Failure::usage(format!("{option} names a folder: {}", path.display()))
                    .next("name a file in it"),
            );
        }
        let place = place(path);
        for (other, earlier) in &given[..index] {
            if place == self::place(earlier) {
                let what = if path.as_os_str() == "-" {
                    "both write to standard output".to_owned()
                } else {
                    format!("both write {}", path.display())
                };
                return Err(Failure::usage(format!("{other} and {option} {what}"))
                    .next("give each a file of its own"));
            }
        }
        for input in inputs {
            let input_place = self::place(input);
            let read = path
                .extension()
                .is_some_and(|ending| ending == "toml" || ending == "csv");
            if place == input_place || (input.is_dir() && read && place.starts_with(input_place)) {
                return Err(Failure::usage(format!(
                    "{option} would write over what is read: {} in {}",
                    path.display(),
                    input.display()
                ))
                .next("name another file"));
            }
        }
    }
    Ok(())
}

/// Whether two paths are one file.
pub fn same(one: &Path, other: &Path) -> bool {
    place(one) == place(other)
}

/// One path for one file, whether or not it is there yet.
fn place(path: &Path) -> PathBuf {
    if path.as_os_str() == "-" {
        return path.to_owned();
    }
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.canonicalize().unwrap_or_else(|_| {
        match (
            whole.parent().and_then(|folder| folder.canonicalize().ok()),
            whole.file_name(),
        ) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => whole.clone(),
        }
    })
}

/// The text of an input file, or what is wrong with it.
pub fn read(path: &Path, what: &str) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::usage(format!("failed to read {what} {}: {error}", path.display()))
            .next("check the path")
    })?;
    String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!(
            "{what} {} is not UTF-8 text (byte {})",
            path.display(),
            error.utf8_error().valid_up_to()
        ))
        .next("save it as UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output files by option, and what is said against them.
    type Case<'a> = (&'a [(&'a str, Option<&'a Path>)], Option<&'a str>);

    #[test]
    fn files_that_would_take_each_others_place_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("t.toml"), "").expect("written");
        std::fs::create_dir(at("new")).expect("made");
        let told = |outputs: &[(&str, Option<&Path>)]| {
            distinct(outputs, &[&at("t.toml"), folder.path()])
                .err()
                .map(|failure| failure.message.replace(&at("").display().to_string(), ""))
        };
        let (json, same, other) = (at("r.json"), at("new/../r.json"), at("r.md"));
        let dash = Path::new("-");
        let cases: [Case; 7] = [
            (
                &[("--json", Some(&json)), ("--markdown", Some(&other))],
                None,
            ),
            (&[("--json", None), ("--markdown", Some(dash))], None),
            (
                &[("--json", Some(&json)), ("--markdown", Some(&same))],
                Some("--json and --markdown both write new/../r.json"),
            ),
            (
                &[("--json", Some(dash)), ("--junit", Some(dash))],
                Some("--json and --junit both write to standard output"),
            ),
            (
                &[("--json", Some(&at("t.toml")))],
                Some("--json would write over what is read: t.toml in t.toml"),
            ),
            (
                &[("--json", Some(&at("new/b.csv")))],
                Some("--json would write over what is read: new/b.csv in "),
            ),
            (
                &[("--json", Some(&at("new")))],
                Some("--json names a folder: new"),
            ),
        ];
        for (outputs, expected) in cases {
            let told = told(outputs).map(|text| text.trim_end_matches('/').to_owned());
            let root = folder.path().display().to_string();
            let told = told.map(|text| text.replace(&root, ""));
            assert_eq!(told.as_deref(), expected, "{outputs:?}");
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_a_missing_folder_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/out.json");
        write_file(&path, "one").expect("written");
        write_file(&path, "two").expect("replaced");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "two");
        let entries = std::fs::read_dir(path.parent().expect("a parent")).expect("listed");
        assert_eq!(entries.count(), 1);
    }
}
