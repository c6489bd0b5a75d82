//! When a side is warm: pure rules over windows of load.

use std::time::Duration;

use crate::data::{Auto, Block};
use crate::stats::mser5;

/// Length of a window.
const WINDOW: Duration = Duration::from_millis(250);
/// Windows of one go: four batches of five, the least that MSER-5 judges.
const WINDOWS: u32 = 20;
/// Goes of an automatic warm-up that is still moving.
const GOES: usize = 2;
/// A slow model's automatic warm-up ends after this many windows.
const SLOW_WINDOWS: usize = 120;
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

    /// Deterministic small noise around a level.
    fn wobble(index: usize) -> f64 {
        ((index * 37) % 11) as f64 - 5.0
    }

    #[test]
    fn a_steady_model_is_warm_after_one_go() {
        let windows: Vec<Block> = (0..20).map(|i| window(Some(1000.0 + wobble(i)))).collect();
        assert_eq!(
            next_windows(Auto::Auto, &[]).map(|next| next.count),
            Some(20)
        );
        assert_eq!(next_windows(Auto::Auto, &windows), None);
        assert!(judge(Auto::Auto, &windows).settled);
    }

    #[test]
    fn a_moving_model_gets_a_second_go_and_is_then_called_unsteady() {
        let moving = |count: usize| -> Vec<Block> {
            (0..count)
                .map(|i| window(Some(5000.0 - 100.0 * i as f64 + wobble(i))))
                .collect()
        };
        assert!(next_windows(Auto::Auto, &moving(20)).is_some());
        assert_eq!(next_windows(Auto::Auto, &moving(40)), None);
        assert!(!judge(Auto::Auto, &moving(40)).settled);
    }

    #[test]
    fn the_cold_start_is_cut_off() {
        let windows: Vec<Block> = (0..40)
            .map(|i| window(Some(if i < 5 { 9000.0 } else { 1000.0 } + wobble(i))))
            .collect();
        let judgement = judge(Auto::Auto, &windows);
        assert!(judgement.settled);
        assert!((5..20).contains(&judgement.from), "{judgement:?}");
    }

    #[test]
    fn a_slow_model_is_waited_for_within_bounds() {
        let slow: Vec<Block> = (0..20)
            .map(|i| window((i % 4 == 0).then_some(9e5)))
            .collect();
        assert!(
            next_windows(Auto::Auto, &slow).is_some(),
            "five completions are too few"
        );
        let silent: Vec<Block> = (0..120).map(|_| window(None)).collect();
        assert_eq!(next_windows(Auto::Auto, &silent), None);
    }

    #[test]
    fn a_fixed_warm_up_is_one_go_of_its_length() {
        let second = Auto::Fixed(Duration::from_secs(1));
        assert_eq!(next_windows(second, &[]).map(|next| next.count), Some(4));
        assert_eq!(next_windows(second, &[window(Some(1.0))]), None);
        assert_eq!(next_windows(Auto::Fixed(Duration::ZERO), &[]), None);
    }
}
