//! Finding and reading the files that `-c` names.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, Place, Problem};

/// The largest file that is read, MiB.
const LARGEST_MIB: u64 = 4;

/// A file's name and text.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub path: PathBuf,
    pub text: String,
    /// Offsets of all line ends.
    line_ends: Vec<usize>,
}

impl Source {
    /// A line of the file, from the offset of a byte.
    pub fn place(&self, offset: usize) -> Place {
        Place {
            line: Some(1 + self.line_ends.partition_point(|&end| end < offset)),
            ..self.whole()
        }
    }

    /// The file without a line.
    pub fn whole(&self) -> Place {
        whole(&self.path)
    }
}

fn whole(path: &Path) -> Place {
    Place {
        file: path.display().to_string(),
        line: None,
    }
}

/// The files that the paths name: files as given, folders by their `*.toml` in the order of their
/// names. A file named twice is read once.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Vec<ConfigError>> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut errors = Vec::new();
    if paths.is_empty() {
        errors.push(ConfigError {
            place: None,
            subject: None,
            scenario: None,
            problem: Problem::NoPath,
        });
    }
    for path in paths {
        let found = if path.is_dir() {
            folder(path)
        } else {
            Ok(vec![path.clone()])
        };
        match found {
            Ok(found) => {
                for file in found {
                    let identity = fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
                    if !seen.contains(&identity) {
                        seen.push(identity);
                        files.push(file);
                    }
                }
            }
            Err(problem) => errors.push(ConfigError::in_file(whole(path), problem)),
        }
    }
    if errors.is_empty() {
        Ok(files)
    } else {
        Err(errors)
    }
}

fn folder(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    let read = |error: std::io::Error| Problem::Read(error.to_string());
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(read)? {
        let file = entry.map_err(read)?.path();
        // Like a shell's *.toml: no hidden files, which editors leave behind.
        let hidden = file
            .file_name()
            .is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && file.extension().is_some_and(|end| end == "toml") && !file.is_dir() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        Err(Problem::EmptyFolder)
    } else {
        Ok(files)
    }
}

/// Reads a file as text.
pub(crate) fn read(path: &Path) -> Result<Source, Box<ConfigError>> {
    let failed = |problem| Box::new(ConfigError::in_file(whole(path), problem));
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take((LARGEST_MIB << 20) + 1).read_to_end(&mut bytes))
        .map_err(|error| failed(Problem::Read(error.to_string())))?;
    if bytes.len() as u64 > LARGEST_MIB << 20 {
        return Err(failed(Problem::TooLarge(LARGEST_MIB)));
    }
    from_bytes(path, bytes)
}

/// Takes a file's bytes as text; the error names the line of the first bad byte.
pub(crate) fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Source, Box<ConfigError>> {
    let line_ends: Vec<usize> = bytes
        .iter()
        .enumerate()
        .filter_map(|(offset, &byte)| (byte == b'\n').then_some(offset))
        .collect();
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source {
            path: path.to_owned(),
            text,
            line_ends,
        }),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let place = Place {
                line: Some(1 + line_ends.partition_point(|&end| end < good)),
                ..whole(path)
            };
            Err(Box::new(ConfigError::in_file(place, Problem::NotUtf8)))
        }
    }
}
