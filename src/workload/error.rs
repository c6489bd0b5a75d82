use std::fmt;

use crate::data::{InputData, Step};
use crate::triton::{Datatype, FrameError, MAX_MESSAGE_BYTES};

/// Everything that keeps a scenario's inputs from fitting its model, at once.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadError {
    /// The model.
    pub model: String,
    /// What is wrong, in the model's order of inputs.
    pub problems: Vec<Problem>,
}

impl std::error::Error for WorkloadError {}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, problems } = self;
        if let [only] = problems.as_slice() {
            write!(f, "the scenario does not fit model `{model}`: {only}")?;
        } else {
            let count = problems.len();
            write!(
                f,
                "the scenario does not fit model `{model}`, {count} problems:"
            )?;
            for problem in problems {
                write!(f, "\n  - {problem}")?;
            }
        }
        let mut lines: Vec<String> = Vec::new();
        for line in problems.iter().filter_map(Problem::toml) {
            // TOML allows each table once.
            let table = line.lines().next().unwrap_or_default();
            lines.retain(|other| other.lines().next() != Some(table));
            lines.push(line);
        }
        if !lines.is_empty() {
            let lines = lines.join("\n\n");
            write!(f, "\n\nlines for the thresholds file:\n\n{lines}")?;
        }
        Ok(())
    }
}

/// One thing that does not fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Answers come over a stream only.
    #[error(
        "it is decoupled (zero to many answers per request, over a stream), which is not supported yet: gate a model without model_transaction_policy.decoupled, or one that wraps this"
    )]
    Decoupled,
    /// Requests belong to sequences.
    #[error(
        "it uses sequence batching (requests of a sequence belong together), which is not supported yet: gate a model without sequence_batching"
    )]
    Sequence,
    /// A batch of nothing.
    #[error("batch is 0: expected at least 1")]
    ZeroBatch,
    /// A batch on a model without one.
    #[error(
        "batch is {batch}, but the model does not batch (max_batch_size 0): set batch = 1, or give it a max_batch_size"
    )]
    NoBatching {
        /// As configured.
        batch: u32,
    },
    /// A batch above the model's.
    #[error("batch is {batch}, but the model's max_batch_size is {max}: expected 1 to {max}")]
    BatchTooLarge {
        /// As configured.
        batch: u32,
        /// The model's limit.
        max: u32,
    },
    /// Nothing to send.
    #[error(
        "no input would be sent{}: a request without inputs measures nothing, name at least one under [scenario.inputs]",
        .inputs
    )]
    NoInputs {
        /// The optional inputs to choose from, in words.
        inputs: String,
        /// The first of them with its dims.
        example: Option<(String, Vec<i64>)>,
    },
    /// An input that the model does not have.
    #[error("it has no input `{name}`{}: its inputs are {}", hint(.nearest.as_deref()), .known.join(", "))]
    UnknownInput {
        /// As written.
        name: String,
        /// The input that is most like it.
        nearest: Option<String>,
        /// The model's inputs.
        known: Vec<String>,
    },
    /// An input that is described twice.
    #[error("input `{name}` is described more than once: keep one of the two")]
    Duplicate {
        /// The input.
        name: String,
    },
    /// A required input with a variable shape that is not mentioned.
    #[error(
        "required input `{name}` ({datatype} {dims:?}) is missing: its shape is variable, so the scenario must give one"
    )]
    MissingInput {
        /// The input.
        name: String,
        /// Its datatype.
        datatype: Datatype,
        /// The model's dims.
        dims: Vec<i64>,
    },
    /// A variable shape that is not given.
    #[error("input `{name}` has the variable dims {dims:?}: give it a shape")]
    MissingShape {
        /// The input.
        name: String,
        /// The model's dims.
        dims: Vec<i64>,
    },
    /// One dimension more than the model has, which batches.
    #[error(
        "input `{name}`: shape {shape:?} has one dimension too many for the model's {dims:?}: the first is the batch dimension, which triton-gate adds from `batch`; leave it out"
    )]
    BatchDimension {
        /// The input.
        name: String,
        /// As written.
        shape: Vec<i64>,
        /// The model's dims.
        dims: Vec<i64>,
    },
    /// The wrong number of dimensions.
    #[error(
        "input `{name}`: shape {shape:?} has {} dimensions, expected {} as in the model's {dims:?}",
        .shape.len(),
        .dims.len()
    )]
    Rank {
        /// The input.
        name: String,
        /// As written.
        shape: Vec<i64>,
        /// The model's dims.
        dims: Vec<i64>,
    },
    /// A dimension that is not the model's.
    #[error("input `{name}`: shape {shape:?} does not match the model's {dims:?}")]
    Dims {
        /// The input.
        name: String,
        /// As written.
        shape: Vec<i64>,
        /// The model's dims.
        dims: Vec<i64>,
    },
    /// A dimension below zero.
    #[error(
        "input `{name}`: shape {shape:?} has a negative dimension: a request carries concrete sizes"
    )]
    NegativeDim {
        /// The input.
        name: String,
        /// As written.
        shape: Vec<i64>,
        /// The model's dims.
        dims: Vec<i64>,
    },
    /// Data that cannot be the input's.
    #[error("input `{name}` ({datatype}): {reason}")]
    Data {
        /// The input.
        name: String,
        /// Its datatype.
        datatype: Datatype,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// What is wrong in a file, with the file and the place in it.
    #[error("{place}: {problem}")]
    InFile {
        /// `prompts.json: data[3]`.
        place: String,
        /// What is wrong there.
        problem: Box<Problem>,
    },
    /// Data for an output in a file that cannot be the output's.
    #[error("in validation_data: {}", .0.to_string().replacen("input", "output", 1))]
    Expected(Box<Problem>),
    /// An output that the model does not have.
    #[error("in validation_data: it has no output `{name}`{}: its outputs are {}", hint(.nearest.as_deref()), .known.join(", "))]
    UnknownOutput {
        /// As written.
        name: String,
        /// The output that is most like it.
        nearest: Option<String>,
        /// The model's outputs.
        known: Vec<String>,
    },
    /// A required input that a file's step leaves out.
    #[error("required input `{name}` ({datatype} {dims:?}) is missing")]
    NotInStep {
        /// The input.
        name: String,
        /// Its datatype.
        datatype: Datatype,
        /// The model's dims.
        dims: Vec<i64>,
    },
    /// A required input that nothing gives.
    #[error(
        "required input `{name}` ({datatype} {dims:?}) is in no step of {file}: add it there, or describe it under [scenario.inputs]"
    )]
    NotInData {
        /// The input.
        name: String,
        /// Its datatype.
        datatype: Datatype,
        /// The model's dims.
        dims: Vec<i64>,
        /// The file.
        file: String,
    },
    /// Data for one input in two places.
    #[error(
        "input `{name}` has its data in {file} and under [scenario.inputs]: keep one of the two (a shape may stay)"
    )]
    GivenTwice {
        /// The input.
        name: String,
        /// The file.
        file: String,
    },
    /// Files that cannot go together.
    #[error(
        "input `{name}` has {rows} rows, input `{other}` has {other_rows}: expected as many, or one for all"
    )]
    RowCounts {
        /// The input with the most rows.
        name: String,
        /// Its rows.
        rows: usize,
        /// Another input.
        other: String,
        /// The rows of that.
        other_rows: usize,
    },
    /// Steps of a batch that cannot be joined.
    #[error(
        "input `{name}`: {first} and {other} would be joined in a batch of {batch}, but {what}: expected inputs of the same shape, or batch = 1"
    )]
    BatchOfDifferent {
        /// The input.
        name: String,
        /// The first of them.
        first: String,
        /// Another.
        other: String,
        /// As configured.
        batch: u32,
        /// How they differ.
        what: String,
    },
    /// More than this machine can hold.
    #[error(
        "its requests would take {} of memory, and {} are available: use fewer or smaller steps",
        size(*.bytes),
        size(*.available)
    )]
    Memory {
        /// Size of all requests.
        bytes: u128,
        /// Memory that is available now.
        available: u128,
    },
    /// More bytes than a request may have.
    #[error(
        "a request would be {} with batch {batch}, more than the {} that Triton accepts: lower the batch or the shapes (largest input: `{largest}`)",
        size(*.bytes),
        size(u128::from(MAX_MESSAGE_BYTES))
    )]
    TooLarge {
        /// Size of all inputs.
        bytes: u128,
        /// As configured.
        batch: u32,
        /// The input that takes most of it.
        largest: String,
    },
    /// The finished message is too large all the same.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl Problem {
    /// The same in a step of a file.
    pub(super) fn at(self, data: &InputData, step: &Step) -> Self {
        let file = data.path.display();
        Self::InFile {
            place: if step.place.is_empty() {
                file.to_string()
            } else {
                format!("{file}: {}", step.place)
            },
            problem: Box::new(self),
        }
    }

    /// The lines that mend it, where lines do.
    pub fn toml(&self) -> Option<String> {
        match self {
            Self::MissingInput { name, dims, .. }
            | Self::NotInData { name, dims, .. }
            | Self::MissingShape { name, dims }
            | Self::Rank { name, dims, .. }
            | Self::Dims { name, dims, .. }
            | Self::NegativeDim { name, dims, .. }
            | Self::NoInputs {
                example: Some((name, dims)),
                ..
            } => Some(input_lines(name, dims)),
            Self::BatchDimension { name, shape, dims } => {
                let rest = shape.get(1..).unwrap_or_default();
                // The user's own sizes, where they fit.
                let fits = rest
                    .iter()
                    .zip(dims)
                    .all(|(own, dim)| *dim < 0 || own == dim);
                Some(input_lines(name, if fits { rest } else { dims }))
            }
            Self::UnknownInput {
                nearest: Some(nearest),
                ..
            } => Some(format!("[scenario.inputs.{}]", toml_key(nearest))),
            Self::InFile { problem, .. } => match problem.as_ref() {
                missing @ Self::MissingShape { .. } => missing.toml(),
                // The file is to be mended, not the thresholds.
                _ => None,
            },
            Self::BatchTooLarge { max, .. } => Some(format!("batch = {max}")),
            Self::NoBatching { .. } | Self::ZeroBatch => Some("batch = 1".to_owned()),
            _ => None,
        }
    }
}

/// The table of an input with a shape that fits; variable sizes get an example and a remark.
fn input_lines(name: &str, dims: &[i64]) -> String {
    // Images are what has three dimensions and more.
    let example = if dims.len() >= 3 { 224 } else { 1 };
    let shape: Vec<i64> = dims
        .iter()
        .map(|dim| if *dim < 0 { example } else { *dim })
        .collect();
    let remark = if dims.iter().any(|dim| *dim < 0) {
        format!("  # -1 in the model's {dims:?} is your choice")
    } else {
        String::new()
    };
    format!(
        "[scenario.inputs.{}]\nshape = {shape:?}{remark}",
        toml_key(name)
    )
}

/// The name as a TOML key, quoted where it has to be.
fn toml_key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        toml::Value::String(name.to_owned()).to_string()
    }
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

fn size(bytes: u128) -> String {
    const GIB: f64 = (1_u64 << 30) as f64;
    let gib = bytes as f64 / GIB;
    if gib < 1e6 {
        format!("{gib:.2} GiB")
    } else {
        format!("{gib:.1e} GiB")
    }
}
