//! What can and cannot be measured on the example models.

use std::time::Duration;

use rustix::process::Signal;

use crate::program::{Ended, Folder, Thresholds};
use crate::triton::{shared, thresholds};

/// Measures for a moment; the result on standard output is a page, the blocks are a file.
fn measure(folder: &Folder, thresholds: &Thresholds) -> Ended {
    folder.write("t.toml", &thresholds.text());
    folder.run(&["measure", "-c", "t.toml", "--duration", "2s", "-o", "m.csv"])
}

/// The sum of a column of counts.
fn total(folder: &Folder, column: &str) -> u64 {
    let text = folder.read("m.csv");
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let header = rows.headers().expect("a header").clone();
    let index = header.iter().position(|name| name == column);
    let index = index.unwrap_or_else(|| panic!("no column {column}"));
    rows.records()
        .map(|row| row.expect("a row")[index].parse::<u64>().expect("a count"))
        .sum()
}

#[test]
fn every_datatype_is_measured() {
    const DATATYPES: [&str; 13] = [
        "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16",
        "FP32", "FP64", "BYTES",
    ];
    let folder = Folder::new();
    let all = DATATYPES.iter().fold(
        thresholds(&shared(), "types", "types").scenario("batch", "2"),
        |thresholds, datatype| thresholds.scenario(&format!("inputs.in_{datatype}.shape"), "[4]"),
    );
    measure(&folder, &all).code(0);
    assert!(total(&folder, "requests") > 0);
    assert_eq!(total(&folder, "errors"), 0);
}

#[test]
fn inputs_come_from_files() {
    let folder = Folder::new();
    folder.write(
        "in.jsonl",
        "{\"in_FP16\": [0.5, 1], \"in_BYTES\": \"a text\"}\n\
         {\"in_INT64\": {\"content\": [1, 2, 3], \"shape\": [3]}}\n\
         {\"in_BOOL\": true}\n",
    );
    let lines = thresholds(&shared(), "types", "types").scenario("input_data", "\"in.jsonl\"");
    measure(&folder, &lines).code(0);
    assert!(total(&folder, "requests") > 3);
    assert_eq!(total(&folder, "errors"), 0);
    // Steps with other inputs cannot be one request, and nothing is sent.
    let batch = lines.scenario("batch", "2");
    measure(&folder, &batch)
        .code(3)
        .says(&["line 1 and line 2", "batch of 2"]);

    folder.write("prompts.txt", "one\ntwo\nthree\n");
    let texts = thresholds(&shared(), "types", "types")
        .scenario("inputs.in_BYTES.file", "\"prompts.txt\"")
        .scenario("inputs.in_BYTES.shape", "[1]")
        .scenario("batch", "2");
    measure(&folder, &texts).code(0);
    assert_eq!(total(&folder, "errors"), 0);
    let missing = texts.scenario("inputs.in_BYTES.file", "\"absent.npy\"");
    measure(&folder, &missing)
        .code(2)
        .says(&["absent.npy", "failed to read"]);
}

#[test]
fn large_tensors_are_measured() {
    let folder = Folder::new();
    let large = thresholds(&shared(), "yolov9", "yolov9")
        .scenario("concurrency", "2")
        .measure("block", "\"1s\"");
    measure(&folder, &large).code(0);
    assert!(total(&folder, "requests") > 0);
    assert_eq!(total(&folder, "errors"), 0);
}

#[test]
fn a_model_that_is_not_there() {
    let missing = thresholds(&shared(), "sleeep", "sleeep");
    measure(&Folder::new(), &missing)
        .code(3)
        .says(&["`sleeep`", "sleep"]);
    let version = thresholds(&shared(), "sleep", "sleep").scenario("version", "\"9\"");
    measure(&Folder::new(), &version).code(3).says(&["`9`"]);
}

#[test]
fn requests_that_fail_are_told_with_their_share_and_the_models_words() {
    let flaky = thresholds(&shared(), "flaky", "flaky").scenario("concurrency", "1");
    measure(&Folder::new(), &flaky)
        .code(3)
        .says(&["requests failed (", "fails on purpose"]);
    let accepted = flaky.measure("max_error_rate", "\"5%\"");
    measure(&Folder::new(), &accepted).code(0);
}

#[test]
fn a_streaming_model_is_refused() {
    let text = thresholds(&shared(), "text", "text");
    measure(&Folder::new(), &text).code(3).says(&["decoupled"]);
}

#[test]
fn a_signal_keeps_what_was_measured() {
    let folder = Folder::new();
    folder.write("t.toml", &thresholds(&shared(), "sleep", "sleep").text());
    let mut program = folder.start(&[
        "measure",
        "-c",
        "t.toml",
        "--duration",
        "60s",
        "-o",
        "m.csv",
    ]);
    program.wait_for("measuring");
    std::thread::sleep(Duration::from_secs(3));
    program.signal(Signal::INT);
    program.wait().code(130);
    assert!(total(&folder, "requests") > 0);
}
