//! Looking into folders without following links out of them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::names;

/// Names of the folders in a folder, sorted; links, files and odd names are passed over. A
/// missing folder has none.
pub(super) fn folders(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    for (path, kind) in entries(folder)? {
        if kind.is_dir()
            && let Some(name) = path.file_name().and_then(OsStr::to_str)
            && names::is_safe(name)
        {
            found.push(name.to_owned());
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The session files in a folder, sorted by name; links, temporary files and anything else are
/// passed over. A missing folder has none.
pub(super) fn session_files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found: Vec<PathBuf> = entries(folder)?
        .into_iter()
        .filter(|(path, kind)| kind.is_file() && names::session_of(path).is_some())
        .map(|(path, _)| path)
        .collect();
    found.sort_unstable();
    Ok(found)
}

pub(super) fn entries(folder: &Path) -> Result<Vec<(PathBuf, fs::FileType)>, StoreError> {
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("list", folder)(error)),
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry.map_err(StoreError::io("list", folder))?;
        match entry.file_type() {
            Ok(kind) => found.push((entry.path(), kind)),
            // Deleted by another process since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("look at", &entry.path())(error)),
        }
    }
    Ok(found)
}

/// Checks that a place is free or a real folder, so that nothing is read or written elsewhere.
pub(super) fn must_be_own(folder: &Path) -> Result<(), StoreError> {
    let why = match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io("look at", folder)(error)),
        Ok(metadata) if metadata.is_symlink() => {
            "a link in the store is not followed: put a folder in its place"
        }
        Ok(metadata) if !metadata.is_dir() => "a file stands where a folder belongs: move it away",
        Ok(_) => return Ok(()),
    };
    Err(StoreError::InTheWay {
        path: folder.to_path_buf(),
        why,
    })
}
