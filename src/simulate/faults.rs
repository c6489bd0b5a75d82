//! Which fault strikes which request.

use std::time::Duration;

use super::latency::{mix, uniform};
use super::spec::{ErrorKind, FaultKind, FaultSpec};

/// What happens to one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Strike {
    /// Answer with this error and its text.
    pub(crate) error: Option<(ErrorKind, Option<String>)>,
    /// Stall the model for this long from now.
    pub(crate) stall: Option<Duration>,
    pub(crate) disconnect: bool,
    pub(crate) hang: bool,
    pub(crate) reload: bool,
    pub(crate) empty_outputs: bool,
    pub(crate) wrong_size: bool,
}

/// The faults of one model.
#[derive(Debug)]
pub(crate) struct Faults {
    faults: Vec<FaultSpec>,
    seed: u64,
}

impl Faults {
    pub(crate) fn new(faults: Vec<FaultSpec>, seed: u64) -> Self {
        Self { faults, seed }
    }

    /// What happens to the request with this number.
    pub(crate) fn strike(&self, number: u64, version: u32, elapsed: Duration) -> Strike {
        let mut strike = Strike::default();
        for (index, fault) in self.faults.iter().enumerate() {
            if !self.hits(index, fault, number, version, elapsed) {
                continue;
            }
            match fault.kind {
                // The first error that strikes is the answer.
                FaultKind::Error => {
                    if let (None, Some(kind)) = (&strike.error, fault.error) {
                        strike.error = Some((kind, fault.message.clone()));
                    }
                }
                // A stall by time is planned beforehand, not by a request.
                FaultKind::Stall => {
                    if fault.at.is_none() {
                        strike.stall = strike.stall.max(fault.length);
                    }
                }
                FaultKind::Disconnect => strike.disconnect = true,
                FaultKind::Hang => strike.hang = true,
                FaultKind::Reload => strike.reload = true,
                FaultKind::EmptyOutputs => strike.empty_outputs = true,
                FaultKind::WrongSize => strike.wrong_size = true,
                FaultKind::NotReady => {}
            }
        }
        strike
    }

    fn hits(
        &self,
        index: usize,
        fault: &FaultSpec,
        number: u64,
        version: u32,
        elapsed: Duration,
    ) -> bool {
        let after = fault.after_request.unwrap_or(0);
        number > after
            && fault.version.is_none_or(|only| only == version)
            && fault.at_request.is_none_or(|only| only == number)
            && fault
                .every
                .is_none_or(|every| (number - after).is_multiple_of(every))
            && in_window(fault, elapsed)
            && fault.probability.is_none_or(|probability| {
                uniform(mix(&[self.seed, index as u64, number])) < probability
            })
    }

    /// Whether the model says that it is not ready.
    pub(crate) fn not_ready(&self, elapsed: Duration) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.kind == FaultKind::NotReady && in_window(fault, elapsed))
    }

    /// Stalls by time, as spans since the server's start.
    pub(crate) fn planned_stalls(&self) -> Vec<(Duration, Duration, Option<u32>)> {
        self.faults
            .iter()
            .filter(|fault| fault.kind == FaultKind::Stall)
            .filter_map(|fault| {
                let at = fault.at?;
                Some((at, at + fault.length?, fault.version))
            })
            .collect()
    }

    /// Whether any stall can happen.
    pub(crate) fn can_stall(&self) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.kind == FaultKind::Stall)
    }
}

fn in_window(fault: &FaultSpec, elapsed: Duration) -> bool {
    let Some(at) = fault.at else { return true };
    elapsed >= at && fault.length.is_none_or(|length| elapsed < at + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn struck(fault: FaultSpec, requests: u64) -> Vec<u64> {
        let faults = Faults::new(vec![fault], 9);
        (1..=requests)
            .filter(|n| faults.strike(*n, 1, SECOND) != Strike::default())
            .collect()
    }

    #[test]
    fn conditions_on_requests_are_exact() {
        let hang = || FaultSpec::new(FaultKind::Hang);
        for (fault, expected) in [
            (hang(), vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
            (hang().every(3), vec![3, 6, 9]),
            (hang().every(3).after_request(4), vec![7, 10]),
            (hang().at_request(5), vec![5]),
            (hang().after_request(8), vec![9, 10]),
            (hang().version(2), vec![]),
            (hang().at(SECOND * 2), vec![]),
            (hang().at(SECOND / 2).length(SECOND / 2), vec![]),
            (hang().at(SECOND).length(SECOND).every(5), vec![5, 10]),
            (hang().probability(0.0), vec![]),
            (hang().probability(1.0).every(9), vec![9]),
        ] {
            assert_eq!(struck(fault.clone(), 10), expected, "{fault:?}");
        }
    }

    #[test]
    fn a_probability_strikes_its_share_and_the_same_requests_each_time() {
        let fault = FaultSpec::error(ErrorKind::QueueFull).probability(0.05);
        let hits = struck(fault.clone(), 20_000);
        assert!((900..1100).contains(&hits.len()), "{}", hits.len());
        assert_eq!(hits, struck(fault, 20_000));
    }

    #[test]
    fn the_first_error_wins_and_other_faults_join() {
        let faults = Faults::new(
            vec![
                FaultSpec::error(ErrorKind::Execution)
                    .every(2)
                    .message("first"),
                FaultSpec::error(ErrorKind::QueueFull),
                FaultSpec::new(FaultKind::WrongSize),
            ],
            1,
        );
        let strike = faults.strike(2, 1, SECOND);
        assert_eq!(
            strike.error,
            Some((ErrorKind::Execution, Some("first".to_owned())))
        );
        assert!(strike.wrong_size);
        assert_eq!(
            faults.strike(1, 1, SECOND).error,
            Some((ErrorKind::QueueFull, None))
        );
    }

    #[test]
    fn not_ready_goes_by_time() {
        let fault = FaultSpec::new(FaultKind::NotReady)
            .at(SECOND)
            .length(SECOND);
        let faults = Faults::new(vec![fault], 1);
        let seen = [0, 1, 2].map(|second| faults.not_ready(SECOND * second));
        assert_eq!(seen, [false, true, false]);
    }
}
