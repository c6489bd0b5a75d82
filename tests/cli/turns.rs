//! Servers that take turns: started, measured and ended by the gate, one at a time.

use std::net::TcpListener;

use crate::program::{Folder, Thresholds};
use crate::server::{at, recorded, serve};

/// A description for `simulate`: one model that answers after this long.
fn description(folder: &Folder, name: &str, milliseconds: u32) {
    let text = format!(
        "schema = 1\nversion = \"2.{milliseconds}.0\"\n[[model]]\nname = \"m\"\ninstances = 8\n\
         [[model.input]]\nname = \"x\"\ndatatype = \"FP32\"\ndims = [4]\n\
         [[model.output]]\nname = \"y\"\ndatatype = \"FP32\"\ndims = [4]\n\
         [model.latency]\nbase = \"{milliseconds}ms\"\n"
    );
    folder.write(name, &text);
}

/// An address that is free for now.
fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

fn launch(address: &str, description: &str) -> String {
    let program = env!("CARGO_BIN_EXE_triton-gate");
    format!(
        "[{program:?}, \"simulate\", \"-q\", \"--listen\", {address:?}, \"-c\", {description:?}]"
    )
}

fn turns(address: &str) -> Thresholds {
    at(address)
        .server("launch", &launch(address, "new.toml"))
        .scenario("reference.launch", &launch(address, "old.toml"))
        .gate("budget", "\"40s\"")
        .measure("warmup", "\"300ms\"")
        .measure("block", "\"250ms\"")
}

#[test]
fn both_versions_share_one_address_and_a_slower_one_fails() {
    let folder = Folder::new();
    let address = free();
    description(&folder, "old.toml", 4);
    description(&folder, "new.toml", 40);
    folder.write("t.toml", &turns(&address).text());
    let ended = folder
        .run(&["check", "-c", "t.toml", "--json", "r.json"])
        .code(1);
    ended.says(&[
        "REGRESSION",
        "sessions of the reference",
        "triton.version 2.4.0 -> 2.40.0",
    ]);
    let result = folder.json("r.json");
    let scenario = &result["scenarios"][0];
    assert_eq!(scenario["baseline"]["kind"], "reference");
    assert_eq!(scenario["baseline"]["sessions"], 3);
    // Each session of the candidate is kept as one of its own.
    assert_eq!(folder.files("results", ".csv").len(), 3);
    // Nothing listens any more.
    assert!(
        TcpListener::bind(&address).is_ok(),
        "a server was left behind"
    );
}

#[test]
fn a_server_that_is_there_before_is_not_measured_in_place_of_the_launched_one() {
    let server = serve([crate::server::model("m")]);
    let folder = Folder::new();
    description(&folder, "old.toml", 2);
    description(&folder, "new.toml", 2);
    let address = server.url();
    folder.write("t.toml", &turns(&address).text());
    folder
        .run(&["check", "-c", "t.toml"])
        .code(3)
        .says(&["answers at", &address, "another port"]);
    assert_eq!(server.requests("m"), 0);
}

#[test]
fn a_budget_that_holds_no_three_sessions_a_side_says_what_would() {
    let folder = Folder::new();
    let address = free();
    description(&folder, "old.toml", 2);
    description(&folder, "new.toml", 2);
    let short = turns(&address)
        .gate("budget", "\"2s\"")
        .measure("block", "\"500ms\"");
    folder.write("t.toml", &short.text());
    folder
        .run(&["check", "-c", "t.toml"])
        .code(4)
        .says(&["3 sessions a side", "set budget to at least"]);
}

#[test]
fn a_reference_that_does_not_start_ends_in_3_with_its_last_words() {
    let folder = Folder::new();
    let address = free();
    description(&folder, "new.toml", 2);
    let thresholds = turns(&address).scenario(
        "reference.launch",
        "[\"sh\", \"-c\", \"echo no such model >&2; exit 9\"]",
    );
    folder.write("t.toml", &thresholds.text());
    folder
        .run(&["check", "-c", "t.toml"])
        .code(3)
        .says(&["the reference", "no such model"]);
}

#[test]
fn one_launch_command_alone_is_refused() {
    let (_server, same, folder) = recorded();
    let lonely = same.scenario("reference.launch", "[\"x\"]");
    folder.write("t.toml", &lonely.text());
    folder
        .run(&["check", "-c", "t.toml"])
        .code(2)
        .says(&["[server] launch too"]);
}
