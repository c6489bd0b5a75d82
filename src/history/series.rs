//! From checks and sessions to series: which values may stand in one row.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::document::{Check, CheckedScenario, Value};
use super::range::CommitRange;
use super::record::GateRecord;
use crate::data::{BaselineKind, Metric, Verdict};
use crate::stats::{Shift, ShiftSearch, StatsError, shifts};

/// Values of a series in which shifts are looked for, the newest.
const MOST_VALUES: usize = 1000;

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these scenarios; none is all.
    pub scenarios: Vec<String>,
    /// Only these metrics; none is all.
    pub metrics: Vec<Metric>,
    /// Only this environment.
    pub environment: Option<String>,
    /// Only what was measured on this branch.
    pub branch: Option<String>,
}

/// A stored session as a point.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSession {
    /// Its file.
    pub file: String,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The environment's name.
    pub environment: String,
    /// The scenario.
    pub scenario: String,
    /// The model.
    pub model: String,
    /// The load in words.
    pub load: String,
    /// The commit, if known.
    pub commit: Option<String>,
    /// The branch, if known.
    pub branch: Option<String>,
    /// Whether the work tree had changes.
    pub dirty: Option<bool>,
    /// What was measured.
    pub values: Vec<(Metric, Value)>,
}

/// How values were measured: long blocks of one side, or short ones of two sides in turn. The two
/// are not comparable to the percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Against stored sessions, and the sessions themselves.
    Stored,
    /// Against a live reference.
    Live,
}

impl Kind {
    /// The word of files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Live => "reference",
        }
    }
}

/// One check of a scenario, or one stored session.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// When.
    pub at: DateTime<Utc>,
    /// The commit, if known.
    pub commit: Option<String>,
    /// The branch, if known.
    pub branch: Option<String>,
    /// Whether the work tree had changes.
    pub dirty: Option<bool>,
    /// True for a stored session, false for a check.
    pub session: bool,
    /// The verdict of a check; none for a session, or one that this version does not know.
    pub verdict: Option<Verdict>,
    /// Whether its values count in the search for shifts.
    pub counted: bool,
    /// The file.
    pub file: String,
    /// What was measured.
    pub values: BTreeMap<Metric, Value>,
}

/// The points of a scenario that may be compared with each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The load in words.
    pub load: String,
    /// How it was measured.
    pub kind: Kind,
    /// Oldest first.
    pub points: Vec<Point>,
    /// One a metric that was measured.
    pub metrics: Vec<MetricSeries>,
}

/// What is known of one metric of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSeries {
    /// The metric.
    pub metric: Metric,
    /// Values in which shifts were looked for.
    pub counted: usize,
    /// Indices of those values in the series' points, oldest first.
    pub indices: Vec<usize>,
    /// Every shift, oldest first, with the commits between which it came in. Positions are those of
    /// `indices`; levels are in the metric's unit.
    pub shifts: Vec<(Shift, CommitRange)>,
}

/// Everything about one scenario in one environment.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioHistory {
    /// The environment's name.
    pub environment: String,
    /// The scenario.
    pub scenario: String,
    /// The model, as the newest measurement names it.
    pub model: String,
    /// The gate's own record.
    pub record: GateRecord,
    /// One a load and way of measuring.
    pub series: Vec<Series>,
}

/// Puts the history together. Checks and sessions are oldest first.
///
/// # Errors
/// A search with a level outside (0, 1).
pub fn assemble(
    checks: &[Check],
    sessions: &[StoredSession],
    filter: &Filter,
    search: &ShiftSearch,
) -> Result<Vec<ScenarioHistory>, StatsError> {
    let mut gathered: BTreeMap<(&str, &str), Gathered<'_>> = BTreeMap::new();
    for session in sessions {
        if filter.takes(
            &session.environment,
            &session.scenario,
            session.branch.as_deref(),
        ) {
            let key = (session.environment.as_str(), session.scenario.as_str());
            gathered.entry(key).or_default().sessions.push(session);
        }
    }
    for check in checks {
        for scenario in &check.scenarios {
            // A check that asked no server may not know its environment, and measured nothing.
            let nowhere =
                check.environment.is_empty() && scenario.verdict == Some(Verdict::NotAffected);
            if !nowhere && filter.takes(&check.environment, &scenario.name, check.branch.as_deref())
            {
                let key = (check.environment.as_str(), scenario.name.as_str());
                let checked = Checked { check, scenario };
                gathered.entry(key).or_default().checks.push(checked);
            }
        }
    }
    gathered
        .into_iter()
        .map(|((environment, scenario), gathered)| {
            Ok(ScenarioHistory {
                environment: environment.to_owned(),
                scenario: scenario.to_owned(),
                model: gathered.model(),
                record: GateRecord::of(&gathered.checks, &gathered.sessions),
                series: gathered.series(filter, search)?,
            })
        })
        .collect()
}

impl Filter {
    fn takes(&self, environment: &str, scenario: &str, branch: Option<&str>) -> bool {
        let wanted = |only: &Option<String>, value: Option<&str>| {
            only.as_deref().is_none_or(|only| Some(only) == value)
        };
        wanted(&self.environment, Some(environment))
            && wanted(&self.branch, branch)
            && (self.scenarios.is_empty() || self.scenarios.iter().any(|name| name == scenario))
    }

    fn takes_metric(&self, metric: Metric) -> bool {
        self.metrics.is_empty() || self.metrics.contains(&metric)
    }
}

/// A scenario of a check with the check around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checked<'a> {
    pub check: &'a Check,
    pub scenario: &'a CheckedScenario,
}

#[derive(Default)]
struct Gathered<'a> {
    checks: Vec<Checked<'a>>,
    sessions: Vec<&'a StoredSession>,
}

impl Gathered<'_> {
    fn model(&self) -> String {
        let checked = self.checks.last().map(|last| last.scenario.model.clone());
        let stored = self.sessions.last().map(|last| last.model.clone());
        checked.or(stored).unwrap_or_default()
    }

    fn series(&self, filter: &Filter, search: &ShiftSearch) -> Result<Vec<Series>, StatsError> {
        let mut by_way: BTreeMap<(Kind, &str), Vec<Point>> = BTreeMap::new();
        for session in &self.sessions {
            let way = (Kind::Stored, session.load.as_str());
            by_way
                .entry(way)
                .or_default()
                .push(of_session(session, filter));
        }
        let mut last = Kind::Stored;
        for checked in &self.checks {
            // Where nothing was compared, the check stands where its neighbours do.
            last = match (checked.scenario.kind, checked.scenario.verdict) {
                (Some(BaselineKind::Reference), _) => Kind::Live,
                (Some(BaselineKind::Stored), _)
                | (None, Some(Verdict::New | Verdict::NoBaseline)) => Kind::Stored,
                (None, _) => last,
            };
            if checked.scenario.verdict != Some(Verdict::NotAffected) {
                let way = (last, checked.scenario.load.as_str());
                by_way
                    .entry(way)
                    .or_default()
                    .push(of_check(checked, filter));
            }
        }
        by_way
            .into_iter()
            .map(|((kind, load), mut points)| {
                points.sort_by_key(|point| point.at);
                let metrics = Metric::ALL
                    .into_iter()
                    .filter(|metric| filter.takes_metric(*metric))
                    .filter(|metric| points.iter().any(|point| shown(point, *metric)))
                    .map(|metric| metric_series(metric, &points, search))
                    .collect::<Result<_, _>>()?;
                Ok(Series {
                    load: load.to_owned(),
                    kind,
                    points,
                    metrics,
                })
            })
            .collect()
    }
}

/// A metric that only stored sessions know, because no check gates it, has a series as well.
fn shown(point: &Point, metric: Metric) -> bool {
    point.values.contains_key(&metric)
}

fn of_session(session: &StoredSession, filter: &Filter) -> Point {
    Point {
        at: session.at,
        commit: session.commit.clone(),
        branch: session.branch.clone(),
        dirty: session.dirty,
        session: true,
        verdict: None,
        counted: true,
        file: session.file.clone(),
        values: wanted(&session.values, filter),
    }
}

fn of_check(checked: &Checked<'_>, filter: &Filter) -> Point {
    let Checked { check, scenario } = checked;
    Point {
        at: check.at,
        commit: check.commit.clone(),
        branch: check.branch.clone(),
        dirty: check.dirty,
        session: false,
        verdict: scenario.verdict,
        // A measurement that is not valid proves nothing. What was measured without a baseline is
        // a median, and may stand in the store as well.
        counted: matches!(
            scenario.verdict,
            Some(Verdict::Pass | Verdict::Regression | Verdict::Inconclusive | Verdict::Accepted)
        ),
        file: check.file.clone(),
        values: wanted(&scenario.values, filter),
    }
}

fn wanted(values: &[(Metric, Value)], filter: &Filter) -> BTreeMap<Metric, Value> {
    values
        .iter()
        .filter(|(metric, _)| filter.takes_metric(*metric))
        .copied()
        .collect()
}

/// Looks for shifts on the log scale, where all values are positive.
fn metric_series(
    metric: Metric,
    points: &[Point],
    search: &ShiftSearch,
) -> Result<MetricSeries, StatsError> {
    let mut indices = Vec::new();
    let mut values = Vec::new();
    for (index, point) in points.iter().enumerate() {
        if let Some(value) = point.values.get(&metric).filter(|_| point.counted) {
            indices.push(index);
            values.push(value.value);
        }
    }
    let beyond = values.len().saturating_sub(MOST_VALUES);
    indices.drain(..beyond);
    values.drain(..beyond);
    let mut found = Vec::new();
    if !values.is_empty() {
        let ratios = values.iter().all(|value| *value > 0.0);
        let scaled: Vec<f64> = if ratios {
            values.iter().map(|value| value.ln()).collect()
        } else {
            values
        };
        let back = |level: f64| if ratios { level.exp() } else { level };
        for shift in shifts(&scaled, search)? {
            let range = CommitRange::of(points, &indices, &shift);
            let shift = Shift {
                before: back(shift.before),
                after: back(shift.after),
                ..shift
            };
            found.push((shift, range));
        }
    }
    Ok(MetricSeries {
        metric,
        counted: indices.len(),
        indices,
        shifts: found,
    })
}

impl Series {
    /// The newest `count` points.
    pub fn newest(&self, count: usize) -> &[Point] {
        let from = self.points.len().saturating_sub(count);
        self.points.get(from..).unwrap_or_default()
    }
}

impl MetricSeries {
    /// The last shift.
    pub fn last_shift(&self) -> Option<&(Shift, CommitRange)> {
        self.shifts.last()
    }
}
