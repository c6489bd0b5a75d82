use std::time::Instant;

use tonic::Code;

use super::*;
use crate::simulate::{Answer, Batching};
use crate::triton::proto::inference::InferTensorContents;

#[tokio::test]
async fn answers_echo_id_and_version_and_align_raw_data_with_outputs() {
    let mut model = unit("m")
        .output("second", Wire::Bytes, &[2])
        .version(1, None)
        .version(2, None);
    model.answer = Answer::Echo;
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let mut ask = request("m", 2);
    ask.raw_input_contents = vec![Bytes::from_static(b"abcdefgh")];
    let answer = client
        .model_infer(ask.clone())
        .await
        .expect("runs")
        .into_inner();
    assert_eq!(
        (answer.id.as_str(), answer.model_version.as_str()),
        ("r1", "2")
    );
    assert!(
        answer.parameters.is_empty(),
        "the final flag belongs to streams"
    );
    let shapes: Vec<_> = answer
        .outputs
        .iter()
        .map(|output| output.shape.clone())
        .collect();
    assert_eq!(shapes, [vec![2, 1], vec![2, 2]]);
    assert!(
        answer
            .outputs
            .iter()
            .all(|output| output.contents.is_none())
    );
    assert_eq!(answer.raw_output_contents[0], "abcdefgh");
    assert_eq!(answer.raw_output_contents[1].len(), 4 * 7);
    ask.model_version = "1".to_owned();
    let answer = client.model_infer(ask).await.expect("runs").into_inner();
    assert_eq!(answer.model_version, "1");
}

#[tokio::test]
async fn typed_contents_become_raw_data() {
    let mut model =
        ModelSpec::new("m")
            .input("in", Wire::Int16, &[-1])
            .output("out", Wire::Int16, &[-1]);
    model.answer = Answer::Echo;
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let mut ask = request("m", 1);
    ask.raw_input_contents.clear();
    ask.inputs = vec![tensor("in", "INT16", &[2])];
    ask.inputs[0].contents = Some(InferTensorContents {
        int_contents: vec![1, -2],
        ..InferTensorContents::default()
    });
    let answer = client.model_infer(ask).await.expect("runs").into_inner();
    assert_eq!(&answer.raw_output_contents[0][..], [1, 0, 0xfe, 0xff]);
}

#[tokio::test]
async fn only_wanted_outputs_come_back() {
    use crate::triton::proto::inference::model_infer_request::InferRequestedOutputTensor;
    let running = start(vec![unit("m").output("second", Wire::Int64, &[3])]);
    let mut client = connect(&running).await;
    let mut ask = request("m", 1);
    ask.outputs = vec![InferRequestedOutputTensor {
        name: "second".to_owned(),
        ..InferRequestedOutputTensor::default()
    }];
    let answer = client.model_infer(ask).await.expect("runs").into_inner();
    assert_eq!(answer.outputs.len(), 1);
    assert_eq!(answer.outputs[0].name, "second");
    assert_eq!(answer.raw_output_contents[0].len(), 24);
}

#[tokio::test]
async fn large_tensors_pass_both_ways() {
    let model =
        ModelSpec::new("m")
            .input("in", Wire::Uint8, &[-1])
            .output("out", Wire::Fp32, &[84, 8400]);
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let mut ask = request("m", 1);
    ask.inputs = vec![tensor("in", "UINT8", &[9_000_000])];
    ask.raw_input_contents = vec![Bytes::from(vec![1; 9_000_000])];
    let answer = client.model_infer(ask).await.expect("runs").into_inner();
    assert_eq!(answer.raw_output_contents[0].len(), 84 * 8400 * 4);
}

/// Sends requests at the same time and answers their statuses.
async fn at_once(client: &Client, count: usize, batch: u32) -> Vec<Result<(), tonic::Status>> {
    let calls: Vec<_> = (0..count)
        .map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move { client.model_infer(request("m", batch)).await.map(drop) })
        })
        .collect();
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.expect("no panic"));
    }
    results
}

#[tokio::test]
async fn statistics_count_requests_inferences_and_executions_exactly() {
    for latency in [constant(0), constant(1)] {
        let running = start(vec![
            unit("m")
                .latency(latency.clone())
                .version(1, None)
                .version(2, None),
        ]);
        let mut client = connect(&running).await;
        for batch in [1, 3, 3] {
            client.model_infer(request("m", batch)).await.expect("runs");
        }
        let stats = statistics(&mut client, "m", "2").await;
        assert_eq!(counts(&stats), [3, 0, 3, 3, 0, 0, 7, 3], "{latency:?}");
        let batches: Vec<_> = stats
            .batch_stats
            .iter()
            .map(|b| (b.batch_size, b.compute_infer.expect("set").count))
            .collect();
        assert_eq!(batches, [(1, 1), (3, 2)]);
        assert!(stats.last_inference > 1_600_000_000_000);
        let inference = stats.inference_stats.expect("set");
        let computed: u64 = [
            inference.compute_input,
            inference.compute_infer,
            inference.compute_output,
        ]
        .iter()
        .map(|part| part.expect("set").ns)
        .sum();
        assert_eq!(
            computed,
            3 * latency.base.as_nanos() as u64,
            "planned times, not measured"
        );
        assert!(inference.success.expect("set").ns >= computed);
        assert_eq!(counts(&statistics(&mut client, "m", "1").await), [0; 8]);
    }
}

#[tokio::test]
async fn a_slower_version_is_charged_more() {
    let model = unit("m")
        .version(1, Some(constant(2)))
        .version(2, Some(constant(6)));
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    for version in ["1", "2"] {
        for _ in 0..5 {
            let mut ask = request("m", 1);
            version.clone_into(&mut ask.model_version);
            client.model_infer(ask).await.expect("runs");
        }
    }
    let mut charged = Vec::new();
    for version in ["1", "2"] {
        let stats = statistics(&mut client, "m", version)
            .await
            .inference_stats
            .expect("set");
        charged.push(stats.compute_infer.expect("set").ns);
    }
    assert_eq!(charged[1], 3 * charged[0]);
}

#[tokio::test]
async fn waiting_requests_are_joined_into_batches() {
    let mut model = unit("m").latency(constant(400));
    model.dynamic_batching = Some(Batching::default());
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    assert!(at_once(&client, 9, 1).await.iter().all(Result::is_ok));
    let stats = statistics(&mut client, "m", "1").await;
    // The first runs alone; the others wait for it and are joined, up to 8.
    assert_eq!(counts(&stats), [9, 0, 9, 9, 0, 0, 9, 2]);
    let sizes: Vec<_> = stats.batch_stats.iter().map(|b| b.batch_size).collect();
    assert_eq!(sizes, [1, 8]);
}

#[tokio::test]
async fn a_batch_delay_lets_a_batch_fill() {
    let mut model = unit("m").latency(constant(1));
    model.dynamic_batching = Some(Batching {
        max_queue_delay: MS * 10_000,
        preferred_batch_size: Vec::new(),
    });
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    // Full batches go at once, though the delay is long.
    assert!(at_once(&client, 16, 1).await.iter().all(Result::is_ok));
    assert_eq!(
        counts(&statistics(&mut client, "m", "1").await),
        [16, 0, 16, 16, 0, 0, 16, 2]
    );

    let mut model = unit("m").latency(constant(1));
    model.dynamic_batching = Some(Batching {
        max_queue_delay: MS * 20,
        preferred_batch_size: Vec::new(),
    });
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let before = Instant::now();
    client
        .model_infer(request("m", 1))
        .await
        .expect("runs when the delay is over");
    assert!(before.elapsed() >= MS * 21, "waited for company");
}

#[tokio::test]
async fn without_a_batcher_each_request_runs_alone_and_in_turn() {
    let mut model = unit("m").latency(constant(3));
    model.instances = 2;
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let before = Instant::now();
    assert!(at_once(&client, 10, 1).await.iter().all(Result::is_ok));
    // 10 executions on 2 instances: never less than 5 in a row.
    assert!(before.elapsed() >= MS * 15);
    assert_eq!(
        counts(&statistics(&mut client, "m", "1").await),
        [10, 0, 10, 10, 0, 0, 10, 10]
    );
}

#[tokio::test]
async fn a_full_queue_refuses_and_is_not_counted_as_failure() {
    let mut model = unit("m").latency(constant(400));
    model.max_queue_size = 2;
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let results = at_once(&client, 8, 1).await;
    let refused: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .collect();
    // One runs and two wait.
    assert_eq!(refused.len(), 5);
    for status in refused {
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(
            status.message(),
            "[request id: r1] Exceeds maximum queue size"
        );
    }
    assert_eq!(
        counts(&statistics(&mut client, "m", "1").await),
        [3, 0, 3, 3, 0, 0, 3, 3]
    );
}

#[tokio::test]
async fn a_queue_timeout_refuses_and_is_counted_as_failure() {
    let mut model = unit("m").latency(constant(500));
    model.queue_timeout = MS * 20;
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let results = at_once(&client, 3, 1).await;
    let refused: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .collect();
    assert_eq!(refused.len(), 2);
    for status in refused {
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unavailable, "Request timeout expired")
        );
    }
    assert_eq!(
        counts(&statistics(&mut client, "m", "1").await),
        [1, 2, 1, 1, 0, 0, 1, 1]
    );
}

#[tokio::test]
async fn a_cancelled_request_leaves_the_queue_as_a_failure() {
    let running = start(vec![unit("m").latency(constant(400))]);
    let mut client = connect(&running).await;
    let first = tokio::spawn({
        let mut client = client.clone();
        async move { client.model_infer(request("m", 1)).await.map(drop) }
    });
    while running.requests("m") < 1 {
        tokio::time::sleep(MS).await;
    }
    let mut impatient = tonic::Request::new(request("m", 1));
    impatient.set_timeout(MS * 20);
    client.model_infer(impatient).await.expect_err("gave up");
    assert_eq!(running.requests("m"), 2);
    first.await.expect("no panic").expect("runs");
    client.model_infer(request("m", 1)).await.expect("runs");
    assert_eq!(
        counts(&statistics(&mut client, "m", "1").await),
        [2, 1, 2, 2, 0, 0, 2, 2]
    );
}

#[tokio::test]
async fn the_cache_answers_what_it_has_seen() {
    let mut model = unit("m").latency(constant(1));
    model.response_cache = true;
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let ask = |byte: u8| {
        let mut ask = request("m", 2);
        ask.raw_input_contents = vec![Bytes::from(vec![byte; 8])];
        ask
    };
    for byte in [0, 1, 0, 1] {
        client.model_infer(ask(byte)).await.expect("answers");
    }
    // As Triton counts it: 4 successes, 2 of them hits, inferences without the hits.
    assert_eq!(
        counts(&statistics(&mut client, "m", "1").await),
        [4, 0, 4, 2, 2, 2, 4, 2]
    );
}

#[tokio::test]
async fn one_seed_gives_one_sequence_of_latencies() {
    let mut sums = Vec::new();
    for seed in [5, 5, 6] {
        let model = unit("m").latency(LatencySpec::log_normal(MS, 0.3));
        let spec = SimulateSpec {
            seed,
            models: vec![model],
            ..SimulateSpec::on_free_port()
        };
        let running = Server::start(spec).expect("starts");
        let mut client = connect(&running).await;
        for _ in 0..10 {
            client.model_infer(request("m", 1)).await.expect("runs");
        }
        let stats = statistics(&mut client, "m", "1")
            .await
            .inference_stats
            .expect("set");
        sums.push(stats.compute_infer.expect("set").ns);
    }
    assert_eq!(sums[0], sums[1]);
    assert_ne!(sums[0], sums[2]);
}
