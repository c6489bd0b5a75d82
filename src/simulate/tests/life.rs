use std::net::TcpListener;

use tonic::Code;

use super::*;
use crate::simulate::{ErrorKind, FaultKind, FaultSpec, SimulateError};
use crate::triton::proto::health::HealthCheckRequest;
use crate::triton::proto::health::health_client::HealthClient;
use crate::triton::proto::inference::{ModelReadyRequest, ServerLiveRequest, ServerReadyRequest};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopping_server_says_so_and_finishes_what_it_has() {
    let running = start(vec![unit("m").latency(constant(150))]);
    let mut client = connect(&running).await;
    let mut health = HealthClient::connect(format!("http://{}", running.url()))
        .await
        .expect("up");
    let in_flight = tokio::spawn({
        let mut client = client.clone();
        async move { client.model_infer(request("m", 1)).await.map(drop) }
    });
    while running.requests("m") < 1 {
        tokio::time::sleep(MS).await;
    }
    running.begin_shutdown();
    let says = |status: tonic::Status, text: &str| {
        assert_eq!((status.code(), status.message()), (Code::Unavailable, text));
    };
    says(
        client
            .server_live(ServerLiveRequest {})
            .await
            .expect_err("stopping"),
        "Server exiting",
    );
    says(
        client
            .server_ready(ServerReadyRequest {})
            .await
            .expect_err("stopping"),
        "Server exiting",
    );
    let check = HealthCheckRequest::default();
    says(
        health.check(check).await.expect_err("stopping"),
        "Server exiting",
    );
    let ready = ModelReadyRequest {
        name: "m".to_owned(),
        version: String::new(),
    };
    says(
        client.model_ready(ready).await.expect_err("stopping"),
        "Server not ready",
    );
    let all = ModelStatisticsRequest::default();
    says(
        client.model_statistics(all).await.expect_err("stopping"),
        "Server not ready",
    );
    says(
        client
            .model_infer(request("m", 1))
            .await
            .expect_err("stopping"),
        "[request id: r1] Server is stopping, scheduler for model has stopped accepting new \
         inference requests",
    );
    let address = running.addr();
    tokio::task::spawn_blocking(|| running.shutdown())
        .await
        .expect("no panic")
        .expect("in order");
    in_flight
        .await
        .expect("no panic")
        .expect("completes normally");
    TcpListener::bind(address).expect("the port is free again");
}

#[test]
fn a_hung_request_does_not_hold_up_the_end() {
    let spec = SimulateSpec {
        shutdown_grace: MS * 50,
        models: vec![unit("m").fault(FaultSpec::new(FaultKind::Hang))],
        ..SimulateSpec::on_free_port()
    };
    let running = Server::start(spec).expect("starts");
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let mut client = runtime.block_on(connect(&running));
    let hung = runtime.spawn(async move { client.model_infer(request("m", 1)).await.map(drop) });
    while running.requests("m") < 1 {
        std::thread::sleep(MS);
    }
    running.shutdown().expect("ends");
    runtime
        .block_on(hung)
        .expect("no panic")
        .expect_err("the connection is gone");
}

#[tokio::test]
async fn a_server_can_take_time_to_become_ready() {
    let spec = SimulateSpec {
        ready_after: Duration::from_hours(1),
        models: vec![unit("m")],
        ..SimulateSpec::on_free_port()
    };
    let running = Server::start(spec).expect("starts");
    let mut client = connect(&running).await;
    assert!(
        client
            .server_live(ServerLiveRequest {})
            .await
            .expect("live")
            .into_inner()
            .live
    );
    assert!(
        !client
            .server_ready(ServerReadyRequest {})
            .await
            .expect("ok")
            .into_inner()
            .ready
    );
    let refused = client
        .model_infer(request("m", 1))
        .await
        .expect_err("not ready");
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::Unavailable, "Server not ready")
    );
}

#[test]
fn run_until_ends_with_its_signal() {
    let spec = SimulateSpec::on_free_port().model(unit("m"));
    let mut seen = None;
    Server::run_until(spec, |address| seen = Some(address), async {}).expect("in order");
    assert_ne!(seen.expect("told").port(), 0);
}

#[test]
fn what_cannot_start_says_why() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("free port");
    let listen = taken.local_addr().expect("bound");
    let spec = SimulateSpec {
        listen,
        ..SimulateSpec::on_free_port().model(unit("m"))
    };
    let error = Server::start(spec).err().expect("taken");
    assert!(matches!(error, SimulateError::Bind { .. }), "{error}");

    let spec = SimulateSpec {
        log: Some("/nonexistent/requests.csv".into()),
        ..SimulateSpec::on_free_port().model(unit("m"))
    };
    let error = Server::start(spec).err().expect("no such folder");
    assert!(matches!(error, SimulateError::Log { .. }), "{error}");

    let error = Server::start(SimulateSpec::on_free_port())
        .err()
        .expect("no models");
    assert_eq!(
        error.to_string(),
        "failed to use the description of the simulated server: `model` is missing: name at \
         least one model"
    );
}

#[test]
fn the_log_holds_true_times_of_every_request() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("requests.csv");
    let model = unit("m")
        .latency(constant(2))
        .fault(FaultSpec::error(ErrorKind::ModelError).at_request(2));
    let spec = SimulateSpec {
        log: Some(path.clone()),
        models: vec![model],
        ..SimulateSpec::on_free_port()
    };
    let running = Server::start(spec).expect("starts");
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    runtime.block_on(async {
        let mut client = connect(&running).await;
        client.model_infer(request("m", 1)).await.expect("runs");
        client
            .model_infer(request("m", 1))
            .await
            .expect_err("fails");
        client
            .model_infer(request("x", 1))
            .await
            .expect_err("unknown");
    });
    running.shutdown().expect("in order");
    let mut reader = csv::Reader::from_path(&path).expect("readable");
    assert_eq!(
        reader.headers().expect("header").iter().collect::<Vec<_>>(),
        [
            "ordinal",
            "id",
            "model",
            "version",
            "arrival_ns",
            "start_ns",
            "end_ns",
            "status"
        ]
    );
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("row")).collect();
    let texts: Vec<_> = rows
        .iter()
        .map(|row| {
            [0, 1, 2, 3, 7]
                .map(|column| row[column].to_owned())
                .join("/")
        })
        .collect();
    assert_eq!(
        texts,
        ["1/r1/m/1/OK", "2/r1/m/1/INTERNAL", "0/r1/x//NOT_FOUND"]
    );
    for row in &rows[..2] {
        let [arrival, start, end] = [4, 5, 6].map(|c| row[c].parse::<u64>().expect("ns"));
        assert!(arrival <= start && end >= start + 2_000_000, "{row:?}");
    }
    assert_eq!(&rows[2][5], "", "never started");
}
