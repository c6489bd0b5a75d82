//! The input files that scenarios name, each read once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::Problem;
use super::input::RawInput;
use super::layer::{At, Origin};
use crate::data::{DataSource, InputData, InputFile, InputSpec};
use crate::input::{self, InputError};

/// What was read so far.
#[derive(Debug, Default)]
pub(crate) struct InputFiles {
    data: BTreeMap<PathBuf, Result<Arc<InputData>, InputError>>,
    files: BTreeMap<PathBuf, Result<Arc<InputFile>, InputError>>,
}

/// Where a file is named, by which key, and what is wrong with it.
type Failed = (Origin, String, Problem);

impl InputFiles {
    /// The file of a whole scenario.
    pub fn scenario(
        &mut self,
        named: Option<&At<PathBuf>>,
        failed: &mut Vec<Failed>,
    ) -> Option<Arc<InputData>> {
        let at = named?;
        let read = |path: &Path| input::data(path).map(Arc::new);
        let found = self
            .data
            .entry(at.value.clone())
            .or_insert_with_key(|path| read(path));
        taken(found, &at.origin, "input_data", failed)
    }

    /// What is said about an input, its file read.
    pub fn input(&mut self, raw: &RawInput, failed: &mut Vec<Failed>) -> InputSpec {
        let mut spec = raw.spec.clone();
        if let Some(at) = &raw.file {
            let read = |path: &Path| input::file(path).map(Arc::new);
            let found = self
                .files
                .entry(at.value.clone())
                .or_insert_with_key(|path| read(path));
            let key = format!("inputs.{}.file", spec.name);
            if let Some(file) = taken(found, &at.origin, &key, failed) {
                spec.data = DataSource::File(file);
            }
        }
        spec
    }
}

fn taken<T>(
    found: &Result<Arc<T>, InputError>,
    origin: &Origin,
    key: &str,
    failed: &mut Vec<Failed>,
) -> Option<Arc<T>> {
    match found {
        Ok(found) => Some(Arc::clone(found)),
        Err(error) => {
            let problem = Problem::Value(error.to_string());
            failed.push((origin.clone(), key.to_owned(), problem));
            None
        }
    }
}
