use tonic::Code;

use super::*;
use crate::simulate::{ErrorKind, FaultSpec};
use crate::triton::proto::inference::InferTensorContents;
use crate::triton::proto::inference::model_infer_request::InferRequestedOutputTensor;

/// Models for the table: plain, without batches, with optional inputs, and with strings.
fn models() -> Vec<ModelSpec> {
    let mut pair = ModelSpec::new("pair")
        .input("a", Wire::Fp32, &[16])
        .input("b", Wire::Int8, &[-1])
        .output("out", Wire::Fp32, &[1]);
    pair.max_batch_size = 4;
    let flat = ModelSpec::new("flat").input("a", Wire::Fp32, &[16]);
    let mut optional = ModelSpec::new("optional")
        .input("a", Wire::Fp32, &[1])
        .input("o", Wire::Fp32, &[1])
        .input("p", Wire::Fp32, &[1]);
    optional.inputs[1].optional = true;
    optional.inputs[2].optional = true;
    let text = ModelSpec::new("text").input("t", Wire::Bytes, &[2]);
    let mut streaming = ModelSpec::new("streaming").input("t", Wire::Bytes, &[1]);
    streaming.decoupled = true;
    let mut unloaded = unit("unloaded");
    unloaded.load_error = Some("broken".to_owned());
    let mut never = unit("never");
    never.loaded = false;
    vec![pair, flat, optional, text, streaming, unloaded, never]
}

/// A request from (name, datatype, shape, raw bytes).
fn ask(model: &str, inputs: &[(&str, &str, &[i64], usize)]) -> ModelInferRequest {
    ModelInferRequest {
        model_name: model.to_owned(),
        id: "7".to_owned(),
        inputs: inputs
            .iter()
            .map(|(name, kind, shape, _)| tensor(name, kind, shape))
            .collect(),
        raw_input_contents: inputs
            .iter()
            .map(|(.., n)| Bytes::from(vec![0; *n]))
            .collect(),
        ..ModelInferRequest::default()
    }
}

fn pair() -> ModelInferRequest {
    ask(
        "pair",
        &[("a", "FP32", &[1, 16], 64), ("b", "INT8", &[1, 3], 3)],
    )
}

fn edit(
    mut request: ModelInferRequest,
    edit: impl FnOnce(&mut ModelInferRequest),
) -> ModelInferRequest {
    edit(&mut request);
    request
}

fn text(raw: &[u8]) -> ModelInferRequest {
    edit(ask("text", &[("t", "BYTES", &[2], 0)]), |request| {
        request.raw_input_contents = vec![Bytes::copy_from_slice(raw)];
    })
}

fn to_version(model: &str, version: &str) -> ModelInferRequest {
    ModelInferRequest {
        model_name: model.to_owned(),
        model_version: version.to_owned(),
        ..ModelInferRequest::default()
    }
}

fn typed(set: impl FnOnce(&mut InferTensorContents)) -> InferTensorContents {
    let mut contents = InferTensorContents::default();
    set(&mut contents);
    contents
}

#[tokio::test]
async fn requests_are_refused_with_the_texts_of_triton() {
    use Code::{Internal, InvalidArgument, NotFound, Unavailable, Unimplemented};
    use ParameterChoice::{BoolParam, Int64Param, StringParam, Uint64Param};
    let table: Vec<(ModelInferRequest, Code, &str)> = vec![
        (
            to_version("x", ""),
            NotFound,
            "Request for unknown model: 'x' is not found",
        ),
        (
            to_version("x", "2"),
            NotFound,
            "Request for unknown model: 'x' is not found",
        ),
        (
            to_version("never", ""),
            NotFound,
            "Request for unknown model: 'never' is not found",
        ),
        (
            to_version("pair", "9"),
            NotFound,
            "Request for unknown model: 'pair' version 9 is not found",
        ),
        (
            to_version("pair", "new"),
            InvalidArgument,
            "failed to get model version from specified version string 'new' (details: stol), \
             version should be an integral value > 0",
        ),
        (
            to_version("pair", "-2"),
            InvalidArgument,
            "invalid model version specified '-2' , version should be an integral value > 0",
        ),
        (
            to_version("unloaded", ""),
            NotFound,
            "Request for unknown model: 'unloaded' has no available versions",
        ),
        (
            to_version("unloaded", "1"),
            Unavailable,
            "Request for unknown model: 'unloaded' version 1 is not at ready state",
        ),
        (
            to_version("streaming", ""),
            Unimplemented,
            "ModelInfer RPC doesn't support models with decoupled transaction policy",
        ),
        (
            with_parameter(pair(), "triton_secret", BoolParam(true)),
            InvalidArgument,
            "parameter keys starting with 'triton_' are reserved for Triton usage. Only the \
             following keys starting with 'triton_' are allowed: \
             triton_enable_empty_final_response",
        ),
        (
            with_parameter(pair(), "timeout", StringParam("1s".to_owned())),
            InvalidArgument,
            "invalid value type for 'timeout' parameter, expected int64_param.",
        ),
        (
            with_parameter(pair(), "sequence_start", Int64Param(1)),
            InvalidArgument,
            "invalid value type for 'sequence_start' parameter, expected bool_param.",
        ),
        (
            with_parameter(pair(), "priority", Int64Param(-1)),
            InvalidArgument,
            "invalid value for 'priority', expected value >= 0.",
        ),
        (
            with_parameter(pair(), "mine", Uint64Param(1)),
            InvalidArgument,
            "invalid value type for 'mine' parameter, expected int64_param, bool_param, or \
             string_param.",
        ),
        (
            edit(pair(), |r| r.inputs[1].name = "a".to_owned()),
            InvalidArgument,
            "[request id: 7] input 'a' already exists in request",
        ),
        (
            edit(pair(), |r| r.raw_input_contents.truncate(1)),
            InvalidArgument,
            "unable to find data for input tensor 'b' for model 'pair' in request.",
        ),
        (
            edit(pair(), |r| {
                r.inputs[0].contents = Some(InferTensorContents::default());
            }),
            InvalidArgument,
            "contents field must not be specified when using raw_input_contents for 'a' for \
             model 'pair'",
        ),
        (
            edit(ask("flat", &[("a", "FP32", &[16], 0)]), |r| {
                r.raw_input_contents.clear();
                r.inputs[0].contents = Some(typed(|c| c.int_contents = vec![1; 16]));
            }),
            InvalidArgument,
            "unexpected explicit tensor data for input tensor 'a' for model 'flat' of type \
             'INT32', expected datatype 'FP32'",
        ),
        (
            edit(pair(), |r| {
                r.outputs = vec![InferRequestedOutputTensor {
                    name: "nope".to_owned(),
                    ..InferRequestedOutputTensor::default()
                }];
            }),
            InvalidArgument,
            "unexpected inference output 'nope' for model 'pair'",
        ),
        (
            edit(pair(), |r| {
                r.inputs.truncate(1);
            }),
            InvalidArgument,
            "[request id: 7] expected 2 inputs but got 1 inputs for model 'pair'. Got input(s) \
             ['a'], but missing required input(s) ['b']. Please provide all required input(s).",
        ),
        (
            edit(pair(), |r| {
                r.id.clear();
                r.inputs.push(tensor("c", "FP32", &[1, 1]));
                r.raw_input_contents.push(Bytes::new());
            }),
            InvalidArgument,
            "[request id: <id_unknown>] expected 2 inputs but got 3 inputs for model 'pair'. Got \
             input(s) ['a','b','c'], but missing required input(s) ]. Please provide all required \
             input(s).",
        ),
        (
            ask("optional", &[]),
            InvalidArgument,
            "[request id: 7] expected number of inputs between 1 and 3 but got 0 inputs for model \
             'optional'. Got input(s) ], but missing required input(s) ['a']. Please provide all \
             required input(s).",
        ),
        (
            edit(pair(), |r| r.inputs[1].name = "z".to_owned()),
            InvalidArgument,
            "unexpected inference input 'z' for model 'pair'",
        ),
        (
            edit(pair(), |r| r.inputs[0].shape.clear()),
            InvalidArgument,
            "[request id: 7] input 'a' has no shape but model requires batch dimension for 'pair'",
        ),
        (
            edit(pair(), |r| r.inputs[0].shape = vec![1, -1]),
            InvalidArgument,
            "[request id: 7] All input dimensions should be specified for input 'a' for model \
             'pair', got [1,-1]",
        ),
        (
            edit(pair(), |r| r.inputs[1].shape = vec![2, 3]),
            InvalidArgument,
            "[request id: 7] input 'b' batch size does not match other inputs for 'pair'",
        ),
        (
            edit(pair(), |r| {
                r.inputs.iter_mut().for_each(|input| input.shape[0] = 5);
            }),
            InvalidArgument,
            "[request id: 7] inference request batch-size must be <= 4 for 'pair'",
        ),
        (
            edit(pair(), |r| r.inputs[0].datatype = "INT32".to_owned()),
            InvalidArgument,
            "[request id: 7] inference input 'a' data-type is 'INT32', but model 'pair' expects \
             'FP32'",
        ),
        (
            edit(pair(), |r| r.inputs[0].datatype = "FP8".to_owned()),
            InvalidArgument,
            "[request id: 7] inference input 'a' data-type is '<invalid>', but model 'pair' \
             expects 'FP32'",
        ),
        (
            edit(pair(), |r| r.inputs[0].shape = vec![1, 15]),
            InvalidArgument,
            "[request id: 7] unexpected shape for input 'a' for model 'pair'. Expected [-1,16], \
             got [1,15]. NOTE: Setting a non-zero max_batch_size means that a batch dimension \
             comes first in every input shape.",
        ),
        (
            ask("flat", &[("a", "FP32", &[15], 60)]),
            InvalidArgument,
            "[request id: 7] unexpected shape for input 'a' for model 'flat'. Expected [16], got \
             [15]. ",
        ),
        (
            edit(pair(), |r| r.raw_input_contents[0].truncate(63)),
            InvalidArgument,
            "[request id: 7] input byte size mismatch for input 'a' for model 'pair'. Expected \
             64, got 63",
        ),
        (
            edit(pair(), |r| {
                r.inputs.iter_mut().for_each(|input| input.shape[0] = 0);
            }),
            InvalidArgument,
            "[request id: 7] input byte size mismatch for input 'a' for model 'pair'. Expected 0, \
             got 64",
        ),
        (
            text(b"\0\0\0\0\0\0"),
            InvalidArgument,
            "[request id: 7] incomplete string length indicator for inference input 't' for model \
             'text', expecting 4 bytes but only 2 bytes available. Please make sure the string \
             length indicator is in one buffer.",
        ),
        (
            text(b"\0\0\0\0\0\0\0\0\0\0\0\0"),
            InvalidArgument,
            "[request id: 7] unexpected number of string elements 3 for inference input 't' for \
             model 'text', expecting 2",
        ),
        (
            text(b"\x01\0\0\0x"),
            InvalidArgument,
            "[request id: 7] expected 2 string elements for inference input 't' for model 'text', \
             got 1",
        ),
        (
            text(b"\x09\0\0\0x"),
            Internal,
            "incomplete string data for inference input 't', expecting string of length 9 but \
             only 1 bytes available",
        ),
        (
            edit(pair(), |r| {
                let region = StringParam("r".to_owned());
                let parameter = InferParameter {
                    parameter_choice: Some(region),
                };
                r.inputs[0]
                    .parameters
                    .insert("shared_memory_region".to_owned(), parameter);
            }),
            NotFound,
            "Unable to find shared memory region: 'r'",
        ),
    ];
    let running = start(models());
    let mut client = connect(&running).await;
    for (request, code, text) in table {
        let model = request.model_name.clone();
        let refused = client.model_infer(request).await.expect_err(text);
        assert_eq!((refused.code(), refused.message()), (code, text), "{model}");
    }
    // None of them reached the scheduler.
    assert_eq!(counts(&statistics(&mut client, "pair", "1").await), [0; 8]);
    assert_eq!(running.requests("pair"), 0);
    client
        .model_infer(pair())
        .await
        .expect("the request behind the table is sound");
    assert_eq!(running.requests("pair"), 1);
}

#[tokio::test]
async fn presence_of_inputs_goes_by_count() {
    let running = start(models());
    let mut client = connect(&running).await;
    let request = ask("optional", &[("o", "FP32", &[1], 4)]);
    client
        .model_infer(request)
        .await
        .expect("passes validation, as in Triton");
}

#[tokio::test]
async fn every_error_of_a_fault_has_its_code_and_text() {
    use Code::{Internal, InvalidArgument, NotFound, Unavailable};
    let table = [
        (
            ErrorKind::UnknownModel,
            NotFound,
            "Request for unknown model: 'm' is not found",
        ),
        (
            ErrorKind::UnknownVersion,
            NotFound,
            "Request for unknown model: 'm' version 1 is not found",
        ),
        (
            ErrorKind::NoVersions,
            NotFound,
            "Request for unknown model: 'm' has no available versions",
        ),
        (
            ErrorKind::VersionNotReady,
            Unavailable,
            "Request for unknown model: 'm' version 1 is not at ready state",
        ),
        (
            ErrorKind::QueueFull,
            Unavailable,
            "[request id: r1] Exceeds maximum queue size",
        ),
        (
            ErrorKind::QueueTimeout,
            Unavailable,
            "Request timeout expired",
        ),
        (
            ErrorKind::ShuttingDown,
            Unavailable,
            "[request id: r1] Server is stopping, scheduler for model has stopped accepting new \
             inference requests",
        ),
        (
            ErrorKind::FrontEndClosed,
            Unavailable,
            "GRPC server is shutting down and has stopped accepting new requests.",
        ),
        (ErrorKind::ServerNotReady, Unavailable, "Server not ready"),
        (
            ErrorKind::Restricted,
            Unavailable,
            "This protocol is restricted, expecting header 'triton-grpc-protocol-key'",
        ),
        (
            ErrorKind::Execution,
            Internal,
            "Failed to process the request(s) for model 'm_0_0', message: RuntimeError: \
             simulated failure\n\nAt:\n  /models/m/1/model.py(1): execute\n",
        ),
        (ErrorKind::ModelError, Internal, "simulated model error"),
        (ErrorKind::BadRequest, Internal, "Unable to parse request"),
        (
            ErrorKind::ResponseTooLarge,
            InvalidArgument,
            "Response has byte size 2147483648 which exceeds gRPC's byte size limit 2147483647.",
        ),
    ];
    let mut model = unit("m");
    for (index, (kind, ..)) in table.iter().enumerate() {
        model = model.fault(FaultSpec::error(*kind).at_request(index as u64 + 1));
    }
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    for (kind, code, text) in table {
        let refused = client.model_infer(request("m", 1)).await.expect_err(text);
        assert_eq!(
            (refused.code(), refused.message()),
            (code, text),
            "{kind:?}"
        );
    }
    client
        .model_infer(request("m", 1))
        .await
        .expect("after the last fault");
    // A queue timeout and an exception fail; an error object that the model returned is counted
    // as a success; the others never reached the scheduler. Both that ran are executions.
    assert_eq!(
        counts(&statistics(&mut client, "m", "1").await),
        [2, 2, 2, 2, 0, 0, 2, 3]
    );
}
