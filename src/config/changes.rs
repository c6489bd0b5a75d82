//! What differs between the thresholds of two commits, compared as what they mean, not as text.

use std::collections::BTreeMap;

use super::{AcceptSpec, Config};
use crate::data::{
    Bound, GateChange, GateChangeKind, Limit, Mode, OnInconclusive, OnMissing, Policy, Scenario,
};

/// Values of a scenario that are told in another way, or belong to the check and not to the files.
const APART: [&str; 3] = ["name", "paths", "environment.name"];
/// What patterns mean where there are none.
const EVERY_FILE: &str = "every file";

/// What `head` says differently from `base`, what makes the gate milder first. A side that has no
/// thresholds at all is none.
pub fn changes(base: Option<&Config>, head: Option<&Config>) -> Vec<GateChange> {
    let scenarios = |config: Option<&Config>| -> Vec<Scenario> {
        config.map_or_else(Vec::new, |config| config.scenarios.clone())
    };
    let (old, new) = (scenarios(base), scenarios(head));
    let find = |all: &[Scenario], name: &str| all.iter().any(|scenario| scenario.name == name);
    let mut found = Vec::new();
    for scenario in &old {
        if !find(&new, &scenario.name) {
            found.push(whole(GateChangeKind::ScenarioRemoved, scenario, true));
        }
    }
    for scenario in &new {
        let before = old.iter().find(|other| other.name == scenario.name);
        match (before, base, head) {
            (Some(before), Some(base), Some(head)) => {
                settings(base, head, before, scenario, &mut found);
                found.extend(paths(before, scenario));
            }
            _ => found.push(whole(GateChangeKind::ScenarioAdded, scenario, false)),
        }
    }
    found.extend(accepts(base, head));
    found.sort_by_key(|change| (!change.milder, change.kind));
    found
}

fn whole(kind: GateChangeKind, scenario: &Scenario, milder: bool) -> GateChange {
    GateChange {
        kind,
        scenario: Some(scenario.name.clone()),
        environment: None,
        key: String::new(),
        base: None,
        head: None,
        milder,
    }
}

/// Every value of a scenario that differs.
fn settings(
    base: &Config,
    head: &Config,
    before: &Scenario,
    after: &Scenario,
    found: &mut Vec<GateChange>,
) {
    let values = |config: &Config| -> BTreeMap<String, String> {
        config
            .explain(&after.name)
            .into_iter()
            .filter(|row| !APART.contains(&row.key.as_str()))
            .map(|row| (row.key, row.value))
            .collect()
    };
    let (old, new) = (values(base), values(head));
    let begun = found.len();
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        let (was, is) = (old.get(key), new.get(key));
        if was != is {
            found.push(GateChange {
                kind: GateChangeKind::Setting,
                scenario: Some(after.name.clone()),
                environment: None,
                key: key.clone(),
                base: was.cloned(),
                head: is.cloned(),
                milder: milder(key, before, after),
            });
        }
    }
    // Data and ranges of inputs have no row of their own.
    let told = found
        .iter()
        .skip(begun)
        .any(|change| change.key.starts_with("inputs"));
    if before.inputs != after.inputs && !told {
        found.push(GateChange {
            key: "inputs".to_owned(),
            ..whole(GateChangeKind::Setting, after, false)
        });
    }
}

/// Whether another value of `key` lets more through. False where nobody can tell.
fn milder(key: &str, before: &Scenario, after: &Scenario) -> bool {
    let (was, is) = (&before.gate, &after.gate);
    let lenience = |choice: OnInconclusive| match choice {
        OnInconclusive::Fail => 0,
        OnInconclusive::Report => 1,
        OnInconclusive::Pass => 2,
    };
    match key {
        "gate.mode" => is.mode == Mode::Advise,
        "gate.on_inconclusive" => lenience(is.on_inconclusive) > lenience(was.on_inconclusive),
        "gate.on_missing" => is.on_missing == OnMissing::New,
        "gate.policy" => is.policy == Policy::Enforce,
        "gate.missed_regression" => is.missed_regression > was.missed_regression,
        "measure.max_error_rate" => after.measure.max_error_rate > before.measure.max_error_rate,
        "measure.allow_saturated" => after.measure.allow_saturated,
        _ => match (
            limit(was.limits.as_slice(), key),
            limit(is.limits.as_slice(), key),
        ) {
            (Some(_), None) => true,
            (Some(old), Some(new)) => looser(key, old, new),
            _ => false,
        },
    }
}

/// The limit that a key sets.
fn limit<'a>(limits: &'a [Limit], key: &str) -> Option<&'a Limit> {
    limits.iter().find(|limit| {
        let endings: &[&str] = match limit.bound {
            Bound::Relative(_) => &["drop", "rise"],
            Bound::Absolute(_) => &["min", "max"],
        };
        endings
            .iter()
            .any(|ending| key == format!("gate.{}_{ending}", limit.metric.name()))
    })
}

fn looser(key: &str, old: &Limit, new: &Limit) -> bool {
    match (old.bound, new.bound) {
        (Bound::Relative(old), Bound::Relative(new)) => new > old,
        (Bound::Absolute(old), Bound::Absolute(new)) if key.ends_with("_min") => new < old,
        (Bound::Absolute(old), Bound::Absolute(new)) => new > old,
        _ => false,
    }
}

/// Whether other files affect a scenario.
fn paths(before: &Scenario, after: &Scenario) -> Option<GateChange> {
    if before.paths == after.paths {
        return None;
    }
    let shown = |paths: &[String]| {
        Some(if paths.is_empty() {
            EVERY_FILE.to_owned()
        } else {
            paths.join(", ")
        })
    };
    let covered = |pattern: &String| after.paths.iter().any(|wider| covers(wider, pattern));
    let narrower =
        !after.paths.is_empty() && (before.paths.is_empty() || !before.paths.iter().all(covered));
    Some(GateChange {
        key: "paths".to_owned(),
        base: shown(&before.paths),
        head: shown(&after.paths),
        ..whole(GateChangeKind::Paths, after, narrower)
    })
}

/// Whether every file of one pattern is one of the other, as far as their text tells: the same, or
/// a folder that holds it.
fn covers(wider: &str, pattern: &str) -> bool {
    let (wider, pattern) = (folder(wider), folder(pattern));
    if wider == pattern || wider.is_empty() || wider == "." {
        return true;
    }
    let literal = !wider.contains(['*', '?', '[', '{']);
    literal
        && pattern
            .strip_prefix(wider)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// A pattern without what only says that all within is meant.
fn folder(pattern: &str) -> &str {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let pattern = pattern.trim_matches('/');
    pattern
        .strip_suffix("**")
        .unwrap_or(pattern)
        .trim_end_matches('/')
}

/// Accepted slowdowns that came, went or changed.
fn accepts(base: Option<&Config>, head: Option<&Config>) -> Vec<GateChange> {
    let all = |config: Option<&Config>| -> Vec<AcceptSpec> {
        config.map_or_else(Vec::new, |config| config.accepts.clone())
    };
    let same = |one: &AcceptSpec, other: &AcceptSpec| {
        one.scenario == other.scenario && one.metric == other.metric
    };
    let (old, new) = (all(base), all(head));
    let mut found = Vec::new();
    for accept in &new {
        let before = old.iter().find(|other| same(accept, other));
        let (was, is) = (before.map(shown), shown(accept));
        if was.as_ref() == Some(&is) {
            continue;
        }
        let milder = before
            .is_none_or(|before| accept.up_to > before.up_to || accept.expires > before.expires);
        found.push(accepted(accept, was, Some(is), milder));
    }
    for accept in &old {
        if !new.iter().any(|other| same(accept, other)) {
            found.push(accepted(accept, Some(shown(accept)), None, false));
        }
    }
    found
}

fn accepted(
    accept: &AcceptSpec,
    base: Option<String>,
    head: Option<String>,
    milder: bool,
) -> GateChange {
    GateChange {
        kind: GateChangeKind::Accept,
        scenario: Some(accept.scenario.clone()),
        environment: None,
        key: accept.metric.name().to_owned(),
        base,
        head,
        milder,
    }
}

fn shown(accept: &AcceptSpec) -> String {
    format!(
        "up to {} until {} ({})",
        accept.up_to, accept.expires, accept.reason
    )
}
