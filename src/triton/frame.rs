use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use super::proto::inference::ModelInferRequest;

/// The largest message that Triton takes: its receive limit is the largest 32-bit integer.
pub const MAX_MESSAGE_BYTES: u64 = i32::MAX as u64;

/// One byte of compression flag, four of length.
const PREFIX_BYTES: usize = 5;

/// Why a request cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Larger than any Triton accepts.
    #[error(
        "the request is {bytes} bytes ({gib:.2} GiB), more than the {MAX_MESSAGE_BYTES} bytes that Triton's gRPC endpoint accepts: lower the batch or the shapes",
        gib = *bytes as f64 / f64::from(1_u32 << 30)
    )]
    TooLarge {
        /// Size of the encoded message.
        bytes: u64,
    },
}

/// The request as one complete gRPC message: length prefix and protobuf in one buffer, which is
/// allocated once, at its final size.
pub fn encode(request: &ModelInferRequest) -> Result<Bytes, FrameError> {
    let length = request.encoded_len();
    let prefix = match u32::try_from(length) {
        Ok(prefix) if u64::from(prefix) <= MAX_MESSAGE_BYTES => prefix,
        _ => {
            return Err(FrameError::TooLarge {
                bytes: length as u64,
            });
        }
    };
    let mut buffer = BytesMut::with_capacity(PREFIX_BYTES + length);
    buffer.put_u8(0);
    buffer.put_u32(prefix);
    request.encode_raw(&mut buffer);
    Ok(buffer.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triton::proto::inference::model_infer_request::InferInputTensor;

    fn request(raw: Bytes) -> ModelInferRequest {
        ModelInferRequest {
            model_name: "m".to_owned(),
            inputs: vec![InferInputTensor {
                name: "x".to_owned(),
                datatype: "UINT8".to_owned(),
                shape: vec![1],
                ..InferInputTensor::default()
            }],
            raw_input_contents: vec![raw],
            ..ModelInferRequest::default()
        }
    }

    #[test]
    fn the_prefix_holds_the_length_and_the_rest_decodes() {
        let request = request(Bytes::from(vec![7; 100_000]));
        let frame = encode(&request).expect("small");
        assert_eq!(frame[0], 0);
        let length = u32::from_be_bytes([frame[1], frame[2], frame[3], frame[4]]);
        assert_eq!(length as usize, frame.len() - 5);
        assert_eq!(
            ModelInferRequest::decode(frame.slice(5..)).expect("valid protobuf"),
            request
        );
    }

    #[test]
    fn the_buffer_has_its_final_size_from_the_start() {
        let frame = encode(&request(Bytes::from(vec![7; 12_345]))).expect("small");
        let length = frame.len();
        let buffer = frame.try_into_mut().expect("only owner");
        assert_eq!(buffer.capacity(), length);
    }

    #[test]
    fn beyond_the_limit_the_size_is_said() {
        // The same 512 MiB five times over: no more memory is used than once.
        let part = Bytes::from(vec![0; 512 << 20]);
        let mut request = request(part.clone());
        request.raw_input_contents = vec![part; 5];
        let error = encode(&request).expect_err("2.5 GiB");
        let text = error.to_string();
        assert!(text.contains("2.50 GiB"), "{text}");
        assert!(text.contains("2147483647"), "{text}");
    }
}
