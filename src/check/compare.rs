//! A verdict from two sets of recorded levels, without a server.

use super::compatible::{select, sentence};
use super::explain::explain;
use super::outcome::{add_flags, flag, stored};
use super::whole::conclude;
use crate::baseline::{Level, LevelKey, Matched, Problem, pair};
use crate::data::{
    Block, CheckResult, Facts, Limit, Metric, RESULT_SCHEMA, Reason, ScenarioResult, Session,
    SubjectChange, Tool, Verdict,
};
use crate::gate::{Design, compare as judge};
use crate::report::{Exit, ScenarioExit};

/// One of the two files.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its path, for the report.
    pub file: String,
    /// Its levels.
    pub levels: Vec<Level>,
}

/// Judges level by level; the worst decides.
///
/// `allowed` are environment fields that may differ. Files of another tool name no environment:
/// what is not known cannot differ.
pub fn compare(
    design: &Design,
    baseline: &Recorded,
    candidate: &Recorded,
    allowed: &[String],
    tool_version: &str,
) -> CheckResult {
    let metrics: Vec<Metric> = design.limits.iter().map(|limit| limit.metric).collect();
    let pairing = pair(&baseline.levels, &candidate.levels, &metrics);
    let mut result = blank(tool_version);
    // The false-alarm level is shared by every row that is judged.
    let gated = (pairing.matched.len() * design.limits.len()) as u32;
    for matched in &pairing.matched {
        let own: Vec<&Problem> = pairing
            .problems
            .iter()
            .filter(|problem| key_of(problem) == Some(&matched.key))
            .collect();
        let design = Design {
            limits: judgeable(&design.limits, &own),
            gated: gated.max(design.gated),
            ..design.clone()
        };
        let mut row = level(&design, matched, baseline, allowed, &mut result);
        for problem in own {
            worsen(&mut row, problem);
        }
        result.scenarios.push(row);
    }
    for problem in &pairing.problems {
        let told = pairing
            .matched
            .iter()
            .any(|matched| Some(&matched.key) == key_of(problem));
        if !told {
            let name = key_of(problem).map_or_else(|| "all levels".to_owned(), ToString::to_string);
            let mut row = ScenarioResult::new(name, problem.verdict());
            worsen(&mut row, problem);
            result.scenarios.push(row);
        }
    }
    for row in &mut result.scenarios {
        row.exit_code = ScenarioExit::plain(row.verdict).exit().code();
    }
    if !pairing.only_candidate.is_empty()
        && let Some(first) = result.scenarios.first_mut()
    {
        let names: Vec<String> = pairing
            .only_candidate
            .iter()
            .map(ToString::to_string)
            .collect();
        let text = format!("only in the candidate, not compared: {}", names.join("; "));
        add_flags(first, [flag("only_candidate", text)]);
    }
    conclude(&mut result);
    result
}

fn blank(tool_version: &str) -> CheckResult {
    CheckResult {
        schema: RESULT_SCHEMA,
        tool: Tool {
            version: tool_version.to_owned(),
            commit: env!("TRITON_GATE_COMMIT").to_owned(),
        },
        command: "compare".to_owned(),
        verdict: Verdict::Invalid,
        exit_code: Exit::NotMeasured.code(),
        headline: String::new(),
        started_at: String::new(),
        commit: None,
        branch: None,
        dirty: None,
        environment_name: String::new(),
        environment: Facts::default(),
        subject_changes: Vec::new(),
        allowed: Vec::new(),
        configs: Vec::new(),
        notes: Vec::new(),
        gate_changes: None,
        scenarios: Vec::new(),
    }
}

/// The level that a problem is about; none where it is about the files as wholes.
fn key_of(problem: &Problem) -> Option<&LevelKey> {
    match problem {
        Problem::MissingInCandidate(key)
        | Problem::MissingMetric { key, .. }
        | Problem::Invalid { key, .. }
        | Problem::Ambiguous { key, .. } => Some(key),
        Problem::NoCommonLevel { .. } => None,
    }
}

/// The limits whose metrics both sides have.
fn judgeable(limits: &[Limit], problems: &[&Problem]) -> Vec<Limit> {
    limits
        .iter()
        .filter(|limit| {
            !problems.iter().any(|problem| {
                matches!(problem, Problem::MissingMetric { metric, .. } if *metric == limit.metric)
            })
        })
        .copied()
        .collect()
}

/// A problem makes a verdict worse, but for a proven regression: that stays the first thing said.
fn worsen(row: &mut ScenarioResult, problem: &Problem) {
    let hides = matches!(
        problem,
        Problem::MissingMetric { .. } | Problem::MissingInCandidate(_)
    );
    if row.verdict == Verdict::Regression && hides {
        add_flags(row, [flag("not_comparable", problem.to_string())]);
        return;
    }
    row.verdict = problem.verdict();
    row.reason = Some(Reason {
        code: "not_comparable".to_owned(),
        text: problem.to_string(),
        next: problem.next(),
    });
}

/// The gate's advice is for a check with a server; files have only other files.
fn for_files(mut reason: Reason) -> Reason {
    let next = match reason.code.as_str() {
        "regression" => "see what changed between the two measurements",
        "few_requests" => "measure both longer at each step, or judge without P99: --p99-rise off",
        "few_sessions" | "noisy_sessions" => {
            "measure the baseline several times, each after a restart of the server, and compare \
             with all of them: `triton-gate baseline import` and `check`"
        }
        "not_measured" => "compare files that hold what is judged",
        _ => "measure each level several times (a file may hold repeats), on a quieter machine",
    };
    next.clone_into(&mut reason.next);
    reason
}

fn level(
    design: &Design,
    matched: &Matched,
    baseline: &Recorded,
    allowed: &[String],
    result: &mut CheckResult,
) -> ScenarioResult {
    let name = matched.key.to_string();
    let mut row = ScenarioResult::new(name.clone(), Verdict::Incompatible);
    let sessions = |levels: &[Level]| -> Vec<Session> {
        levels.iter().map(|level| level.session.clone()).collect()
    };
    let candidate = sessions(&matched.candidate);
    let Some(newest) = candidate.last() else {
        return row;
    };
    row.model.clone_from(&newest.model);
    row.model_version.clone_from(&newest.model_version);
    let selection = select(
        sessions(&matched.baseline),
        &newest.environment,
        &newest.load,
        allowed,
    );
    if selection.sessions.is_empty() {
        row.reason = Some(Reason {
            code: "incompatible".to_owned(),
            text: format!(
                "the two files were not measured alike: {}",
                sentence(&selection.differences)
            ),
            next: "measure both alike, or open a field with --allow NAME if the difference does \
                   not matter"
                .to_owned(),
        });
        return row;
    }
    for difference in &selection.allowed {
        if !result.allowed.contains(difference) {
            result.allowed.push(difference.clone());
        }
    }
    if let Some(before) = selection.sessions.last()
        && !before.subject.0.is_empty()
        && !newest.subject.0.is_empty()
    {
        result
            .subject_changes
            .extend(
                before
                    .subject
                    .differences(&newest.subject)
                    .into_iter()
                    .map(|difference| SubjectChange {
                        scenario: name.clone(),
                        difference,
                    }),
            );
    }
    row.baseline = Some(stored(
        &selection.sessions,
        selection.sessions.len() as u32,
        baseline.file.clone(),
    ));
    let candidate_blocks: Vec<&Block> = candidate
        .iter()
        .flat_map(|session| &session.blocks)
        .collect();
    row.blocks = candidate_blocks.len() as u32;
    row.requests = candidate_blocks.iter().map(|block| block.requests).sum();
    row.seconds = candidate_blocks
        .iter()
        .map(|block| block.duration_ns as f64 / 1e9)
        .sum();
    let baseline_blocks: Vec<&Block> = selection
        .sessions
        .iter()
        .flat_map(|session| &session.blocks)
        .collect();
    explain(&mut row, &baseline_blocks, &candidate_blocks);
    if design.limits.is_empty() {
        return row;
    }
    match judge(design, &selection.sessions, &candidate) {
        Ok(decision) => {
            row.verdict = decision.verdict;
            row.reason = decision.reason.map(for_files);
            row.metrics = decision.metrics;
            row.looks = decision.looks;
            row.assumed_noise = decision.assumed_noise;
            add_flags(&mut row, decision.flags);
        }
        Err(error) => {
            row.verdict = Verdict::Invalid;
            row.reason = Some(Reason {
                code: "cannot_decide".to_owned(),
                text: error.to_string(),
                next: "correct the file that is named".to_owned(),
            });
        }
    }
    row
}
