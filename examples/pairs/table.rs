//! Checks over a recording, as Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;
use triton_gate::calibrate::{Rates, Resampling, resample};
use triton_gate::data::{Block, Bound, Fraction, Limit, Metric, Policy, Rule};
use triton_gate::gate::{Design, PairPlan, Stage, Unit};
use triton_gate::stats::{SignedRank, variance};

use super::store::Line;

/// Blocks over which the naive comparison takes its means.
const NAIVE: [usize; 3] = [1, 3, 10];

/// Everything recorded of one candidate at one block length.
struct Cell {
    block_ms: u64,
    seconds: f64,
    units: Vec<Unit>,
}

pub fn table(lines: &[Line], checks: u32, budget: Duration, seed: u64) -> anyhow::Result<String> {
    let mut candidates: Vec<&str> = Vec::new();
    let mut blocks: Vec<u64> = Vec::new();
    for line in lines {
        if !candidates.contains(&line.candidate.as_str()) {
            candidates.push(&line.candidate);
        }
        if !blocks.contains(&line.block_ms) {
            blocks.push(line.block_ms);
        }
    }
    blocks.sort_unstable();
    let mut out = String::from(
        "| block | candidate | units | stretches | sd throughput | sd P99 | throughput | P99 | fail \
         | inconclusive | pass | s to the verdict |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for block_ms in &blocks {
        for (index, candidate) in candidates.iter().enumerate() {
            let cell = cell(lines, candidate, *block_ms)?;
            if cell.units.len() < 12 {
                let _ = writeln!(
                    out,
                    "| {block_ms} ms | {candidate} | {} | too few |  |  |  |  |  |  |  |  |",
                    cell.units.len()
                );
                continue;
            }
            let same = index == 0;
            row(&mut out, &cell, candidate, same, checks, budget, seed)?;
            if same {
                // Changes of exactly known size, on real noise.
                for (name, slower, tail) in [
                    ("identical, throughput -8 % laid on", 1.0 / 0.92, 1.0),
                    ("identical, P99 +15 % laid on", 1.0, 1.15),
                ] {
                    let changed = Cell {
                        units: cell
                            .units
                            .iter()
                            .map(|unit| laid_on(unit, slower, tail))
                            .collect(),
                        ..cell
                    };
                    row(&mut out, &changed, name, false, checks, budget, seed)?;
                }
            }
        }
    }
    naive(&mut out, lines, &candidates, &blocks)?;
    Ok(out)
}

fn cell(lines: &[Line], candidate: &str, block_ms: u64) -> anyhow::Result<Cell> {
    let chosen: Vec<&Line> = lines
        .iter()
        .filter(|line| line.candidate == candidate && line.block_ms == block_ms)
        .collect();
    let seconds: f64 = chosen.iter().map(|line| line.seconds).sum();
    Ok(Cell {
        block_ms,
        seconds: seconds / chosen.len().max(1) as f64,
        units: chosen
            .iter()
            .map(|line| line.unit())
            .collect::<Result<_, _>>()?,
    })
}

fn row(
    out: &mut String,
    cell: &Cell,
    name: &str,
    swap: bool,
    checks: u32,
    budget: Duration,
    seed: u64,
) -> anyhow::Result<()> {
    let plan = PairPlan {
        block: Duration::from_millis(cell.block_ms),
        pairs_per_unit: cell.units.first().map_or(1, |unit| unit.pairs),
        max_units: ((budget.as_secs_f64() / cell.seconds) as u32).clamp(1, 240),
        unit_seconds: cell.seconds,
        throughput_resolves: None,
        percentiles: Vec::new(),
        highest_in_reach: None,
    };
    let units: Vec<&Unit> = cell.units.iter().collect();
    let rates: Rates = resample(&design(), &plan, &units, Resampling { checks, seed, swap })?;
    let throughput = differences(&cell.units, Metric::Throughput);
    let p99 = differences(&cell.units, Metric::P99);
    let change = |values: &[f64]| -> anyhow::Result<f64> {
        Ok(SignedRank::new(values)?.estimate().exp_m1() * 100.0)
    };
    let _ = writeln!(
        out,
        "| {} ms | {name} | {} | {:.1} | {:.1} % | {:.1} % | {:+.1} % | {:+.1} % | {:.1} | {:.1} | \
         {:.1} | {:.0} |",
        cell.block_ms,
        cell.units.len(),
        rates.stretches,
        variance(&throughput)?.sqrt() * 100.0,
        variance(&p99)?.sqrt() * 100.0,
        change(&throughput)?,
        change(&p99)?,
        rates.regression * 100.0,
        rates.inconclusive * 100.0,
        rates.pass * 100.0,
        rates.mean_seconds,
    );
    Ok(())
}

/// ln candidate - ln baseline of each unit.
fn differences(units: &[Unit], metric: Metric) -> Vec<f64> {
    units
        .iter()
        .filter_map(|unit| {
            let ln = |block: &Block| {
                block
                    .value(metric)
                    .filter(|value| *value > 0.0)
                    .map(f64::ln)
            };
            Some(ln(&unit.candidate)? - ln(&unit.baseline)?)
        })
        .collect()
}

fn design() -> Design {
    let relative = |metric, fraction| Limit {
        metric,
        bound: Bound::Relative(Fraction::new(fraction)),
    };
    Design {
        limits: vec![
            relative(Metric::Throughput, 0.05),
            relative(Metric::P99, 0.10),
        ],
        gated: 2,
        false_alarm: 0.01,
        missed_regression: 0.05,
        policy: Policy::Enforce,
        rule: Rule::Evidence,
        max_samples: 54,
        assumed_noise: (0.07, 0.13),
        suspicious_gain: 0.0,
        stage: Stage::Only,
    }
}

/// The unit as it would be with a candidate slower by the first factor, and with its latencies
/// alone longer by the second.
fn laid_on(unit: &Unit, slower: f64, longer: f64) -> Unit {
    let mut unit = unit.clone();
    let candidate = &mut unit.candidate;
    candidate.duration_ns = (candidate.duration_ns as f64 * slower) as u64;
    let factor = slower * longer;
    if let Some(histogram) = &candidate.histogram
        && let Some(scaled) = scaled(histogram, factor)
    {
        candidate.histogram = Some(scaled);
    }
    let blocks = [unit.baseline.clone(), unit.candidate.clone()];
    // Pooling takes the percentiles anew from the latencies.
    Unit::pool(&blocks, unit.baseline.index).unwrap_or(unit)
}

fn scaled(histogram: &Histogram<u64>, factor: f64) -> Option<Histogram<u64>> {
    let mut scaled = Histogram::new(3).ok()?;
    for step in histogram.iter_recorded() {
        let value = (histogram.median_equivalent(step.value_iterated_to()) as f64 * factor) as u64;
        scaled
            .record_n(value, step.count_since_last_iteration())
            .ok()?;
    }
    Some(scaled)
}

/// A bare comparison of means on the same blocks: the first blocks as what was stored, the next as
/// what is checked.
fn naive(
    out: &mut String,
    lines: &[Line],
    candidates: &[&str],
    blocks: &[u64],
) -> anyhow::Result<()> {
    let Some(longest) = blocks.last() else {
        return Ok(());
    };
    out.push_str("\n| bare comparison of means |");
    for candidate in candidates {
        let _ = write!(out, " {candidate}: fail |");
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(candidates.len()));
    let cells = candidates
        .iter()
        .map(|candidate| cell(lines, candidate, *longest))
        .collect::<Result<Vec<Cell>, _>>()?;
    for count in NAIVE {
        let _ = write!(out, "| {count} blocks of {longest} ms |");
        for cell in &cells {
            let mut failed = 0;
            let mut all = 0;
            for start in 0..(cell.units.len() + 1).saturating_sub(2 * count) {
                let before = &cell.units[start..start + count];
                let now = &cell.units[start + count..start + 2 * count];
                let mean = |units: &[Unit], pick: fn(&Unit) -> &Block, metric| {
                    let values: Vec<f64> = units
                        .iter()
                        .filter_map(|unit| pick(unit).value(metric))
                        .collect();
                    values.iter().sum::<f64>() / values.len().max(1) as f64
                };
                let ratio = |metric| {
                    mean(now, |unit| &unit.candidate, metric)
                        / mean(before, |unit| &unit.baseline, metric)
                };
                all += 1;
                if ratio(Metric::Throughput) < 0.95 || ratio(Metric::P99) > 1.10 {
                    failed += 1;
                }
            }
            let _ = write!(
                out,
                " {:.0} % of {all} |",
                100.0 * f64::from(failed) / f64::from(all.max(1))
            );
        }
        out.push('\n');
    }
    Ok(())
}
