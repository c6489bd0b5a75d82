//! Servers and models that cannot be measured: exit 3, with what to do, within bounded time.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use triton_gate::simulate::{ErrorKind, FaultKind, FaultSpec, LatencySpec, ModelSpec, Wire};

use crate::program::{Folder, Thresholds};
use crate::server::{at, model, recorded, serve, thresholds};

/// `measure`, which needs no baseline, with these thresholds.
fn measure(thresholds: &Thresholds) -> crate::program::Ended {
    let folder = Folder::new();
    folder.write("t.toml", &thresholds.text());
    folder.run(&[
        "measure",
        "-c",
        "t.toml",
        "--duration",
        "500ms",
        "-o",
        "m.csv",
    ])
}

#[test]
fn nothing_that_listens() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    measure(&at(&address))
        .code(3)
        .says(&["nothing listens at", &address]);
    let (server, same, folder) = recorded();
    folder.write("t.toml", &same.text());
    drop(server);
    let result = folder
        .run(&["check", "-c", "t.toml", "--json", "-"])
        .code(3)
        .json();
    assert_eq!(result["verdict"], "invalid");
    assert_eq!(result["exit_code"], 3);
}

#[test]
fn the_http_port_by_mistake() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    // Ends with the process: a listener cannot be woken from its wait.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\
                          Connection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    measure(&at(&address))
        .code(3)
        .says(&[&address, "not Triton's gRPC endpoint"]);
}

#[test]
fn a_listener_that_never_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    measure(&at(&address)).code(3).says(&[&address]);
}

#[test]
fn scenarios_that_do_not_fit_the_model() {
    let mut batched = model("batched");
    batched.max_batch_size = 4;
    let mut streaming = model("streaming");
    streaming.decoupled = true;
    let free = ModelSpec::new("free")
        .input("x", Wire::Fp32, &[-1])
        .output("y", Wire::Fp32, &[-1])
        .latency(LatencySpec::constant(Duration::from_millis(1)));
    let server = serve([model("m"), batched, streaming, free]);
    let good = thresholds(&server);
    let of = |name: &str| good.clone().scenario("model", &format!("{name:?}"));
    let table: [(Thresholds, &[&str]); 9] = [
        (of("nn"), &["`nn`", "m", "batched"]),
        (of("m").scenario("version", "\"7\""), &["`7`", "1", "2"]),
        (of("m").scenario("inputs.z.data", "\"zero\""), &["z", "x"]),
        (of("m").scenario("inputs.x.shape", "[5]"), &["x", "5", "4"]),
        (
            of("m").scenario("inputs.x.data", "[\"a\", \"b\", \"c\", \"d\"]"),
            &["x", "FP32"],
        ),
        (
            of("m").scenario("inputs.x.data", "[1.0, 2.0]"),
            &["x", "2", "4"],
        ),
        (of("batched").scenario("batch", "5"), &["batch", "5", "4"]),
        (of("m").scenario("batch", "2"), &["batch"]),
        (of("free").scenario("version", "\"1\""), &["x", "shape"]),
    ];
    for (thresholds, texts) in table {
        measure(&thresholds).code(3).says(texts);
    }
    measure(&of("streaming")).code(3).says(&["decoupled"]);
    for name in ["m", "batched", "streaming", "free"] {
        assert_eq!(server.requests(name), 0, "{name}: refused before any load");
    }
}

#[test]
fn requests_that_fail() {
    let failing = |fault: FaultSpec| model("m").fault(fault);
    let every = serve([failing(FaultSpec::error(ErrorKind::Execution))]);
    measure(&thresholds(&every)).code(3).says(&["100.00 %"]);

    let some = || {
        failing(
            FaultSpec::error(ErrorKind::Execution)
                .every(100)
                .message("out of luck"),
        )
    };
    let server = serve([some()]);
    measure(&thresholds(&server))
        .code(3)
        .says(&["requests failed", "out of luck"]);
    let accepted = thresholds(&server).measure("max_error_rate", "\"5%\"");
    measure(&accepted).code(0);

    // The same in a check: no verdict from it.
    let (healthy, same, folder) = recorded();
    drop(healthy);
    let server = serve([some()]);
    let url = format!("{:?}", server.url());
    folder.write("t.toml", &same.server("url", &url).text());
    let ended = folder
        .run(&["check", "-c", "t.toml", "--json", "-"])
        .code(3);
    let result = ended.json();
    assert_eq!(result["verdict"], "invalid");
    let errors = result["scenarios"][0]["errors"]
        .as_object()
        .expect("counts");
    assert!(!errors.is_empty());
    assert!(ended.stderr.contains("requests failed"), "{}", ended.stderr);
}

#[test]
fn a_model_that_is_reloaded_meanwhile() {
    let server = serve([model("m").fault(FaultSpec::new(FaultKind::Reload).at_request(600))]);
    let long = thresholds(&server).measure("warmup", "\"250ms\"");
    let folder = Folder::new();
    folder.write("t.toml", &long.text());
    folder
        .run(&["measure", "-c", "t.toml", "--duration", "3s"])
        .code(3)
        .says(&["reloaded"]);
}

#[test]
fn a_server_that_hangs() {
    let hanging = FaultSpec::new(FaultKind::Hang).after_request(100);
    let server = serve([model("m").fault(hanging)]);
    let impatient = thresholds(&server).measure("request_timeout", "\"1s\"");
    measure(&impatient).code(3);
}

#[test]
fn a_server_that_dies_while_it_is_measured() {
    let (server, same, folder) = recorded();
    let long = same.measure("block", "\"500ms\"").gate("budget", "\"30s\"");
    folder.write("t.toml", &long.text());
    folder
        .run(&[
            "baseline",
            "record",
            "-c",
            "t.toml",
            "--duration",
            "1s",
            "--baselines",
            "b",
        ])
        .code(0);
    let mut program = folder.start(&["check", "-c", "t.toml", "--baselines", "b", "--json", "-"]);
    program.wait_for("measuring");
    let seen = server.requests("m");
    while server.requests("m") < seen + 50 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(server);
    let result = program.wait().code(3).json();
    assert_eq!(result["verdict"], "invalid");
}

#[test]
fn a_server_that_dies_before_the_second_scenario() {
    let (server, same, folder) = recorded();
    let second = "[[scenario]]\nname = \"b\"\nmodel = \"m\"\nversion = \"1\"\nconcurrency = 4\n";
    let new = same.gate("on_missing", "\"new\"");
    folder.write("t.toml", &format!("{}{second}", new.text()));
    let mut program = folder.start(&["check", "-c", "t.toml", "--json", "-"]);
    program.wait_for("b: warming up");
    drop(server);
    let result = program.wait().code(3).json();
    // What the first showed is kept.
    assert_eq!(result["scenarios"][0]["verdict"], "pass");
    assert_eq!(result["scenarios"][1]["verdict"], "invalid");
}
