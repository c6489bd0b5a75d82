//! What a pull request changes in the gate itself, in sentences that every report shares.

use super::text::{MESSAGE, NAME, VALUE, clean};
use crate::data::{CheckResult, GateChange, GateChangeKind, GateSide};

/// The line above the list; none where there is nothing to list.
pub(crate) fn title(result: &CheckResult) -> Option<String> {
    let changes = result.gate_changes.as_ref()?;
    if changes.changes.is_empty() {
        return None;
    }
    Some(format!(
        "this pull request changes the gate (judged by {})",
        match changes.judged_by {
            GateSide::Base => "the gate of the commit that it is based on",
            GateSide::Head => "the changed gate",
        }
    ))
}

/// One sentence a change, plain text. What holds for several scenarios is said once.
pub(crate) fn sentences(result: &CheckResult) -> Vec<String> {
    let Some(changes) = &result.gate_changes else {
        return Vec::new();
    };
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for change in &changes.changes {
        let phrase = phrase(change);
        let scenario = change.scenario.as_deref().unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == phrase) {
            Some((_, scenarios)) => scenarios.push(scenario),
            None => groups.push((phrase, vec![scenario])),
        }
    }
    groups
        .into_iter()
        .map(|(phrase, scenarios)| match scenarios.as_slice() {
            [] | [""] => phrase,
            [only] => format!("{}: {phrase}", clean(only, NAME)),
            [first, rest @ ..] => {
                format!("{} and {} more: {phrase}", clean(first, NAME), rest.len())
            }
        })
        .collect()
}

fn phrase(change: &GateChange) -> String {
    let side = |value: &Option<String>| {
        value
            .as_deref()
            .map_or_else(|| "not set".to_owned(), |value| clean(value, VALUE))
    };
    let key = change.key.strip_prefix("gate.").unwrap_or(&change.key);
    let key = clean(key, NAME);
    let (base, head) = (side(&change.base), side(&change.head));
    let mut text = match change.kind {
        GateChangeKind::ScenarioRemoved => "scenario removed, no longer gated".to_owned(),
        GateChangeKind::ScenarioAdded => "new scenario".to_owned(),
        GateChangeKind::Setting if change.base.is_none() && change.head.is_none() => {
            format!("{key} changed")
        }
        GateChangeKind::Setting => format!("{key} {base} -> {head}{}", milder(change)),
        GateChangeKind::Paths if change.milder => {
            format!("paths narrower, fewer changes are measured: {base} -> {head}")
        }
        GateChangeKind::Paths => format!("paths {base} -> {head}"),
        GateChangeKind::Accept => match (&change.base, &change.head) {
            (None, _) => format!("a slowdown of {key} is accepted: {head}"),
            (_, None) => format!("a slowdown of {key} is no longer accepted: {base}"),
            _ => format!(
                "the accepted slowdown of {key}: {base} -> {head}{}",
                milder(change)
            ),
        },
        GateChangeKind::Baselines => format!("stored baselines: {head}"),
        GateChangeKind::Unreadable => {
            let (whose, why) = match (&change.base, &change.head) {
                (Some(why), _) => ("the base", why),
                (None, head) => ("the pull request", head.as_ref().unwrap_or(&change.key)),
            };
            format!(
                "the thresholds of {whose} cannot be read: {}",
                clean(why, MESSAGE)
            )
        }
    };
    if let Some(environment) = &change.environment {
        text.push_str(" in the environment ");
        text.push_str(&clean(environment, NAME));
    }
    text
}

const fn milder(change: &GateChange) -> &'static str {
    if change.milder { " (milder)" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Verdict;
    use crate::report::samples;

    #[test]
    fn each_kind_has_its_sentence() {
        let mut result = samples::check(vec![samples::scenario("a", Verdict::Pass)]);
        assert_eq!(title(&result), None);
        assert!(sentences(&result).is_empty());
        result.gate_changes = Some(samples::gate_changes());
        let text = sentences(&result).join("\n");
        insta::assert_snapshot!(format!("{}\n{text}", title(&result).unwrap_or_default()));
    }

    #[test]
    fn nothing_is_said_where_nothing_differs() {
        let mut result = samples::check(Vec::new());
        let mut changes = samples::gate_changes();
        changes.changes.clear();
        result.gate_changes = Some(changes);
        assert_eq!(title(&result), None);
    }
}
