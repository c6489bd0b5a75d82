//! Recording: every candidate beside the same reference, in turns.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use triton_gate::calibrate::{LengthPlan, RecordPlan, Recording, record as record_pairs};
use triton_gate::config::{Config, Overrides, load};
use triton_gate::data::{Auto, Scenario, Side};
use triton_gate::gate::{Design, PairPlan, SideFigures};
use triton_gate::lab::{SideLab, Target, TritonLab};
use triton_gate::load::Stop;
use triton_gate::run::{Lab, WarmUp};

use super::store::{Line, append};

/// The block lengths that take turns.
const LENGTHS: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// One candidate beside the reference.
struct Pairing {
    name: String,
    lab: TritonLab,
    lengths: Vec<LengthPlan>,
    recording: Recording,
    /// Units of each length that are on disk.
    written: Vec<usize>,
}

pub fn record(config: &Path, time: Duration, output: &Path, seed: u64) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let paths: [PathBuf; 1] = [config.to_owned()];
    let config: Config = load(&paths, &Overrides::default(), &|_| None)?;
    let Some((reference, candidates)) = config.scenarios.split_first() else {
        bail!("the thresholds hold no scenario");
    };
    if candidates.is_empty() {
        bail!("the thresholds hold no candidate");
    }
    let stop = Stop::new();
    let mut pairings = Vec::new();
    for candidate in candidates {
        pairings.push(open(runtime.handle(), &stop, reference, candidate)?);
    }
    let mut file = File::create(output).with_context(|| output.display().to_string())?;
    let begun = Instant::now();
    let mut turn = 0_u64;
    while begun.elapsed() < time {
        // The identical candidate every time, the others one after the other.
        let others = pairings.len() - 1;
        let slow = if others > 0 {
            1 + turn as usize % others
        } else {
            0
        };
        for index in [0, slow] {
            if index == 0 || others > 0 {
                one_turn(&mut pairings[index], seed.wrapping_add(turn), &mut file)?;
            }
        }
        turn += 1;
        if turn % 10 == 1 {
            eprintln!(
                "{turn} turns, {:.0} of {:.0} s",
                begun.elapsed().as_secs_f64(),
                time.as_secs_f64()
            );
        }
    }
    Ok(())
}

fn one_turn(pairing: &mut Pairing, seed: u64, file: &mut File) -> anyhow::Result<()> {
    let length: f64 = pairing
        .lengths
        .iter()
        .map(|length| length.plan.unit_seconds)
        .sum();
    let plan = RecordPlan {
        lengths: pairing.lengths.clone(),
        alone: 0,
        until: pairing.lab.now() + Duration::from_secs_f64(length * 1.05),
        loads: 1,
        seed,
    };
    record_pairs(
        &mut pairing.lab,
        &plan,
        &mut pairing.recording,
        &mut |_, _| {},
    )
    .map_err(|error| anyhow!("{}: {error}", pairing.name))?;
    pairing.written.resize(pairing.recording.lengths.len(), 0);
    for (length, written) in pairing
        .recording
        .lengths
        .iter_mut()
        .zip(&mut pairing.written)
    {
        for recorded in &length.units {
            append(file, &Line::new(&pairing.name, &length.plan, recorded)?)?;
            *written += 1;
        }
        // On disk: what stays in memory would only grow.
        length.units.clear();
    }
    Ok(())
}

fn open(
    runtime: &tokio::runtime::Handle,
    stop: &Stop,
    reference: &Scenario,
    candidate: &Scenario,
) -> anyhow::Result<Pairing> {
    let side = |scenario: &Scenario| -> anyhow::Result<SideLab> {
        Target::prepare(runtime, scenario)
            .and_then(|target| SideLab::open(scenario, target))
            .map_err(|reason| anyhow!("{}: {} ({})", scenario.name, reason.text, reason.next))
    };
    let mut lab = TritonLab::new(
        runtime.clone(),
        stop.clone(),
        Duration::from_secs(2),
        [
            (Side::Candidate, side(candidate)?),
            (Side::Baseline, side(reference)?),
        ],
    );
    let mut warm = |side| -> anyhow::Result<SideFigures> {
        let warm: WarmUp = lab.warm_up(side).map_err(|error| anyhow!("{error}"))?;
        Ok(SideFigures {
            request_rate: warm.request_rate,
            histogram: warm.histogram,
            rate_spread: warm.rate_spread,
            overhead: warm.overhead,
        })
    };
    let sides = [warm(Side::Baseline)?, warm(Side::Candidate)?];
    let design = Design::new(&candidate.gate, 2, 1, false)?;
    let lengths = LENGTHS
        .into_iter()
        .map(|length| {
            Ok(LengthPlan {
                plan: PairPlan::new(
                    &design,
                    [&sides[0], &sides[1]],
                    Auto::Fixed(length),
                    candidate.gate.budget,
                )?,
                chosen: false,
            })
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    eprintln!(
        "{}: {:.0} and {:.0} requests/s",
        candidate.name, sides[0].request_rate, sides[1].request_rate
    );
    Ok(Pairing {
        name: candidate.name.clone(),
        lab,
        lengths,
        recording: Recording::default(),
        written: Vec::new(),
    })
}
