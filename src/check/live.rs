//! One scenario against a live reference: another server, model or version, measured beside it.

use std::time::Duration;

use super::explain::explain;
use super::outcome::{add_flags, empty, flag, measured, not_measured, settle};
use super::scenario::{Bench, Checked};
use super::servers::Servers;
use super::session::{Surroundings, Visit};
use super::unjudged::nanos;
use crate::check::Observer;
use crate::config::ReferenceSpec;
use crate::data::{
    BaselineKind, BaselineUsed, Block, Difference, Reason, Scenario, ScenarioResult, Side,
    SubjectChange, Verdict,
};
use crate::gate::{Design, Stage};
use crate::lab::{Described, SideLab, TritonLab, signature_facts};
use crate::run::{PairSettings, ScenarioOutcome, run_paired};

/// The scenario as the reference runs it.
pub(super) fn reference_scenario(scenario: &Scenario, spec: &ReferenceSpec) -> Scenario {
    let mut reference = scenario.clone();
    if let Some(url) = &spec.url {
        reference.server.url.clone_from(url);
    }
    if let Some(model) = &spec.model {
        reference.model.clone_from(model);
        // Another model has versions of its own.
        reference.version = None;
    }
    if spec.url.is_some() && spec.version.is_none() && spec.model.is_none() {
        // The same version on another server.
        reference.version.clone_from(&scenario.version);
    }
    if let Some(version) = &spec.version {
        reference.version = Some(version.clone());
    }
    // Where only one runs at a time, each has its own start, at one address or two.
    if !spec.launch.is_empty() {
        reference.server.launch.clone_from(&spec.launch);
        reference.server.stop.clone_from(&spec.stop);
    }
    reference
}

/// Judges a scenario beside its reference. `stage` says whether a stored stage came before, and
/// `time` what that left.
pub(super) fn check_live(
    bench: &Bench<'_>,
    scenario: &Scenario,
    spec: &ReferenceSpec,
    (stage, time): (Stage, Duration),
    servers: &mut Servers,
    surroundings: &Surroundings,
    observer: &mut dyn Observer,
) -> Checked {
    let reference = reference_scenario(scenario, spec);
    let sides = servers.target(scenario).and_then(|candidate| {
        let baseline = servers.target(&reference).map_err(|mut reason| {
            reason.text = format!("the reference: {}", reason.text);
            reason
        })?;
        Ok((candidate, baseline))
    });
    let (candidate, baseline) = match sides {
        Ok(sides) => sides,
        Err(reason) => return Checked::only(not_measured(scenario, reason)),
    };
    let described = [baseline.described(), candidate.described()];
    let [reference_is, candidate_is] = &described;
    let fit =
        apart(candidate_is, reference_is).and_then(|()| comparable(candidate_is, reference_is));
    if let Err(reason) = fit {
        let verdict = if reason.code == "reference_signature" {
            Verdict::Incompatible
        } else {
            Verdict::Invalid
        };
        let mut result = empty(scenario, verdict);
        result.reason = Some(reason);
        settle(scenario, &mut result);
        return Checked::only(result);
    }
    let changes = subject_changes(scenario, reference_is, candidate_is);
    let source = describe(reference_is);
    let opened = SideLab::open(scenario, candidate)
        .and_then(|candidate| Ok((candidate, SideLab::open(&reference, baseline)?)));
    let (candidate, baseline) = match opened {
        Ok(sides) => sides,
        Err(reason) => return Checked::only(not_measured(scenario, reason)),
    };
    let visit = Visit::begin(surroundings, scenario, &candidate, 0);
    let design = Design::new(&scenario.gate, bench.gated_metrics, 1, false)
        .map(|design| design.for_stage(stage));
    let design = match design {
        Ok(design) => design,
        Err(error) => {
            let reason = Reason {
                code: "cannot_decide".to_owned(),
                text: error.to_string(),
                next: "correct the thresholds".to_owned(),
            };
            return Checked::only(not_measured(scenario, reason));
        }
    };
    let settings = PairSettings {
        time,
        confirm_time: bench.time,
        block: scenario.measure.block,
        seed: scenario.measure.seed,
    };
    observer.watch(vec![candidate.gauge(), baseline.gauge()]);
    let mut lab = TritonLab::new(
        bench.runtime.clone(),
        bench.stop.clone(),
        Duration::from_secs(2),
        [(Side::Candidate, candidate), (Side::Baseline, baseline)],
    );
    let outcome = run_paired(&mut lab, &design, &settings, &mut |progress| {
        observer.progress(&scenario.name, progress);
    });
    servers.release(&reference);
    finish(
        scenario,
        surroundings,
        visit,
        &lab,
        source,
        outcome,
        changes,
    )
}

/// Refuses a reference beside the candidate that is the candidate.
fn apart(candidate: &Described, baseline: &Described) -> Result<(), Reason> {
    let same = candidate.address == baseline.address
        && candidate.signature.name == baseline.signature.name
        && candidate.version == baseline.version;
    if same {
        return Err(Reason {
            code: "reference_is_candidate".to_owned(),
            text: format!(
                "the reference is the candidate itself: {} version {}",
                candidate.signature.name, candidate.version
            ),
            next: "name another server, model or version in [reference]".to_owned(),
        });
    }
    Ok(())
}

/// Whether both sides take the same requests, so that comparing them means anything.
pub(super) fn comparable(candidate: &Described, baseline: &Described) -> Result<(), Reason> {
    let differences =
        signature_facts(&baseline.signature).differences(&signature_facts(&candidate.signature));
    if !differences.is_empty() {
        return Err(Reason {
            code: "reference_signature".to_owned(),
            text: format!(
                "the reference takes other requests: {}",
                super::compatible::sentence(&differences)
            ),
            next: "compare with a model of the same inputs and outputs".to_owned(),
        });
    }
    if candidate.payload != baseline.payload {
        return Err(Reason {
            code: "reference_payload".to_owned(),
            text: "the reference would be sent other data than the candidate".to_owned(),
            next: "give the shape of every variable input".to_owned(),
        });
    }
    Ok(())
}

pub(super) fn describe(reference: &Described) -> String {
    format!(
        "{} version {} at {}",
        reference.signature.name, reference.version, reference.address
    )
}

pub(super) fn subject_changes(
    scenario: &Scenario,
    baseline: &Described,
    candidate: &Described,
) -> Vec<SubjectChange> {
    let mut before = baseline.subject.clone();
    let mut now = candidate.subject.clone();
    before.set("model.name", baseline.signature.name.clone());
    now.set("model.name", candidate.signature.name.clone());
    before
        .differences(&now)
        .into_iter()
        .map(|difference: Difference| SubjectChange {
            scenario: scenario.name.clone(),
            difference,
        })
        .collect()
}

fn finish(
    scenario: &Scenario,
    surroundings: &Surroundings,
    mut visit: Visit,
    lab: &TritonLab,
    source: String,
    outcome: ScenarioOutcome,
    subject_changes: Vec<SubjectChange>,
) -> Checked {
    let mut result: ScenarioResult = empty(scenario, outcome.verdict);
    result.model_version.clone_from(&visit.model_version);
    result.reason.clone_from(&outcome.reason);
    result.seconds = outcome.seconds;
    result.discarded.clone_from(&outcome.discarded);
    measured(&mut result, &lab.totals(Side::Candidate), &outcome.blocks);
    let of = |side: Side| -> Vec<&Block> {
        outcome
            .blocks
            .iter()
            .filter(|block| block.side == side)
            .collect()
    };
    result.baseline = Some(BaselineUsed {
        kind: BaselineKind::Reference,
        sessions: 1,
        blocks: of(Side::Baseline).len() as u32,
        newest: None,
        commit: None,
        source,
    });
    explain(&mut result, &of(Side::Baseline), &of(Side::Candidate));
    if let Some(decision) = &outcome.decision {
        result.metrics.clone_from(&decision.metrics);
        result.looks = decision.looks;
        result.pairs = decision.pairs;
        add_flags(&mut result, decision.flags.clone());
    }
    add_flags(&mut result, outcome.flags.clone());
    if let Some(plan) = &outcome.pair_plan {
        visit.load.block_ns = nanos(plan.block);
        let text = format!(
            "interleaved blocks of {} ms, {} pairs a unit",
            plan.block.as_millis(),
            plan.pairs_per_unit
        );
        add_flags(&mut result, [flag("interleaved", text)]);
        for percentile in plan
            .percentiles
            .iter()
            .filter(|percentile| !percentile.in_reach)
        {
            add_flags(&mut result, [flag("out_of_reach", percentile.text())]);
        }
    }
    settle(scenario, &mut result);
    let session = visit
        .session(
            surroundings,
            scenario,
            outcome.blocks,
            outcome.complete,
            None,
            lab.totals(Side::Candidate).server_requests,
        )
        .ok();
    Checked {
        result,
        sessions: session.into_iter().collect(),
        subject_changes,
        allowed: Vec::new(),
        pinned: super::pins::Pinned::default(),
    }
}
