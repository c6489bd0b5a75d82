//! When a side is warm: pure rules over windows of load.

use std::time::Duration;

use crate::data::{Auto, Block};
use crate::stats::{design_effect, mser5, variance};

/// Length of a window.
const WINDOW: Duration = Duration::from_millis(100);
/// Windows of one go: ten batches of five, so that chance alone seldom puts the best cut at the
/// last place that MSER-5 allows.
const WINDOWS: u32 = 50;
/// Goes of an automatic warm-up that is still moving.
const GOES: usize = 2;
/// A slow model's automatic warm-up ends after this many windows.
const SLOW_WINDOWS: usize = 300;
/// Completions that a slow model needs before its warm-up ends.
const SLOW_COMPLETIONS: u64 = 20;

/// The next windows of a warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// How many.
    pub count: u32,
    /// How long each.
    pub length: Duration,
}

/// What to load next, given the windows so far; none where the warm-up is over.
pub fn next_windows(choice: Auto<Duration>, windows: &[Block]) -> Option<Windows> {
    match choice {
        Auto::Fixed(length) => {
            let wanted = length.as_millis().div_ceil(WINDOW.as_millis());
            (windows.is_empty() && wanted > 0).then(|| Windows {
                count: u32::try_from(wanted).unwrap_or(u32::MAX),
                length: WINDOW.min(length),
            })
        }
        Auto::Auto => {
            let more = Some(Windows {
                count: WINDOWS,
                length: WINDOW,
            });
            if windows.is_empty() {
                return more;
            }
            let goes = windows.len() / WINDOWS as usize;
            let means = means(windows);
            if means.len() < windows.len() {
                // Slow: some windows saw no request end. Wait for a few completions instead.
                let completed: u64 = windows.iter().map(|window| window.requests).sum();
                return if completed < SLOW_COMPLETIONS && windows.len() < SLOW_WINDOWS {
                    more
                } else {
                    None
                };
            }
            let settled = mser5(&means).is_ok_and(|cut| cut.settled);
            if settled || goes >= GOES { None } else { more }
        }
    }
}

/// Where the steady part begins, and whether there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// False where the series was still moving at its end.
    pub settled: bool,
    /// Index of the first steady window.
    pub from: usize,
}

/// Judges a finished warm-up. One that cannot be judged (fixed and short, or a slow model)
/// counts as settled: nothing was seen to move.
pub fn judge(choice: Auto<Duration>, windows: &[Block]) -> Judgement {
    let means = means(windows);
    let half = windows.len() / 2;
    if means.len() < windows.len() {
        return Judgement {
            settled: true,
            from: half,
        };
    }
    match mser5(&means) {
        Ok(cut) => Judgement {
            settled: cut.settled || choice != Auto::Auto,
            from: cut.discard.min(half),
        },
        Err(_) => Judgement {
            settled: true,
            from: half,
        },
    }
}

/// Standard deviation of the ln throughput of one second of load: the windows' own, raised for
/// autocorrelation, as a mean over as many of them varies. None from fewer than ten windows, or
/// where one saw nothing end.
pub fn rate_spread(windows: &[Block]) -> Option<f64> {
    let logs: Vec<f64> = windows
        .iter()
        .map(|window| window.throughput().ln())
        .collect();
    if logs.len() < 10 || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    let seconds = windows.first()?.duration_ns as f64 / 1e9;
    let variance = variance(&logs).ok()? * design_effect(&logs).ok()?;
    Some((variance * seconds).sqrt())
}

fn means(windows: &[Block]) -> Vec<f64> {
    windows
        .iter()
        .filter_map(|window| window.latency.mean)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ClientSide, ErrorCounts, Latency, Side};

    fn window(mean_us: Option<f64>) -> Block {
        Block {
            side: Side::Candidate,
            index: 0,
            duration_ns: 250_000_000,
            batch: 1,
            requests: u64::from(mean_us.is_some()),
            errors: ErrorCounts::default(),
            latency: Latency {
                mean: mean_us,
                ..Latency::default()
            },
            histogram: None,
            client: ClientSide::default(),
            server: None,
            gpu: None,
            steal: None,
            stated_throughput: None,
        }
    }

    /// Deterministic small noise around a level, without a period.
    fn wobble(index: usize) -> f64 {
        let mixed = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed >> 33) % 1000) as f64 / 100.0 - 5.0
    }

    #[test]
    fn a_steady_model_is_warm_after_one_go() {
        let windows: Vec<Block> = (0..50).map(|i| window(Some(1000.0 + wobble(i)))).collect();
        assert_eq!(
            next_windows(Auto::Auto, &[]).map(|next| next.count),
            Some(50)
        );
        assert_eq!(next_windows(Auto::Auto, &windows), None);
        assert!(judge(Auto::Auto, &windows).settled);
    }

    #[test]
    fn a_moving_model_gets_a_second_go_and_is_then_called_unsteady() {
        let moving = |count: usize| -> Vec<Block> {
            (0..count)
                .map(|i| window(Some(9000.0 - 50.0 * i as f64 + wobble(i))))
                .collect()
        };
        assert!(next_windows(Auto::Auto, &moving(50)).is_some());
        assert_eq!(next_windows(Auto::Auto, &moving(100)), None);
        assert!(!judge(Auto::Auto, &moving(100)).settled);
    }

    #[test]
    fn the_cold_start_is_cut_off() {
        let windows: Vec<Block> = (0..100)
            .map(|i| window(Some(if i < 5 { 9000.0 } else { 1000.0 } + wobble(i))))
            .collect();
        let judgement = judge(Auto::Auto, &windows);
        assert!(judgement.settled);
        assert!((5..50).contains(&judgement.from), "{judgement:?}");
    }

    #[test]
    fn a_slow_model_is_waited_for_within_bounds() {
        let slow: Vec<Block> = (0..50)
            .map(|i| window((i % 10 == 0).then_some(9e5)))
            .collect();
        assert!(
            next_windows(Auto::Auto, &slow).is_some(),
            "five completions are too few"
        );
        let silent: Vec<Block> = (0..300).map(|_| window(None)).collect();
        assert_eq!(next_windows(Auto::Auto, &silent), None);
    }

    #[test]
    fn the_spread_of_a_second_follows_from_that_of_the_windows() {
        let of = |count: usize, requests: fn(usize) -> u64| -> Option<f64> {
            let windows: Vec<Block> = (0..count)
                .map(|index| Block {
                    requests: requests(index),
                    ..window(Some(1.0))
                })
                .collect();
            rate_spread(&windows)
        };
        // ln 1.21 / 2 = .0953 about the middle, of 49 degrees of freedom, over four windows a second.
        let spread = of(50, |index| if index % 2 == 0 { 100 } else { 121 }).expect("enough");
        assert!((spread - 0.048_14).abs() < 1e-4, "{spread}");
        assert_eq!(of(9, |_| 100), None);
        assert_eq!(of(50, |index| index as u64), None, "one saw nothing end");
    }

    #[test]
    fn a_fixed_warm_up_is_one_go_of_its_length() {
        let second = Auto::Fixed(Duration::from_secs(1));
        assert_eq!(next_windows(second, &[]).map(|next| next.count), Some(10));
        assert_eq!(next_windows(second, &[window(Some(1.0))]), None);
        assert_eq!(next_windows(Auto::Fixed(Duration::ZERO), &[]), None);
    }
}
