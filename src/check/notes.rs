//! Baselines and scenarios that do not find each other.

use super::outcome::flag;
use crate::baseline::{Store, StoreError};
use crate::config::Config;
use crate::data::{Flag, Load, Scenario, Session};

/// A baseline of the environment that no scenario of the files claims.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unclaimed {
    /// The name it was recorded under.
    pub scenario: String,
    /// Its newest session.
    pub newest: Session,
}

/// The baselines of the environment without a scenario.
pub(super) fn unclaimed(
    store: &Store,
    environment: &str,
    config: &Config,
) -> Result<Vec<Unclaimed>, StoreError> {
    let mut found = Vec::new();
    for name in store.scenarios(environment)? {
        if config.scenarios.iter().any(|known| known.name == name) {
            continue;
        }
        // What nobody asks for is no reason to refuse a check, damaged or not.
        let newest = store
            .sessions(environment, &name)
            .ok()
            .and_then(|mut sessions| sessions.pop());
        if let Some(newest) = newest {
            found.push(Unclaimed {
                scenario: name,
                newest,
            });
        }
    }
    Ok(found)
}

/// One note that names them.
pub(super) fn orphans(unclaimed: &[Unclaimed]) -> Option<Flag> {
    let names: Vec<&str> = unclaimed
        .iter()
        .map(|other| other.scenario.as_str())
        .collect();
    (!names.is_empty()).then(|| {
        flag(
            "baseline_without_scenario",
            format!(
                "stored baselines without a scenario in these files: {}; `baseline rename` gives \
                 one its scenario's new name",
                names.join(", ")
            ),
        )
    })
}

/// What to do for a scenario without a baseline whose load is recorded under another name.
pub(super) fn rename(scenario: &Scenario, unclaimed: &[Unclaimed]) -> Option<String> {
    let Load::Closed { concurrency } = scenario.load;
    let same = unclaimed.iter().find(|other| {
        let load = &other.newest.load;
        other.scenario != scenario.name
            && other.newest.model == scenario.model
            && load.concurrency == Some(concurrency)
            && load.batch == scenario.batch
            && scenario
                .version
                .as_ref()
                .is_none_or(|version| *version == other.newest.model_version)
    })?;
    Some(format!(
        "the baseline {:?} is of the same model and load: if the scenario was renamed, \
         `triton-gate baseline rename {} {}`; else record one with `triton-gate baseline record --only {}`",
        same.scenario, same.scenario, scenario.name, scenario.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::samples::session;
    use crate::check::tests::scenario;

    #[test]
    fn a_rename_is_suggested_for_the_same_model_and_load_alone() {
        let mut wanted = scenario("new");
        wanted.model = "resnet".to_owned();
        wanted.load = Load::Closed { concurrency: 8 };
        wanted.batch = 2;
        let stored = [Unclaimed {
            scenario: "old".to_owned(),
            newest: session("s", 1),
        }];
        let told = rename(&wanted, &stored).expect("a suggestion");
        assert!(told.contains("baseline rename old new"), "{told}");
        for change in [
            |scenario: &mut Scenario| scenario.batch = 1,
            |scenario: &mut Scenario| scenario.model = "vgg".to_owned(),
            |scenario: &mut Scenario| scenario.load = Load::Closed { concurrency: 4 },
            |scenario: &mut Scenario| scenario.version = Some("7".to_owned()),
        ] {
            let mut other = wanted.clone();
            change(&mut other);
            assert_eq!(rename(&other, &stored), None);
        }
        assert_eq!(orphans(&[]), None);
        let note = orphans(&stored).expect("a note");
        assert!(note.text.contains("old"), "{}", note.text);
    }
}
