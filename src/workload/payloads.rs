use std::fmt::Write as _;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::error::{Problem, WorkloadError};
use super::join::{Part, count, part, size, starts};
use super::resolve::{DEFAULT_LENGTH, Resolved, Source, no_inputs, resolve};
use super::rows::Column;
use super::{literal, random};
use crate::data::{DataSource, InputData, InputSpec};
use crate::triton::proto::inference::ModelInferRequest;
use crate::triton::proto::inference::model_infer_request::InferInputTensor;
use crate::triton::{Datatype, MAX_MESSAGE_BYTES, ModelSignature, encode};

/// What a scenario says about its requests.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadSpec<'a> {
    /// What it says about single inputs.
    pub inputs: &'a [InputSpec],
    /// Its file of inputs, one request's after another, if it has one.
    pub data: Option<&'a InputData>,
    /// Inferences per request.
    pub batch: u32,
    /// Seed of random data and of the order of requests.
    pub seed: u64,
    /// Memory that the requests may take, bytes; none for as much as they want.
    pub memory: Option<u64>,
}

/// What is sent to a model, ready for the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payloads {
    /// Complete gRPC messages for `ModelInfer`, sent in turn; at least one. Where a file gives
    /// several, their order is shuffled by the seed, so that a file sorted by length does not
    /// make one block after another slower.
    pub frames: Vec<Bytes>,
    /// The first 16 hex digits of the SHA-256 over names, datatypes, shapes and data of all
    /// inputs. Not over the model's name and version: a reference model gets the same.
    pub fingerprint: String,
    /// Size of the inputs' data in a request, bytes; the mean where requests differ.
    pub input_bytes: u64,
    /// The inputs in words, for people: `images FP32 [8, 3, 640, 640]`.
    pub inputs: Vec<String>,
}

impl Payloads {
    /// Checks what the scenario says about its inputs against the model, and makes the requests:
    /// the same bytes for the same arguments on every machine.
    ///
    /// Inputs that are not mentioned get random data if their shape is fixed; optional ones are
    /// left out. A file's steps become requests of `batch` steps each, so many that each step is
    /// sent equally often. The error holds every problem at once.
    pub fn build(model: &ModelSignature, spec: WorkloadSpec<'_>) -> Result<Self, WorkloadError> {
        let failed = |problems| WorkloadError {
            model: model.name.clone(),
            problems,
        };
        let one = |problem| failed(vec![problem]);
        let sources = resolve(model, spec.inputs, spec.data, spec.batch).map_err(failed)?;
        let starts = starts(count(&columns(&sources)).map_err(one)?, spec.batch);
        check_size(&sources, &starts, spec).map_err(one)?;
        let constants = constants(&sources, spec.seed).map_err(one)?;
        let place = |row: usize| match spec.data {
            Some(data) => data
                .steps
                .get(row)
                .map_or_else(|| format!("row {row}"), |step| step.place.clone()),
            None => format!("row {row}"),
        };

        let mut fingerprint = Fingerprint::default();
        let mut frames = Vec::with_capacity(starts.len());
        let mut bytes = 0;
        let mut words = Vec::new();
        for &start in &starts {
            let mut parts = Vec::with_capacity(sources.len());
            for (source, constant) in sources.iter().zip(&constants) {
                match (source, constant) {
                    (Source::Rows(column), _) => {
                        parts.extend(part(column, start, spec.batch, &place).map_err(one)?);
                    }
                    (Source::Constant(_), Some(part)) => parts.push(part.clone()),
                    (Source::Constant(_), None) => {}
                }
            }
            if parts.is_empty() {
                return Err(one(no_inputs(model)));
            }
            fingerprint.request(&parts);
            bytes += parts.iter().map(|part| part.data.len() as u64).sum::<u64>();
            describe(&mut words, &parts);
            frames.push(frame(model, parts).map_err(one)?);
        }
        let input_bytes = bytes / frames.len().max(1) as u64;
        random::shuffle(&mut frames, spec.seed);
        Ok(Self {
            fingerprint: fingerprint.finish(),
            input_bytes,
            inputs: in_words(words, frames.len()),
            frames,
        })
    }
}

fn columns<'s, 'a>(sources: &'s [Source<'a>]) -> Vec<&'s Column<'a>> {
    sources
        .iter()
        .filter_map(|source| match source {
            Source::Rows(column) => Some(column),
            Source::Constant(_) => None,
        })
        .collect()
}

/// Whether every request is one that Triton accepts, and all of them fit into memory; before any
/// of them is made.
fn check_size(
    sources: &[Source<'_>],
    starts: &[usize],
    spec: WorkloadSpec<'_>,
) -> Result<(), Problem> {
    let mut all = 0_u128;
    for &start in starts {
        let sizes = || {
            sources.iter().map(|source| match source {
                Source::Constant(input) => (input.name, input.bytes()),
                Source::Rows(column) => (column.name, size(column, start, spec.batch)),
            })
        };
        let bytes = sizes().fold(0_u128, |sum, (_, bytes)| sum.saturating_add(bytes));
        all = all.saturating_add(bytes);
        if bytes > u128::from(MAX_MESSAGE_BYTES) {
            let largest = sizes().max_by_key(|(_, bytes)| *bytes);
            return Err(Problem::TooLarge {
                bytes,
                batch: spec.batch,
                largest: largest.map_or_else(String::new, |(name, _)| name.to_owned()),
            });
        }
    }
    match spec.memory {
        Some(available) if all > u128::from(available) => Err(Problem::Memory {
            bytes: all,
            available: u128::from(available),
        }),
        _ => Ok(()),
    }
}

/// The inputs that every request carries alike, each made once; none for a column.
fn constants<'a>(sources: &[Source<'a>], seed: u64) -> Result<Vec<Option<Part<'a>>>, Problem> {
    sources
        .iter()
        .map(|source| match source {
            Source::Rows(_) => Ok(None),
            Source::Constant(input) => match make(input, seed) {
                Ok(data) => Ok(Some(Part {
                    name: input.name,
                    datatype: input.datatype,
                    wire_shape: input.wire_shape.clone(),
                    data: Bytes::from(data),
                })),
                Err(reason) => Err(Problem::Data {
                    name: input.name.to_owned(),
                    datatype: input.datatype,
                    reason,
                }),
            },
        })
        .collect()
}

/// One complete gRPC message.
fn frame(model: &ModelSignature, parts: Vec<Part<'_>>) -> Result<Bytes, Problem> {
    let (mut inputs, mut data) = (Vec::new(), Vec::new());
    for part in parts {
        inputs.push(InferInputTensor {
            name: part.name.to_owned(),
            datatype: part.datatype.name().to_owned(),
            shape: part.wire_shape,
            ..InferInputTensor::default()
        });
        data.push(part.data);
    }
    let request = ModelInferRequest {
        model_name: model.name.clone(),
        model_version: model.version.clone(),
        inputs,
        raw_input_contents: data,
        ..ModelInferRequest::default()
    };
    encode(&request).map_err(Problem::from)
}

/// An input over all requests, for people.
struct Words {
    name: String,
    datatype: Datatype,
    shape: Vec<i64>,
    differs: bool,
    requests: usize,
}

fn describe(words: &mut Vec<Words>, parts: &[Part<'_>]) {
    for part in parts {
        match words.iter_mut().find(|word| word.name == part.name) {
            Some(word) => {
                word.differs |= word.shape != part.wire_shape;
                word.requests += 1;
            }
            None => words.push(Words {
                name: part.name.to_owned(),
                datatype: part.datatype,
                shape: part.wire_shape.clone(),
                differs: false,
                requests: 1,
            }),
        }
    }
}

fn in_words(words: Vec<Words>, requests: usize) -> Vec<String> {
    let mut lines: Vec<String> = words
        .into_iter()
        .map(|word| {
            let shape = if word.differs {
                "of several shapes".to_owned()
            } else {
                format!("{:?}", word.shape)
            };
            let some = if word.requests < requests {
                format!(" (in {} of them)", word.requests)
            } else {
                String::new()
            };
            format!("{} {} {shape}{some}", word.name, word.datatype)
        })
        .collect();
    if requests > 1 {
        lines.insert(0, format!("{requests} requests in turn"));
    }
    lines
}

/// The data of one input on the wire, allocated once.
fn make(input: &Resolved<'_>, seed: u64) -> Result<Vec<u8>, String> {
    let too_large = || "too large for this machine".to_owned();
    let size = usize::try_from(input.bytes()).map_err(|_| too_large())?;
    let elements = u64::try_from(input.elements()).map_err(|_| too_large())?;
    if matches!(input.data.as_ref(), DataSource::Zero) {
        // An empty string is its length of 0, in 4 bytes: all zeros as well.
        return Ok(vec![0; size]);
    }
    let mut buffer = Vec::with_capacity(size);
    match input.data.as_ref() {
        DataSource::Zero | DataSource::File(_) => {}
        DataSource::Random { range, length } => random::fill(
            &mut buffer,
            input.datatype,
            elements,
            *range,
            length.unwrap_or(DEFAULT_LENGTH),
            seed,
            input.name,
        ),
        DataSource::Literal(values) => literal::fill(
            &mut buffer,
            input.datatype,
            values,
            input.row_elements,
            input.rows,
        )?,
    }
    debug_assert_eq!(buffer.len(), size, "the size was known beforehand");
    Ok(buffer)
}

/// Of all requests, in the file's order.
#[derive(Default)]
struct Fingerprint(Sha256);

impl Fingerprint {
    fn request(&mut self, parts: &[Part<'_>]) {
        let mut sorted: Vec<&Part<'_>> = parts.iter().collect();
        // Another model may declare the same inputs in another order.
        sorted.sort_unstable_by_key(|part| part.name);
        let mut add = |bytes: &[u8]| {
            // Lengths first, so that no two payloads run together.
            self.0.update((bytes.len() as u64).to_le_bytes());
            self.0.update(bytes);
        };
        for part in sorted {
            add(part.name.as_bytes());
            add(Datatype::name(part.datatype).as_bytes());
            let shape: Vec<u8> = part
                .wire_shape
                .iter()
                .flat_map(|dim| dim.to_le_bytes())
                .collect();
            add(&shape);
            add(&part.data);
        }
    }

    fn finish(self) -> String {
        self.0
            .finalize()
            .iter()
            .take(8)
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
    }
}
