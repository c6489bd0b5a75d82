use std::time::Instant;

use tonic::Code;

use super::*;
use crate::simulate::{ErrorKind, FaultKind, FaultSpec};
use crate::triton::proto::inference::{ModelReadyRequest, RepositoryModelLoadRequest};

#[tokio::test]
async fn every_hundredth_request_fails_and_is_counted() {
    let model = unit("m").fault(FaultSpec::error(ErrorKind::Execution).every(100));
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let mut failed = Vec::new();
    for number in 1..=1000u32 {
        if let Err(status) = client.model_infer(request("m", 1)).await {
            assert_eq!(status.code(), Code::Internal);
            failed.push(number);
        }
    }
    assert_eq!(
        failed,
        (1..=10).map(|hundreds| hundreds * 100).collect::<Vec<_>>()
    );
    let stats = statistics(&mut client, "m", "1").await;
    // Executions include those whose request failed.
    assert_eq!(counts(&stats), [990, 10, 990, 990, 0, 0, 990, 1000]);
}

#[tokio::test]
async fn a_fault_can_be_of_one_version_only() {
    let fault = FaultSpec::error(ErrorKind::QueueFull).version(2);
    let running = start(vec![
        unit("m").version(1, None).version(2, None).fault(fault),
    ]);
    let mut client = connect(&running).await;
    for (version, fails) in [("1", false), ("2", true), ("", true)] {
        let mut ask = request("m", 1);
        version.clone_into(&mut ask.model_version);
        assert_eq!(
            client.model_infer(ask).await.is_err(),
            fails,
            "version {version:?}"
        );
    }
}

#[tokio::test]
async fn a_reload_restarts_statistics() {
    let fault = FaultSpec::new(FaultKind::Reload).at_request(4);
    let running = start(vec![unit("m").fault(fault)]);
    let mut client = connect(&running).await;
    for expected in [1, 2, 3, 1, 2] {
        client.model_infer(request("m", 1)).await.expect("runs");
        assert_eq!(
            counts(&statistics(&mut client, "m", "1").await)[0],
            expected
        );
    }
    let load = RepositoryModelLoadRequest {
        model_name: "m".to_owned(),
        ..RepositoryModelLoadRequest::default()
    };
    client.repository_model_load(load).await.expect("loads");
    assert_eq!(counts(&statistics(&mut client, "m", "1").await), [0; 8]);
}

#[tokio::test]
async fn a_stall_holds_what_it_meets() {
    let fault = FaultSpec::new(FaultKind::Stall)
        .at_request(2)
        .length(MS * 120);
    let running = start(vec![unit("m").fault(fault)]);
    let mut client = connect(&running).await;
    client.model_infer(request("m", 1)).await.expect("runs");
    let before = Instant::now();
    client
        .model_infer(request("m", 1))
        .await
        .expect("runs after the stall");
    assert!(before.elapsed() >= MS * 120);

    let fault = FaultSpec::new(FaultKind::Stall)
        .at(Duration::ZERO)
        .length(MS * 300);
    let before = Instant::now();
    let running = start(vec![unit("m").latency(constant(1)).fault(fault)]);
    let mut client = connect(&running).await;
    client
        .model_infer(request("m", 1))
        .await
        .expect("runs after the stall");
    assert!(before.elapsed() >= MS * 300);
}

#[tokio::test]
async fn a_hang_never_answers() {
    let fault = FaultSpec::new(FaultKind::Hang).after_request(1);
    let running = start(vec![unit("m").fault(fault)]);
    let mut client = connect(&running).await;
    client
        .model_infer(request("m", 1))
        .await
        .expect("the first runs");
    let hung = tokio::time::timeout(MS * 150, client.model_infer(request("m", 1))).await;
    hung.expect_err("no answer");
    assert_eq!(running.requests("m"), 2);
}

#[tokio::test]
async fn a_disconnect_cuts_the_connection_and_the_next_one_works() {
    let fault = FaultSpec::new(FaultKind::Disconnect).at_request(2);
    let running = start(vec![unit("m").fault(fault)]);
    let mut client = connect(&running).await;
    client
        .model_infer(request("m", 1))
        .await
        .expect("the first runs");
    let cut = client.model_infer(request("m", 1)).await.expect_err("cut");
    assert!(
        !cut.message().contains("simulated"),
        "no answer, only a lost connection: {cut:?}"
    );
    assert_eq!(running.requests("m"), 2);
    let mut again = connect(&running).await;
    again
        .model_infer(request("m", 1))
        .await
        .expect("a new connection works");
}

#[tokio::test]
async fn outputs_can_be_missing_or_short() {
    let model = unit("m")
        .fault(FaultSpec::new(FaultKind::EmptyOutputs).at_request(2))
        .fault(FaultSpec::new(FaultKind::WrongSize).at_request(3));
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let answer = client
            .model_infer(request("m", 1))
            .await
            .expect("runs")
            .into_inner();
        sizes.push(
            answer
                .raw_output_contents
                .iter()
                .map(Bytes::len)
                .collect::<Vec<_>>(),
        );
        assert_eq!(answer.outputs.len(), answer.raw_output_contents.len());
    }
    assert_eq!(sizes, [vec![4], vec![], vec![3], vec![4]]);
}

#[tokio::test]
async fn a_model_that_is_not_ready_says_so() {
    let fault = FaultSpec::new(FaultKind::NotReady);
    let running = start(vec![unit("m").fault(fault)]);
    let mut client = connect(&running).await;
    let ask = ModelReadyRequest {
        name: "m".to_owned(),
        version: String::new(),
    };
    assert!(
        !client
            .model_ready(ask)
            .await
            .expect("answers")
            .into_inner()
            .ready
    );
    let refused = client
        .model_infer(request("m", 1))
        .await
        .expect_err("not ready");
    assert_eq!(
        (refused.code(), refused.message()),
        (
            Code::NotFound,
            "Request for unknown model: 'm' has no available versions"
        )
    );
}
