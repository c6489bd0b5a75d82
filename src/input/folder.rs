//! A folder with a file for each input.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Fault, shown};
use super::file;

/// The files of a folder by the inputs that they are for, in the order of their names; hidden
/// ones are left out.
pub(super) fn list(folder: &Path) -> Result<Vec<(String, PathBuf)>, Fault> {
    let failed = |error: std::io::Error| Fault::whole(format!("failed to read: {error}"));
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let shown_name = path.file_name().unwrap_or_default().to_string_lossy();
        if shown_name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            let what = "a folder within the folder: expected a file for each input";
            return Err(Fault::at(shown(&shown_name), what));
        }
        let name = file::input_name(&path)
            .ok_or_else(|| Fault::at(shown(&shown_name), "its name is not UTF-8"))?;
        if let Some((_, other)) = found.iter().find(|(known, _)| *known == name) {
            let other = other.file_name().unwrap_or_default().to_string_lossy();
            let what = format!("for the same input as {}: keep one", shown(&other));
            return Err(Fault::at(shown(&shown_name), what));
        }
        found.push((name, path));
    }
    if found.is_empty() {
        return Err(Fault::whole(
            "an empty folder: expected a file for each input, named as the input",
        ));
    }
    found.sort();
    Ok(found)
}
