//! Files that are there whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

/// How temporary files begin and end; readers pass over them.
const TEMP_PREFIX: &str = ".tmp-";
const TEMP_SUFFIX: &str = ".partial";

/// A temporary file older than this was left by a process that died.
const STALE_AFTER: Duration = Duration::from_hours(24);

/// Creates a file whole: written beside its place, flushed to the disk, then moved there.
///
/// Fails with [`io::ErrorKind::AlreadyExists`] where the file is there already, whoever wrote it
/// and however late; an existing file is never touched. A failure leaves nothing behind.
pub fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = prepared(path, content)?;
    temporary
        .persist_noclobber(path)
        .map_err(|failed| failed.error)?;
    sync_folder(parent(path))
}

/// Writes a file whole like [`write_new`], replacing what was there in one step.
pub fn write_over(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = prepared(path, content)?;
    temporary.persist(path).map_err(|failed| failed.error)?;
    sync_folder(parent(path))
}

fn prepared(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMP_PREFIX).suffix(TEMP_SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Temporary files are private by default; stored ones follow the umask like any other.
        builder.permissions(Permissions::from_mode(0o666));
    }
    let mut temporary = builder.tempfile_in(parent(path))?;
    temporary.write_all(content)?;
    temporary.as_file().sync_all()?;
    Ok(temporary)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Flushes a folder's entries, so that a rename survives a power cut.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some network file systems cannot flush folders; the file itself is safe by then.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// Creates a folder and its missing parents, each flushed.
pub(crate) fn create_folders(folder: &Path) -> io::Result<()> {
    let mut missing: Vec<PathBuf> = Vec::new();
    let mut current = folder;
    while !current.as_os_str().is_empty() && !current.exists() {
        missing.push(current.to_path_buf());
        match current.parent() {
            Some(up) => current = up,
            None => break,
        }
    }
    for folder in missing.iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => sync_folder(parent(folder))?,
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a file name is that of a temporary file.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMP_PREFIX) && name.ends_with(TEMP_SUFFIX)
}

/// Removes temporary files that a process left long ago; failures do no harm and are ignored.
pub(crate) fn remove_stale(folder: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let regular = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !regular || !name.to_str().is_some_and(is_temporary) {
            continue;
        }
        let age = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|modified| now.duration_since(modified).ok());
        if age.is_some_and(|age| age > STALE_AFTER) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_never_overwritten() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.csv");
        write_new(&path, b"one").expect("first");
        let error = write_new(&path, b"two").expect_err("second");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).expect("read"), b"one");
        write_over(&path, b"three").expect("replace");
        assert_eq!(fs::read(&path).expect("read"), b"three");
        assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 1);
    }

    #[test]
    fn only_old_temporary_files_are_removed() {
        let folder = tempfile::tempdir().expect("folder");
        for name in [".tmp-x.partial", "kept.csv", ".tmp-kept.csv"] {
            fs::write(folder.path().join(name), "").expect("write");
        }
        remove_stale(folder.path(), SystemTime::now());
        assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 3);
        remove_stale(folder.path(), SystemTime::now() + STALE_AFTER * 2);
        assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 2);
        assert!(!folder.path().join(".tmp-x.partial").exists());
    }

    #[test]
    fn missing_folders_are_created_and_a_file_in_the_way_is_an_error() {
        let folder = tempfile::tempdir().expect("folder");
        let deep = folder.path().join("a/b/c");
        create_folders(&deep).expect("create");
        assert!(deep.is_dir());
        fs::write(folder.path().join("file"), "").expect("write");
        assert!(create_folders(&folder.path().join("file/x")).is_err());
    }
}
