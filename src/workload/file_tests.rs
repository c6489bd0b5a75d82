//! Inputs from files: what is sent, and what is said where they do not fit the model.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;

use super::{Payloads, WorkloadError, WorkloadSpec};
use crate::data::{
    Content, DataSource, FileContent, InputData, InputFile, InputSpec, Step, TensorData, Texts,
    Value,
};
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

fn model(max_batch_size: u32, inputs: Vec<TensorSpec>) -> ModelSignature {
    ModelSignature {
        name: "net".to_owned(),
        version: String::new(),
        versions: vec!["1".to_owned()],
        platform: "python".to_owned(),
        max_batch_size,
        inputs,
        outputs: vec![tensor("Y", Datatype::Int32, &[2])],
        decoupled: false,
        sequence: false,
        ensemble_steps: Vec::new(),
        response_cache: false,
        dynamic_batching: false,
    }
}

/// Reads JSON as the file `in.json` would be.
fn json(text: &str) -> InputData {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("in.json");
    std::fs::write(&path, text).expect("written");
    InputData {
        path: "in.json".into(),
        ..crate::input::data(&path).expect("reads")
    }
}

fn file(content: FileContent) -> DataSource {
    DataSource::File(Arc::new(InputFile {
        path: "x.dat".into(),
        content,
        digest: String::new(),
    }))
}

fn plain(data: &[u8], texts: Texts) -> DataSource {
    file(FileContent::Plain {
        data: Bytes::copy_from_slice(data),
        texts,
    })
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

fn build(
    model: &ModelSignature,
    inputs: &[InputSpec],
    data: Option<&InputData>,
    batch: u32,
) -> Result<Payloads, WorkloadError> {
    let spec = WorkloadSpec {
        inputs,
        data,
        batch,
        seed: 7,
        memory: None,
    };
    Payloads::build(model, spec)
}

/// What the requests carry for an input, in the file's order again: shape and bytes.
fn sent(payloads: &Payloads, name: &str) -> Vec<(Vec<i64>, Vec<u8>)> {
    let mut found: Vec<(Vec<i64>, Vec<u8>)> = payloads
        .frames
        .iter()
        .filter_map(|frame| {
            let request = ModelInferRequest::decode(frame.slice(5..)).expect("valid protobuf");
            let at = request.inputs.iter().position(|input| input.name == name)?;
            let shape = request.inputs[at].shape.clone();
            Some((shape, request.raw_input_contents[at].to_vec()))
        })
        .collect();
    found.sort();
    found
}

fn bytes_of(numbers: &[i32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

fn texts(texts: &[&str]) -> Vec<u8> {
    texts
        .iter()
        .flat_map(|text| {
            let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
            bytes.extend_from_slice(text.as_bytes());
            bytes
        })
        .collect()
}

fn refused(result: Result<Payloads, WorkloadError>) -> String {
    let text = result.expect_err("it does not fit").to_string();
    let text = text.split("\n\nlines for").next().unwrap_or_default();
    text.trim_start_matches("the scenario does not fit model `net`: ")
        .to_owned()
}

#[test]
fn each_step_is_a_request() {
    let model = model(0, vec![tensor("A", Datatype::Int32, &[2])]);
    let data = json(r#"{"data": [{"A": [1, 2]}, {"A": [3, 4]}, {"A": [5, 6]}]}"#);
    let payloads = build(&model, &[], Some(&data), 1).expect("fits");
    let expected: Vec<(Vec<i64>, Vec<u8>)> = [[1, 2], [3, 4], [5, 6]]
        .iter()
        .map(|row| (vec![2], bytes_of(row)))
        .collect();
    assert_eq!(sent(&payloads, "A"), expected);
    assert_eq!(payloads.input_bytes, 8);
    assert_eq!(payloads.inputs, ["3 requests in turn", "A INT32 [2]"]);
}

#[test]
fn a_batch_joins_steps_and_every_step_is_sent_equally_often() {
    let model = model(8, vec![tensor("A", Datatype::Int32, &[1])]);
    let data = json(r#"{"data": [{"A": [1]}, {"A": [2]}, {"A": [3]}]}"#);
    for (batch, expected) in [
        (1, vec![vec![1], vec![2], vec![3]]),
        (2, vec![vec![1, 2], vec![2, 3], vec![3, 1]]),
        (3, vec![vec![1, 2, 3]]),
        (
            4,
            vec![vec![1, 2, 3, 1], vec![2, 3, 1, 2], vec![3, 1, 2, 3]],
        ),
    ] {
        let payloads = build(&model, &[], Some(&data), batch).expect("fits");
        let expected: Vec<(Vec<i64>, Vec<u8>)> = expected
            .iter()
            .map(|row| (vec![i64::from(batch), 1], bytes_of(row)))
            .collect();
        assert_eq!(sent(&payloads, "A"), expected, "batch {batch}");
    }
}

#[test]
fn the_order_is_the_seeds_and_the_fingerprint_is_not() {
    let model = model(0, vec![tensor("A", Datatype::Int32, &[1])]);
    let steps: Vec<String> = (0..40).map(|n| format!("{{\"A\": [{n}]}}")).collect();
    let data = json(&format!("{{\"data\": [{}]}}", steps.join(",")));
    let with = |seed| {
        let spec = WorkloadSpec {
            inputs: &[],
            data: Some(&data),
            batch: 1,
            seed,
            memory: None,
        };
        Payloads::build(&model, spec).expect("fits")
    };
    let (one, same, other) = (with(1), with(1), with(2));
    assert_eq!(one.frames, same.frames);
    assert_ne!(one.frames, other.frames);
    assert_eq!(one.fingerprint, other.fingerprint);
    assert_eq!(sent(&one, "A"), sent(&other, "A"));
    let fewer = json(&format!("{{\"data\": [{}]}}", steps[1..].join(",")));
    let fewer = build(&model, &[], Some(&fewer), 1).expect("fits");
    assert_ne!(fewer.fingerprint, one.fingerprint);
}

#[test]
fn values_become_every_datatype() {
    for (datatype, json_values, expected) in [
        (Datatype::Fp16, "[1, 2.5]", vec![0, 0x3c, 0, 0x41]),
        (Datatype::Bf16, "[1, 2.5]", vec![0x80, 0x3f, 0x20, 0x40]),
        (
            Datatype::Fp32,
            "[1, 2.5]",
            vec![0, 0, 0x80, 0x3f, 0, 0, 0x20, 0x40],
        ),
        (Datatype::Bool, "[true, false]", vec![1, 0]),
        (Datatype::Uint8, "[[0], [255]]", vec![0, 255]),
        (Datatype::Bytes, r#"["ab", "é"]"#, texts(&["ab", "é"])),
    ] {
        let dims: &[i64] = if json_values.starts_with("[[") {
            &[2, 1]
        } else {
            &[2]
        };
        let model = model(0, vec![tensor("A", datatype, dims)]);
        let data = json(&format!("{{\"data\": [{{\"A\": {json_values}}}]}}"));
        let payloads = build(&model, &[], Some(&data), 1).expect("fits");
        assert_eq!(sent(&payloads, "A")[0].1, expected, "{datatype}");
    }
}

#[test]
fn optional_inputs_differ_by_step() {
    let mut second = tensor("B", Datatype::Int32, &[1]);
    second.optional = true;
    let mut first = tensor("A", Datatype::Int32, &[1]);
    first.optional = true;
    let model = model(4, vec![first, second]);
    let data = json(r#"{"data": [{"A": [1]}, {"B": [1]}]}"#);
    let payloads = build(&model, &[], Some(&data), 1).expect("fits");
    assert_eq!(sent(&payloads, "A").len(), 1);
    assert_eq!(sent(&payloads, "B").len(), 1);
    assert_eq!(
        payloads.inputs,
        [
            "2 requests in turn",
            "A INT32 [1, 1] (in 1 of them)",
            "B INT32 [1, 1] (in 1 of them)"
        ]
    );
    assert_eq!(
        refused(build(&model, &[], Some(&data), 2)),
        "input `A`: data[0] and data[1] would be joined in a batch of 2, but only the first has it: expected inputs of the same shape, or batch = 1"
    );
}

#[test]
fn shapes_come_from_the_file_the_thresholds_the_model_or_the_count() {
    let open = |dims: &[i64]| model(0, vec![tensor("A", Datatype::Int32, dims)]);
    let shape_of = |model: &ModelSignature, shape: Option<&[i64]>, step: &str| {
        let data = json(&format!("{{\"data\": [{{\"A\": {step}}}]}}"));
        let specs: Vec<InputSpec> = shape
            .map(|shape| input("A", Some(shape), RANDOM))
            .into_iter()
            .collect();
        build(model, &specs, Some(&data), 1).map(|payloads| sent(&payloads, "A")[0].0.clone())
    };
    let two = open(&[-1, -1]);
    let given = r#"{"content": [1, 2, 3, 4], "shape": [4, 1]}"#;
    assert_eq!(shape_of(&two, None, given).expect("fits"), [4, 1]);
    assert_eq!(shape_of(&two, Some(&[2, 2]), given).expect("fits"), [4, 1]);
    assert_eq!(
        shape_of(&two, Some(&[2, 2]), "[1, 2, 3, 4]").expect("fits"),
        [2, 2]
    );
    assert_eq!(
        shape_of(&two, None, "[[1, 2, 3, 4]]").expect("fits"),
        [1, 4]
    );
    assert_eq!(
        shape_of(&open(&[-1]), None, "[1, 2, 3]").expect("fits"),
        [3]
    );
    assert_eq!(shape_of(&open(&[-1]), None, "[]").expect("fits"), [0]);
    assert_eq!(
        shape_of(&open(&[-1, 2]), None, "[1, 2, 3, 4]").expect("fits"),
        [2, 2]
    );
    assert_eq!(
        refused_with(shape_of(&two, None, "[1, 2, 3, 4]")),
        "in.json: data[0]: input `A` has the variable dims [-1, -1]: give it a shape"
    );
    assert_eq!(
        refused_with(shape_of(&open(&[-1, 2]), None, "[1, 2, 3]")),
        "in.json: data[0]: input `A` (INT32): 3 values for the model's [-1, 2]: expected a multiple of 2"
    );
    let batching = model(4, vec![tensor("A", Datatype::Int32, &[1])]);
    assert_eq!(
        refused_with(shape_of(
            &batching,
            None,
            r#"{"content": [1], "shape": [1, 1]}"#
        )),
        "in.json: data[0]: input `A`: shape [1, 1] has one dimension too many for the model's [1]: the first is the batch dimension, which triton-gate adds from `batch`; leave it out"
    );
    let picture = model(4, vec![tensor("A", Datatype::Fp32, &[-1, -1, 3])]);
    assert_eq!(
        refused_with(shape_of(&picture, None, "[[[[1, 2, 3], [4, 5, 6]]]]")),
        "in.json: data[0]: input `A`: shape [1, 1, 2, 3] has one dimension too many for the model's [-1, -1, 3]: the first is the batch dimension, which triton-gate adds from `batch`; leave it out"
    );
}

fn refused_with(result: Result<Vec<i64>, WorkloadError>) -> String {
    let text = result.expect_err("it does not fit").to_string();
    let text = text.split("\n\nlines for").next().unwrap_or_default();
    text.trim_start_matches("the scenario does not fit model `net`: ")
        .to_owned()
}

#[test]
fn steps_of_other_shapes_are_no_batch() {
    let model = model(4, vec![tensor("A", Datatype::Fp32, &[-1])]);
    let data = json(
        r#"{"data": [[{"A": {"content": [1.0], "shape": [1]}}, {"A": [2.0, 3.0]}], [{"A": [4]}]]}"#,
    );
    let payloads = build(&model, &[], Some(&data), 1).expect("fits");
    assert_eq!(
        payloads.inputs,
        ["3 requests in turn", "A FP32 of several shapes"]
    );
    assert_eq!(
        refused(build(&model, &[], Some(&data), 2)),
        "input `A`: data[0][0] and data[0][1] would be joined in a batch of 2, but their shapes are [1] and [2]: expected inputs of the same shape, or batch = 1"
    );
}

#[test]
fn a_shape_tensor_holds_for_the_whole_batch() {
    let mut size = tensor("size", Datatype::Int32, &[2]);
    size.shape_tensor = true;
    let model = model(4, vec![size, tensor("A", Datatype::Int32, &[1])]);
    let alike = json(r#"{"data": [{"size": [2, 2], "A": [1]}, {"size": [2, 2], "A": [2]}]}"#);
    let payloads = build(&model, &[], Some(&alike), 2).expect("fits");
    assert_eq!(sent(&payloads, "size"), [(vec![2], bytes_of(&[2, 2]))]);
    assert_eq!(sent(&payloads, "A"), [(vec![2, 1], bytes_of(&[1, 2]))]);
    let other = json(r#"{"data": [{"size": [2, 2], "A": [1]}, {"size": [3, 3], "A": [2]}]}"#);
    let text = refused(build(&model, &[], Some(&other), 2));
    assert!(text.contains("one value for the whole batch"), "{text}");
}

#[test]
fn base64_of_texts_may_lack_its_lengths() {
    let encode = |bytes: &[u8]| {
        use base64::Engine as _;
        base64::prelude::BASE64_STANDARD.encode(bytes)
    };
    let one = |bytes: &[u8], dims: &[i64]| {
        let model = model(0, vec![tensor("A", Datatype::Bytes, dims)]);
        let data = json(&format!(
            "{{\"data\": [{{\"A\": {{\"b64\": \"{}\"}}}}]}}",
            encode(bytes)
        ));
        build(&model, &[], Some(&data), 1)
    };
    let two = texts(&["ab", "c"]);
    assert_eq!(sent(&one(&two, &[2]).expect("fits"), "A")[0].1, two);
    assert_eq!(sent(&one(&two, &[-1]).expect("fits"), "A")[0].0, [2]);
    let jpeg = b"\xff\xd8\xff\xe0 a picture";
    let mut prefixed = (jpeg.len() as u32).to_le_bytes().to_vec();
    prefixed.extend_from_slice(jpeg);
    assert_eq!(sent(&one(jpeg, &[1]).expect("fits"), "A")[0].1, prefixed);
    prefixed.pop();
    assert_eq!(
        refused(one(&prefixed, &[1])),
        "in.json: data[0]: input `A` (BYTES): element 1 is cut: its length prefix says 14 bytes, 13 follow"
    );
    assert_eq!(
        refused(one(&two, &[1])),
        "in.json: data[0]: input `A` (BYTES): base64 data of 2 elements for shape [1]: expected 1"
    );
}

#[test]
fn what_a_file_lacks_comes_from_the_thresholds() {
    let model = model(
        0,
        vec![
            tensor("A", Datatype::Int32, &[1]),
            tensor("B", Datatype::Int32, &[1]),
        ],
    );
    let data = json(r#"{"data": [{"A": [1]}, {"A": [2]}]}"#);
    assert_eq!(
        refused(build(&model, &[], Some(&data), 1)),
        "required input `B` (INT32 [1]) is in no step of in.json: add it there, or describe it under [scenario.inputs]"
    );
    let five = DataSource::Literal(vec![Value::Integer(5)]);
    let specs = [input("B", None, five.clone())];
    let payloads = build(&model, &specs, Some(&data), 1).expect("fits");
    assert_eq!(sent(&payloads, "B"), vec![(vec![1], bytes_of(&[5])); 2]);
    let specs = [input("B", None, RANDOM), input("A", None, five)];
    assert_eq!(
        refused(build(&model, &specs, Some(&data), 1)),
        "input `A` has its data in in.json and under [scenario.inputs]: keep one of the two (a shape may stay)"
    );
    let partly = json(r#"{"data": [{"A": [1], "B": [1]}, {"A": [2]}]}"#);
    assert_eq!(
        refused(build(&model, &[], Some(&partly), 1)),
        "in.json: data[1]: required input `B` (INT32 [1]) is missing"
    );
    let wrong =
        json(r#"{"data": [{"A": [1], "B": [1], "model": ["x"]}, {"A": [2], "B": [1], "b": [1]}]}"#);
    assert_eq!(
        refused(build(&model, &[], Some(&wrong), 1)),
        "in.json: data[1]: it has no input `b` (did you mean `B`?): its inputs are A, B"
    );
}

#[test]
fn expected_outputs_must_be_the_models() {
    let model = model(0, vec![tensor("A", Datatype::Int32, &[1])]);
    let with = |outputs: &str| {
        let data = json(&format!(
            "{{\"data\": [{{\"A\": [1]}}], \"validation_data\": [{outputs}]}}"
        ));
        build(&model, &[], Some(&data), 1)
    };
    with(r#"{"Y": [1, 2]}"#).expect("fits");
    assert_eq!(
        refused(with(r#"{"Y": [1]}"#)),
        "in.json: data[0]: in validation_data: output `Y` (INT32): 1 values for shape [2]: expected 2"
    );
    assert_eq!(
        refused(with(r#"{"Z": [1]}"#)),
        "in.json: data[0]: in validation_data: it has no output `Z`: its outputs are Y"
    );
}

#[test]
fn files_of_inputs_are_cut_into_rows() {
    let of = |datatype, dims: &[i64], shape: Option<&[i64]>, data: DataSource| {
        let model = model(4, vec![tensor("A", datatype, dims)]);
        let specs = [input("A", shape, data)];
        build(&model, &specs, None, 1).map(|payloads| {
            let mut rows: Vec<Vec<u8>> = sent(&payloads, "A")
                .into_iter()
                .map(|(_, bytes)| bytes)
                .collect();
            rows.sort();
            rows
        })
    };
    let numbers = bytes_of(&[1, 2, 3, 4]);
    let rows = of(Datatype::Int32, &[2], None, plain(&numbers, Texts::Lines)).expect("fits");
    assert_eq!(rows, [bytes_of(&[1, 2]), bytes_of(&[3, 4])]);
    let array = |shape: &[i64]| {
        file(FileContent::Array {
            datatype: "INT32",
            shape: shape.to_vec(),
            data: Bytes::from(numbers.clone()),
        })
    };
    let rows = of(Datatype::Int32, &[-1], None, array(&[2, 2])).expect("fits");
    assert_eq!(rows, [bytes_of(&[1, 2]), bytes_of(&[3, 4])]);
    let rows = of(Datatype::Int32, &[-1], None, array(&[4])).expect("fits");
    assert_eq!(rows, std::slice::from_ref(&numbers));
    let prompts = plain(b"one\r\ntwo\n\nfour", Texts::Lines);
    let rows = of(Datatype::Bytes, &[2], None, prompts.clone()).expect("fits");
    assert_eq!(rows, [texts(&["", "four"]), texts(&["one", "two"])]);
    let whole = of(Datatype::Bytes, &[1], None, plain(b"a\nb", Texts::Whole)).expect("fits");
    assert_eq!(whole, [texts(&["a\nb"])]);
    let prefixed = plain(&texts(&["x", "yz"]), Texts::Prefixed);
    let rows = of(Datatype::Bytes, &[1], None, prefixed).expect("fits");
    assert_eq!(rows.len(), 2);

    for (result, expected) in [
        (
            of(Datatype::Int32, &[3], None, plain(&numbers, Texts::Lines)),
            "x.dat: input `A` (INT32): 16 bytes are no multiple of the 12 that shape [3] has",
        ),
        (
            of(Datatype::Int32, &[-1], None, plain(&numbers, Texts::Lines)),
            "x.dat: input `A` has the variable dims [-1]: give it a shape",
        ),
        (
            of(Datatype::Fp32, &[2], None, array(&[2, 2])),
            "x.dat: input `A` (FP32): the array holds INT32: expected FP32",
        ),
        (
            of(Datatype::Int32, &[3], None, array(&[2, 2])),
            "x.dat: input `A`: shape [2] does not match the model's [3]",
        ),
        (
            of(Datatype::Int32, &[-1], Some(&[4]), array(&[2, 2])),
            "x.dat: input `A` (INT32): the array's rows have the shape [2]: expected [4] as in the thresholds file",
        ),
        (
            of(Datatype::Bytes, &[3], None, prompts),
            "x.dat: input `A` (BYTES): 4 texts are no multiple of the 3 that shape [3] has",
        ),
        (
            of(Datatype::Bytes, &[1], None, plain(b"", Texts::Lines)),
            "x.dat: input `A` (BYTES): no data: expected at least one row",
        ),
        (
            of(
                Datatype::Bytes,
                &[1],
                None,
                plain(&[9, 0, 0, 0, 1], Texts::Prefixed),
            ),
            "x.dat: input `A` (BYTES): element 1 is cut: its length prefix says 9 bytes, 1 follow",
        ),
        (
            of(Datatype::Bool, &[2], None, plain(&[0, 7], Texts::Lines)),
            "x.dat: input `A` (BOOL): a byte 7 among its values: expected 0 and 1 only",
        ),
    ] {
        let text = result.expect_err(expected).to_string();
        let text = text.split("\n\nlines for").next().unwrap_or_default();
        assert_eq!(
            text,
            format!("the scenario does not fit model `net`: {expected}")
        );
    }
}

#[test]
fn files_side_by_side_have_as_many_rows() {
    let model = model(
        0,
        vec![
            tensor("A", Datatype::Uint8, &[1]),
            tensor("B", Datatype::Uint8, &[1]),
        ],
    );
    let specs = |a: &[u8], b: &[u8]| {
        [
            input("A", None, plain(a, Texts::Lines)),
            input("B", None, plain(b, Texts::Lines)),
        ]
    };
    let payloads = build(&model, &specs(&[1, 2, 3], &[9]), None, 1).expect("one for all");
    assert_eq!(sent(&payloads, "B"), vec![(vec![1], vec![9]); 3]);
    assert_eq!(
        refused(build(&model, &specs(&[1, 2, 3], &[8, 9]), None, 1)),
        "input `A` has 3 rows, input `B` has 2: expected as many, or one for all"
    );
    let folder = InputData {
        path: "folder".into(),
        digest: String::new(),
        steps: vec![Step {
            place: String::new(),
            expected: Vec::new(),
            tensors: ["A", "B"]
                .map(|name| TensorData {
                    name: name.to_owned(),
                    shape: None,
                    content: Content::File(FileContent::Plain {
                        data: Bytes::from_static(&[1, 2]),
                        texts: Texts::Lines,
                    }),
                })
                .to_vec(),
        }],
    };
    let payloads = build(&model, &[], Some(&folder), 1).expect("fits");
    assert_eq!(payloads.frames.len(), 2);
}

#[test]
fn more_than_memory_is_said_before_any_of_it_is_made() {
    let model = model(0, vec![tensor("A", Datatype::Uint8, &[1024])]);
    let rows = vec![0; 1024 * 64];
    let specs = [input("A", None, plain(&rows, Texts::Lines))];
    let spec = WorkloadSpec {
        inputs: &specs,
        data: None,
        batch: 1,
        seed: 0,
        memory: Some(65_535),
    };
    let text = Payloads::build(&model, spec)
        .expect_err("too much")
        .to_string();
    assert!(text.contains("its requests would take"), "{text}");
    let enough = WorkloadSpec {
        memory: Some(65_536),
        ..spec
    };
    Payloads::build(&model, enough).expect("fits");
}
