use std::fmt::Write as _;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::error::{Problem, WorkloadError};
use super::resolve::{DEFAULT_LENGTH, Resolved, resolve};
use super::{literal, random};
use crate::data::{DataSource, InputSpec};
use crate::triton::proto::inference::ModelInferRequest;
use crate::triton::proto::inference::model_infer_request::InferInputTensor;
use crate::triton::{Datatype, ModelSignature, encode};

/// What is sent to a model, ready for the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payloads {
    /// Complete gRPC messages for `ModelInfer`, sent in turn; at least one.
    pub frames: Vec<Bytes>,
    /// The first 16 hex digits of the SHA-256 over names, datatypes, shapes and data of all
    /// inputs. Not over the model's name and version: a reference model gets the same.
    pub fingerprint: String,
    /// Size of the inputs' data in one request, bytes.
    pub input_bytes: u64,
    /// The inputs in words, for people: `images FP32 [8, 3, 640, 640]`.
    pub inputs: Vec<String>,
}

impl Payloads {
    /// Checks what the scenario says about its inputs against the model, and makes the requests:
    /// the same bytes for the same arguments on every machine.
    ///
    /// Inputs that are not mentioned get random data if their shape is fixed; optional ones are
    /// left out. The error holds every problem at once.
    pub fn build(
        model: &ModelSignature,
        specs: &[InputSpec],
        batch: u32,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let failed = |problems| WorkloadError {
            model: model.name.clone(),
            problems,
        };
        let inputs = resolve(model, specs, batch).map_err(failed)?;
        let mut data = Vec::with_capacity(inputs.len());
        for input in &inputs {
            let bytes = make(input, seed).map_err(|reason| {
                failed(vec![Problem::Data {
                    name: input.name.to_owned(),
                    datatype: input.datatype,
                    reason,
                }])
            })?;
            data.push(Bytes::from(bytes));
        }
        let fingerprint = fingerprint(&inputs, &data);
        let input_bytes = data.iter().map(|bytes| bytes.len() as u64).sum();
        let request = ModelInferRequest {
            model_name: model.name.clone(),
            model_version: model.version.clone(),
            inputs: inputs
                .iter()
                .map(|input| InferInputTensor {
                    name: input.name.to_owned(),
                    datatype: input.datatype.name().to_owned(),
                    shape: input.wire_shape.clone(),
                    ..InferInputTensor::default()
                })
                .collect(),
            raw_input_contents: data,
            ..ModelInferRequest::default()
        };
        let frame = encode(&request).map_err(|error| failed(vec![error.into()]))?;
        Ok(Self {
            frames: vec![frame],
            fingerprint,
            input_bytes,
            inputs: inputs
                .iter()
                .map(|input| format!("{} {} {:?}", input.name, input.datatype, input.wire_shape))
                .collect(),
        })
    }
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
        DataSource::Zero => {}
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

fn fingerprint(inputs: &[Resolved<'_>], data: &[Bytes]) -> String {
    let mut sorted: Vec<(&Resolved<'_>, &Bytes)> = inputs.iter().zip(data).collect();
    // Another model may declare the same inputs in another order.
    sorted.sort_unstable_by_key(|(input, _)| input.name);
    let mut hasher = Sha256::new();
    let mut part = |bytes: &[u8]| {
        // Lengths first, so that no two payloads run together.
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for (input, bytes) in sorted {
        part(input.name.as_bytes());
        part(Datatype::name(input.datatype).as_bytes());
        let shape: Vec<u8> = input
            .wire_shape
            .iter()
            .flat_map(|dim| dim.to_le_bytes())
            .collect();
        part(&shape);
        part(bytes);
    }
    hasher
        .finalize()
        .iter()
        .take(8)
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
