//! Finding and reading files, on a real file system.

use std::fs;
use std::path::PathBuf;

use super::{SCENARIO, messages};
use crate::config::{Overrides, load};

fn scenario(name: &str) -> String {
    SCENARIO.replace("\"s\"", &format!("\"{name}\""))
}

fn load_paths(paths: &[PathBuf]) -> Result<crate::config::Config, crate::config::ConfigErrors> {
    load(paths, &Overrides::default(), &|_| None)
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    let config = load_paths(paths).expect("loads");
    config.scenarios.into_iter().map(|s| s.name).collect()
}

#[test]
fn a_folder_is_its_toml_files_in_order() {
    let folder = tempfile::tempdir().expect("folder");
    for name in ["b", "a"] {
        fs::write(folder.path().join(format!("{name}.toml")), scenario(name)).expect("file");
    }
    // None of these is a thresholds file.
    fs::write(folder.path().join("notes.md"), "no toml").expect("file");
    fs::write(folder.path().join(".hidden.toml"), "no toml").expect("file");
    fs::create_dir(folder.path().join("sub.toml")).expect("folder");
    assert_eq!(names(&[folder.path().to_owned()]), ["a", "b"]);
    // Named twice is read once.
    assert_eq!(
        names(&[folder.path().join("b.toml"), folder.path().to_owned()]),
        ["b", "a"]
    );
}

#[test]
fn nothing_to_read_is_an_error() {
    let folder = tempfile::tempdir().expect("folder");
    let shown = folder.path().display();
    assert_eq!(
        messages(load_paths(&[folder.path().to_owned()])),
        format!(
            "{shown}: the folder holds no *.toml file: write one (`triton-gate init`), or name another with -c"
        )
    );
    let absent = folder.path().join("absent.toml");
    let found = messages(load_paths(&[absent]));
    assert!(
        found.starts_with(&format!("{shown}/absent.toml: failed to read: ")),
        "{found}"
    );
    assert_eq!(
        messages(load_paths(&[])),
        "no thresholds file was named: give a file or a folder with -c"
    );
}

#[test]
fn a_file_that_is_not_utf8_is_named_with_the_line() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("a.toml");
    fs::write(&path, b"schema = 1\n# caf\xe9\n").expect("file");
    assert_eq!(
        messages(load_paths(std::slice::from_ref(&path))),
        format!(
            "{}:2: not UTF-8: save the file as UTF-8 text",
            path.display()
        )
    );
}

#[test]
fn byte_order_mark_and_windows_line_ends_are_read() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("a.toml");
    let text = format!("\u{feff}{SCENARIO}").replace('\n', "\r\n");
    fs::write(&path, text).expect("file");
    assert_eq!(names(&[path]), ["s"]);
}

#[test]
fn errors_of_all_files_come_together() {
    let folder = tempfile::tempdir().expect("folder");
    let (a, b) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
    fs::write(&a, format!("{SCENARIO}batch = 0\n")).expect("file");
    fs::write(&b, format!("[gate]\nrise = 1\n{SCENARIO}")).expect("file");
    let found = messages(load_paths(&[folder.path().to_owned()]));
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 3, "{found}");
    assert!(lines[0].starts_with(&format!("{}:4: key 'scenario.batch'", a.display())));
    assert!(lines[1].starts_with(&format!("{}:2: key 'gate.rise'", b.display())));
    assert!(lines[2].contains("the name \"s\" is taken"), "{found}");
}

#[test]
fn input_files_lie_beside_the_thresholds_file() {
    let folder = tempfile::tempdir().expect("folder");
    let inner = folder.path().join("thresholds");
    fs::create_dir(&inner).expect("folder");
    let path = inner.join("t.toml");
    let text = format!(
        "{SCENARIO}concurrency = [1, 2]\ninput_data = \"../in.jsonl\"\n\
         [scenario.inputs.x]\nfile = \"x.bin\"\nshape = [2]\n"
    );
    fs::write(&path, text).expect("file");
    let shown = folder.path().display().to_string();
    let missing = messages(load_paths(std::slice::from_ref(&path))).replace(&shown, "");
    assert_eq!(
        missing.lines().next(),
        Some(
            "/thresholds/t.toml:5: key 'scenario.input_data' of scenario 's-c1': /thresholds/../in.jsonl: failed to read: No such file or directory (os error 2)"
        )
    );
    assert_eq!(missing.lines().count(), 4, "{missing}");

    fs::write(folder.path().join("in.jsonl"), "{\"A\": 1}\n{\"A\": 2}\n").expect("file");
    fs::write(inner.join("x.bin"), [1, 2]).expect("file");
    let config = load_paths(&[path]).expect("loads");
    let [one, two] = config.scenarios.as_slice() else {
        panic!("two scenarios");
    };
    let steps = |scenario: &crate::data::Scenario| scenario.input_data.clone().expect("data");
    assert_eq!(steps(one).steps.len(), 2);
    // Read once, however often it is used.
    assert!(std::sync::Arc::ptr_eq(&steps(one), &steps(two)));
    assert_eq!(
        one.input_files,
        [inner.join("../in.jsonl"), inner.join("x.bin")]
    );
    let shown: Vec<String> = config
        .explain("s-c1")
        .into_iter()
        .filter(|row| row.key.starts_with("input"))
        .map(|row| format!("{} {}", row.key, row.value))
        .collect();
    assert_eq!(
        shown,
        [
            "input_data ../in.jsonl (2 steps, ec321920)",
            "inputs.x x.bin (a12871fe), [2]"
        ]
    );
}

#[test]
fn a_file_goes_without_what_makes_data() {
    for (keys, expected) in [
        ("file = \"x\"\ndata = \"zero\"", "keep one of the two"),
        (
            "file = \"x\"\nrange = [0, 1]",
            "goes with data = \"random\" only",
        ),
        ("file = \"\"", "an empty path"),
        ("file = 3", "expected the path of a file"),
    ] {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("t.toml");
        fs::write(folder.path().join("x"), [1]).expect("file");
        fs::write(&path, format!("{SCENARIO}[scenario.inputs.x]\n{keys}\n")).expect("file");
        let text = messages(load_paths(&[path]));
        assert!(text.contains(expected), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
