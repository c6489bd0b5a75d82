//! The outputs of an answer, cut from buffers that are built once.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::datatype::Wire;
use super::spec::{Answer, ModelSpec, TensorSpec};
use super::texts::{self, Refusal};
use super::validate::{Accepted, elements};
use crate::triton::proto::inference::model_infer_response::InferOutputTensor;

/// Each element of a BYTES output: its length, then its text.
const TOKEN: [u8; 7] = *b"\x03\0\0\0tok";

/// A repeated pattern that grows to the largest size asked for and is shared by all answers.
#[derive(Debug)]
struct Pattern {
    unit: &'static [u8],
    buffer: Mutex<Bytes>,
}

impl Pattern {
    fn take(&self, bytes: usize) -> Bytes {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.len() < bytes {
            let times = bytes.div_ceil(self.unit.len().max(1)).next_power_of_two();
            *buffer = Bytes::from(self.unit.repeat(times));
        }
        buffer.slice(..bytes)
    }
}

/// Data for outputs.
#[derive(Debug)]
pub(crate) struct Filler {
    zeros: Pattern,
    tokens: Pattern,
}

impl Default for Filler {
    fn default() -> Self {
        let pattern = |unit| Pattern {
            unit,
            buffer: Mutex::default(),
        };
        Self {
            zeros: pattern(&[0; 64]),
            tokens: pattern(&TOKEN),
        }
    }
}

/// The tensors of an answer and, in the same order, their data.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outputs {
    pub(crate) tensors: Vec<InferOutputTensor>,
    pub(crate) raw: Vec<Bytes>,
}

impl Filler {
    /// The answer to a request.
    pub(crate) fn outputs(
        &self,
        model: &ModelSpec,
        request: &Accepted,
    ) -> Result<Outputs, Refusal> {
        let mut outputs = Outputs::default();
        let mut total = 0u64;
        for spec in request
            .outputs
            .iter()
            .filter_map(|index| model.outputs.get(*index))
        {
            let shape = shape(model, spec, request);
            let per_element = spec.datatype.size().unwrap_or(TOKEN.len() as u64);
            let bytes = elements(&shape).saturating_mul(per_element);
            total = total.saturating_add(bytes);
            if !texts::fits_in_a_message(total) {
                return Err(texts::response_too_large(total));
            }
            let echoed = match model.answer {
                Answer::Echo => echo(spec, &shape, bytes, request),
                Answer::Zeros => None,
            };
            outputs
                .raw
                .push(echoed.unwrap_or_else(|| match spec.datatype {
                    Wire::Bytes => self.tokens.take(bytes as usize),
                    _ => self.zeros.take(bytes as usize),
                }));
            outputs.tensors.push(InferOutputTensor {
                name: spec.name.clone(),
                datatype: spec.datatype.name().to_owned(),
                shape,
                ..InferOutputTensor::default()
            });
        }
        Ok(outputs)
    }
}

impl Outputs {
    /// One byte less than each shape needs.
    pub(crate) fn shorten(&mut self) {
        for raw in &mut self.raw {
            raw.truncate(raw.len().saturating_sub(1));
        }
    }
}

/// The output's shape; a variable dimension follows an input of the same rank, else it is 1.
fn shape(model: &ModelSpec, spec: &TensorSpec, request: &Accepted) -> Vec<i64> {
    let batch = (model.max_batch_size > 0).then_some(i64::from(request.batch));
    let rank = spec.dims.len() + usize::from(batch.is_some());
    let like = request
        .inputs
        .iter()
        .find(|input| input.shape.len() == rank);
    let offset = usize::from(batch.is_some());
    let dims = spec.dims.iter().enumerate().map(|(index, dim)| {
        if *dim >= 0 {
            return *dim;
        }
        like.and_then(|input| input.shape.get(index + offset))
            .copied()
            .unwrap_or(1)
    });
    batch.into_iter().chain(dims).collect()
}

/// An input of the same datatype and byte size; for BYTES, of as many elements.
fn echo(spec: &TensorSpec, shape: &[i64], bytes: u64, request: &Accepted) -> Option<Bytes> {
    let same = |input: &&super::validate::Input| {
        input.datatype == spec.datatype
            && match spec.datatype {
                Wire::Bytes => elements(&input.shape) == elements(shape),
                _ => input.raw.len() as u64 == bytes,
            }
    };
    request
        .inputs
        .iter()
        .find(same)
        .map(|input| input.raw.clone())
}

#[cfg(test)]
mod tests {
    use super::super::validate::Input;
    use super::*;

    fn request(shape: &[i64], raw: &[u8]) -> Accepted {
        Accepted {
            batch: shape.first().map_or(1, |batch| *batch as u32),
            inputs: vec![Input {
                datatype: Wire::Uint8,
                shape: shape.to_vec(),
                raw: Bytes::copy_from_slice(raw),
            }],
            outputs: vec![0],
            empty_final: false,
        }
    }

    #[test]
    fn variable_dimensions_follow_the_input_and_data_is_echoed() {
        let mut model =
            ModelSpec::new("m")
                .input("a", Wire::Uint8, &[-1])
                .output("b", Wire::Uint8, &[-1]);
        model.max_batch_size = 4;
        let request = request(&[2, 3], b"abcdef");
        let zeros = Filler::default().outputs(&model, &request).expect("small");
        assert_eq!(
            (&zeros.tensors[0].shape[..], &zeros.raw[0][..]),
            (&[2, 3][..], &[0u8; 6][..])
        );
        model.answer = Answer::Echo;
        let echoed = Filler::default().outputs(&model, &request).expect("small");
        assert_eq!(&echoed.raw[0][..], b"abcdef");
    }

    #[test]
    fn strings_are_tokens_and_buffers_are_shared() {
        let model = ModelSpec::new("m").output("text", Wire::Bytes, &[2]);
        let filler = Filler::default();
        let first = filler.outputs(&model, &request(&[1], b"x")).expect("small");
        let second = filler.outputs(&model, &request(&[1], b"x")).expect("small");
        assert_eq!(&first.raw[0][..], b"\x03\0\0\0tok\x03\0\0\0tok");
        assert_eq!(
            first.raw[0].as_ptr(),
            second.raw[0].as_ptr(),
            "not built twice"
        );
    }

    #[test]
    fn what_cannot_be_sent_is_refused_before_it_is_built() {
        let model = ModelSpec::new("m").output("big", Wire::Fp64, &[1 << 40, 1 << 40]);
        let refusal = Filler::default()
            .outputs(&model, &request(&[1], b"x"))
            .expect_err("huge");
        assert!(
            refusal
                .text
                .contains("exceeds gRPC's byte size limit 2147483647.")
        );
    }
}
