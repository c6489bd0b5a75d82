//! Reads input files: all I/O of this room.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::error::{Fault, InputError};
use super::{file as one, folder, json, steps};
use crate::data::{Content, InputData, InputFile, Step, TensorData};

/// The largest file that is read, GiB: a request has at most 2.
const LARGEST_GIB: u64 = 4;

/// Reads the inputs of a scenario: a JSON or JSON Lines file, or a folder with a file for each
/// input.
pub fn data(path: &Path) -> Result<InputData, InputError> {
    let named = |fault: Fault| named(path, fault);
    let mut digest = Sha256::new();
    let steps = if path.is_dir() {
        let mut tensors = Vec::new();
        for (name, file) in folder::list(path).map_err(named)? {
            let inner = file.file_name().unwrap_or_default().to_string_lossy();
            let bytes = bytes(&file).map_err(|fault| named(fault.within(&inner)))?;
            digest.update((name.len() as u64).to_le_bytes());
            digest.update(&name);
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(&bytes);
            let content = one::content(&file, bytes)
                .map_err(|what| named(Fault::at(inner.as_ref(), what)))?;
            tensors.push(TensorData {
                name,
                shape: None,
                content: Content::File(content),
            });
        }
        vec![Step {
            place: String::new(),
            tensors,
            expected: Vec::new(),
        }]
    } else {
        let bytes = bytes(path).map_err(named)?;
        digest.update(&bytes);
        let lines = path.extension().is_some_and(|end| {
            end.eq_ignore_ascii_case("jsonl") || end.eq_ignore_ascii_case("ndjson")
        });
        let document = json::parse(&bytes, lines).map_err(named)?;
        steps::steps(document).map_err(named)?
    };
    Ok(InputData {
        path: path.to_owned(),
        steps,
        digest: short(digest),
    })
}

/// Reads the file of one input.
pub fn file(path: &Path) -> Result<InputFile, InputError> {
    let bytes = bytes(path).map_err(|fault| named(path, fault))?;
    let digest = short(Sha256::new_with_prefix(&bytes));
    let content = one::content(path, bytes).map_err(|what| named(path, Fault::whole(what)))?;
    Ok(InputFile {
        path: path.to_owned(),
        content,
        digest,
    })
}

fn named(path: &Path, fault: Fault) -> InputError {
    InputError {
        file: path.display().to_string(),
        place: fault.place,
        what: fault.what,
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Fault> {
    let failed = |error: std::io::Error| Fault::whole(format!("failed to read: {error}"));
    if path.is_dir() {
        return Err(Fault::whole("a folder: expected a file"));
    }
    // To open a pipe can take for ever, and so can a device.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Fault::whole("not a regular file"));
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take((LARGEST_GIB << 30) + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > LARGEST_GIB << 30 {
        return Err(Fault::whole(format!("larger than {LARGEST_GIB} GiB")));
    }
    Ok(bytes)
}

fn short(digest: Sha256) -> String {
    digest
        .finalize()
        .iter()
        .take(4)
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
