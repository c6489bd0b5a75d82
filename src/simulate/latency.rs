//! Draws the time of one execution.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::spec::LatencySpec;

/// An hour: longer executions are cut to it, so that no sum of times can overflow.
const LONGEST_S: f64 = 3600.0;

/// The latency model of one version with its own random numbers.
#[derive(Debug)]
pub(crate) struct Sampler {
    spec: LatencySpec,
    rng: ChaCha8Rng,
}

impl Sampler {
    pub(crate) fn new(spec: LatencySpec, seed: u64) -> Self {
        Self {
            spec,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// The time of the next execution, which starts `elapsed` after the server did.
    pub(crate) fn draw(&mut self, elapsed: Duration, batch: u32) -> Duration {
        let spec = &self.spec;
        let items = f64::from(batch.max(1));
        let mut seconds = spec.base.as_secs_f64() + spec.per_item.as_secs_f64() * items;
        // Both are drawn always, so that changing one parameter leaves the other draws alone.
        let normal: f64 = StandardNormal.sample(&mut self.rng);
        let uniform: f64 = self.rng.random();
        seconds *= (spec.sigma * normal).exp();
        if uniform < spec.slow_share {
            seconds *= spec.slow_factor;
        }
        seconds *= (1.0 + spec.drift * elapsed.as_secs_f64()).max(0.0);
        if in_burst(spec, elapsed) {
            seconds *= spec.burst_factor;
        }
        Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_S))
    }
}

/// A burst opens each full period but the zeroth.
fn in_burst(spec: &LatencySpec, elapsed: Duration) -> bool {
    let period = spec.burst_every.as_nanos();
    if period == 0 || elapsed < spec.burst_every {
        return false;
    }
    elapsed.as_nanos() % period < spec.burst_length.as_nanos()
}

/// Mixes numbers into one seed (splitmix64's finaliser over a running sum).
pub(crate) fn mix(parts: &[u64]) -> u64 {
    let mut state = 0u64;
    for part in parts {
        state = state
            .wrapping_add(*part)
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
    }
    state
}

/// A number of a text, the same in every run (FNV-1a).
pub(crate) fn hash_text(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A uniform number in [0, 1) from a seed.
pub(crate) fn uniform(seed: u64) -> f64 {
    (seed >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn constant_latency_is_base_plus_items() {
        let spec = LatencySpec {
            per_item: MS * 2,
            ..LatencySpec::constant(MS * 5)
        };
        let mut sampler = Sampler::new(spec, 1);
        for (batch, milliseconds) in [(1, 7), (4, 13), (0, 7)] {
            assert_eq!(
                sampler.draw(Duration::ZERO, batch),
                MS * milliseconds,
                "batch {batch}"
            );
        }
    }

    #[test]
    fn one_seed_draws_one_sequence() {
        let draw = |seed| {
            let mut sampler = Sampler::new(LatencySpec::log_normal(MS * 10, 0.2), seed);
            (0..50)
                .map(|_| sampler.draw(Duration::ZERO, 1))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn log_normal_has_the_median_and_the_spread_asked_for() {
        let mut sampler = Sampler::new(LatencySpec::log_normal(MS * 10, 0.2), 3);
        let mut logs: Vec<f64> = (0..20_001)
            .map(|_| (sampler.draw(Duration::ZERO, 1).as_secs_f64() / 0.01).ln())
            .collect();
        logs.sort_by(f64::total_cmp);
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / logs.len() as f64;
        assert!(logs[10_000].abs() < 0.01, "median {}", logs[10_000]);
        assert!(
            (variance.sqrt() - 0.2).abs() < 0.01,
            "sigma {}",
            variance.sqrt()
        );
    }

    #[test]
    fn the_slow_path_is_taken_with_its_share() {
        let spec = LatencySpec {
            slow_share: 0.1,
            slow_factor: 3.0,
            ..LatencySpec::constant(MS * 10)
        };
        let mut sampler = Sampler::new(spec, 5);
        let slow = (0..10_000)
            .filter(|_| sampler.draw(Duration::ZERO, 1) == MS * 30)
            .count();
        assert!((900..1100).contains(&slow), "{slow}");
    }

    #[test]
    fn drift_and_bursts_follow_the_time() {
        let spec = LatencySpec {
            drift: 0.01,
            burst_every: MS * 10_000,
            burst_length: MS * 500,
            burst_factor: 2.0,
            ..LatencySpec::constant(MS * 10)
        };
        let mut sampler = Sampler::new(spec, 1);
        for (at_ms, expected_us) in [
            (0, 10_000),
            (5_000, 10_500),
            (10_000, 22_000),
            (10_499, 22_100),
            (10_500, 11_050),
        ] {
            let drawn = sampler.draw(MS * at_ms, 1).as_micros();
            assert!(drawn.abs_diff(expected_us) <= 1, "{at_ms}: {drawn}");
        }
    }

    #[test]
    fn mixed_seeds_are_uniform() {
        let mean = (0..10_000)
            .map(|i| uniform(mix(&[1, hash_text("m"), i])))
            .sum::<f64>()
            / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
