//! From a recording to what it means.

use std::time::Duration;

use super::advice::{honest_limits, toml};
use super::agreement::agreement;
use super::loads::spread_of_loads;
use super::noise::{best_length, noise};
use super::outcome::{Advice, Agreement, Calibrated, LengthNoise, LoadSpread, Rates};
use super::record::{LengthRecord, Recording};
use super::resample::{Resampling, resample};
use crate::data::Flag;
use crate::gate::{Design, GateError};
use crate::stats::FIRST_LOOK;

/// Checks with which each step of the search for honest limits is tried.
const SEARCH_CHECKS: u32 = 300;
/// Stretches of a whole check below which the rates rest on little.
const FEW_STRETCHES: f64 = 5.0;

/// The block lengths of a recording beside each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The noise by length.
    pub lengths: Vec<LengthNoise>,
    /// How far short blocks agree with long ones.
    pub agreement: Vec<Agreement>,
    /// Index of the length that serves a check best.
    pub best: Option<usize>,
}

/// Compares the block lengths of a recording. One at which alternating changes what is measured is
/// never the best.
pub fn compare_lengths(design: &Design, recording: &Recording) -> Result<Comparison, GateError> {
    let lengths = recording
        .lengths
        .iter()
        .map(|record| noise(design, record))
        .collect::<Result<Vec<_>, _>>()?;
    let agreement = agreement(design, recording)?;
    let agrees = |length: &LengthNoise| {
        agreement
            .iter()
            .filter(|one| one.block_ms.total_cmp(&length.block_ms).is_eq())
            .all(|one| one.agrees)
    };
    let best = best_length(design, &lengths, &agrees);
    Ok(Comparison {
        lengths,
        agreement,
        best,
    })
}

/// Fills in what a recording says. `checks` are resampled, all of it seeded by `seed`; `budget` is
/// the time of a check as configured. Where `settled` is some, it is the best length as it was found
/// before more was recorded at it: the choice is not made anew on other evidence.
pub fn summarise(
    design: &Design,
    recording: &Recording,
    settled: Option<usize>,
    checks: u32,
    seed: u64,
    budget: Duration,
    calibrated: &mut Calibrated,
) -> Result<(), GateError> {
    let Comparison {
        lengths,
        agreement,
        best: found,
    } = compare_lengths(design, recording)?;
    let best = settled.or(found);
    calibrated.loads = if recording.reloadable {
        spread_of_loads(design, recording)?
    } else {
        Vec::new()
    };
    calibrated.loads_seen = recording.loads;
    calibrated.flags.extend(recording.flags.iter().cloned());
    if !recording.reloadable {
        flag(
            calibrated,
            "loads_not_seen",
            "the spread between loads of the model was not seen: it needs a server with \
             model_control = \"explicit\""
                .to_owned(),
        );
    }
    if recording.reloadable && calibrated.loads.is_empty() {
        flag(
            calibrated,
            "loads_not_seen",
            format!(
                "{} loads of the model were seen, too shortly to tell their spread: measure for \
                 longer (--time)",
                recording.loads
            ),
        );
    }
    let record = best.and_then(|best| Some((recording.lengths.get(best)?, lengths.get(best)?)));
    match record {
        Some((record, noise)) => {
            calibrated.best_block_ms = Some(noise.block_ms);
            judged(
                design,
                record,
                noise,
                Resampling {
                    checks,
                    seed,
                    swap: true,
                },
                calibrated,
            )?;
            let block = (!record.chosen).then_some(record.plan.block);
            calibrated.toml = toml(&calibrated.name, &calibrated.advice, budget, block);
        }
        None => flag(
            calibrated,
            "no_best_block",
            "no block length could be compared: measure for longer (--time)".to_owned(),
        ),
    }
    for disagreeing in agreement.iter().filter(|one| !one.agrees) {
        flag(
            calibrated,
            "alternating_changes",
            format!(
                "blocks of {:.0} ms do not measure what long ones do ({} {:+.1} %): they are not \
                 advised",
                disagreeing.block_ms,
                disagreeing.metric.label(),
                disagreeing.change * 100.0
            ),
        );
    }
    let too_large: Vec<LoadSpread> = calibrated
        .loads
        .iter()
        .filter(|load| load.too_large())
        .cloned()
        .collect();
    for load in too_large {
        flag(
            calibrated,
            "loads_differ",
            format!(
                "{}: loads of this model differ by {:.1} % (standard deviation), the limit bears \
                 {:.1} %: a reload alone can look like a change",
                load.metric.label(),
                load.sd * 100.0,
                load.bearable * 100.0
            ),
        );
    }
    calibrated.lengths = lengths;
    calibrated.agreement = agreement;
    Ok(())
}

/// Rates and limits, where the recording and the budget hold enough for a first look.
fn judged(
    design: &Design,
    record: &LengthRecord,
    noise: &LengthNoise,
    how: Resampling,
    calibrated: &mut Calibrated,
) -> Result<(), GateError> {
    let units: Vec<_> = record.units.iter().map(|one| &one.unit).collect();
    if record.plan.max_units < FIRST_LOOK {
        flag(
            calibrated,
            "budget_too_short",
            format!(
                "a check of this budget holds {} units of {:.1} s, a first look needs {FIRST_LOOK}",
                record.plan.max_units, record.plan.unit_seconds
            ),
        );
        return Ok(());
    }
    if units.len() < FIRST_LOOK as usize {
        flag(
            calibrated,
            "few_units",
            format!(
                "{} units were measured, the gate's rates need {FIRST_LOOK}: measure for longer \
                 (--time)",
                units.len()
            ),
        );
        return Ok(());
    }
    let rates: Rates = resample(design, &record.plan, &units, how)?;
    if rates.stretches < FEW_STRETCHES {
        flag(
            calibrated,
            "few_stretches",
            format!(
                "the recording is as long as {:.1} whole checks: the rates say what this noise \
                 would do, not what other hours bring",
                rates.stretches
            ),
        );
    }
    calibrated.rates = Some(rates);
    let search = Resampling {
        checks: how.checks.min(SEARCH_CHECKS),
        ..how
    };
    let advice: Vec<Advice> = honest_limits(
        design,
        &record.plan,
        &units,
        noise,
        &calibrated.loads,
        search,
    )?;
    for percentile in record.plan.percentiles.iter().filter(|one| !one.in_reach) {
        flag(calibrated, "out_of_reach", percentile.text());
    }
    calibrated.advice = advice;
    Ok(())
}

fn flag(calibrated: &mut Calibrated, code: &str, text: String) {
    calibrated.flags.push(Flag {
        code: code.to_owned(),
        text,
    });
}
