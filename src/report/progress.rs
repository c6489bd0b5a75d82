use super::format;
use super::text::{NAME, clean};
use super::words;
use crate::data::Verdict;

/// What a check is doing with a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for the host's lock or for the server.
    Waiting,
    /// Load whose numbers do not count.
    WarmUp,
    /// Load that counts.
    Measuring,
    /// A live reference under load.
    Reference,
    /// The scenario is done.
    Done,
}

impl Phase {
    const fn label(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::WarmUp => "warming up",
            Self::Measuring => "measuring",
            Self::Reference => "measuring the reference",
            Self::Done => "done",
        }
    }
}

/// Where a measurement stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The scenario's name.
    pub scenario: String,
    /// What is being done.
    pub phase: Phase,
    /// Blocks that count so far.
    pub blocks: u32,
    /// Blocks planned up to the next look; none where open.
    pub planned: Option<u32>,
    /// The last blocks' throughput, infer/s.
    pub throughput: Option<f64>,
    /// The last blocks' P50, microseconds.
    pub p50_us: Option<f64>,
    /// The last blocks' P99, microseconds.
    pub p99_us: Option<f64>,
    /// Seconds until the budget ends; the scenario may be decided earlier.
    pub seconds_left: Option<f64>,
    /// The verdict as of the last look.
    pub verdict: Option<Verdict>,
}

/// One line for a progress bar or a log.
pub fn progress(snapshot: &Progress) -> String {
    let mut parts = vec![
        clean(&snapshot.scenario, NAME),
        snapshot.phase.label().to_owned(),
    ];
    match snapshot.planned {
        Some(planned) if planned > 0 => {
            parts.push(format!("{}/{planned} blocks", snapshot.blocks));
        }
        _ if snapshot.blocks > 0 => {
            parts.push(format::counted(u64::from(snapshot.blocks), "block"));
        }
        _ => {}
    }
    parts.extend(snapshot.throughput.map(format::throughput));
    let latency = |label: &str, value: f64| format!("{label} {}", format::latency(value));
    parts.extend(snapshot.p50_us.map(|value| latency("P50", value)));
    parts.extend(snapshot.p99_us.map(|value| latency("P99", value)));
    parts.extend(
        snapshot
            .seconds_left
            .map(|left| format!("at most {} left", format::duration(left))),
    );
    parts.extend(snapshot.verdict.map(|verdict| {
        let lead = if snapshot.phase == Phase::Done {
            ""
        } else {
            "so far "
        };
        format!("{lead}{}", words::verdict(verdict))
    }));
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_each_phase() {
        let mut snapshot = Progress {
            scenario: "yolov9-c8\u{1b}[2J".to_owned(),
            phase: Phase::WarmUp,
            blocks: 0,
            planned: None,
            throughput: Some(2503.6),
            p50_us: None,
            p99_us: None,
            seconds_left: Some(300.0),
            verdict: None,
        };
        assert_eq!(
            progress(&snapshot),
            "yolov9-c8  warming up  2 504 infer/s  at most 5 min 00 s left"
        );
        snapshot.phase = Phase::Measuring;
        snapshot.blocks = 12;
        snapshot.planned = Some(40);
        snapshot.p50_us = Some(3100.0);
        snapshot.p99_us = Some(4312.0);
        snapshot.seconds_left = Some(45.0);
        snapshot.verdict = Some(Verdict::Inconclusive);
        assert_eq!(
            progress(&snapshot),
            "yolov9-c8  measuring  12/40 blocks  2 504 infer/s  P50 3.10 ms  P99 4.31 ms  \
             at most 45 s left  so far not decided"
        );
        snapshot.phase = Phase::Done;
        snapshot.planned = None;
        snapshot.seconds_left = None;
        assert!(
            progress(&snapshot)
                .ends_with("12 blocks  2 504 infer/s  P50 3.10 ms  P99 4.31 ms  not decided")
        );
    }
}
