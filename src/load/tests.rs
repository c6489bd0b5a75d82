use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::testing::{Reply, Seen, TestServer, load, request};
use super::*;
use crate::data::{Auto, ErrorClass, Secret, Side};

const GOOD: Reply = Reply::Good { bytes: 8 };

fn contiguous(blocks: u32, millis: u64) -> Stretch {
    Stretch {
        side: Side::Candidate,
        first_index: 0,
        ramp: Ramp::Standard,
        blocks,
        block: Duration::from_millis(millis),
        counting: Counting::Contiguous,
        deadline: None,
    }
}

fn sent(blocks: u32, millis: u64) -> Stretch {
    Stretch {
        ramp: Ramp::None,
        counting: Counting::Sent,
        ..contiguous(blocks, millis)
    }
}

fn run(spec: &LoadSpec, stretch: &Stretch) -> StretchOutcome {
    Engine::start(spec)
        .unwrap()
        .run(stretch, &Stop::new())
        .unwrap()
}

fn assert_accounted(outcome: &StretchOutcome) {
    assert_eq!(
        outcome.sent,
        outcome.completed + outcome.failed() + outcome.abandoned
    );
    let in_blocks: u64 = outcome.blocks.iter().map(|block| block.requests).sum();
    assert!(in_blocks <= outcome.completed);
}

#[test]
fn contiguous_blocks_are_exact_and_every_request_is_accounted_for() {
    let server = TestServer::start(|_| GOOD);
    let stretch = Stretch {
        first_index: 7,
        side: Side::Baseline,
        ..contiguous(4, 50)
    };
    let spec = LoadSpec {
        batch: 3,
        ..server.load(4)
    };
    let outcome = run(&spec, &stretch);
    assert_accounted(&outcome);
    assert_eq!(outcome.sent, Seen::get(&server.seen.requests));
    assert_eq!(outcome.completed, outcome.sent);
    assert_eq!(Seen::get(&server.seen.undecodable), 0);
    assert_eq!(outcome.empty_outputs, 0);
    assert_eq!(outcome.output_bytes, 8 * outcome.completed);
    assert!(outcome.model_versions.iter().eq(["3"]));
    assert!(!outcome.interrupted && !outcome.past_deadline);
    let indices: Vec<u32> = outcome.blocks.iter().map(|block| block.index).collect();
    assert_eq!(indices, [7, 8, 9, 10]);
    for block in &outcome.blocks {
        assert_eq!((block.duration_ns, block.batch), (50_000_000, 3));
        assert_eq!(block.side, Side::Baseline);
        let histogram = block.histogram.as_ref().unwrap();
        assert_eq!(histogram.len(), block.requests);
        let latency = block.latency;
        let ascending = [
            latency.p50,
            latency.p90,
            latency.p95,
            latency.p99,
            latency.p999,
        ];
        assert!(ascending.is_sorted(), "{latency:?}");
        assert!(latency.p999 <= latency.max && latency.mean <= latency.max);
        assert_eq!(latency.mean.is_some(), block.requests > 0);
        assert_eq!(block.client.little.is_some(), block.requests > 0);
        assert!(block.client.cpu.is_some());
    }
    let blocks = &outcome.blocks;
    assert!(blocks.iter().any(|block| block.requests > 0));
    // One in 16 requests of each slot is timed closely.
    assert!(blocks.iter().any(|block| block.client.send_us.is_some()));
    assert!(blocks.iter().any(|block| block.client.receive_us.is_some()));
    // Four blocks of 50 ms at least.
    assert!(outcome.ended_ns - outcome.started_ns >= 200_000_000);
}

#[test]
fn histograms_of_blocks_can_be_added_up() {
    let server = TestServer::start(|number| {
        if number > 40 {
            Reply::Late {
                after: Duration::from_millis(30),
            }
        } else {
            GOOD
        }
    });
    let outcome = run(&server.load(1), &contiguous(3, 60));
    let mut whole = outcome.blocks[0].histogram.clone().unwrap();
    for block in &outcome.blocks[1..] {
        whole.add(block.histogram.as_ref().unwrap()).unwrap();
    }
    let requests: u64 = outcome.blocks.iter().map(|block| block.requests).sum();
    assert_eq!(whole.len(), requests);
}

#[test]
fn as_many_requests_are_in_flight_as_asked_for_and_never_more() {
    for (concurrency, workers, connections) in [(1, 1, 1), (6, 2, 3), (40, 1, 3)] {
        let server = TestServer::start(|_| Reply::Late {
            after: Duration::from_millis(2),
        });
        let spec = LoadSpec {
            workers: Auto::Fixed(workers),
            connections: Auto::Fixed(connections),
            ..server.load(concurrency)
        };
        for stretch in [contiguous(2, 60), sent(3, 30)] {
            let outcome = run(&spec, &stretch);
            assert_accounted(&outcome);
            assert_eq!(outcome.failed(), 0);
        }
        assert!(server.settles());
        assert_eq!(
            Seen::get(&server.seen.most_in_flight),
            u64::from(concurrency)
        );
    }
}

#[test]
fn failures_are_counted_by_class_with_an_example() {
    let server = TestServer::start(|number| match number % 100 {
        0 => Reply::Error {
            code: 14,
            message: "%5Brequest id: <id_unknown>%5D Exceeds maximum queue size",
        },
        1 => Reply::Error {
            code: 3,
            message: "bad%0Ashape",
        },
        2 => Reply::NoStatus,
        3 => Reply::Http(429),
        4 => Reply::Raw(vec![0, 0, 0, 0, 9, 1]),
        5 => Reply::Raw(vec![1, 0, 0, 0, 0]),
        _ => GOOD,
    });
    let outcome = run(&server.load(4), &contiguous(3, 100));
    assert_accounted(&outcome);
    let requests = Seen::get(&server.seen.requests);
    assert_eq!(outcome.sent, requests);
    assert!(requests > 100, "{requests}");
    let expected = |from: u64| (requests - from).div_ceil(100);
    for (class, count) in [
        (ErrorClass::QueueFull, expected(0)),
        (ErrorClass::InvalidRequest, expected(1)),
        (
            ErrorClass::Protocol,
            expected(2) + expected(4) + expected(5),
        ),
        (ErrorClass::RateLimited, expected(3)),
    ] {
        assert_eq!(outcome.errors.0.get(&class), Some(&count), "{class}");
    }
    assert_eq!(outcome.errors.0.len(), 4);
    assert_eq!(outcome.examples[&ErrorClass::InvalidRequest], "bad shape");
    let in_blocks: u64 = outcome
        .blocks
        .iter()
        .map(|block| block.errors.total())
        .sum();
    assert!(in_blocks > 0 && in_blocks <= outcome.failed());
}

#[test]
fn a_server_that_never_answers_ends_in_timeouts() {
    let server = TestServer::start(|_| Reply::Never);
    let spec = LoadSpec {
        request_timeout: Duration::from_millis(150),
        ..server.load(3)
    };
    for stretch in [contiguous(2, 50), sent(1, 40)] {
        let began = Instant::now();
        let outcome = run(&spec, &stretch);
        assert_accounted(&outcome);
        assert_eq!(outcome.completed, 0);
        assert!(outcome.errors.0[&ErrorClass::Timeout] >= 3);
        assert_eq!(outcome.errors.0.len(), 1);
        assert!(began.elapsed() < Duration::from_secs(4));
        for block in &outcome.blocks {
            assert_eq!(block.latency, crate::data::Latency::default());
        }
    }
    assert!(server.settles(), "dropped requests are cancelled");
}

#[test]
fn a_server_that_dies_is_counted_and_does_not_hang_or_spin() {
    let server = TestServer::start(|_| GOOD);
    let mut engine = Engine::start(&server.load(4)).unwrap();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(350));
        drop(server);
    });
    let outcome = engine.run(&contiguous(6, 100), &Stop::new()).unwrap();
    killer.join().unwrap();
    assert_accounted(&outcome);
    assert_eq!(outcome.blocks.len(), 6);
    assert!(outcome.completed > 0);
    let failed = outcome.errors.0[&ErrorClass::Connection];
    assert!((4..200).contains(&failed), "{failed}");
    assert!(!outcome.examples[&ErrorClass::Connection].is_empty());
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let server = TestServer::start(|_| GOOD);
    let address = server.address;
    let mut engine = Engine::start(&server.load(2)).unwrap();
    assert_eq!(
        engine
            .run(&contiguous(1, 30), &Stop::new())
            .unwrap()
            .failed(),
        0
    );
    drop(server);
    let without = engine.run(&contiguous(1, 200), &Stop::new()).unwrap();
    assert_eq!(without.completed, 0);
    assert!(without.failed() > 0);
    let _again = TestServer::start_on(address, |_| GOOD);
    let with = engine.run(&contiguous(2, 200), &Stop::new()).unwrap();
    assert!(with.completed > 0);
    let last = with.blocks.last().unwrap();
    assert!(last.requests > 0 && last.errors.total() == 0);
}

#[test]
fn stopping_keeps_the_whole_blocks() {
    let server = TestServer::start(|_| GOOD);
    let mut engine = Engine::start(&server.load(2)).unwrap();
    let stop = Stop::new();
    let (flag, began) = (stop.clone(), Instant::now());
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(450));
        flag.set();
    });
    let outcome = engine.run(&contiguous(600, 100), &stop).unwrap();
    stopper.join().unwrap();
    assert_accounted(&outcome);
    assert!(outcome.interrupted);
    assert!((1..600).contains(&outcome.blocks.len()));
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(outcome.failed() + outcome.abandoned, 0);
    // The engine is as good as before.
    assert!(!engine.run(&sent(1, 20), &Stop::new()).unwrap().interrupted);
}

#[test]
fn stopping_waits_only_so_long_for_what_is_in_flight() {
    let server = TestServer::start(|_| Reply::Never);
    let spec = LoadSpec {
        request_timeout: Duration::from_mins(1),
        ..server.load(2)
    };
    let mut engine = Engine::start(&spec).unwrap();
    let stop = Stop::new();
    let flag = stop.clone();
    let seen = Arc::clone(&server.seen);
    let stopper = thread::spawn(move || {
        while Seen::get(&seen.in_flight) < 2 {
            thread::sleep(Duration::from_millis(5));
        }
        flag.set();
    });
    let began = Instant::now();
    let outcome = engine.run(&sent(3, 30_000), &stop).unwrap();
    stopper.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(15));
    assert!(outcome.interrupted && outcome.blocks.is_empty());
    assert_accounted(&outcome);
    assert_eq!(outcome.abandoned, 2);
    // Nothing is sent where stopping was asked for beforehand.
    let outcome = engine.run(&sent(3, 30_000), &stop).unwrap();
    assert!(outcome.interrupted);
    assert_eq!(outcome.sent, 0);
}

#[test]
fn the_deadline_ends_a_stretch_at_once() {
    let server = TestServer::start(|_| Reply::Never);
    let spec = LoadSpec {
        request_timeout: Duration::from_mins(1),
        ..server.load(2)
    };
    let mut engine = Engine::start(&spec).unwrap();
    let began = Instant::now();
    let stretch = Stretch {
        deadline: Some(began + Duration::from_millis(200)),
        ..contiguous(5, 10_000)
    };
    let outcome = engine.run(&stretch, &Stop::new()).unwrap();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(outcome.past_deadline && !outcome.interrupted);
    assert_accounted(&outcome);
    assert_eq!((outcome.abandoned, outcome.blocks.len()), (2, 0));
    assert!(server.settles());
}

#[test]
fn sent_blocks_count_all_they_sent_and_leave_nothing_behind() {
    let server = TestServer::start(|_| Reply::Late {
        after: Duration::from_millis(25),
    });
    let mut engine = Engine::start(&server.load(3)).unwrap();
    let (mut counted, mut seen_before) = (0, 0);
    for _ in 0..3 {
        let outcome = engine.run(&sent(2, 40), &Stop::new()).unwrap();
        assert_accounted(&outcome);
        assert_eq!(outcome.blocks.len(), 2);
        for block in &outcome.blocks {
            counted += block.requests;
            // The drain belongs to the block.
            assert!(block.duration_ns > 40_000_000);
        }
        let seen = Seen::get(&server.seen.requests);
        assert_eq!(outcome.sent, seen - seen_before);
        seen_before = seen;
        assert!(server.settles());
    }
    assert_eq!(counted, Seen::get(&server.seen.requests));
}

#[test]
fn the_ramp_of_a_sent_block_is_discarded() {
    let server = TestServer::start(|_| Reply::Late {
        after: Duration::from_millis(5),
    });
    let stretch = Stretch {
        ramp: Ramp::Fixed(Duration::from_millis(60)),
        ..sent(1, 60)
    };
    let outcome = run(&server.load(2), &stretch);
    assert_accounted(&outcome);
    let block = &outcome.blocks[0];
    assert!(block.requests > 0);
    assert!(outcome.completed >= block.requests + 2);
}

#[test]
fn large_requests_and_responses_pass() {
    let megabytes = 5_000_000;
    let server = TestServer::start(move |_| Reply::Good { bytes: megabytes });
    let spec = LoadSpec {
        frames: vec![request(megabytes)],
        ..server.load(3)
    };
    assert_eq!(spec.shape().unwrap().connections, 3);
    let outcome = run(&spec, &sent(1, 200));
    assert_accounted(&outcome);
    assert!(outcome.completed >= 3);
    assert_eq!(outcome.failed(), 0, "{:?}", outcome.examples);
    assert_eq!(outcome.output_bytes, megabytes as u64 * outcome.completed);
    assert!(Seen::get(&server.seen.bytes) > megabytes as u64 * outcome.completed);
    assert_eq!(Seen::get(&server.seen.undecodable), 0);
}

#[test]
fn payloads_take_turns_and_metadata_goes_along() {
    let lengths = Arc::new(AtomicU64::new(0));
    let server = TestServer::start(|_| Reply::Good { bytes: 0 });
    let mut spec = LoadSpec {
        frames: vec![request(10), request(100), request(50)],
        ..server.load(1)
    };
    spec.server.metadata = vec![("Authorization".to_owned(), Secret::new("Bearer x"))];
    for frame in &spec.frames {
        lengths.fetch_add(frame.len() as u64, Ordering::Relaxed);
    }
    let outcome = run(&spec, &sent(1, 50));
    let requests = Seen::get(&server.seen.requests);
    assert_eq!(outcome.empty_outputs, outcome.completed);
    assert_eq!(Seen::get(&server.seen.with_metadata), requests);
    let rounds = Seen::get(&server.seen.bytes) / lengths.load(Ordering::Relaxed);
    assert_eq!(rounds, requests / 3);
}

#[test]
fn metadata_that_cannot_be_sent_is_refused_without_telling_it() {
    let server = TestServer::start(|_| GOOD);
    let mut spec = server.load(1);
    spec.server.metadata = vec![("key".to_owned(), Secret::new("hush\nhush"))];
    let error = Engine::start(&spec).unwrap_err().to_string();
    assert!(
        error.contains("`key`") && !error.contains("hush"),
        "{error}"
    );
}

#[test]
fn no_server_is_an_error_with_address_and_cause() {
    let address = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap()
    };
    let error = Engine::start(&load(address, 40)).unwrap_err();
    assert!(matches!(error, LoadError::Connect { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains(&address.to_string()) && text.contains("refused"),
        "{text}"
    );
    let mut spec = load(address, 1);
    spec.server.url = "not an address".to_owned();
    assert!(matches!(
        Engine::start(&spec).unwrap_err(),
        LoadError::Address(_)
    ));
}

#[test]
fn an_engine_is_dropped_while_its_server_hangs() {
    let server = TestServer::start(|_| Reply::Never);
    let spec = LoadSpec {
        request_timeout: Duration::from_millis(100),
        ..server.load(2)
    };
    let mut engine = Engine::start(&spec).unwrap();
    engine.run(&sent(1, 10), &Stop::new()).unwrap();
    let (done, over) = mpsc::channel();
    thread::spawn(move || {
        drop(engine);
        let _ = done.send(());
    });
    assert!(over.recv_timeout(Duration::from_secs(10)).is_ok());
}

type Break = fn(&mut LoadSpec);

#[test]
fn impossible_loads_are_refused_with_a_reason() {
    let good = load("127.0.0.1:1".parse().unwrap(), 4);
    let cases: [(&str, Break); 9] = [
        ("concurrency", |spec| spec.concurrency = 0),
        ("batch", |spec| spec.batch = 0),
        ("workers is 0", |spec| spec.workers = Auto::Fixed(0)),
        ("connections is 0", |spec| spec.connections = Auto::Fixed(0)),
        ("timeout", |spec| spec.request_timeout = Duration::ZERO),
        ("no request", |spec| spec.frames.clear()),
        ("payload 0", |spec| {
            spec.frames = vec![vec![0, 0, 0, 0, 9].into()];
        }),
        ("5 connections", |spec| spec.connections = Auto::Fixed(5)),
        ("3 workers", |spec| {
            spec.workers = Auto::Fixed(3);
            spec.connections = Auto::Fixed(2);
        }),
    ];
    for (word, breaks) in cases {
        let mut spec = good.clone();
        breaks(&mut spec);
        let error = spec.shape().unwrap_err().to_string();
        assert!(error.contains(word), "{word}: {error}");
    }
}

#[test]
fn shapes_follow_load_and_cores() {
    let small = load("127.0.0.1:1".parse().unwrap(), 1);
    let large = LoadSpec {
        frames: vec![request(300_000)],
        ..small.clone()
    };
    for (spec, concurrency, cores, workers, connections) in [
        (&small, 1, 8, 1, 1),
        (&small, 16, 8, 1, 1),
        (&small, 17, 8, 1, 2),
        (&small, 32, 8, 1, 2),
        (&small, 64, 8, 2, 4),
        (&small, 64, 2, 1, 4),
        (&small, 1024, 8, 7, 64),
        (&large, 1, 8, 1, 1),
        (&large, 8, 8, 2, 8),
        (&large, 8, 1, 1, 8),
        (&large, 200, 8, 7, 64),
    ] {
        let spec = LoadSpec {
            concurrency,
            ..spec.clone()
        };
        assert_eq!(
            spec.shape_on(cores).unwrap(),
            Shape {
                workers,
                connections
            },
            "{concurrency} on {cores}"
        );
    }
}

#[test]
fn several_workers_count_together() {
    let server = TestServer::start(|_| Reply::Late {
        after: Duration::from_millis(1),
    });
    let spec = LoadSpec {
        workers: Auto::Fixed(3),
        connections: Auto::Fixed(5),
        ..server.load(8)
    };
    let mut engine = Engine::start(&spec).unwrap();
    for stretch in [contiguous(3, 40), sent(3, 20)] {
        let outcome = engine.run(&stretch, &Stop::new()).unwrap();
        assert_accounted(&outcome);
        assert_eq!(outcome.blocks.len(), 3);
        assert!(outcome.blocks.iter().any(|block| block.requests > 0));
        assert_eq!(outcome.failed(), 0);
    }
}
