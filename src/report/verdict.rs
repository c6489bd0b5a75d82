use crate::data::{OnInconclusive, OnMissing, Verdict};

/// What the process ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Every scenario passed, was accepted, is advisory, or was not affected.
    Passed = 0,
    /// At least one regression.
    Regression = 1,
    /// Usage, configuration or an input file is wrong.
    Usage = 2,
    /// Could not measure, or the measurement is not valid.
    NotMeasured = 3,
    /// The evidence did not decide within the budget.
    Inconclusive = 4,
    /// No baseline, or one that must not be compared with.
    NoBaseline = 5,
    /// Stopped by the user.
    Interrupted = 130,
}

impl Exit {
    /// Every exit, the one that wins first.
    ///
    /// An interruption stands behind a regression, so that stopping a check cannot hide what it
    /// had already proved, and before everything that a complete check might still have changed.
    pub const BY_WEIGHT: [Self; 7] = [
        Self::Usage,
        Self::Regression,
        Self::Interrupted,
        Self::NotMeasured,
        Self::NoBaseline,
        Self::Inconclusive,
        Self::Passed,
    ];

    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    fn weight(self) -> usize {
        Self::BY_WEIGHT
            .iter()
            .position(|other| *other == self)
            .unwrap_or(0)
    }
}

/// What decides about the exit code of one scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScenarioExit {
    /// Its verdict.
    pub verdict: Verdict,
    /// Whether its gate only advises.
    pub advisory: bool,
    /// What an undecided verdict means.
    pub on_inconclusive: OnInconclusive,
    /// What a missing baseline means.
    pub on_missing: OnMissing,
}

impl ScenarioExit {
    /// A verdict under the default settings.
    pub const fn plain(verdict: Verdict) -> Self {
        Self {
            verdict,
            advisory: false,
            on_inconclusive: OnInconclusive::Report,
            on_missing: OnMissing::Fail,
        }
    }

    /// The exit that this scenario alone asks for.
    ///
    /// `advise` turns a judgement (regression, undecided) into 0, never the absence of one: a
    /// check that measured nothing or compared nothing has no advice to give.
    pub fn exit(self) -> Exit {
        match self.verdict {
            Verdict::Pass | Verdict::Accepted | Verdict::New | Verdict::NotAffected => Exit::Passed,
            Verdict::Regression | Verdict::Inconclusive if self.advisory => Exit::Passed,
            Verdict::Regression => Exit::Regression,
            Verdict::Inconclusive => match self.on_inconclusive {
                OnInconclusive::Report => Exit::Inconclusive,
                OnInconclusive::Fail => Exit::Regression,
                OnInconclusive::Pass => Exit::Passed,
            },
            Verdict::NoBaseline => match self.on_missing {
                OnMissing::Fail => Exit::NoBaseline,
                OnMissing::New => Exit::Passed,
            },
            Verdict::Incompatible => Exit::NoBaseline,
            Verdict::Invalid => Exit::NotMeasured,
            Verdict::Interrupted => Exit::Interrupted,
        }
    }
}

/// The exit of a check: the scenario that weighs most, in the order 2, 1, 130, 3, 5, 4, 0. A check
/// without any scenario has compared nothing and is a mistake in its usage.
pub fn check_exit(scenarios: impl IntoIterator<Item = ScenarioExit>) -> Exit {
    scenarios
        .into_iter()
        .map(ScenarioExit::exit)
        .min_by_key(|exit| exit.weight())
        .unwrap_or(Exit::Usage)
}

/// The verdict of a check: its worst scenario's, whatever that means for the exit code. None
/// without any scenario.
pub fn worst_verdict(verdicts: impl IntoIterator<Item = Verdict>) -> Option<Verdict> {
    verdicts
        .into_iter()
        .min_by_key(|verdict| severity(*verdict))
}

/// The position of a verdict from worst to best, in the order of the exit codes.
pub(crate) const fn severity(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Regression => 0,
        Verdict::Interrupted => 1,
        Verdict::Invalid => 2,
        Verdict::Incompatible => 3,
        Verdict::NoBaseline => 4,
        Verdict::Inconclusive => 5,
        Verdict::Accepted => 6,
        Verdict::New => 7,
        Verdict::Pass => 8,
        Verdict::NotAffected => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::ALL_VERDICTS;

    fn every_scenario() -> Vec<ScenarioExit> {
        let mut all = Vec::new();
        for verdict in ALL_VERDICTS {
            for advisory in [false, true] {
                for on_inconclusive in [
                    OnInconclusive::Report,
                    OnInconclusive::Fail,
                    OnInconclusive::Pass,
                ] {
                    for on_missing in [OnMissing::Fail, OnMissing::New] {
                        all.push(ScenarioExit {
                            verdict,
                            advisory,
                            on_inconclusive,
                            on_missing,
                        });
                    }
                }
            }
        }
        all
    }

    #[test]
    fn each_verdict_has_its_exit() {
        for scenario in every_scenario() {
            let expected = match (scenario.verdict, scenario.advisory) {
                (Verdict::Pass | Verdict::Accepted | Verdict::New | Verdict::NotAffected, _)
                | (Verdict::Regression | Verdict::Inconclusive, true) => 0,
                (Verdict::Regression, false) => 1,
                (Verdict::Inconclusive, false) => match scenario.on_inconclusive {
                    OnInconclusive::Report => 4,
                    OnInconclusive::Fail => 1,
                    OnInconclusive::Pass => 0,
                },
                (Verdict::NoBaseline, _) if scenario.on_missing == OnMissing::New => 0,
                (Verdict::NoBaseline | Verdict::Incompatible, _) => 5,
                (Verdict::Invalid, _) => 3,
                (Verdict::Interrupted, _) => 130,
            };
            assert_eq!(scenario.exit().code(), expected, "{scenario:?}");
        }
    }

    /// Every combination of up to three scenarios: the outcome is one that a scenario asked for,
    /// nothing that weighs more was lost, and order does not matter.
    #[test]
    fn the_heaviest_scenario_decides() {
        let order = [2, 1, 130, 3, 5, 4, 0];
        let place = |code: u8| order.iter().position(|other| *other == code);
        let all = every_scenario();
        for a in &all {
            for b in &all {
                for c in [None, Some(*a), all.first().copied(), all.last().copied()] {
                    let scenarios: Vec<ScenarioExit> = [*a, *b].into_iter().chain(c).collect();
                    let codes: Vec<u8> = scenarios.iter().map(|s| s.exit().code()).collect();
                    let code = check_exit(scenarios.clone()).code();
                    assert!(codes.contains(&code));
                    assert!(codes.iter().all(|other| place(*other) >= place(code)));
                    if scenarios
                        .iter()
                        .any(|s| s.verdict == Verdict::Regression && !s.advisory)
                    {
                        assert_eq!(code, 1, "a proven regression is hidden: {scenarios:?}");
                        assert_eq!(
                            worst_verdict(scenarios.iter().map(|s| s.verdict)),
                            Some(Verdict::Regression)
                        );
                    }
                    let reversed = check_exit(scenarios.into_iter().rev()).code();
                    assert_eq!(code, reversed);
                }
            }
        }
    }

    #[test]
    fn zero_needs_a_comparison_or_a_reason() {
        assert_eq!(check_exit([]), Exit::Usage);
        assert_eq!(worst_verdict([]), None);
        for scenario in every_scenario() {
            let measured_nothing = matches!(
                scenario.verdict,
                Verdict::Invalid | Verdict::Interrupted | Verdict::Incompatible
            );
            assert!(!measured_nothing || scenario.exit() != Exit::Passed);
        }
    }

    #[test]
    fn severity_follows_the_exits() {
        // A verdict that is worse never asks for an exit that weighs less.
        for a in ALL_VERDICTS {
            for b in ALL_VERDICTS {
                let exit = |verdict| {
                    ScenarioExit {
                        verdict,
                        advisory: false,
                        on_inconclusive: OnInconclusive::Report,
                        on_missing: OnMissing::Fail,
                    }
                    .exit()
                    .weight()
                };
                if severity(a) < severity(b) {
                    assert!(exit(a) <= exit(b), "{a:?} {b:?}");
                }
            }
        }
    }
}
