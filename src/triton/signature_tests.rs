use super::pbtxt::parse;
use super::proto::inference::ModelMetadataResponse;
use super::proto::inference::model_metadata_response::TensorMetadata;
use super::signature::SignatureError;
use super::{Datatype, ModelSignature, config_facts};

fn signature(pbtxt: &str) -> ModelSignature {
    let config = parse(pbtxt).expect("a valid configuration");
    ModelSignature::new(&config, &ModelMetadataResponse::default(), "").expect("a signature")
}

fn shapes(signature: &ModelSignature, batch: u32) -> Vec<(String, String, Vec<i64>)> {
    signature
        .inputs
        .iter()
        .map(|input| {
            (
                input.name.clone(),
                input.datatype.to_string(),
                signature.wire_shape(input, batch, &input.dims),
            )
        })
        .collect()
}

fn expect(entries: &[(&str, &str, &[i64])]) -> Vec<(String, String, Vec<i64>)> {
    entries
        .iter()
        .map(|(name, datatype, shape)| ((*name).to_owned(), (*datatype).to_owned(), shape.to_vec()))
        .collect()
}

#[test]
fn a_batching_model_has_the_batch_first_and_reshape_is_not_its_clients_concern() {
    let signature = signature(
        r#"
        name: "classifier"
        platform: "tensorrt_plan"
        max_batch_size: 16
        input [
          { name: "pixels" data_type: TYPE_FP16 dims: [ 3, 32, 48 ] reshape: { shape: [ 4608 ] } },
          { name: "scalar" data_type: TYPE_UINT64 dims: [ 1 ] reshape: { shape: [ ] } }
        ]
        output [ { name: "label" data_type: TYPE_STRING dims: [ 5 ] } ]
        dynamic_batching { }
        optimization { cuda { graphs: true } }
        "#,
    );
    assert_eq!(
        shapes(&signature, 4),
        expect(&[
            ("pixels", "FP16", &[4, 3, 32, 48]),
            ("scalar", "UINT64", &[4, 1])
        ])
    );
    assert_eq!(signature.outputs[0].datatype, Datatype::Bytes);
    assert!(signature.dynamic_batching && !signature.decoupled && !signature.sequence);
    assert_eq!(signature.platform, "tensorrt_plan");
}

#[test]
fn without_batching_the_dims_are_the_shape() {
    let signature = signature(
        r#"
        name: "net"
        backend: "onnxruntime"
        max_batch_size: 0
        response_cache { enable: true }
        input [ { name: "x" data_type: TYPE_FP32 dims: [ 3, 8 ] reshape { shape: [ 1, 3, 8 ] } } ]
        output [ { name: "y" data_type: TYPE_FP32 dims: [ 10 ] } ]
        "#,
    );
    assert_eq!(shapes(&signature, 1), expect(&[("x", "FP32", &[3, 8])]));
    assert!(signature.response_cache && !signature.batched());
}

#[test]
fn shape_tensors_never_have_a_batch_dimension() {
    let signature = signature(
        r#"
        max_batch_size: 8
        input [
          { name: "data" data_type: TYPE_FP32 dims: [ 6 ] },
          { name: "size" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true }
        ]
        "#,
    );
    assert_eq!(
        shapes(&signature, 8),
        expect(&[("data", "FP32", &[8, 6]), ("size", "INT32", &[2])])
    );
}

#[test]
fn optional_variable_ragged_and_empty_dimensions_are_kept() {
    let signature = signature(
        r#"
        max_batch_size: 2
        input [
          { name: "ids" data_type: TYPE_UINT32 dims: [ -1 ] allow_ragged_batch: true },
          { name: "mask" data_type: TYPE_BOOL dims: [ 1, 0, 4 ] },
          { name: "seed" data_type: TYPE_INT64 dims: [ 1 ] optional: true }
        ]
        "#,
    );
    let [ids, mask, seed] = signature.inputs.as_slice() else {
        panic!("three inputs");
    };
    assert!(ids.ragged && !ids.fixed() && !ids.optional);
    assert!(mask.fixed());
    assert_eq!(signature.wire_shape(mask, 1, &mask.dims), [1, 1, 0, 4]);
    assert!(seed.optional);
}

#[test]
fn decoupled_sequence_and_ensemble_are_seen() {
    let decoupled = signature("model_transaction_policy { decoupled: True }");
    assert!(decoupled.decoupled);
    let sequence = signature("sequence_batching { iterative_sequence: true }");
    assert!(sequence.sequence);
    let ensemble = signature(
        r#"
        platform: "ensemble"
        ensemble_scheduling {
          step [
            { model_name: "resize" model_version: -1 input_map { key: "A" value: "B" } },
            { model_name: "net" model_version: 3 },
            { model_name: "resize" model_version: -1 }
          ]
        }
        "#,
    );
    assert_eq!(ensemble.ensemble_steps, ["resize", "net"]);
    assert!(!ensemble.dynamic_batching);
}

#[test]
fn inputs_missing_from_the_configuration_come_from_the_metadata() {
    let metadata = ModelMetadataResponse {
        name: "video".to_owned(),
        versions: vec!["1".to_owned(), "3".to_owned()],
        platform: "dali".to_owned(),
        inputs: vec![TensorMetadata {
            name: "IN".to_owned(),
            datatype: "UINT8".to_owned(),
            shape: vec![-1, -1, 7],
        }],
        outputs: Vec::new(),
    };
    let mut config = parse(r#"backend: "dali" max_batch_size: 4"#).expect("valid");
    let batched = ModelSignature::new(&config, &metadata, "3").expect("a signature");
    assert_eq!(batched.inputs[0].dims, [-1, 7]);
    assert_eq!(batched.name, "video");
    assert_eq!(batched.version, "3");
    assert_eq!(batched.versions, ["1", "3"]);
    config.max_batch_size = 0;
    let plain = ModelSignature::new(&config, &metadata, "").expect("a signature");
    assert_eq!(plain.inputs[0].dims, [-1, -1, 7]);
}

#[test]
fn a_datatype_nobody_knows_is_an_error() {
    let mut config =
        parse(r#"name: "m" input [ { name: "x" data_type: TYPE_BF16 dims: [ 1 ] } ]"#).expect("ok");
    let metadata = ModelMetadataResponse::default();
    config.input[0].data_type = 99;
    let error = ModelSignature::new(&config, &metadata, "").expect_err("unknown datatype");
    assert!(matches!(
        error,
        SignatureError::Datatype { configured: 99, .. }
    ));
    config.max_batch_size = -1;
    let error = ModelSignature::new(&config, &metadata, "").expect_err("negative");
    assert!(matches!(
        error,
        SignatureError::MaxBatchSize { value: -1, .. }
    ));
}

#[test]
fn an_unset_datatype_is_taken_from_the_metadata() {
    let config = parse(r#"input [ { name: "x" dims: [ 2 ] } ]"#).expect("valid");
    let metadata = ModelMetadataResponse {
        inputs: vec![TensorMetadata {
            name: "x".to_owned(),
            datatype: "BF16".to_owned(),
            shape: vec![2],
        }],
        ..ModelMetadataResponse::default()
    };
    let signature = ModelSignature::new(&config, &metadata, "").expect("a signature");
    assert_eq!(signature.inputs[0].datatype, Datatype::Bf16);
}

#[test]
fn facts_are_dotted_and_leave_out_defaults() {
    let config = parse(
        r#"
        name: "net"
        backend: "python"
        max_batch_size: 8
        input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
        instance_group [ { name: "net_0" count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]
        dynamic_batching {
          preferred_batch_size: [ 4, 8 ]
          max_queue_delay_microseconds: 250
          default_queue_policy { max_queue_size: 64 timeout_action: DELAY }
        }
        version_policy { latest { num_versions: 1 } }
        parameters { key: "threads" value: { string_value: "3" } }
        parameters { key: "HF_TOKEN" value: { string_value: "hunter2" } }
        parameters { key: "max_tokens" value: { string_value: "64" } }
        "#,
    )
    .expect("valid");
    let facts: Vec<String> = config_facts(&config)
        .0
        .into_iter()
        .map(|(field, value)| format!("{field}={value}"))
        .collect();
    assert_eq!(
        facts,
        [
            "backend=python",
            "dynamic_batching.default_queue_policy.max_queue_size=64",
            "dynamic_batching.default_queue_policy.timeout_action=DELAY",
            "dynamic_batching.max_queue_delay_microseconds=250",
            "dynamic_batching.preferred_batch_size=4, 8",
            "instance_group.0.count=2",
            "instance_group.0.gpus=0, 1",
            "instance_group.0.kind=KIND_GPU",
            "max_batch_size=8",
            "parameter.HF_TOKEN=(hidden)",
            "parameter.max_tokens=64",
            "parameter.threads=3",
        ]
    );
}

#[test]
fn facts_name_the_steps_of_an_ensemble_and_what_else_changes_speed() {
    let config = parse(
        r#"
        platform: "ensemble"
        ensemble_scheduling { step [ { model_name: "a" model_version: -1 }, { model_name: "b" model_version: 2 } ] }
        response_cache { enable: true }
        model_transaction_policy { decoupled: true }
        version_policy { specific { versions: [ 1, 3 ] } }
        model_warmup [ { name: "w" batch_size: 4 } ]
        "#,
    )
    .expect("valid");
    let facts = config_facts(&config);
    for (field, value) in [
        ("ensemble.0", "a (version newest)"),
        ("ensemble.1", "b (version 2)"),
        ("response_cache.enable", "true"),
        ("model_transaction_policy.decoupled", "true"),
        ("version_policy.specific", "1, 3"),
        ("model_warmup.0.batch_size", "4"),
    ] {
        assert_eq!(facts.get(field), Some(value), "{field}");
    }
}
