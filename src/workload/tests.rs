use bytes::Bytes;
use proptest::prelude::*;
use prost::Message as _;

use super::{Payloads, Problem, WorkloadError, WorkloadSpec};
use crate::data::{DataSource, InputSpec, Value};
use crate::triton::proto::inference::ModelInferRequest;
use crate::triton::{Datatype, ModelSignature, TensorSpec};

fn tensor(name: &str, datatype: Datatype, dims: &[i64]) -> TensorSpec {
    TensorSpec {
        name: name.to_owned(),
        datatype,
        dims: dims.to_vec(),
        optional: false,
        shape_tensor: false,
        ragged: false,
    }
}

fn optional(mut tensor: TensorSpec) -> TensorSpec {
    tensor.optional = true;
    tensor
}

fn model(max_batch_size: u32, inputs: Vec<TensorSpec>) -> ModelSignature {
    ModelSignature {
        name: "net".to_owned(),
        version: String::new(),
        versions: vec!["1".to_owned()],
        platform: "python".to_owned(),
        max_batch_size,
        inputs,
        outputs: Vec::new(),
        decoupled: false,
        sequence: false,
        ensemble_steps: Vec::new(),
        response_cache: false,
        dynamic_batching: false,
    }
}

fn input(name: &str, shape: Option<&[i64]>, data: DataSource) -> InputSpec {
    InputSpec {
        name: name.to_owned(),
        shape: shape.map(<[i64]>::to_vec),
        data,
    }
}

const RANDOM: DataSource = DataSource::Random {
    range: None,
    length: None,
};

fn literal(toml: &str) -> DataSource {
    let table: toml::Table = format!("data = {toml}").parse().expect("valid TOML");
    match table.get("data") {
        Some(toml::Value::Array(values)) => DataSource::Literal(values.iter().map(value).collect()),
        other => panic!("not an array: {other:?}"),
    }
}

fn value(value: &toml::Value) -> Value {
    match value {
        toml::Value::Array(values) => Value::List(values.iter().map(self::value).collect()),
        toml::Value::Boolean(value) => Value::Bool(*value),
        toml::Value::Integer(number) => Value::Integer(i128::from(*number)),
        toml::Value::Float(number) => Value::Float(*number),
        toml::Value::String(text) => Value::Text(text.clone()),
        other @ (toml::Value::Datetime(_) | toml::Value::Table(_)) => {
            panic!("not a value: {other:?}")
        }
    }
}

fn make(
    model: &ModelSignature,
    inputs: &[InputSpec],
    batch: u32,
    seed: u64,
) -> Result<Payloads, WorkloadError> {
    let spec = WorkloadSpec {
        inputs,
        data: None,
        batch,
        seed,
        memory: None,
    };
    Payloads::build(model, spec)
}

fn build(model: &ModelSignature, specs: &[InputSpec], batch: u32) -> ModelInferRequest {
    let payloads = make(model, specs, batch, 1).expect("it fits");
    decode(&payloads.frames[0])
}

fn decode(frame: &Bytes) -> ModelInferRequest {
    ModelInferRequest::decode(frame.slice(5..)).expect("valid protobuf")
}

fn problems(model: &ModelSignature, specs: &[InputSpec], batch: u32) -> WorkloadError {
    make(model, specs, batch, 1).expect_err("it does not fit")
}

#[test]
fn the_batch_comes_first_but_for_shape_tensors() {
    let mut size = tensor("size", Datatype::Int32, &[2]);
    size.shape_tensor = true;
    let model = model(8, vec![tensor("x", Datatype::Fp32, &[3, 2]), size]);
    let request = build(&model, &[], 4);
    assert_eq!(request.inputs[0].shape, [4, 3, 2]);
    assert_eq!(request.inputs[1].shape, [2]);
    assert_eq!(request.raw_input_contents[0].len(), 4 * 6 * 4);
    assert_eq!(request.raw_input_contents[1].len(), 8);
    assert_eq!(request.model_name, "net");
    assert!(request.inputs.iter().all(|input| input.contents.is_none()));
}

#[test]
fn without_batching_there_is_no_batch_dimension() {
    let request = build(&model(0, vec![tensor("x", Datatype::Int8, &[5])]), &[], 1);
    assert_eq!(request.inputs[0].shape, [5]);
    assert_eq!(request.raw_input_contents[0].len(), 5);
}

#[test]
fn rows_of_a_batch_differ() {
    let model = model(8, vec![tensor("x", Datatype::Int64, &[16])]);
    let raw = &build(&model, &[], 2).raw_input_contents[0];
    assert_ne!(raw[..128], raw[128..]);
}

#[test]
fn every_datatype_has_zeros_and_random_values_of_its_size() {
    for datatype in Datatype::ALL {
        let model = model(2, vec![tensor("x", datatype, &[3])]);
        let zeros = build(&model, &[input("x", None, DataSource::Zero)], 2);
        let element = datatype.size().unwrap_or(4);
        assert_eq!(zeros.raw_input_contents[0], vec![0; 6 * element]);
        let random = build(&model, &[], 2);
        let element = datatype.size().unwrap_or(4 + 16);
        assert_eq!(random.raw_input_contents[0].len(), 6 * element);
        assert_eq!(random.inputs[0].datatype, datatype.name());
    }
}

#[test]
fn literals_become_the_bytes_of_their_datatype() {
    let table: [(Datatype, &str, &[u8]); 14] = [
        (Datatype::Bool, "[true, 0]", &[1, 0]),
        (Datatype::Uint8, "[255, 1]", &[255, 1]),
        (Datatype::Uint16, "[65535, 1]", &[255, 255, 1, 0]),
        (Datatype::Uint32, "[1, 2]", &[1, 0, 0, 0, 2, 0, 0, 0]),
        (
            Datatype::Uint64,
            "[1, 256]",
            &[1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (Datatype::Int8, "[-1, -128]", &[255, 128]),
        (Datatype::Int16, "[-2, 1]", &[254, 255, 1, 0]),
        (
            Datatype::Int32,
            "[-1, 1]",
            &[255, 255, 255, 255, 1, 0, 0, 0],
        ),
        (
            Datatype::Int64,
            "[-1, 1]",
            &[
                255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0,
            ],
        ),
        (Datatype::Fp16, "[1.0, -2]", &[0x00, 0x3c, 0x00, 0xc0]),
        (Datatype::Bf16, "[1, 1.5]", &[0x80, 0x3f, 0xc0, 0x3f]),
        (
            Datatype::Fp32,
            "[1, 0.5]",
            &[0, 0, 0x80, 0x3f, 0, 0, 0, 0x3f],
        ),
        (
            Datatype::Fp64,
            "[1, inf]",
            &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f],
        ),
        (
            Datatype::Bytes,
            r#"["hi", ""]"#,
            &[2, 0, 0, 0, b'h', b'i', 0, 0, 0, 0],
        ),
    ];
    for (datatype, text, bytes) in table {
        let model = model(0, vec![tensor("x", datatype, &[2])]);
        let request = build(&model, &[input("x", None, literal(text))], 1);
        assert_eq!(request.raw_input_contents[0], bytes, "{datatype}");
    }
}

#[test]
fn literals_may_be_nested_and_fill_one_row_or_all() {
    let model = model(4, vec![tensor("x", Datatype::Uint8, &[2, 2])]);
    for (text, expected) in [
        ("[1, 2, 3, 4]", &[1, 2, 3, 4, 1, 2, 3, 4][..]),
        ("[[1, 2], [3, 4]]", &[1, 2, 3, 4, 1, 2, 3, 4]),
        (
            "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]",
            &[1, 2, 3, 4, 5, 6, 7, 8],
        ),
        ("[1, 2, 3, 4, 5, 6, 7, 8]", &[1, 2, 3, 4, 5, 6, 7, 8]),
    ] {
        let request = build(&model, &[input("x", None, literal(text))], 2);
        assert_eq!(request.raw_input_contents[0], expected, "{text}");
    }
}

#[test]
fn a_written_out_value_brings_its_own_shape() {
    let model = model(4, vec![tensor("text", Datatype::Bytes, &[-1])]);
    let request = build(
        &model,
        &[input("text", None, literal(r#"["a", "bc", "d"]"#))],
        1,
    );
    assert_eq!(request.inputs[0].shape, [1, 3]);
    assert_eq!(request.raw_input_contents[0].len(), 3 * 4 + 4);
}

#[test]
fn wrong_literals_say_what_was_expected() {
    let table = [
        (
            Datatype::Int8,
            "[128, 0]",
            "value 1 is 128: expected an integer from -128 to 127",
        ),
        (
            Datatype::Uint32,
            "[0, -1]",
            "value 2 is -1: expected an integer from 0 to 4294967295",
        ),
        (Datatype::Int32, "[0, 1.0]", "expected an integer"),
        (
            Datatype::Fp16,
            "[65520, 0]",
            "expected a number from -6.5504e4 to 6.5504e4",
        ),
        (
            Datatype::Bf16,
            "[3.4e38, 0]",
            "expected a number from -3.389",
        ),
        (Datatype::Fp32, "[1e39, 0]", "expected a number from -3.402"),
        (
            Datatype::Fp32,
            r#"["1", 0]"#,
            r#"value 1 is "1": expected a number"#,
        ),
        (Datatype::Bool, "[2, 0]", "expected true or false"),
        (Datatype::Bytes, "[1, 0]", "expected a string"),
        (Datatype::Int32, "[1]", "1 values for shape [2]: expected 2"),
        (
            Datatype::Int32,
            "[[1], [2]]",
            "nested as [2, 1]: expected [2]",
        ),
        (Datatype::Int32, "[[1, 2, 3], [4]]", "differ in length"),
        (Datatype::Int32, "[true, 1]", "expected an integer"),
    ];
    for (datatype, text, part) in table {
        let model = model(4, vec![tensor("x", datatype, &[2])]);
        let batch = if part == "differ in length" { 2 } else { 1 };
        let specs = [input("x", None, literal(text))];
        let text = match make(&model, &specs, batch, 1) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{text} was taken"),
        };
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn zero_sized_dimensions_are_sent_as_no_bytes() {
    let model = model(
        8,
        vec![
            tensor("x", Datatype::Fp32, &[1, 0, 28]),
            tensor("y", Datatype::Bytes, &[-1]),
        ],
    );
    let request = build(&model, &[input("y", Some(&[0]), RANDOM)], 2);
    assert_eq!(request.inputs[0].shape, [2, 1, 0, 28]);
    assert!(request.raw_input_contents.iter().all(Bytes::is_empty));
    assert_eq!(request.raw_input_contents.len(), 2);
}

#[test]
fn optional_inputs_are_sent_only_where_they_are_mentioned() {
    let model = model(
        0,
        vec![
            tensor("x", Datatype::Fp32, &[1]),
            optional(tensor("y", Datatype::Fp32, &[1])),
        ],
    );
    assert_eq!(build(&model, &[], 1).inputs.len(), 1);
    let request = build(&model, &[input("y", None, DataSource::Zero)], 1);
    let names: Vec<&str> = request.inputs.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["x", "y"]);
}

#[test]
fn a_request_without_inputs_is_refused() {
    let all_optional = model(0, vec![optional(tensor("x", Datatype::Fp32, &[-1]))]);
    let text = problems(&all_optional, &[], 1).to_string();
    assert!(text.contains("all are optional: `x` FP32 [-1]"), "{text}");
    assert!(text.contains("[scenario.inputs.x]\nshape = [1]"), "{text}");
    let text = problems(&model(0, Vec::new()), &[], 1).to_string();
    assert!(text.contains("declares none"), "{text}");
}

#[test]
fn all_problems_come_at_once_with_the_lines_that_mend_them() {
    let model = model(
        4,
        vec![
            tensor("images", Datatype::Fp32, &[3, -1, -1]),
            tensor("mask", Datatype::Bool, &[2]),
            tensor("tokens", Datatype::Int32, &[-1]),
            tensor("scale", Datatype::Fp32, &[2, 2]),
        ],
    );
    let specs = [
        input("image", None, RANDOM),
        input("mask", Some(&[1, 2]), RANDOM),
        input("tokens", None, RANDOM),
        input("scale", Some(&[2, 3]), RANDOM),
    ];
    let text = problems(&model, &specs, 9).to_string();
    insta::assert_snapshot!(text);
}

#[test]
fn wrong_batches_and_shapes_are_told_apart() {
    let fixed = model(4, vec![tensor("x", Datatype::Fp32, &[3, 8])]);
    let plain = model(0, vec![tensor("x", Datatype::Fp32, &[3, 8])]);
    let name = || "x".to_owned();
    let dims = || vec![3, 8];
    let table: [(&ModelSignature, &[i64], u32, Problem); 8] = [
        (&fixed, &[3, 8], 0, Problem::ZeroBatch),
        (
            &fixed,
            &[3, 8],
            5,
            Problem::BatchTooLarge { batch: 5, max: 4 },
        ),
        (&plain, &[3, 8], 2, Problem::NoBatching { batch: 2 }),
        (
            &fixed,
            &[1, 3, 8],
            1,
            Problem::BatchDimension {
                name: name(),
                shape: vec![1, 3, 8],
                dims: dims(),
            },
        ),
        (
            &plain,
            &[1, 3, 8],
            1,
            Problem::Rank {
                name: name(),
                shape: vec![1, 3, 8],
                dims: dims(),
            },
        ),
        (
            &fixed,
            &[8],
            1,
            Problem::Rank {
                name: name(),
                shape: vec![8],
                dims: dims(),
            },
        ),
        (
            &fixed,
            &[3, 9],
            1,
            Problem::Dims {
                name: name(),
                shape: vec![3, 9],
                dims: dims(),
            },
        ),
        (
            &fixed,
            &[3, -1],
            1,
            Problem::NegativeDim {
                name: name(),
                shape: vec![3, -1],
                dims: dims(),
            },
        ),
    ];
    for (model, shape, batch, problem) in table {
        let error = problems(model, &[input("x", Some(shape), RANDOM)], batch);
        assert_eq!(error.problems, [problem]);
    }
}

#[test]
fn unsupported_models_and_doubled_inputs_are_refused() {
    let mut stream = model(0, vec![tensor("x", Datatype::Fp32, &[1])]);
    stream.decoupled = true;
    stream.sequence = true;
    let specs = [input("x", None, RANDOM), input("x", None, DataSource::Zero)];
    let error = problems(&stream, &specs, 1);
    let duplicate = Problem::Duplicate {
        name: "x".to_owned(),
    };
    assert_eq!(
        error.problems,
        [Problem::Decoupled, Problem::Sequence, duplicate]
    );
    assert!(error.to_string().contains("not supported yet"));
}

#[test]
fn absurd_sizes_are_refused_before_any_memory_is_taken() {
    let variable = model(
        8,
        vec![
            tensor("x", Datatype::Fp64, &[-1, -1]),
            tensor("small", Datatype::Fp32, &[1]),
        ],
    );
    let huge = i64::MAX;
    for shape in [[1 << 20, 1 << 12], [huge, huge], [huge, 2]] {
        let error = problems(&variable, &[input("x", Some(&shape), RANDOM)], 8);
        let [Problem::TooLarge { largest, .. }] = error.problems.as_slice() else {
            panic!("{error}");
        };
        assert_eq!(largest, "x");
    }
    let error = problems(
        &variable,
        &[input("x", Some(&[1 << 20, 1 << 12]), RANDOM)],
        8,
    );
    assert!(error.to_string().contains("256.00 GiB"), "{error}");
    let long = DataSource::Random {
        range: None,
        length: Some(u32::MAX),
    };
    let text = model(0, vec![tensor("t", Datatype::Bytes, &[1])]);
    let error = problems(&text, &[input("t", None, long)], 1);
    assert!(error.to_string().contains("4.00 GiB"), "{error}");
    // Nothing is sent, however large the other dimensions are.
    let none = build(&variable, &[input("x", Some(&[huge, 0]), RANDOM)], 1);
    assert!(none.raw_input_contents[0].is_empty());
}

#[test]
fn names_that_are_no_bare_keys_are_quoted() {
    let model = model(0, vec![tensor("a b:0", Datatype::Fp32, &[-1])]);
    let text = problems(&model, &[], 1).to_string();
    assert!(text.contains("[scenario.inputs.\"a b:0\"]"), "{text}");
}

#[test]
fn the_fingerprint_is_of_the_content_and_not_of_the_model() {
    let base = model(
        8,
        vec![
            tensor("x", Datatype::Fp32, &[4]),
            tensor("y", Datatype::Int32, &[4]),
        ],
    );
    let print = |model: &ModelSignature, batch, seed| {
        make(model, &[], batch, seed).expect("fits").fingerprint
    };
    let own = print(&base, 2, 1);
    assert_eq!(own.len(), 16);
    let mut other = base.clone();
    other.name = "other".to_owned();
    other.version = "7".to_owned();
    other.inputs.reverse();
    assert_eq!(own, print(&other, 2, 1));
    assert_ne!(own, print(&base, 1, 1));
    assert_ne!(own, print(&base, 2, 2));
    // The same bytes, of another datatype.
    let zeros = |datatype| {
        let model = model(0, vec![tensor("x", datatype, &[4])]);
        let specs = [input("x", None, DataSource::Zero)];
        make(&model, &specs, 1, 1).expect("fits").fingerprint
    };
    assert_ne!(zeros(Datatype::Fp32), zeros(Datatype::Int32));
}

#[test]
fn a_chosen_version_is_sent() {
    let mut model = model(0, vec![tensor("x", Datatype::Fp32, &[1])]);
    model.version = "3".to_owned();
    assert_eq!(build(&model, &[], 1).model_version, "3");
}

proptest! {
    #[test]
    fn what_is_accepted_has_the_size_its_shape_says(
        which in 0_usize..14,
        dims in proptest::collection::vec(-1_i64..5, 0..4),
        shape in proptest::option::of(proptest::collection::vec(-1_i64..5, 0..5)),
        max in 0_u32..4,
        batch in 0_u32..5,
        shape_tensor: bool,
    ) {
        let mut spec = tensor("x", Datatype::ALL[which], &dims);
        spec.shape_tensor = shape_tensor;
        let model = model(max, vec![spec]);
        let specs = [input("x", shape.as_deref(), RANDOM)];
        match make(&model, &specs, batch, 3) {
            Ok(payloads) => {
                let request = decode(&payloads.frames[0]);
                let wire = &request.inputs[0].shape;
                let batched = max > 0 && !shape_tensor;
                prop_assert_eq!(wire.len(), dims.len() + usize::from(batched));
                prop_assert!(!batched || wire[0] == i64::from(batch));
                prop_assert!(wire.iter().all(|dim| *dim >= 0));
                let elements: u64 = wire.iter().map(|dim| dim.unsigned_abs()).product();
                let element = Datatype::ALL[which].size().unwrap_or(20) as u64;
                prop_assert_eq!(request.raw_input_contents[0].len() as u64, elements * element);
                prop_assert_eq!(payloads.input_bytes, elements * element);
            }
            Err(error) => {
                prop_assert!(!error.problems.is_empty());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
