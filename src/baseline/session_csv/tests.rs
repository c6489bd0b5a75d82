use proptest::prelude::*;

use super::*;
use crate::baseline::environment::{ADDRESS_FIELD, HASH_FIELD, identity_hash};
use crate::baseline::samples::{block, session};
use crate::data::{
    Block, ClientSide, ErrorClass, ErrorCounts, Facts, GpuSample, Latency, LoadIdentity, Metric,
    ServerMeans, Session, Side,
};

const FILE: &str = "s.csv";

/// What reading gives back of a session: hashes in the place of facts.
fn as_read(session: &Session) -> Session {
    let mut expected = session.clone();
    let mut environment = Facts::default();
    if !session.environment.0.is_empty() {
        environment.set(HASH_FIELD, identity_hash(&session.environment));
        environment.set(ADDRESS_FIELD, session.environment.hash());
    }
    expected.environment = environment;
    if !session.subject.0.is_empty() {
        expected.subject_hash = session.subject.hash();
    }
    expected.subject = Facts::default();
    expected
}

fn message(text: &str) -> String {
    match read(text, FILE) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_header_begins_with_perf_analyzers_columns() {
    let text = write(&session("a", 1)).expect("written");
    assert!(text.starts_with(
        "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,\
         Server Compute Input,Server Compute Infer,Server Compute Output,Client Recv,\
         p50 latency,p90 latency,p95 latency,p99 latency,Avg latency,schema,session,rows,"
    ));
    let mut open = session("a", 1);
    open.load.concurrency = None;
    open.load.rate_milli = Some(12_500);
    let text = write(&open).expect("written");
    assert!(text.starts_with("Request Rate,Inferences/Second,"));
    assert!(text.contains("\n12.5,"));
    assert_eq!(read(&text, FILE).expect("read"), as_read(&open));
}

#[test]
fn the_network_is_what_the_mean_leaves() {
    let mut recorded = session("a", 1);
    recorded.blocks[0].latency.mean = Some(1000.0);
    recorded.blocks[0].client.send_us = Some(10.0);
    recorded.blocks[0].client.receive_us = Some(5.5);
    recorded.blocks[0].server = Some(ServerMeans {
        queue_us: 100.0,
        compute_input_us: 20.0,
        compute_infer_us: 300.0,
        compute_output_us: 30.0,
        total_us: 480.0,
        executed_batch: None,
    });
    let text = write(&recorded).expect("written");
    assert!(text.contains(",10,534.5,100,20,300,30,5.5,"), "{text}");
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    let text = write(&session("a", 3)).expect("written");
    for end in 0..text.len() {
        let error = read_bytes(&text.as_bytes()[..end], FILE).expect_err("cut");
        let message = error.to_string();
        assert!(message.starts_with("s.csv:"), "{end}: {message}");
        // At a line's end only the number of rows can tell.
        if end > 0 && !text[..end].ends_with('\n') {
            assert!(message.contains("truncated"), "{end}: {message}");
        }
    }
    let two_lines: String = text.split_inclusive('\n').take(2).collect();
    assert_eq!(
        message(&two_lines),
        "s.csv:2: the file is truncated: it holds 1 of 3 rows; restore it from version control \
         or record it again"
    );
}

#[test]
fn refusals_say_where_and_what() {
    let good = write(&session("a", 2)).expect("written");
    let other = write(&session("b", 2)).expect("written");
    let header = good.lines().next().expect("header");
    let row = good.lines().nth(1).expect("row");
    for (text, expected) in [
        (String::new(), "s.csv:1: the file is empty"),
        ("\u{feff}\n".to_owned(), "s.csv:1: the file is empty"),
        (
            format!("{header}\n"),
            "s.csv:1: the file has a header but no rows",
        ),
        (
            good.replacen('\n', "\n<<<<<<< HEAD\n", 1),
            "s.csv:2: the file holds merge conflict markers",
        ),
        (
            good.replace(",1,a,2,", ",7,a,2,"),
            "s.csv:2: schema 7 is newer than this version reads (1)",
        ),
        (
            good.replace(",candidate,0,", ",candidate,x,"),
            "s.csv:2: column `block` holds \"x\": expected a whole number",
        ),
        (
            good.replace(",candidate,1,", ",candidate,0,"),
            "s.csv:3: column `block` holds \"0\": expected a number that no other row",
        ),
        (
            good.replacen("model_version", "model", 1),
            "s.csv:1: two columns are named `model`",
        ),
        (
            good.replacen("duration_ns", "d", 1),
            "s.csv:1: no column `duration_ns`",
        ),
        (
            format!("{header}\n{row}\n{}\n", other.lines().nth(2).expect("row")),
            "s.csv:3: a row of session \"b\" among rows of session \"a\"",
        ),
        (
            good.replacen(",resnet,", ",vgg,", 1),
            "s.csv:3: column `model` holds \"resnet\", but \"vgg\"",
        ),
        (
            format!("{header}\n{row},5\n"),
            "s.csv:2: not readable as CSV",
        ),
        (
            good.replace("2026-01-31T12:00:00Z", "yesterday"),
            "s.csv:2: column `recorded_at` holds \"yesterday\": expected a time",
        ),
    ] {
        let message = message(&text);
        assert!(message.starts_with(expected), "{expected}: {message}");
    }
    assert!(matches!(
        read_bytes(b"a\n\xff\n", FILE),
        Err(SessionCsvError::NotText(place)) if place.line == 2
    ));
}

#[test]
fn numbers_must_be_finite_and_not_negative() {
    let good = write(&session("a", 1)).expect("written");
    for value in ["NaN", "inf", "-1", "1e999", "fast"] {
        let text = good.replace(",1200,", &format!(",{value},"));
        assert_ne!(text, good);
        assert!(
            message(&text).contains("expected a finite number of at least 0"),
            "{value}"
        );
    }
    let mut bad = session("a", 1);
    bad.blocks[0].latency.p99 = Some(f64::NAN);
    assert!(matches!(
        write(&bad),
        Err(SessionCsvError::NotWritable { .. })
    ));
    let mut bad = session("a", 1);
    bad.branch = Some("a\nb".to_owned());
    assert!(matches!(
        write(&bad),
        Err(SessionCsvError::NotWritable { .. })
    ));
    assert!(matches!(
        write(&session("a", 0)),
        Err(SessionCsvError::NotWritable { .. })
    ));
}

#[test]
fn foreign_line_ends_marks_columns_and_missing_ones_are_accepted() {
    let recorded = session("a", 2);
    let text = write(&recorded).expect("written");
    let crlf = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(read(&crlf, FILE).expect("read"), as_read(&recorded));

    let more: String = text
        .lines()
        .enumerate()
        .fold(String::new(), |all, (index, line)| {
            all + if index == 0 { "note," } else { "x," } + line + "\n"
        });
    assert_eq!(read(&more, FILE).expect("read"), as_read(&recorded));

    // Only what identifies the measurement.
    let small = "p99 latency,schema,session,rows,scenario,model,side,block,batch,duration_ns,\
                 requests,errors,complete\n\
                 250,1,a,1,s,m,candidate,0,2,1000000000,100,0,TRUE\n";
    let read = read(small, FILE).expect("read");
    assert_eq!(read.blocks[0].value(Metric::Throughput), Some(200.0));
    assert_eq!(read.blocks[0].value(Metric::P99), Some(250.0));
    assert_eq!(read.blocks[0].value(Metric::P50), None);
    assert_eq!((read.commit, read.load.concurrency), (None, None));
}

#[test]
fn a_stated_throughput_stays_as_it_is() {
    let mut imported = session("a", 1);
    imported.blocks[0].duration_ns = 0;
    imported.blocks[0].requests = 0;
    imported.blocks[0].stated_throughput = Some(2.222_18);
    let read = read(&write(&imported).expect("written"), FILE).expect("read");
    assert_eq!(read.blocks[0].value(Metric::Throughput), Some(2.222_18));
    assert_eq!(read, as_read(&imported));
}

#[test]
fn several_sessions_may_share_a_file_of_measurements() {
    let (one, mut two) = (session("a", 2), session("b", 1));
    two.load.concurrency = None;
    two.load.rate_milli = Some(5000);
    let text = write_all(&[one.clone(), two.clone()]).expect("written");
    let read = read_all(&text, FILE).expect("read");
    assert_eq!(read, [as_read(&one), as_read(&two)]);
    let cut: String = text.split_inclusive('\n').take(3).collect();
    assert!(matches!(
        read_all(&cut, FILE),
        Err(SessionCsvError::Truncated { .. })
    ));
    assert!(write_all(&[]).is_err());
}

#[test]
fn renaming_changes_nothing_but_the_scenario() {
    let text = write(&session("a", 2)).expect("written");
    let text = text
        .replace("throttle\n", "throttle,note\n")
        .replace(",0.5,250,,1410,0\n", ",0.5,250,,1410,0,\"x, y\"\n");
    let renamed = with_scenario(&text, FILE, "new, name").expect("renamed");
    assert_eq!(renamed.matches("\"new, name\"").count(), 2);
    assert_eq!(renamed.replace("\"new, name\"", "resnet-c8"), text);
}

fn thousandths() -> impl Strategy<Value = f64> {
    (0u64..10_000_000_000).prop_map(|value| value as f64 / 1000.0)
}

fn millionths() -> impl Strategy<Value = f64> {
    (0u64..2_000_000).prop_map(|value| value as f64 / 1e6)
}

prop_compose! {
    fn latencies()(
        p50 in prop::option::of(thousandths()), p90 in prop::option::of(thousandths()),
        p95 in prop::option::of(thousandths()), p99 in prop::option::of(thousandths()),
        p999 in prop::option::of(thousandths()), mean in prop::option::of(thousandths()),
        max in prop::option::of(thousandths()),
    ) -> Latency {
        Latency { p50, p90, p95, p99, p999, mean, max }
    }
}

prop_compose! {
    fn servers()(parts in [thousandths(), thousandths(), thousandths(), thousandths(), thousandths()],
                 executed_batch in prop::option::of(thousandths())) -> ServerMeans {
        let [queue_us, compute_input_us, compute_infer_us, compute_output_us, total_us] = parts;
        ServerMeans { queue_us, compute_input_us, compute_infer_us, compute_output_us, total_us, executed_batch }
    }
}

prop_compose! {
    fn gpus()(utilisation in prop::option::of(millionths()), power_w in prop::option::of(thousandths()),
              memory_bytes in prop::option::of(thousandths()), clock_mhz in prop::option::of(thousandths()),
              throttle in 0u64..) -> GpuSample {
        GpuSample { utilisation, power_w, memory_bytes, clock_mhz, throttle: Some(throttle) }
    }
}

prop_compose! {
    fn blocks()(duration_ns in 1u64.., requests in any::<u64>(), latency in latencies(),
                timeouts in 1u64..1000, full in 1u64..1000, failed in any::<bool>(),
                client in (prop::option::of(thousandths()), prop::option::of(thousandths()),
                           prop::option::of(millionths()), prop::option::of(millionths())),
                server in prop::option::of(servers()), gpu in prop::option::of(gpus()),
                steal in prop::option::of(millionths())) -> Block {
        let mut errors = ErrorCounts::default();
        if failed {
            errors.0.insert(ErrorClass::Timeout, timeouts);
            errors.0.insert(ErrorClass::QueueFull, full);
        }
        let (send_us, receive_us, cpu, little) = client;
        let client = ClientSide { send_us, receive_us, cpu, little };
        Block { duration_ns, requests, errors, latency, client, server, gpu, steal, ..block(0) }
    }
}

/// Any text without control characters, at least one character.
fn names() -> impl Strategy<Value = String> {
    "[^\\p{C}\u{2028}\u{2029}]{1,12}"
}

proptest! {
    #[test]
    fn sessions_round_trip(
        mut blocks in prop::collection::vec(blocks(), 1..5),
        texts in prop::collection::vec(names(), 10),
        commit in prop::option::of(names()), branch in prop::option::of(names()),
        life in prop::option::of(names()), dirty in any::<Option<bool>>(),
        complete in any::<bool>(), numbers in any::<[u32; 4]>(), block_ns in any::<u64>(),
        rate in any::<Option<u64>>(), sides in any::<bool>(),
        server_requests in any::<Option<u64>>(), epoch in any::<u32>(),
    ) {
        for (index, block) in blocks.iter_mut().enumerate() {
            block.index = index as u32;
            block.batch = numbers[0];
            block.side = if sides && index % 2 == 0 { Side::Baseline } else { Side::Candidate };
        }
        let session = Session {
            id: texts[0].clone(),
            recorded_at: "2026-01-31T12:00:00.5Z".to_owned(),
            commit, branch, dirty, life, server_requests, epoch, complete,
            tool_version: texts[1].clone(),
            scenario: texts[2].clone(),
            model: texts[3].clone(),
            model_version: texts[4].clone(),
            load: LoadIdentity {
                concurrency: rate.is_none().then_some(numbers[1]),
                rate_milli: rate,
                batch: numbers[0],
                connections: numbers[2],
                workers: numbers[3],
                block_ns,
                payload: texts[5].clone(),
                engine: numbers[1],
            },
            environment: [("gpu.name", &texts[6]), ("host", &texts[7])]
                .into_iter()
                .map(|(field, value)| (field.to_owned(), value.clone()))
                .collect(),
            subject: Facts::default(),
            subject_hash: texts[9].clone(),
            blocks,
        };
        let text = write(&session).expect("written");
        let again = read(&text, FILE).expect("read");
        prop_assert_eq!(&again, &as_read(&session));
        // And once more: a session known by hashes keeps them.
        let twice = write(&again).expect("written");
        prop_assert_eq!(twice, text);
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = read(&text, FILE);
        let _ = read_bytes(&bytes, FILE);
        let header = write(&session("a", 1)).expect("written");
        let header = header.lines().next().unwrap_or_default();
        let whole = format!("{header}\n{text}\n");
        prop_assert!(read(&whole, FILE).is_err());
    }
}
