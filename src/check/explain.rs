//! What explains a scenario's change, beside the verdict: where the time went, and the GPU.

use super::outcome::{add_flags, breakdown, flag};
use crate::data::{Block, Flag, GpuSample, GpuUsed, ScenarioResult};

/// The power cap in `nvidia-smi`'s mask of reasons (NVML, `nvmlClocksEventReasonSwPowerCap`).
const POWER_CAP: u64 = 0x4;
/// Difference of the shares of capped blocks from which on a reader should know.
const CAP_DIFFERS: f64 = 0.20;

/// Fills in the parts of the latency and the GPUs of both sides.
pub(super) fn explain(result: &mut ScenarioResult, baseline: &[&Block], candidate: &[&Block]) {
    result.breakdown = breakdown(baseline, candidate);
    let (before, now) = (gpu(baseline), gpu(candidate));
    result.gpu = now.map(|candidate| GpuUsed {
        baseline: before,
        candidate,
    });
    add_flags(result, power_cap(baseline, candidate));
}

/// Means over blocks; none where no block knows its GPU.
fn gpu(blocks: &[&Block]) -> Option<GpuSample> {
    let known: Vec<GpuSample> = blocks.iter().filter_map(|block| block.gpu).collect();
    let mean = |part: fn(&GpuSample) -> Option<f64>| {
        let values: Vec<f64> = known.iter().filter_map(part).collect();
        crate::stats::mean(&values).ok()
    };
    (!known.is_empty()).then(|| GpuSample {
        utilisation: mean(|gpu| gpu.utilisation),
        power_w: mean(|gpu| gpu.power_w),
        memory_bytes: mean(|gpu| gpu.memory_bytes),
        clock_mhz: mean(|gpu| gpu.clock_mhz),
        throttle: known
            .iter()
            .filter_map(|gpu| gpu.throttle)
            .reduce(|one, other| one | other),
    })
}

/// A cap that holds one side more than the other may be the change: the card's limit, not the code.
fn power_cap(baseline: &[&Block], candidate: &[&Block]) -> Option<Flag> {
    let (before, now) = (capped(baseline)?, capped(candidate)?);
    ((before - now).abs() > CAP_DIFFERS).then(|| {
        let text = format!(
            "the GPU's power cap held {:.0} % of the baseline's blocks and {:.0} % of the \
             candidate's: a part of the change may be power, not code",
            before * 100.0,
            now * 100.0
        );
        flag("power_cap", text)
    })
}

/// Share of the blocks that the power cap held; none where that is not known.
fn capped(blocks: &[&Block]) -> Option<f64> {
    let known: Vec<bool> = blocks
        .iter()
        .filter_map(|block| block.gpu?.throttle)
        .map(|reasons| reasons & POWER_CAP != 0)
        .collect();
    let held = known.iter().filter(|held| **held).count();
    (!known.is_empty()).then(|| held as f64 / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ClientSide, ErrorCounts, Latency, Side, Verdict};

    fn block(watts: f64, throttle: u64) -> Block {
        Block {
            gpu: Some(GpuSample {
                power_w: Some(watts),
                throttle: Some(throttle),
                ..GpuSample::default()
            }),
            ..plain()
        }
    }

    fn plain() -> Block {
        Block {
            side: Side::Candidate,
            index: 0,
            duration_ns: 1_000_000_000,
            batch: 1,
            requests: 1,
            errors: ErrorCounts::default(),
            latency: Latency::default(),
            histogram: None,
            client: ClientSide::default(),
            server: None,
            gpu: None,
            steal: None,
            stated_throughput: None,
        }
    }

    fn explained(before: &[Block], now: &[Block]) -> ScenarioResult {
        let mut result = ScenarioResult::new("a".to_owned(), Verdict::Pass);
        let (before, now): (Vec<_>, Vec<_>) = (before.iter().collect(), now.iter().collect());
        explain(&mut result, &before, &now);
        result
    }

    #[test]
    fn a_power_cap_on_one_side_is_said() {
        let free = [block(200.0, 0), block(300.0, 0)];
        let held = [block(350.0, 0x4), block(350.0, 0x4 | 0x1)];
        let result = explained(&free, &held);
        let gpu = result.gpu.expect("known");
        assert_eq!(gpu.baseline.and_then(|gpu| gpu.power_w), Some(250.0));
        assert_eq!(gpu.candidate.power_w, Some(350.0));
        assert_eq!(
            result.flags.first().map(|flag| flag.text.as_str()),
            Some(
                "the GPU's power cap held 0 % of the baseline's blocks and 100 % of the \
                 candidate's: a part of the change may be power, not code"
            )
        );
        assert!(explained(&held, &held).flags.is_empty());
    }

    #[test]
    fn without_a_gpu_nothing_is_said() {
        let blocks = [plain()];
        let result = explained(&blocks, &blocks);
        assert!(result.gpu.is_none() && result.flags.is_empty());
    }
}
