//! One file that holds the data of one input, by its ending.

use std::path::Path;

use bytes::Bytes;

use super::npy;
use crate::data::{FileContent, Texts};

/// The endings that say how a file holds data, rather than what it is.
const FORMS: [&str; 4] = ["npy", "txt", "bin", "raw"];

/// What the bytes of a file are.
pub(super) fn content(path: &Path, bytes: Vec<u8>) -> Result<FileContent, String> {
    let texts = match ending(path).as_deref() {
        Some("npy") => return npy::read(&bytes),
        Some("npz") => {
            return Err("an archive of arrays: save the one array as .npy (numpy.save)".to_owned());
        }
        None | Some("txt") => Texts::Lines,
        Some("bin" | "raw") => Texts::Prefixed,
        Some(_) => Texts::Whole,
    };
    Ok(FileContent::Plain {
        data: Bytes::from(bytes),
        texts,
    })
}

/// The input that a file of a folder is for: its name, without an ending that says the form.
pub(super) fn input_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = path.file_stem()?.to_str()?;
    let form = ending(path).is_some_and(|ending| FORMS.contains(&ending.as_str()));
    Some(if form { stem } else { name }.to_owned())
}

fn ending(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}
