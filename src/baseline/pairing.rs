//! Which measurement of a baseline belongs to which of a candidate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::data::{Block, Metric, Session, Verdict};

/// How hard the server was pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LevelLoad {
    /// Requests in flight.
    Concurrency(u32),
    /// Requests per second x 1000.
    RateMilli(u64),
}

impl fmt::Display for LevelLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Concurrency(value) => write!(f, "concurrency {value}"),
            Self::RateMilli(value) => write!(f, "request rate {}", *value as f64 / 1000.0),
        }
    }
}

/// What a measurement was of: its load, and words that tell it from others (`model`, `batch`,
/// `scenario`, columns that people add).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelKey {
    /// How hard the server was pushed.
    pub load: LevelLoad,
    /// Further words by name.
    pub labels: BTreeMap<String, String>,
}

impl LevelKey {
    /// The key without labels that the other side does not know.
    fn within(&self, names: &BTreeSet<String>) -> Self {
        Self {
            load: self.load,
            labels: self
                .labels
                .iter()
                .filter(|(name, _)| names.contains(*name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    /// A short name for files and scenarios: `c8`, `c8-b2`, `r12.5`.
    pub fn slug(&self) -> String {
        let load = match self.load {
            LevelLoad::Concurrency(value) => format!("c{value}"),
            LevelLoad::RateMilli(value) => format!("r{}", value as f64 / 1000.0),
        };
        match self.labels.get("batch") {
            Some(batch) => format!("{load}-b{batch}"),
            None => load,
        }
    }
}

impl fmt::Display for LevelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.load)?;
        for (name, value) in &self.labels {
            write!(f, ", {name} {value}")?;
        }
        Ok(())
    }
}

/// One level of load with its blocks, from a file of either kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// What was measured.
    pub key: LevelKey,
    /// The blocks: of a session, or one a row of a `perf_analyzer` file.
    pub session: Session,
    /// Why no verdict may come of it: a request rate that was not reached.
    pub invalid: Option<String>,
}

impl Level {
    /// A session as a level.
    pub fn of_session(session: Session) -> Self {
        let load = match (session.load.concurrency, session.load.rate_milli) {
            (None, Some(rate)) => LevelLoad::RateMilli(rate),
            (concurrency, _) => LevelLoad::Concurrency(concurrency.unwrap_or_default()),
        };
        let labels = [
            ("scenario", session.scenario.clone()),
            ("model", session.model.clone()),
            ("batch", session.load.batch.to_string()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        let invalid = (!session.complete).then(|| "its recording was interrupted".to_owned());
        Self {
            key: LevelKey { load, labels },
            session,
            invalid,
        }
    }

    fn knows(&self, metric: Metric) -> bool {
        let mut values = self
            .session
            .blocks
            .iter()
            .map(|block: &Block| block.value(metric));
        !self.session.blocks.is_empty() && values.all(|value| value.is_some())
    }
}

/// A level that both sides have.
#[derive(Debug, Clone, PartialEq)]
pub struct Matched {
    /// What both are of, as far as both say.
    pub key: LevelKey,
    /// The baseline; more than one where several sessions were recorded.
    pub baseline: Vec<Level>,
    /// The candidate.
    pub candidate: Vec<Level>,
}

/// One of the two sides of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichSide {
    /// What is compared with.
    Baseline,
    /// What is compared.
    Candidate,
}

impl fmt::Display for WhichSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Candidate => "candidate",
        })
    }
}

/// Why a comparison, or a part of it, is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The baseline has a level that the candidate lacks.
    #[error("the candidate has no {0}, the baseline has")]
    MissingInCandidate(LevelKey),
    /// No level is on both sides.
    #[error(
        "no level of load is in both files: the baseline has {}, the candidate {}",
        list(baseline),
        list(candidate)
    )]
    NoCommonLevel {
        /// The levels of the baseline.
        baseline: Vec<LevelKey>,
        /// The levels of the candidate.
        candidate: Vec<LevelKey>,
    },
    /// A gated metric is not in the file of one side.
    #[error("the {side} has no {} at {key}", metric.label())]
    MissingMetric {
        /// The level.
        key: LevelKey,
        /// The metric.
        metric: Metric,
        /// Where it is missing.
        side: WhichSide,
    },
    /// A level that was not measured validly.
    #[error("the {side} is not valid at {key}: {why}")]
    Invalid {
        /// The level.
        key: LevelKey,
        /// Whose.
        side: WhichSide,
        /// What is wrong.
        why: String,
    },
    /// Several levels of one file look the same to the other.
    #[error("several levels of the {side} are {key} but for {}, which the other file does not tell", names.join(", "))]
    Ambiguous {
        /// What they share.
        key: LevelKey,
        /// Whose.
        side: WhichSide,
        /// The words in which they differ.
        names: Vec<String>,
    },
}

fn list(keys: &[LevelKey]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = keys
        .iter()
        .take(SHOWN)
        .map(|key| format!("({key})"))
        .collect();
    match keys.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", shown.join(", ")),
        _ if shown.is_empty() => "none".to_owned(),
        _ => shown.join(", "),
    }
}

impl Problem {
    /// What to do about it.
    pub fn next(&self) -> String {
        match self {
            Self::MissingInCandidate(key) => format!("measure the candidate at {} too", key.load),
            Self::NoCommonLevel { .. } => {
                "compare files that were measured at the same load".to_owned()
            }
            Self::MissingMetric { metric, side, .. } => {
                let without = match metric {
                    Metric::Throughput => ", or leave it out with --throughput-drop off",
                    Metric::P99 => ", or leave it out with --p99-rise off",
                    _ => "",
                };
                format!(
                    "measure the {side} again and keep its {}{without}",
                    metric.label()
                )
            }
            Self::Invalid { side, .. } => format!("measure the {side} again"),
            Self::Ambiguous { .. } => "compare files with the same columns".to_owned(),
        }
    }

    /// The verdict on the level: could not be measured, or is not comparable.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::MissingInCandidate(_)
            | Self::Invalid { .. }
            | Self::MissingMetric {
                side: WhichSide::Candidate,
                ..
            } => Verdict::Invalid,
            Self::NoCommonLevel { .. } | Self::Ambiguous { .. } | Self::MissingMetric { .. } => {
                Verdict::Incompatible
            }
        }
    }
}

/// What belongs together, and what is in the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairing {
    /// Levels of both sides, by load.
    pub matched: Vec<Matched>,
    /// Levels that only the candidate has: new, no harm.
    pub only_candidate: Vec<LevelKey>,
    /// What is in the way of a full comparison. A level with a problem stays in `matched`, so
    /// that its other metrics can still be compared.
    pub problems: Vec<Problem>,
}

/// Puts the levels of two files together by load and by the words that both files know.
pub fn pair(baseline: &[Level], candidate: &[Level], metrics: &[Metric]) -> Pairing {
    let names = |levels: &[Level]| -> BTreeSet<String> {
        levels
            .iter()
            .flat_map(|level| level.key.labels.keys().cloned())
            .collect()
    };
    let mut shared: BTreeSet<String> = names(baseline)
        .intersection(&names(candidate))
        .cloned()
        .collect();
    // A scenario is compared whatever model or version serves it: those are under test.
    if shared.contains("scenario") {
        shared.remove("model");
        shared.remove("version");
    }
    let mut problems = Vec::new();
    let mut before = group(baseline, &shared, WhichSide::Baseline, &mut problems);
    let mut now = group(candidate, &shared, WhichSide::Candidate, &mut problems);

    let mut matched = Vec::new();
    let mut only_baseline = Vec::new();
    for (key, baseline) in std::mem::take(&mut before) {
        match now.remove(&key) {
            Some(candidate) => matched.push(Matched {
                key,
                baseline,
                candidate,
            }),
            None => only_baseline.push(key),
        }
    }
    let only_candidate: Vec<LevelKey> = now.into_keys().collect();
    if matched.is_empty() {
        problems.push(Problem::NoCommonLevel {
            baseline: only_baseline,
            candidate: only_candidate.clone(),
        });
    } else {
        problems.extend(only_baseline.into_iter().map(Problem::MissingInCandidate));
    }
    for level in &matched {
        for (side, levels) in [
            (WhichSide::Baseline, &level.baseline),
            (WhichSide::Candidate, &level.candidate),
        ] {
            check(&level.key, side, levels, metrics, &mut problems);
        }
    }
    Pairing {
        matched,
        only_candidate,
        problems,
    }
}

fn check(
    key: &LevelKey,
    side: WhichSide,
    levels: &[Level],
    metrics: &[Metric],
    problems: &mut Vec<Problem>,
) {
    for why in levels.iter().filter_map(|level| level.invalid.clone()) {
        problems.push(Problem::Invalid {
            key: key.clone(),
            side,
            why,
        });
    }
    for metric in metrics {
        if levels.iter().any(|level| !level.knows(*metric)) {
            problems.push(Problem::MissingMetric {
                key: key.clone(),
                metric: *metric,
                side,
            });
        }
    }
}

fn group(
    levels: &[Level],
    shared: &BTreeSet<String>,
    side: WhichSide,
    problems: &mut Vec<Problem>,
) -> BTreeMap<LevelKey, Vec<Level>> {
    let mut groups: BTreeMap<LevelKey, Vec<Level>> = BTreeMap::new();
    for level in levels {
        groups
            .entry(level.key.within(shared))
            .or_default()
            .push(level.clone());
    }
    groups.retain(|key, levels| {
        let names = differing(levels, shared);
        if names.is_empty() {
            return true;
        }
        problems.push(Problem::Ambiguous {
            key: key.clone(),
            side,
            names,
        });
        false
    });
    groups
}

/// The labels outside the shared ones in which levels differ. A scenario's model may.
fn differing(levels: &[Level], shared: &BTreeSet<String>) -> Vec<String> {
    let Some((first, rest)) = levels.split_first() else {
        return Vec::new();
    };
    let mut names: BTreeSet<&String> = BTreeSet::new();
    for level in rest {
        let both = level.key.labels.iter().chain(&first.key.labels);
        names.extend(
            both.filter(|(name, _)| level.key.labels.get(*name) != first.key.labels.get(*name))
                .map(|(name, _)| name),
        );
    }
    let of_scenario = shared.contains("scenario");
    names
        .into_iter()
        .filter(|name| !(shared.contains(*name) || of_scenario && *name == "model"))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::samples::session;

    fn level(concurrency: u32, labels: &[(&str, &str)]) -> Level {
        Level {
            key: LevelKey {
                load: LevelLoad::Concurrency(concurrency),
                labels: labels
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
            },
            session: session("a", 1),
            invalid: None,
        }
    }

    const GATED: [Metric; 2] = [Metric::Throughput, Metric::P99];

    fn told(pairing: &Pairing) -> Vec<(String, Verdict)> {
        pairing
            .problems
            .iter()
            .map(|problem| (problem.to_string(), problem.verdict()))
            .collect()
    }

    #[test]
    fn common_levels_are_matched_and_missing_ones_are_said() {
        let pairing = pair(
            &[level(2, &[]), level(1, &[])],
            &[level(1, &[]), level(4, &[])],
            &GATED,
        );
        assert_eq!(pairing.matched.len(), 1);
        assert_eq!(pairing.matched[0].key.load, LevelLoad::Concurrency(1));
        assert_eq!(pairing.only_candidate, [level(4, &[]).key]);
        assert_eq!(
            told(&pairing),
            [(
                "the candidate has no concurrency 2, the baseline has".to_owned(),
                Verdict::Invalid
            )]
        );
    }

    #[test]
    fn without_a_common_level_nothing_is_comparable() {
        let pairing = pair(&[level(8, &[])], &[level(16, &[])], &GATED);
        assert!(pairing.matched.is_empty());
        assert_eq!(
            told(&pairing),
            [(
                "no level of load is in both files: the baseline has (concurrency 8), the \
                 candidate (concurrency 16)"
                    .to_owned(),
                Verdict::Incompatible
            )]
        );
        assert_eq!(pair(&[], &[], &GATED).problems.len(), 1);
    }

    #[test]
    fn a_metric_that_a_side_lacks_is_said_and_the_others_stay() {
        let mut without = level(1, &[]);
        without.session.blocks[0].latency.p99 = None;
        let pairing = pair(&[without.clone()], &[level(1, &[])], &GATED);
        assert_eq!(pairing.matched.len(), 1);
        assert_eq!(pairing.problems[0].verdict(), Verdict::Incompatible);
        let pairing = pair(&[level(1, &[])], &[without], &GATED);
        assert_eq!(pairing.problems[0].verdict(), Verdict::Invalid);
        assert_eq!(
            pairing.problems[0].to_string(),
            "the candidate has no P99 at concurrency 1"
        );
        assert_eq!(
            pairing.problems[0].next(),
            "measure the candidate again and keep its P99, or leave it out with --p99-rise off"
        );
    }

    #[test]
    fn labels_count_where_both_files_have_them() {
        let labelled = [
            level(1, &[("model", "a"), ("batch", "1")]),
            level(1, &[("model", "b"), ("batch", "1")]),
        ];
        let pairing = pair(&labelled, &labelled, &GATED);
        assert_eq!((pairing.matched.len(), pairing.problems.len()), (2, 0));
        // One model on the left, no column on the right: the same.
        let pairing = pair(&labelled[..1], &[level(1, &[])], &GATED);
        assert_eq!((pairing.matched.len(), pairing.problems.len()), (1, 0));
        // Two models on the left: nobody can say which.
        let pairing = pair(&labelled, &[level(1, &[])], &GATED);
        assert!(pairing.matched.is_empty());
        assert_eq!(
            pairing.problems[0].to_string(),
            "several levels of the baseline are concurrency 1 but for model, which the other \
             file does not tell"
        );
    }

    #[test]
    fn a_scenario_is_compared_whatever_model_serves_it() {
        let old = Level::of_session(session("a", 2));
        let mut new = session("b", 2);
        new.model = "resnet_trt".to_owned();
        let new = Level::of_session(new);
        let pairing = pair(&[old.clone(), old], &[new], &GATED);
        assert_eq!(pairing.problems, []);
        assert_eq!(pairing.matched[0].baseline.len(), 2);
    }

    #[test]
    fn an_interrupted_session_gives_no_verdict() {
        let mut cut = session("a", 2);
        cut.complete = false;
        let pairing = pair(
            &[Level::of_session(session("b", 2))],
            &[Level::of_session(cut)],
            &GATED,
        );
        assert_eq!(pairing.problems.len(), 1);
        assert_eq!(pairing.problems[0].verdict(), Verdict::Invalid);
    }
}
