//! The embedded server, and what the tests of this program measure on it.

use std::time::Duration;

use triton_gate::simulate::{LatencySpec, ModelSpec, Running, Server, SimulateSpec, Wire};

use crate::program::{Folder, Thresholds};

/// Version 1 of the model takes this long, version 2 ten times as long: far apart on any machine.
const QUICK: Duration = Duration::from_millis(4);

/// A model without faults.
pub fn model(name: &str) -> ModelSpec {
    let mut model = ModelSpec::new(name)
        .input("x", Wire::Fp32, &[4])
        .output("y", Wire::Fp32, &[4])
        .version(1, Some(LatencySpec::constant(QUICK)))
        .version(2, Some(LatencySpec::constant(QUICK * 10)));
    model.instances = 8;
    model
}

/// A server with these models on a port of its own.
pub fn serve(models: impl IntoIterator<Item = ModelSpec>) -> Running {
    let spec = models
        .into_iter()
        .fold(SimulateSpec::on_free_port(), SimulateSpec::model);
    Server::start(spec).expect("a server on a free port")
}

/// The scenario `a` on version 1 of model `m`: short, with limits far from the noise of a busy
/// machine and from the tenfold latency of version 2.
pub fn thresholds(server: &Running) -> Thresholds {
    at(&server.url())
}

/// The same for an address where anything may be.
pub fn at(url: &str) -> Thresholds {
    Thresholds::of("a", "m")
        .server("url", &format!("{url:?}"))
        .gate("throughput_drop", "\"70%\"")
        .gate("p99_rise", "\"off\"")
        .gate("p50_rise", "\"200%\"")
        .gate("budget", "\"10s\"")
        .gate("assumed_noise", "\"5%\"")
        .measure("warmup", "\"300ms\"")
        .measure("block", "\"250ms\"")
        .scenario("version", "\"1\"")
        .scenario("concurrency", "4")
}

/// A folder with `t.toml` for a healthy server and one recorded session of its version 1.
pub fn recorded() -> (Running, Thresholds, Folder) {
    let server = serve([model("m")]);
    let thresholds = thresholds(&server);
    let folder = Folder::new();
    folder.write("t.toml", &thresholds.text());
    folder
        .run(&["baseline", "record", "-c", "t.toml"])
        .code(0)
        .says(&["recorded a"]);
    assert_eq!(folder.files("baselines", ".csv").len(), 1);
    (server, thresholds, folder)
}

/// Checks with these thresholds in the folder, which may hold a baseline.
pub fn check(folder: &Folder, thresholds: &Thresholds, more: &[&str]) -> crate::program::Ended {
    folder.write("check.toml", &thresholds.text());
    let mut arguments = vec!["check", "-c", "check.toml"];
    arguments.extend(more);
    folder.run(&arguments)
}
