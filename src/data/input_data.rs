use std::path::PathBuf;

use bytes::Bytes;

use super::Value;

/// Inputs of a scenario that come from a file or a folder: one request's worth after another.
#[derive(Debug, Clone, PartialEq)]
pub struct InputData {
    /// The file or folder, as a message names it.
    pub path: PathBuf,
    /// The requests' inputs in the file's order; at least one.
    pub steps: Vec<Step>,
    /// The first 8 hex digits of the SHA-256 over the content, so that a change of it shows.
    pub digest: String,
}

/// The inputs of one request, without the batch dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Where it stands: `data[3]`, `line 4`, or empty where the file is one step.
    pub place: String,
    /// Its inputs in the file's order.
    pub tensors: Vec<TensorData>,
    /// The outputs that `validation_data` expects of it.
    pub expected: Vec<TensorData>,
}

/// The data of one tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorData {
    /// The tensor's name.
    pub name: String,
    /// Its shape without the batch dimension, where the file gives one.
    pub shape: Option<Vec<i64>>,
    /// The data itself.
    pub content: Content,
}

/// Data as a file holds it: what it means depends on the tensor's datatype.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Values as written, flat or nested.
    Values(Vec<Value>),
    /// Base64 in a JSON file, decoded: little-endian numbers; texts with or without prefixes.
    Encoded(Bytes),
    /// A whole file, which may hold the data of several steps.
    File(FileContent),
}

/// A file of one tensor's data.
#[derive(Debug, Clone, PartialEq)]
pub enum FileContent {
    /// `NumPy`'s: datatype (Triton's name) and shape are in the file, the data is little-endian and
    /// row-major; texts have their length in 4 bytes before them.
    Array {
        /// Triton's name of the datatype.
        datatype: &'static str,
        /// Perhaps with a first dimension that counts steps.
        shape: Vec<i64>,
        /// The data.
        data: Bytes,
    },
    /// Anything else: little-endian, row-major numbers; for BYTES as `texts` says.
    Plain {
        /// The file's bytes.
        data: Bytes,
        /// Where the elements of BYTES begin and end.
        texts: Texts,
    },
}

/// How a plain file holds the elements of BYTES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// One a line, as `perf_analyzer` reads folders.
    Lines,
    /// Each after its length in 4 bytes, as on the wire.
    Prefixed,
    /// The whole file is one.
    Whole,
}

/// The file of one input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputFile {
    /// The file, as a message names it.
    pub path: PathBuf,
    /// What it holds.
    pub content: FileContent,
    /// The first 8 hex digits of the SHA-256 over the file.
    pub digest: String,
}
