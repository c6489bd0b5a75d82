//! Small sessions for tests.

use crate::data::{
    Block, ClientSide, ErrorCounts, Facts, GpuSample, Latency, LoadIdentity, Session, Side,
};

/// One second of 500 requests.
pub(crate) fn block(index: u32) -> Block {
    Block {
        side: Side::Candidate,
        index,
        duration_ns: 1_000_000_000,
        batch: 2,
        requests: 500,
        errors: ErrorCounts::default(),
        latency: Latency {
            p50: Some(800.25),
            p99: Some(1200.0),
            mean: Some(850.0),
            ..Latency::default()
        },
        histogram: None,
        client: ClientSide::default(),
        server: None,
        gpu: Some(GpuSample {
            utilisation: Some(0.5),
            power_w: Some(250.0),
            memory_bytes: None,
            clock_mhz: Some(1410.0),
            throttle: Some(0),
        }),
        steal: None,
        stated_throughput: None,
    }
}

/// A session of some blocks.
pub(crate) fn session(id: &str, blocks: u32) -> Session {
    let subject: Facts = [("triton", "2.51.0"), ("instance_group.count", "2")]
        .into_iter()
        .collect();
    Session {
        id: id.to_owned(),
        recorded_at: "2026-01-31T12:00:00Z".to_owned(),
        commit: Some("1a2b3c4".to_owned()),
        branch: Some("main".to_owned()),
        dirty: Some(false),
        tool_version: "0.1.0".to_owned(),
        scenario: "resnet-c8".to_owned(),
        model: "resnet".to_owned(),
        model_version: "1".to_owned(),
        load: LoadIdentity {
            concurrency: Some(8),
            rate_milli: None,
            batch: 2,
            connections: 1,
            workers: 1,
            block_ns: 1_000_000_000,
            payload: "abc".to_owned(),
            engine: 1,
        },
        environment: [
            ("gpu.name", "NVIDIA L4"),
            ("gpu.uuid", "GPU-1"),
            ("host", "runner-7"),
        ]
        .into_iter()
        .collect(),
        subject_hash: subject.hash(),
        subject,
        life: None,
        server_requests: None,
        epoch: 0,
        complete: true,
        blocks: (0..blocks).map(block).collect(),
    }
}
