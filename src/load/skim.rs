use thiserror::Error;

/// What of a response is worth keeping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The model version that answered.
    pub(crate) version: Short,
    /// The request id that came back.
    pub(crate) id: Short,
    /// Number of described outputs.
    pub(crate) outputs: u32,
    /// Bytes of all raw outputs.
    pub(crate) output_bytes: u64,
}

/// The first bytes of a text, kept without allocating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Short {
    bytes: [u8; Self::LONGEST],
    length: u8,
}

impl Short {
    const LONGEST: usize = 64;

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }

    fn push(&mut self, more: &[u8]) {
        let kept = usize::from(self.length);
        if let Some(room) = self.bytes.get_mut(kept..) {
            let taken = room.len().min(more.len());
            for (to, from) in room.iter_mut().zip(more) {
                *to = *from;
            }
            self.length += taken as u8;
        }
    }
}

impl Default for Short {
    fn default() -> Self {
        Self {
            bytes: [0; Self::LONGEST],
            length: 0,
        }
    }
}

/// Why the body of an answer is not one `ModelInferResponse`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum SkimError {
    #[error("the response is compressed though no compression was offered")]
    Compressed,
    #[error("the response starts with {0}, expected 0 (uncompressed)")]
    Flag(u8),
    #[error("the response holds more than one message")]
    Surplus,
    #[error("the response holds no message")]
    Empty,
    #[error("the response ends before its message is complete")]
    Truncated,
    #[error("a field of the response is longer than its message")]
    Field,
    #[error("a number in the response has more than 10 bytes")]
    Number,
    #[error("a field of the response has the unknown wire type {0}")]
    WireType(u8),
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Flag and length before the message.
    Prefix,
    /// A field's number and wire type.
    Key,
    /// A number to pass over.
    Number,
    /// The length of the given field.
    Length(u64),
    /// Bytes to pass over.
    Skip,
    Version,
    Id,
    /// The message is complete.
    Done,
}

/// Reads a response as it arrives, in pieces cut anywhere, and passes over tensors without
/// touching them.
#[derive(Debug)]
pub(crate) struct Skimmer {
    step: Step,
    prefix: [u8; 5],
    prefix_length: usize,
    /// Bytes of the message that are still to come.
    left: u64,
    /// Bytes of the field that are still to come.
    field_left: u64,
    number: u64,
    shift: u32,
    summary: Summary,
}

impl Skimmer {
    pub(crate) fn new() -> Self {
        Self {
            step: Step::Prefix,
            prefix: [0; 5],
            prefix_length: 0,
            left: 0,
            field_left: 0,
            number: 0,
            shift: 0,
            summary: Summary::default(),
        }
    }

    /// Forgets everything, ready for the next response.
    pub(crate) fn reset(&mut self) {
        *self = Self::new();
    }

    /// What was found so far.
    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Takes the next piece.
    pub(crate) fn feed(&mut self, mut piece: &[u8]) -> Result<(), SkimError> {
        while !piece.is_empty() {
            match self.step {
                Step::Prefix => self.read_prefix(&mut piece)?,
                Step::Key => {
                    if let Some(key) = self.read_number(&mut piece)? {
                        self.enter_field(key)?;
                    }
                }
                Step::Number => {
                    if self.read_number(&mut piece)?.is_some() {
                        self.end_field();
                    }
                }
                Step::Length(field) => {
                    if let Some(length) = self.read_number(&mut piece)? {
                        self.enter_bytes(field, length)?;
                    }
                }
                Step::Skip | Step::Version | Step::Id => self.read_bytes(&mut piece),
                Step::Done => return Err(SkimError::Surplus),
            }
        }
        Ok(())
    }

    /// Says whether exactly one complete message has been fed.
    pub(crate) fn finish(&self) -> Result<(), SkimError> {
        match self.step {
            Step::Done => Ok(()),
            Step::Prefix if self.prefix_length == 0 => Err(SkimError::Empty),
            _ => Err(SkimError::Truncated),
        }
    }

    fn read_prefix(&mut self, piece: &mut &[u8]) -> Result<(), SkimError> {
        while let (Some(slot), Some((byte, rest))) =
            (self.prefix.get_mut(self.prefix_length), piece.split_first())
        {
            *slot = *byte;
            self.prefix_length += 1;
            *piece = rest;
        }
        if self.prefix_length == self.prefix.len() {
            let [flag, a, b, c, d] = self.prefix;
            match flag {
                0 => {}
                1 => return Err(SkimError::Compressed),
                other => return Err(SkimError::Flag(other)),
            }
            self.left = u64::from(u32::from_be_bytes([a, b, c, d]));
            self.end_field();
        }
        Ok(())
    }

    /// A protobuf varint; none where the piece ended before it.
    fn read_number(&mut self, piece: &mut &[u8]) -> Result<Option<u64>, SkimError> {
        while let Some((byte, rest)) = piece.split_first() {
            if self.left == 0 {
                return Err(SkimError::Field);
            }
            if self.shift > 63 {
                return Err(SkimError::Number);
            }
            *piece = rest;
            self.left -= 1;
            self.number |= u64::from(byte & 0x7f) << self.shift;
            self.shift += 7;
            if byte & 0x80 == 0 {
                let number = self.number;
                self.number = 0;
                self.shift = 0;
                return Ok(Some(number));
            }
        }
        if self.left == 0 {
            return Err(SkimError::Field);
        }
        Ok(None)
    }

    fn enter_field(&mut self, key: u64) -> Result<(), SkimError> {
        // Every wire type is followed by at least one byte.
        if self.left == 0 {
            return Err(SkimError::Field);
        }
        match (key & 7) as u8 {
            0 => self.step = Step::Number,
            1 => return self.enter_bytes(0, 8),
            2 => self.step = Step::Length(key >> 3),
            5 => return self.enter_bytes(0, 4),
            other => return Err(SkimError::WireType(other)),
        }
        Ok(())
    }

    fn enter_bytes(&mut self, field: u64, length: u64) -> Result<(), SkimError> {
        if length > self.left {
            return Err(SkimError::Field);
        }
        self.field_left = length;
        self.step = match field {
            2 => {
                self.summary.version = Short::default();
                Step::Version
            }
            3 => {
                self.summary.id = Short::default();
                Step::Id
            }
            5 => {
                self.summary.outputs = self.summary.outputs.saturating_add(1);
                Step::Skip
            }
            6 => {
                self.summary.output_bytes += length;
                Step::Skip
            }
            _ => Step::Skip,
        };
        if length == 0 {
            self.end_field();
        }
        Ok(())
    }

    fn read_bytes(&mut self, piece: &mut &[u8]) {
        let taken = usize::try_from(self.field_left)
            .unwrap_or(usize::MAX)
            .min(piece.len());
        let (bytes, rest) = piece.split_at(taken);
        match self.step {
            Step::Version => self.summary.version.push(bytes),
            Step::Id => self.summary.id.push(bytes),
            _ => {}
        }
        *piece = rest;
        self.field_left -= taken as u64;
        self.left -= taken as u64;
        if self.field_left == 0 {
            self.end_field();
        }
    }

    fn end_field(&mut self) {
        self.step = if self.left == 0 {
            Step::Done
        } else {
            Step::Key
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;
    use crate::triton::proto::inference::{
        InferParameter, ModelInferResponse, infer_parameter::ParameterChoice,
        model_infer_response::InferOutputTensor,
    };

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut frame = vec![0];
        frame.extend((message.len() as u32).to_be_bytes());
        frame.extend(message);
        frame
    }

    fn skim(bytes: &[u8], cuts: &[usize]) -> Result<Summary, SkimError> {
        let mut skimmer = Skimmer::new();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut from = 0;
        for cut in cuts {
            skimmer.feed(&bytes[from..cut])?;
            from = cut;
        }
        skimmer.feed(&bytes[from..])?;
        skimmer.finish()?;
        Ok(skimmer.summary().clone())
    }

    fn response() -> impl Strategy<Value = ModelInferResponse> {
        (
            "[a-z]{0,20}",
            "[0-9]{0,64}",
            "[a-z]{0,64}",
            vec(("[a-z]{0,8}", vec(any::<i64>(), 0..4)), 0..4),
            vec(vec(any::<u8>(), 0..300), 0..4),
            any::<(i64, bool, f64)>(),
        )
            .prop_map(|(model_name, model_version, id, outputs, raw, values)| {
                let parameter = |choice| InferParameter {
                    parameter_choice: Some(choice),
                };
                ModelInferResponse {
                    model_name,
                    model_version,
                    id,
                    parameters: [
                        ("a".to_owned(), ParameterChoice::Int64Param(values.0)),
                        ("b".to_owned(), ParameterChoice::BoolParam(values.1)),
                        ("c".to_owned(), ParameterChoice::DoubleParam(values.2)),
                    ]
                    .into_iter()
                    .map(|(key, choice)| (key, parameter(choice)))
                    .collect(),
                    outputs: outputs
                        .into_iter()
                        .map(|(name, shape)| InferOutputTensor {
                            name,
                            shape,
                            ..InferOutputTensor::default()
                        })
                        .collect(),
                    raw_output_contents: raw.into_iter().map(Into::into).collect(),
                }
            })
    }

    proptest! {
        #[test]
        fn any_response_cut_anywhere_gives_what_decoding_gives(
            response in response(),
            cuts in vec(any::<usize>(), 0..20),
        ) {
            let frame = framed(&response.encode_to_vec());
            let summary = skim(&frame, &cuts).unwrap();
            prop_assert_eq!(summary.version.as_bytes(), response.model_version.as_bytes());
            prop_assert_eq!(summary.id.as_bytes(), response.id.as_bytes());
            prop_assert_eq!(summary.outputs as usize, response.outputs.len());
            let bytes: usize = response.raw_output_contents.iter().map(bytes::Bytes::len).sum();
            prop_assert_eq!(summary.output_bytes, bytes as u64);
        }

        #[test]
        fn a_response_that_ends_early_is_never_complete(
            response in response(),
            kept in any::<usize>(),
        ) {
            let frame = framed(&response.encode_to_vec());
            let kept = kept % frame.len();
            let expected = if kept == 0 { SkimError::Empty } else { SkimError::Truncated };
            prop_assert_eq!(skim(&frame[..kept], &[]), Err(expected));
        }

        #[test]
        fn garbage_never_panics_and_cuts_do_not_matter(
            bytes in vec(any::<u8>(), 0..400),
            cuts in vec(any::<usize>(), 0..20),
        ) {
            let framed = framed(&bytes);
            prop_assert_eq!(skim(&framed, &cuts), skim(&framed, &[]));
            prop_assert_eq!(skim(&bytes, &cuts), skim(&bytes, &[]));
        }
    }

    #[test]
    fn broken_bodies_are_named() {
        let long = [
            0x32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        let twelve = [0xff; 12];
        for (bytes, expected) in [
            (vec![1, 0, 0, 0, 0], SkimError::Compressed),
            (vec![7, 0, 0, 0, 0], SkimError::Flag(7)),
            (vec![0, 0, 0, 0, 0, 0], SkimError::Surplus),
            (framed(&[0x32, 5, 1]), SkimError::Field),
            (framed(&[0x32]), SkimError::Field),
            (framed(&[0x08, 0x80]), SkimError::Field),
            (framed(&long), SkimError::Field),
            (framed(&twelve), SkimError::Number),
            (framed(&[0x33, 1]), SkimError::WireType(3)),
        ] {
            assert_eq!(skim(&bytes, &[]), Err(expected), "{bytes:?}");
        }
        assert_eq!(skim(&framed(&[]), &[]), Ok(Summary::default()));
    }

    #[test]
    fn a_long_text_is_cut_and_the_last_one_wins() {
        let mut message = vec![0x12, 100];
        message.extend([b'x'; 100]);
        assert_eq!(
            skim(&framed(&message), &[]).unwrap().version.as_bytes(),
            [b'x'; 64]
        );
        message.extend([0x12, 1, b'7']);
        assert_eq!(
            skim(&framed(&message), &[]).unwrap().version.as_bytes(),
            b"7"
        );
    }
}
