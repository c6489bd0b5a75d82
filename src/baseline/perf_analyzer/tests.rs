use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::baseline::{LevelLoad, Measured, Store, pair, read_any, session_csv};
use crate::data::{Facts, Metric, Side};

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/perf_analyzer")
        .join(name);
    fs::read_to_string(path).expect("fixture")
}

fn table(name: &str) -> Table {
    read(&text(name), name).expect("readable")
}

fn info(name: &str) -> ImportInfo {
    ImportInfo {
        side: Side::Candidate,
        scenario: name.to_owned(),
        model: "m".to_owned(),
        recorded_at: "2026-01-31T12:00:00Z".to_owned(),
        commit: None,
        id: "20260131T120000Z-import-000000".to_owned(),
        environment: Facts::default(),
    }
}

/// Line, load, throughput, P99.
fn values(name: &str) -> Vec<(u64, String, f64, Option<f64>)> {
    table(name)
        .rows
        .into_iter()
        .map(|row| {
            (
                row.line,
                row.key.to_string(),
                row.throughput,
                row.latency.p99,
            )
        })
        .collect()
}

#[test]
fn every_layout_gives_its_numbers_by_name() {
    let c = |level: u32| format!("concurrency {level}");
    let labelled =
        |batch: u32| format!("concurrency 4, batch {batch}, concurrency 1:8:1, model llama");
    for (name, expected) in [
        (
            "base.csv",
            vec![
                (2, c(4), 1510.25, Some(1404.0)),
                (3, c(1), 1620.5, Some(905.0)),
                (4, c(2), 1_712_340.0, Some(1010.0)),
            ],
        ),
        (
            "request_rate.csv",
            vec![
                (2, "request rate 50".to_owned(), 50.2, Some(901.0)),
                (3, "request rate 200".to_owned(), 163.4, Some(4901.0)),
            ],
        ),
        ("percentile_85.csv", vec![(2, c(1), 321.5, Some(599.0))]),
        ("decoupled.csv", vec![(2, c(1), 12.5, Some(9300.0))]),
        (
            "verbose_gpu.csv",
            vec![(2, c(8), 410.5, Some(704.0)), (3, c(9), 420.5, Some(714.0))],
        ),
        ("verbose_gpu_ragged.csv", vec![(2, c(3), 88.5, Some(404.0))]),
        ("cache.csv", vec![(2, c(2), 777.5, Some(504.0))]),
        ("no_statistics.csv", vec![(2, c(2), 555.5, Some(604.0))]),
        ("old_one_compute.csv", vec![(2, c(1), 2100.0, Some(344.0))]),
        (
            "old_percentile_names.csv",
            vec![(2, c(1), 2200.0, Some(444.0))],
        ),
        (
            "old_no_percentiles.csv",
            vec![(2, c(1), 2300.0, None), (3, c(2), 4400.0, None)],
        ),
        (
            "spreadsheet.csv",
            vec![
                (2, labelled(1), 33.5, Some(7001.0)),
                (3, labelled(2), 44.5, Some(8001.0)),
                (6, labelled(2), 45.5, Some(8101.0)),
            ],
        ),
        (
            "put_together.csv",
            vec![
                (2, "concurrency 1, batch 1".to_owned(), 266.5, Some(4365.0)),
                (4, "concurrency 1, batch 1".to_owned(), 267.5, Some(3773.0)),
            ],
        ),
        ("reloaded.csv", vec![(2, c(1), 100.5, Some(504.0))]),
    ] {
        assert_eq!(values(name), expected, "{name}");
    }
}

#[test]
fn the_other_columns_are_read_too() {
    let row = |name: &str| table(name).rows.remove(0);
    let base = row("base.csv");
    let server = base.server.expect("server");
    assert_eq!((server.queue_us, server.compute_infer_us), (100.0, 330.0));
    assert_eq!(base.client_send_us, Some(11.0));
    assert_eq!(base.network_us, Some(210.0));
    assert_eq!(
        row("percentile_85.csv").other_percentiles.get(&85),
        Some(&585.0)
    );
    assert_eq!(row("decoupled.csv").response_throughput, Some(400.75));
    assert_eq!(row("verbose_gpu.csv").latency.mean, Some(655.0));
    assert_eq!(row("put_together.csv").latency.mean, Some(3740.0));
    let gpu = row("verbose_gpu.csv").gpu.expect("gpu");
    assert_eq!(
        (gpu.utilisation, gpu.power_w, gpu.memory_bytes),
        (Some(0.5), Some(130.5), Some(3000.0))
    );
    assert_eq!(table("verbose_gpu.csv").rows[1].gpu, None);
    assert_eq!(row("no_statistics.csv").server, None);
    let old = row("old_one_compute.csv")
        .server
        .map(|server| server.compute_infer_us);
    assert_eq!(old, Some(365.0));
    // A subtraction that went below zero is no time.
    assert_eq!(row("reloaded.csv").server, None);
}

#[test]
fn repeats_are_named_and_become_blocks_of_one_level() {
    assert!(table("base.csv").repeats().is_empty());
    let table = table("spreadsheet.csv");
    let repeats = table.repeats();
    assert_eq!(repeats.len(), 1);
    assert_eq!(repeats[0].lines, [3, 6]);
    let levels = levels(&table, &info("llama"));
    let blocks: Vec<usize> = levels
        .iter()
        .map(|level| level.session.blocks.len())
        .collect();
    assert_eq!(blocks, [1, 2]);
    assert_eq!(
        levels[1].session.scenario,
        "llama-c4-b2-concurrency1_8_1-llama"
    );
    assert_eq!(
        (
            levels[1].session.load.batch,
            levels[1].session.model.as_str()
        ),
        (2, "llama")
    );
}

#[test]
fn levels_carry_the_files_numbers_into_the_store_and_back() {
    let levels = levels(&table("base.csv"), &info("resnet"));
    let keys: Vec<LevelLoad> = levels.iter().map(|level| level.key.load).collect();
    assert_eq!(keys, [1, 2, 4].map(LevelLoad::Concurrency));
    let root = tempfile::tempdir().expect("folder");
    let store = Store::open(root.path()).expect("store");
    for level in &levels {
        store.append("imported", &level.session).expect("stored");
    }
    let again = store
        .sessions("imported", "resnet-c4")
        .expect("read")
        .remove(0);
    assert_eq!(again, levels[2].session);
    let block = &again.blocks[0];
    assert_eq!(block.value(Metric::Throughput), Some(1510.25));
    assert_eq!(block.value(Metric::P99), Some(1404.0));
    assert_eq!(block.value(Metric::ServerCompute), Some(365.0));
    // Nothing was counted, so nothing is said of errors.
    assert_eq!(block.value(Metric::ErrorRate), None);
    // The same file twice is noticed.
    assert!(store.append("imported", &levels[0].session).is_err());
}

#[test]
fn a_rate_that_was_not_reached_is_invalid() {
    let levels = levels(&table("request_rate.csv"), &info("r"));
    assert_eq!(levels[0].invalid, None);
    assert_eq!(
        levels[1].invalid.as_deref(),
        Some(
            "request_rate.csv:3: asked for 200 infer/s, got 163.4 (82 %): the request rate was \
             not reached; ask for less, or measure at a fixed concurrency"
        )
    );
    let pairing = pair(&levels, &levels, &[Metric::Throughput]);
    assert_eq!(pairing.matched.len(), 2);
    assert_eq!(pairing.problems.len(), 2);

    // The rate counts requests, the throughput inferences.
    let text = "model,batch,Request Rate,Inferences/Second\nm,4,10,39.5\nm,4,20,79.5\n";
    let table = read(text, "r.csv").expect("readable");
    let invalid: Vec<bool> = super::levels(&table, &info("r"))
        .iter()
        .map(|level| level.invalid.is_some())
        .collect();
    assert_eq!(invalid, [true, false]);
}

#[test]
fn other_files_are_refused_with_what_they_are() {
    for (name, expected) in [
        ("not_model_analyzer.csv", "a result table of Model Analyzer"),
        (
            "not_model_navigator.csv",
            "a result table of model_navigator",
        ),
        ("not_genai_perf.csv", "an export of genai-perf or AIPerf"),
        ("not_documentation.csv", "an example from the documentation"),
        ("not_kserve.json", "an inference request in JSON (KServe)"),
        ("not_html.csv", "HTML"),
        ("not_printed.csv", "what perf_analyzer prints"),
    ] {
        let error = read(&text(name), name).expect_err(name).to_string();
        let expected = format!("{name}:1: not a perf_analyzer CSV but {expected}");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains(": "), "{error}");
    }
    for (text, expected) in [
        ("", "f:1: not a perf_analyzer CSV but an empty file"),
        (
            "[environment]\nname = \"h100\"\n",
            "f:1: not a perf_analyzer CSV but TOML",
        ),
        (
            "\u{feff} \n",
            "f:1: not a perf_analyzer CSV but an empty file",
        ),
        (
            "version https://git-lfs.github.com/spec/v1\n",
            "f:1: not a perf_analyzer CSV but a pointer of Git LFS",
        ),
        (
            "Concurrency;Inferences/Second;p99 latency\n1;2,5;3\n",
            "f:1: not a perf_analyzer CSV but a table with semicolons",
        ),
        (
            "Concurrency,Inferences/Second\n<<<<<<< HEAD\n1,2\n",
            "f:2: not a perf_analyzer CSV but a file with merge conflict markers",
        ),
        ("a,b\n1,2\n", "f:1: no column `Inferences/Second`"),
        ("Inferences/Second\n1\n", "f:1: no column `Concurrency`"),
        (
            "Concurrency,Inferences/Second\n",
            "f:1: the file has a header but no rows",
        ),
        (
            "Concurrency,Inferences/Second,Concurrency\n1,2,3\n",
            "f:1: two columns are named `Concurrency`",
        ),
        (
            "Concurrency,Inferences/Second,p99 latency,p99 latency\n1,2,3,4\n",
            "f:1: two columns are named `p99 latency`",
        ),
        (
            "Concurrency,Inferences/Second,p99 latency\n1,2\n",
            "f:2: this row has 2 cells, the header 3: it is cut short",
        ),
        (
            "Concurrency,Inferences/Second,p99 latency\n1,2,5,3\n",
            "f:2: this row has 4 cells, the header 3: its columns may have shifted",
        ),
        (
            "Concurrency,Inferences/Second\nx,2\n",
            "f:2: column `Concurrency` holds \"x\": expected a whole number",
        ),
        (
            "Concurrency,Inferences/Second\n0,2\n",
            "f:2: column `Concurrency` holds \"0\": expected a whole number",
        ),
        (
            "Concurrency,Inferences/Second\n1,0\n",
            "f:2: column `Inferences/Second` holds \"0\": expected inferences per second above 0",
        ),
        (
            "Concurrency,Inferences/Second,p99 latency\n1,2,nan\n",
            "f:2: column `p99 latency` holds \"nan\": expected a finite number",
        ),
        (
            "Concurrency,Inferences/Second,p99 latency\n1,2,18446744073709551615\n",
            "f:2: column `p99 latency` holds \"18446744073709551615\": expected microseconds",
        ),
    ] {
        let error = read(text, "f").expect_err(text).to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

#[test]
fn our_own_files_are_known_by_their_columns() {
    let own = session_csv::write(&crate::baseline::samples::session("a", 2)).expect("written");
    assert!(matches!(read_any(&own, "o"), Ok(Measured::Own(sessions)) if sessions.len() == 1));
    assert!(matches!(
        read_any(&text("base.csv"), "p"),
        Ok(Measured::PerfAnalyzer(table)) if table.rows.len() == 3
    ));
    // Cut short it is still ours, and says so.
    let error = read_any(&own[..own.len() - 9], "o")
        .expect_err("cut")
        .to_string();
    assert!(error.contains("truncated"), "{error}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}", cells in "[0-9eE.,;:\"\n -]{0,60}") {
        let _ = read_any(&text, "f");
        let whole = format!("model,Concurrency,Inferences/Second,p99 latency,Avg GPU Utilization\n{cells}\n");
        if let Ok(table) = read(&whole, "f") {
            for level in levels(&table, &info("s")) {
                prop_assert!(session_csv::write(&level.session).is_ok());
            }
        }
    }

    #[test]
    fn the_order_of_columns_and_rows_does_not_matter(seed in any::<u64>()) {
        let text = text("base.csv");
        let mut lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split(',').collect()).collect();
        let width = lines[0].len();
        // A rotation and a reversal reach every place.
        let turn = (seed % width as u64) as usize;
        for line in &mut lines {
            line.rotate_left(turn);
            if seed % 2 == 0 {
                line.reverse();
            }
        }
        lines[1..].rotate_left((seed % 3) as usize);
        let moved: String = lines.iter().map(|line| line.join(",") + "\n").collect();
        let mut table = read(&moved, "base.csv").expect("readable");
        // Columns before the load's tell rows apart only where they are not the tool's own.
        for row in &mut table.rows {
            prop_assert!(row.key.labels.is_empty(), "{:?}", row.key.labels);
            row.line = 0;
        }
        let mut expected = self::table("base.csv");
        for row in &mut expected.rows {
            row.line = 0;
        }
        table.rows.sort_by_key(|row| row.key.clone());
        expected.rows.sort_by_key(|row| row.key.clone());
        prop_assert_eq!(table.rows, expected.rows);
    }
}
