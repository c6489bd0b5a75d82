use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Adds text to the end of a file that the runner gave (`GITHUB_STEP_SUMMARY`, `GITHUB_OUTPUT`),
/// in one write. What stands there already stays: other commands of the step wrote it.
pub fn append(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("summary.md");
        append(&path, "one\n").expect("creates it");
        append(&path, "two\n").expect("adds to it");
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "one\ntwo\n");
        assert!(append(&folder.path().join("no/such/folder"), "x").is_err());
    }
}
