use std::fs;

use proptest::prelude::*;

use super::{InitInput, InitModel, render};
use crate::config::{self, Config, ConfigErrors, Overrides};
use crate::data::DataSource;

/// Loads a rendered file as a user would.
fn load(text: &str) -> Result<Config, ConfigErrors> {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("a.toml");
    fs::write(&path, text).expect("file");
    config::load(&[path], &Overrides::default(), &|_| None)
}

/// The file with every scenario that it holds as comments in force.
fn uncommented(text: &str) -> String {
    text.lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.contains(" = ") => rest,
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn input(name: &str, datatype: &str, dims: &[i64]) -> InitInput {
    InitInput {
        name: name.to_owned(),
        datatype: datatype.to_owned(),
        dims: dims.to_vec(),
        optional: false,
    }
}

fn model(name: &str, inputs: Vec<InitInput>) -> InitModel {
    InitModel {
        name: name.to_owned(),
        versions: vec!["1".to_owned()],
        max_batch: 8,
        inputs,
        ready: true,
        ..InitModel::default()
    }
}

fn models() -> Vec<InitModel> {
    let optional = InitInput {
        optional: true,
        ..input("mask", "BOOL", &[-1])
    };
    vec![
        InitModel {
            versions: vec!["1".to_owned(), "2".to_owned()],
            ..model("yolov9", vec![input("images", "FP32", &[3, 640, 640])])
        },
        InitModel {
            max_batch: 0,
            ..model(
                "bert",
                vec![
                    input("input ids", "INT64", &[-1]),
                    input("text", "BYTES", &[-1]),
                    optional,
                ],
            )
        },
        InitModel {
            decoupled: true,
            ..model("llm", vec![input("text_input", "BYTES", &[1])])
        },
        InitModel {
            sequence: true,
            ..model("asr", vec![input("samples", "FP32", &[-1])])
        },
        InitModel {
            ready: false,
            ..model("later", Vec::new())
        },
    ]
}

#[test]
fn renders_a_commented_file() {
    insta::assert_snapshot!(render("localhost:8001", None, &models()), @r###"
    # Thresholds of triton-gate. docs/thresholds.md explains every key.
    schema = 1

    [server]
    url = "localhost:8001"   # gRPC; --url and TRITON_URL override it
    # metrics_url = "http://localhost:8002/metrics"   # optional

    [gate]
    throughput_drop = "5%"   # fail when throughput fell by more
    p99_rise = "10%"         # fail when P99 latency rose by more
    # p99_max = "25ms"       # fail when P99 latency is above, whatever the baseline
    budget = "5m"            # time to measure each scenario

    [[scenario]]
    name = "yolov9-c8"
    model = "yolov9"
    # version = "1"   # the server has 1, 2; default: its choice
    concurrency = 8   # requests in flight; a list like [1, 8, 32] makes a scenario of each
    batch = 1         # inferences per request, at most 8
    # input images (FP32, [3, 640, 640]): random data by default
    # [scenario.inputs.images]
    # range = [0, 1]

    [[scenario]]
    name = "bert-c8"
    model = "bert"
    # version = "1"   # the server has this one only
    concurrency = 8   # requests in flight; a list like [1, 8, 32] makes a scenario of each
    batch = 1         # the model does not batch
    [scenario.inputs."input ids"]
    shape = [128]   # fill in: the model's is [-1], this is a guess
    range = [0, 127]   # token ids must be within the vocabulary
    [scenario.inputs.text]
    shape = [1]   # fill in: the model's is [-1], this is a guess
    length = 16   # characters of each text
    # optional input mask (BOOL, [-1]): sent only where it is named
    # [scenario.inputs.mask]
    # shape = [128]

    # llm: decoupled (many responses to a request), which is not supported yet
    # [[scenario]]
    # name = "llm-c8"
    # model = "llm"
    # version = "1"   # the server has this one only
    # concurrency = 8   # requests in flight; a list like [1, 8, 32] makes a scenario of each
    # batch = 1         # inferences per request, at most 8
    # input text_input (BYTES, [1]): random data by default
    # [scenario.inputs.text_input]
    # length = 16   # characters of each text

    # asr: takes sequences of requests, which are not supported yet
    # [[scenario]]
    # name = "asr-c8"
    # model = "asr"
    # version = "1"   # the server has this one only
    # concurrency = 8   # requests in flight; a list like [1, 8, 32] makes a scenario of each
    # batch = 1         # inferences per request, at most 8
    # [scenario.inputs.samples]
    # shape = [128]   # fill in: the model's is [-1], this is a guess
    # range = [0, 1]

    # later: was not ready when this file was written; uncomment once it is loaded
    # [[scenario]]
    # name = "later-c8"
    # model = "later"
    # version = "1"   # the server has this one only
    # concurrency = 8   # requests in flight; a list like [1, 8, 32] makes a scenario of each
    # batch = 1         # inferences per request, at most 8
    "###);
}

#[test]
fn the_file_loads() {
    let config = load(&render(
        "triton:8001",
        Some("http://triton:8002/metrics"),
        &models(),
    ))
    .expect("loads");
    let names: Vec<&str> = config.scenarios.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["yolov9-c8", "bert-c8"]);
    assert_eq!(config.scenarios[0].server.url, "triton:8001");
    let bert = &config.scenarios[1];
    let inputs: Vec<&str> = bert
        .inputs
        .iter()
        .map(|input| input.name.as_str())
        .collect();
    assert_eq!(inputs, ["input ids", "text"]);
    assert_eq!(bert.inputs[0].shape.as_deref(), Some(&[128][..]));
    assert_eq!(
        bert.inputs[1].data,
        DataSource::Random {
            range: None,
            length: Some(16)
        }
    );
}

#[test]
fn what_stands_in_comments_loads_as_well() {
    let text = uncommented(&render("localhost:8001", None, &models()));
    let config = load(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let names: Vec<&str> = config.scenarios.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        ["yolov9-c8", "bert-c8", "llm-c8", "asr-c8", "later-c8"]
    );
    assert_eq!(config.scenarios[0].version.as_deref(), Some("1"));
    assert_eq!(config.scenarios[1].inputs.len(), 3);
}

#[test]
fn names_become_safe_and_stay_unique() {
    let names = ["a b", "a_b", "A_B", "..", "a/b"];
    let models: Vec<InitModel> = names.iter().map(|name| model(name, Vec::new())).collect();
    let text = render("localhost:8001", None, &models[..4]);
    let config = load(&text).expect("loads");
    let found: Vec<&str> = config.scenarios.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(found, ["a_b-c8", "a_b-2-c8", "A_B-3-c8", "model-c8"]);
    let models: Vec<&str> = config.scenarios.iter().map(|s| s.model.as_str()).collect();
    assert_eq!(models, names[..4]);
}

#[test]
fn a_name_that_no_folder_can_have_gets_a_word_in_front() {
    let names = ["-", "--x", ".hidden", "con.v2", "COM1", "v1."];
    let models: Vec<InitModel> = names.iter().map(|name| model(name, Vec::new())).collect();
    let config = load(&render("localhost:8001", None, &models)).expect("loads");
    let found: Vec<&str> = config.scenarios.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        found,
        [
            "model-c8",
            "model-x-c8",
            "model-hidden-c8",
            "model-con.v2-c8",
            "model-COM1-c8",
            "model-v1-c8"
        ]
    );
}

#[test]
fn without_models_the_file_says_what_to_do() {
    let text = render("localhost:8001", None, &[]);
    assert!(text.contains("The server lists no model"), "{text}");
    assert!(load(&text).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_model_renders_to_a_file_that_loads(
        name in "[^/\\p{Cc}\\s][^/\\p{Cc}]{0,40}",
        input_name in "\\PC{1,20}",
        datatype in prop::sample::select(vec!["FP32", "INT64", "BYTES", "BOOL", "UINT8"]),
        dims in prop::collection::vec(-1_i64..2000, 0..4),
        optional in any::<bool>(),
        versions in prop::collection::vec("[1-9][0-9]{0,3}", 0..3),
        max_batch in any::<u32>(),
    ) {
        let input = InitInput { optional, ..input(&input_name, datatype, &dims) };
        let model = InitModel { versions, max_batch, ..model(&name, vec![input]) };
        let text = render("localhost:8001", None, &[model]);
        match load(&text) {
            Ok(config) => prop_assert_eq!(&config.scenarios[0].model, &name),
            Err(errors) => prop_assert!(false, "{}\n{}", errors, text),
        }
    }
}
