//! A recording on disk: one unit a line, JSON, histograms in hdrhistogram's own V2 format.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};
use triton_gate::calibrate::Recorded;
use triton_gate::data::{Block, ClientSide, ErrorCounts, Latency, Side};
use triton_gate::gate::{PairPlan, Unit};

/// One unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// The candidate's scenario.
    pub candidate: String,
    pub block_ms: u64,
    pub turn: u32,
    pub pairs: u32,
    pub seconds: f64,
    pub sides: [Stored; 2],
}

/// One side of a unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stored {
    pub duration_ns: u64,
    pub requests: u64,
    pub mean_us: Option<f64>,
    pub latency_ns: String,
}

impl Line {
    pub fn new(candidate: &str, plan: &PairPlan, recorded: &Recorded) -> anyhow::Result<Self> {
        let stored = |block: &Block| -> anyhow::Result<Stored> {
            let mut bytes = Vec::new();
            let histogram = block
                .histogram
                .as_ref()
                .context("a unit without latencies")?;
            V2Serializer::new().serialize(histogram, &mut bytes)?;
            Ok(Stored {
                duration_ns: block.duration_ns,
                requests: block.requests,
                mean_us: block.latency.mean,
                latency_ns: STANDARD.encode(bytes),
            })
        };
        Ok(Self {
            candidate: candidate.to_owned(),
            block_ms: plan.block.as_millis() as u64,
            turn: recorded.turn,
            pairs: recorded.unit.pairs,
            seconds: recorded.seconds,
            sides: [
                stored(&recorded.unit.baseline)?,
                stored(&recorded.unit.candidate)?,
            ],
        })
    }

    /// The unit as it was measured.
    pub fn unit(&self) -> anyhow::Result<Unit> {
        let [baseline, candidate] = &self.sides;
        let blocks = [
            block(Side::Baseline, baseline)?,
            block(Side::Candidate, candidate)?,
        ];
        let unit = Unit::pool(&blocks, self.turn).context("an empty unit")?;
        Ok(Unit {
            pairs: self.pairs,
            ..unit
        })
    }
}

fn block(side: Side, stored: &Stored) -> anyhow::Result<Block> {
    let bytes = STANDARD.decode(&stored.latency_ns)?;
    let histogram: Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| anyhow::anyhow!("latencies: {error:?}"))?;
    Ok(Block {
        side,
        index: 0,
        duration_ns: stored.duration_ns,
        batch: 1,
        requests: stored.requests,
        errors: ErrorCounts::default(),
        latency: Latency {
            mean: stored.mean_us,
            ..Latency::default()
        },
        histogram: Some(histogram),
        client: ClientSide::default(),
        server: None,
        gpu: None,
        steal: None,
        stated_throughput: None,
    })
}

pub fn append(file: &mut File, line: &Line) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())?;
    Ok(())
}

/// Every whole line; a last line that was cut off is left out.
pub fn read(path: &Path) -> anyhow::Result<Vec<Line>> {
    let file = File::open(path).with_context(|| format!("failed to open {}", path.display()))?;
    let texts: Vec<String> = BufReader::new(file).lines().collect::<Result<_, _>>()?;
    let mut lines = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match serde_json::from_str(text) {
            Ok(line) => lines.push(line),
            Err(_) if index + 1 == texts.len() => {}
            Err(error) => bail!("{} line {}: {error}", path.display(), index + 1),
        }
    }
    Ok(lines)
}
