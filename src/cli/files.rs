//! Files that a command writes for its user: whole or not at all.

use std::path::Path;

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
