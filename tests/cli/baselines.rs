//! Baseline files: damaged ones, keeping them, and comparing two of them.

use std::fs;

use crate::program::Folder;
use crate::server::{check, recorded};

#[test]
fn a_damaged_baseline_is_named_before_anything_is_measured() {
    let (server, same, folder) = recorded();
    let file = folder.files("baselines", ".csv").remove(0);
    let name = file
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let whole = fs::read_to_string(&file).expect("a session");
    let before = server.requests("m");
    let lines: Vec<&str> = whole.lines().collect();
    let conflict = format!(
        "{}\n<<<<<<< ours\n{}\n=======\n{}\n>>>>>>> theirs\n",
        lines[0], lines[1], lines[2]
    );
    let schema = lines[0].split(',').position(|column| column == "schema");
    let newer: Vec<String> = lines
        .iter()
        .enumerate()
        .map(|(index, line)| {
            let mut cells: Vec<&str> = line.split(',').collect();
            if index > 0 {
                cells[schema.expect("the column")] = "99";
            }
            cells.join(",")
        })
        .collect();
    let last = whole.trim_end().rfind('\n').expect("rows");
    let table = [
        (String::new(), "empty"),
        (lines[0].to_owned() + "\n", "no rows"),
        (whole[..last].to_owned() + "\n", "truncated"),
        (whole[..whole.len() - 40].to_owned(), "truncated"),
        (conflict, "merge conflict"),
        (newer.join("\n") + "\n", "newer"),
    ];
    for (text, message) in table {
        fs::write(&file, text).expect("written");
        check(&folder, &same, &[]).code(2).says(&[&name, message]);
    }
    assert_eq!(server.requests("m"), before, "nothing was measured");
    fs::write(&file, whole).expect("written");
    check(&folder, &same, &[]).code(0);
}

#[test]
fn the_store_is_listed_shown_pruned_and_renamed() {
    let (_server, _, folder) = recorded();
    folder
        .run(&["baseline", "record", "-c", "t.toml"])
        .code(0)
        .says(&["count as one session"]);
    folder
        .run(&["baseline", "list"])
        .code(0)
        .says(&["test", "a", "2"]);
    folder
        .run(&["baseline", "show", "a"])
        .code(0)
        .says(&["m 1"]);
    folder
        .run(&["baseline", "show", "z"])
        .code(5)
        .says(&["there are: a"]);
    folder.run(&["baseline", "rename", "a", "b"]).code(0);
    folder.run(&["check", "-c", "t.toml"]).code(5);
    folder.run(&["baseline", "rename", "b", "a"]).code(0);
    folder
        .run(&["baseline", "prune", "--keep", "1"])
        .code(0)
        .says(&["1 sessions deleted"]);
    assert_eq!(folder.files("baselines", ".csv").len(), 1);
    folder.run(&["check", "-c", "t.toml"]).code(0);
    folder.run(&["baseline", "prune", "--keep", "0"]).code(2);
    folder
        .run(&["baseline", "list", "--baselines", "nowhere"])
        .code(5)
        .says(&["no baseline in nowhere"]);
    // Several sessions need several lives of a server.
    folder
        .run(&["baseline", "record", "-c", "t.toml", "--sessions", "2"])
        .code(2)
        .says(&["launch", "model_control"]);
}

#[test]
fn two_files_are_compared_without_a_server() {
    let (server, same, folder) = recorded();
    let measure = |version: &str, file: &str| {
        folder.write("m.toml", &same.clone().scenario("version", version).text());
        folder
            .run(&[
                "measure",
                "-c",
                "m.toml",
                "--duration",
                "1200ms",
                "-o",
                file,
            ])
            .code(0);
    };
    measure("\"1\"", "one.csv");
    measure("\"1\"", "two.csv");
    measure("\"2\"", "slow.csv");
    drop(server);
    let limits = [
        "--throughput-drop",
        "70%",
        "--p99-rise",
        "400%",
        "--rule",
        "point",
    ];
    let compare = |base: &str, candidate: &str| {
        let mut arguments = vec!["compare", base, candidate];
        arguments.extend(limits);
        folder.run(&arguments)
    };
    compare("one.csv", "two.csv").code(0);
    let slow = compare("one.csv", "slow.csv").code(1);
    assert!(slow.stdout.starts_with("REGRESSION"), "{}", slow.stdout);
    compare("one.csv", "nowhere.csv")
        .code(2)
        .says(&["nowhere.csv"]);
    folder.write("text.csv", "this,is\nno,measurement\n");
    compare("one.csv", "text.csv").code(2).says(&["text.csv"]);
    // Intervals on one session each cannot tell the noise between sessions.
    folder.run(&["compare", "one.csv", "two.csv"]).code(4);
}

#[test]
fn files_of_perf_analyzer_are_compared() {
    let fixture = |name: &str| {
        format!(
            "{}/tests/fixtures/perf_analyzer/{name}",
            env!("CARGO_MANIFEST_DIR")
        )
    };
    let folder = Folder::new();
    let base = fixture("base.csv");
    let text = fs::read_to_string(&base).expect("a fixture");
    let table = [(1.0, 0), (0.97, 0), (0.80, 1)];
    for (factor, code) in table {
        // Every throughput scaled, everything else the same.
        let scaled: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(index, line)| {
                let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
                if index > 0 {
                    let rate: f64 = cells[1].parse().expect("a rate");
                    cells[1] = (rate * factor).to_string();
                }
                cells.join(",")
            })
            .collect();
        folder.write("candidate.csv", &(scaled.join("\n") + "\n"));
        let ended = folder
            .run(&[
                "compare",
                &base,
                "candidate.csv",
                "--rule",
                "point",
                "--json",
                "-",
            ])
            .code(code);
        assert_eq!(ended.json()["exit_code"], code);
    }
    let other = fixture("request_rate.csv");
    folder
        .run(&["compare", &base, &other, "--rule", "point"])
        .code(5);
    let foreign = fixture("not_genai_perf.csv");
    folder
        .run(&["compare", &base, &foreign])
        .code(2)
        .says(&["not_genai_perf.csv"]);
}
