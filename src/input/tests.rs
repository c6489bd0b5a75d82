//! Files as users write them, each with its right reading or the message that it gets.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::{data, file};
use crate::data::{Content, FileContent, InputData, Texts, Value};

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, bytes).expect("written");
        path
    }
}

fn read(text: &str) -> Result<InputData, String> {
    named("in.json", text)
}

fn named(name: &str, text: impl AsRef<[u8]>) -> Result<InputData, String> {
    let files = Files::new();
    let path = files.write(name, text);
    data(&path).map_err(|error| message(&path, &error.to_string()))
}

/// The message without the folder of the test.
fn message(path: &Path, text: &str) -> String {
    let folder = path.parent().expect("a parent").display().to_string();
    text.replace(&format!("{folder}/"), "")
}

fn places(data: &InputData) -> Vec<&str> {
    data.steps.iter().map(|step| step.place.as_str()).collect()
}

fn integers(values: &[i128]) -> Content {
    Content::Values(values.iter().copied().map(Value::Integer).collect())
}

#[test]
fn one_stream_of_steps() {
    let data =
        read(r#"{"data": [{"A": [1, 2], "B": [3]}, {"A": [4, 5], "B": [6]}]}"#).expect("reads");
    assert_eq!(places(&data), ["data[0]", "data[1]"]);
    let tensors = &data.steps[1].tensors;
    assert_eq!(tensors[0].name, "A");
    assert_eq!(tensors[0].shape, None);
    assert_eq!(tensors[0].content, integers(&[4, 5]));
    assert_eq!(tensors[1].content, integers(&[6]));
}

#[test]
fn several_streams_follow_each_other() {
    let text = r#"{"data": [[{"A": [1]}, {"A": {"content": [2], "shape": [1]}}], [{"A": [3]}]]}"#;
    let data = read(text).expect("reads");
    assert_eq!(places(&data), ["data[0][0]", "data[0][1]", "data[1][0]"]);
    assert_eq!(data.steps[1].tensors[0].shape, Some(vec![1]));
}

#[test]
fn one_object_a_line_whatever_the_ending() {
    let text = "{\"prompt\": \"a\", \"max\": 256}\n\n{\"prompt\": [\"b\"], \"stream\": true}\n";
    for name in ["in.json", "in.jsonl", "in.ndjson"] {
        let data = named(name, text).expect("reads");
        assert_eq!(places(&data), ["line 1", "line 3"]);
        let first = &data.steps[0].tensors;
        assert_eq!(
            first[0].content,
            Content::Values(vec![Value::Text("a".to_owned())])
        );
        assert_eq!(first[1].content, integers(&[256]));
        assert_eq!(
            data.steps[1].tensors[1].content,
            Content::Values(vec![Value::Bool(true)])
        );
    }
    let one = named("in.jsonl", "{\"prompt\": \"a\"}").expect("reads");
    assert_eq!(places(&one), ["line 1"]);
}

#[test]
fn base64_with_line_breaks_and_without_padding() {
    for (text, bytes) in [
        ("AQID", vec![1, 2, 3]),
        ("AQ\\nID\\n", vec![1, 2, 3]),
        ("AQI=", vec![1, 2]),
        ("AQI", vec![1, 2]),
        ("AQ", vec![1]),
        ("", vec![]),
    ] {
        for json in [
            format!(r#"{{"data": [{{"A": {{"b64": "{text}"}}}}]}}"#),
            format!(r#"{{"data": [{{"A": {{"content": {{"b64": "{text}"}}}}}}]}}"#),
        ] {
            let data = read(&json).expect("reads");
            assert_eq!(
                data.steps[0].tensors[0].content,
                Content::Encoded(bytes.clone().into()),
                "{json}"
            );
        }
    }
}

#[test]
fn expected_outputs_belong_to_their_steps() {
    let text = r#"{"data": [{"A": [1]}, {"A": [2]}], "validation_data": [{"Y": [3]}, {"Y": [4]}]}"#;
    let data = read(text).expect("reads");
    assert_eq!(data.steps[1].expected[0].name, "Y");
    assert_eq!(data.steps[1].expected[0].content, integers(&[4]));
}

#[test]
fn numbers_keep_their_value() {
    let text = r#"{"data": [{"A": [18446744073709551615, -9223372036854775808, 1.5, 1e30]}]}"#;
    let data = read(text).expect("reads");
    assert_eq!(
        data.steps[0].tensors[0].content,
        Content::Values(vec![
            Value::Integer(u64::MAX.into()),
            Value::Integer(i64::MIN.into()),
            Value::Float(1.5),
            Value::Float(1e30),
        ])
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, expected) in [
        ("", "in.json: empty: expected JSON"),
        (" \n", "in.json: empty: expected JSON"),
        (
            "[1]",
            "in.json: a list at the top: expected {\"data\": [...]}",
        ),
        (
            "{\"data\": [{\"A\": [1]}",
            "in.json: line 1, column 20: the file ends in the middle of the JSON: it may be cut short",
        ),
        (
            "{\"data\": [\n{\"A\": [1,]}]}",
            "in.json: line 2, column 10: not valid JSON: trailing comma",
        ),
        (
            "{\"data\": [{\"A\": [1, NaN]}]}",
            "in.json: line 1, column 21: NaN and Infinity are no JSON: give such values as base64 (\"b64\") or as .npy",
        ),
        (
            "{\"data\": [{\"A\": [1, -Infinity]}]}",
            "in.json: line 1, column 22: NaN and Infinity are no JSON: give such values as base64 (\"b64\") or as .npy",
        ),
        (
            "{\"a\": 1}\n{\"a\": }\n",
            "in.json: line 2, column 7: not valid JSON: expected value",
        ),
        (
            "{\"inputs\": [], \"id\": \"0\"}",
            "in.json: no \"data\": this is a request of an inference protocol, not an input file; expected {\"data\": [{\"INPUT\": [values]}, ...]}",
        ),
        (
            "{\"prompt\": \"x\"}",
            "in.json: no \"data\": expected {\"data\": [{\"INPUT\": [values]}, ...]}, or one object a line in a file that ends in .jsonl",
        ),
        (
            "{\"data\": [], \"x\": 1}",
            "in.json: unknown name \"x\" beside \"data\": expected \"data\" and \"validation_data\"",
        ),
        (
            "{\"data\": {}}",
            "in.json: data: an object: expected a list of objects, or a list of lists of objects",
        ),
        (
            "{\"data\": []}",
            "in.json: data: an empty list: expected at least one entry",
        ),
        (
            "{\"data\": [[]]}",
            "in.json: data[0]: an empty stream: expected at least one step",
        ),
        (
            "{\"data\": [{\"A\": [1]}, [{\"A\": [1]}]]}",
            "in.json: data: holds lists and objects side by side: expected either streams or steps",
        ),
        (
            "{\"data\": [3]}",
            "in.json: data[0]: a number: expected an object of inputs and values",
        ),
        (
            "{\"data\": [{}]}",
            "in.json: data[0]: an empty object: expected at least one tensor",
        ),
        (
            "{\"data\": [{\"A\": [1], \"A\": [2]}]}",
            "in.json: line 1, column 24: not valid JSON: the name \"A\" stands here twice",
        ),
        (
            "{\"data\": [{\"A\": null}]}",
            "in.json: data[0], \"A\": null: expected values (leave an optional input out)",
        ),
        (
            "{\"data\": [{\"A\": [1, null]}]}",
            "in.json: data[0], \"A\", value 2: null: expected a number, a text, true or false",
        ),
        (
            "{\"data\": [{\"A\": {\"shape\": [1]}}]}",
            "in.json: data[0], \"A\": has no data: expected \"content\" or \"b64\"",
        ),
        (
            "{\"data\": [{\"A\": {\"content\": [1], \"b64\": \"AQ==\"}}]}",
            "in.json: data[0], \"A\": has \"content\" and \"b64\": expected one of them",
        ),
        (
            "{\"data\": [{\"A\": {\"contents\": [1]}}]}",
            "in.json: data[0], \"A\": unknown key \"contents\": expected \"content\", \"b64\" and \"shape\"",
        ),
        (
            "{\"data\": [{\"A\": {\"content\": [1], \"shape\": [-1]}}]}",
            "in.json: data[0], \"A\", shape: expected whole numbers from 0, without the batch dimension, like [3, 640, 640]",
        ),
        (
            "{\"data\": [{\"A\": {\"content\": [1], \"shape\": [4000000000, 4000000000]}}]}",
            "in.json: data[0], \"A\", shape: more elements than can be counted",
        ),
        (
            "{\"data\": [{\"A\": {\"content\": {\"b64\": \"/9j/4AAQSkZ(...)\"}, \"shape\": [7964]}}]}",
            "in.json: data[0], \"A\", content, b64: not base64: '(' is no letter of it, near \"/4AAQSkZ(...)\"",
        ),
        (
            "{\"data\": [{\"A\": {\"b64\": 3}}]}",
            "in.json: data[0], \"A\", b64: a number: expected base64 text",
        ),
        (
            "{\"data\": [{\"A\": [1]}, {\"A\": [2]}], \"validation_data\": [{\"Y\": [3]}]}",
            "in.json: validation_data: 1 entries, but \"data\" has 2: expected one for each",
        ),
        (
            "{\"data\": [[{\"A\": [1]}], [{\"A\": [2]}]], \"validation_data\": [{\"Y\": [3]}, {\"Y\": [3]}]}",
            "in.json: validation_data[0]: stands beside data[0][0]: expected the same streams",
        ),
    ] {
        assert_eq!(read(text).expect_err(text), expected, "{text}");
    }
    let binary = named("in.json", b"{\n\"data\": \"\xff\"}").expect_err("not text");
    assert_eq!(binary, "in.json: line 2: not UTF-8");
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = format!("{{\"data\": [{{\"A\": {}1", "[".repeat(100_000));
    let error = read(&deep).expect_err("too deep");
    assert!(error.contains("recursion limit"), "{error}");
}

#[test]
fn many_lines_are_read_in_one_pass() {
    let text = "{\"A\": 1}\n".repeat(50_000);
    let data = named("in.jsonl", text).expect("reads");
    assert_eq!(data.steps.len(), 50_000);
    assert_eq!(data.steps[49_999].place, "line 50000");
}

#[test]
fn a_folder_holds_a_file_for_each_input() {
    let files = Files::new();
    files.write("in/images", [0, 1]);
    files.write("in/text.txt", "one\ntwo\n");
    files.write("in/mask.raw", [2]);
    files.write("in/photo.jpg", [3]);
    files.write("in/.hidden", [4]);
    let data = data(&files.0.path().join("in")).expect("reads");
    assert_eq!(places(&data), [""]);
    let found: Vec<(&str, Texts)> = data.steps[0]
        .tensors
        .iter()
        .map(|tensor| match &tensor.content {
            Content::File(FileContent::Plain { texts, .. }) => (tensor.name.as_str(), *texts),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        found,
        [
            ("images", Texts::Lines),
            ("mask", Texts::Prefixed),
            ("photo.jpg", Texts::Whole),
            ("text", Texts::Lines),
        ]
    );
}

#[test]
fn a_folder_that_cannot_be_used_says_why() {
    let files = Files::new();
    let folder = files.0.path().join("in");
    let fails = |expected: &str| {
        let error = data(&folder).expect_err(expected);
        assert_eq!(message(&folder, &error.to_string()), expected);
    };
    fs::create_dir(&folder).expect("a folder");
    fails("in: an empty folder: expected a file for each input, named as the input");
    files.write("in/a.npy", b"no array");
    fails("in: a.npy: not a NumPy array (.npy), or cut short");
    files.write("in/a.bin", [1]);
    let error = data(&folder).expect_err("two of one input").to_string();
    assert!(error.contains("for the same input as"), "{error}");
    fs::create_dir(folder.join("0")).expect("a folder");
    let error = data(&folder).expect_err("a folder in it").to_string();
    assert!(
        error.contains("a folder within the folder") || error.contains("same input"),
        "{error}"
    );
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let files = Files::new();
    let missing = files.0.path().join("no.json");
    for error in [data(&missing).err(), file(&missing).err()] {
        let error = error.expect("missing").to_string();
        assert!(
            error.contains("no.json: failed to read: No such file"),
            "{error}"
        );
    }
    let error = file(files.0.path()).expect_err("a folder").to_string();
    assert!(error.contains("a folder: expected a file"), "{error}");
    let error = data(Path::new("/dev/zero"))
        .expect_err("a device")
        .to_string();
    assert_eq!(error, "/dev/zero: not a regular file");
}

/// An array as numpy.save writes it (format 1.0).
fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn array(bytes: &[u8]) -> Result<(&'static str, Vec<i64>, Vec<u8>), String> {
    let files = Files::new();
    let path = files.write("x.npy", bytes);
    match file(&path)
        .map_err(|error| message(&path, &error.to_string()))?
        .content
    {
        FileContent::Array {
            datatype,
            shape,
            data,
        } => Ok((datatype, shape, data.to_vec())),
        FileContent::Plain { .. } => panic!("an array"),
    }
}

#[test]
fn numpy_arrays_of_every_datatype() {
    for (descr, datatype, width) in [
        ("|b1", "BOOL", 1),
        ("|i1", "INT8", 1),
        ("<i2", "INT16", 2),
        ("<i4", "INT32", 4),
        ("<i8", "INT64", 8),
        ("|u1", "UINT8", 1),
        ("<u2", "UINT16", 2),
        ("<u4", "UINT32", 4),
        ("<u8", "UINT64", 8),
        ("<f2", "FP16", 2),
        ("<f4", "FP32", 4),
        ("<f8", "FP64", 8),
    ] {
        let data: Vec<u8> = (0..2 * width).collect();
        let found = array(&npy(descr, false, "(2,)", &data)).expect(descr);
        assert_eq!(found, (datatype, vec![2], data), "{descr}");
    }
}

#[test]
fn numpy_arrays_in_other_orders_and_of_texts() {
    // [[1, 2, 3], [4, 5, 6]] column by column, high bytes first.
    let data = [0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6];
    let found = array(&npy(">u2", true, "(2, 3)", &data)).expect("reads");
    let expected = vec![1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0];
    assert_eq!(found, ("UINT16", vec![2, 3], expected));

    let found = array(&npy("|S3", false, "(2,)", b"ab\0xyz")).expect("reads");
    let expected = b"\x02\0\0\0ab\x03\0\0\0xyz".to_vec();
    assert_eq!(found, ("BYTES", vec![2], expected));

    for (descr, big) in [("<U2", false), (">U2", true)] {
        let mut data = Vec::new();
        for letter in ['h', 'é', 'x', '\0'] {
            let code = u32::from(letter);
            data.extend(if big {
                code.to_be_bytes()
            } else {
                code.to_le_bytes()
            });
        }
        let found = array(&npy(descr, false, "(2,)", &data)).expect("reads");
        let expected = b"\x03\0\0\0h\xc3\xa9\x01\0\0\0x".to_vec();
        assert_eq!(found, ("BYTES", vec![2], expected), "{descr}");
    }
    let found = array(&npy("<f4", false, "()", &[0, 0, 128, 63])).expect("reads");
    assert_eq!(found, ("FP32", vec![], vec![0, 0, 128, 63]));
}

#[test]
fn arrays_that_cannot_be_sent_say_why() {
    for (bytes, expected) in [
        (npy("|O", false, "(1,)", b"x"), "an array of Python objects"),
        (
            npy("<c8", false, "(1,)", &[0; 8]),
            "Triton has no such datatype",
        ),
        (
            npy("<f4", false, "(2,)", &[0; 7]),
            "expected 8 (the file may be cut short)",
        ),
        (
            npy("<f4", false, "(2,)", &[0; 9]),
            "expected 8 (the file may be cut short)",
        ),
        (
            npy("<f4", false, "(4611686018427387904, 8)", b""),
            "more elements than can be counted",
        ),
        (
            npy("<U1", false, "(1,)", &0xD800_u32.to_le_bytes()),
            "text 1 holds what is no letter",
        ),
        (b"\x93NUMPY\x01\x00\xff".to_vec(), "not a NumPy array"),
        (Vec::new(), "not a NumPy array"),
    ] {
        let error = array(&bytes).expect_err(expected);
        assert!(
            error.starts_with("x.npy: ") && error.contains(expected),
            "{error}"
        );
    }
    let files = Files::new();
    let error = file(&files.write("x.npz", b"PK"))
        .expect_err("an archive")
        .to_string();
    assert!(error.contains("save the one array as .npy"), "{error}");
}

#[test]
fn the_digest_is_of_the_content() {
    let one = read(r#"{"data": [{"A": [1]}]}"#).expect("reads");
    let same = read(r#"{"data": [{"A": [1]}]}"#).expect("reads");
    let other = read(r#"{"data": [{"A": [2]}]}"#).expect("reads");
    assert_eq!(one.digest, same.digest);
    assert_ne!(one.digest, other.digest);
    assert_eq!(one.digest.len(), 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = named("in.json", &bytes);
        let _ = array(&bytes);
    }

    #[test]
    fn no_text_of_json_letters_does_harm(text in "[\\[\\]{}\",:0-9a-dNI. \n-]{0,80}") {
        let _ = named("in.json", &text);
        let _ = named("in.json", format!("{{\"data\": [{text}]}}"));
    }

    #[test]
    fn no_array_header_does_harm(header in "[\\[\\]{}(),:'a-z0-9<|> _-]{0,80}") {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        let _ = array(&bytes);
    }
}
