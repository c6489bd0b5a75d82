//! What must be equal for two measurements to be comparable.
//!
//! Facts are dotted fields; each field has a [`Class`] that says what a difference means.

use crate::data::{Difference, Facts, Session};

/// The field that stands for an environment of which only the hash is known, because a session
/// file was read away from its store.
pub const HASH_FIELD: &str = "environment.hash";

/// The field that carries the content address of environment facts that are not at hand.
pub const ADDRESS_FIELD: &str = "environment.address";

/// What a difference in a field means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Must be equal, else nothing is compared.
    Environment,
    /// A pass stays a pass with a note; a regression against a stored baseline is capped.
    Soft,
    /// Written down, never compared.
    Noted,
}

/// Fields that must be equal; `signature.*` and `load.*` stand for all fields below them.
const MUST_BE_EQUAL: [&str; 8] = [
    "gpu.name",
    "gpu.count",
    "gpu.mig",
    "cpu.model",
    "cpu.cores",
    "signature.*",
    "load.*",
    HASH_FIELD,
];

/// Fields whose difference weakens a verdict.
const SOFT: [&str; 5] = [
    "gpu.uuid",
    "gpu.driver",
    "kernel",
    "gpu.clocks_locked",
    "client.host_class",
];

/// The class of a dotted field. Fields that this version does not know are noted only.
pub fn class(field: &str) -> Class {
    if MUST_BE_EQUAL.iter().any(|entry| covers(entry, field)) {
        Class::Environment
    } else if SOFT.contains(&field) {
        Class::Soft
    } else {
        Class::Noted
    }
}

/// Whether an entry (`gpu.name`, `load.*`) covers a field.
fn covers(entry: &str, field: &str) -> bool {
    match entry.strip_suffix('*') {
        Some(prefix) => field.len() > prefix.len() && field.starts_with(prefix),
        None => entry == field,
    }
}

/// How two environments differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that must be equal and are not: nothing is compared.
    pub incompatible: Vec<Difference>,
    /// Fields that must be equal, are not, and were allowed by name.
    pub allowed: Vec<Difference>,
    /// Fields that weaken a verdict.
    pub soft: Vec<Difference>,
}

impl Comparison {
    /// Whether the two may be compared.
    pub fn compatible(&self) -> bool {
        self.incompatible.is_empty()
    }
}

/// A name given to `--allow` that is no field of the environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot allow {name:?}: it is not a field that must be equal{}; fields: {}", hint(.suggestion.as_deref()), MUST_BE_EQUAL.join(", "))]
pub struct UnknownField {
    /// The name as given.
    pub name: String,
    /// A field that is spelled much alike.
    pub suggestion: Option<String>,
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

/// Checks the names given to `--allow`: fields that must be equal, or a family (`load`,
/// `load.*`).
///
/// # Errors
/// The first name that is not one.
pub fn check_allowed(allowed: &[String]) -> Result<(), UnknownField> {
    for name in allowed {
        let family = MUST_BE_EQUAL.iter().any(|entry| {
            *entry == name
                || entry
                    .strip_suffix(".*")
                    .is_some_and(|family| family == name)
        });
        if !family && class(name) != Class::Environment {
            let suggestion = MUST_BE_EQUAL
                .iter()
                .map(|entry| (strsim::jaro_winkler(entry, name), *entry))
                .filter(|(likeness, _)| *likeness > 0.8)
                .max_by(|one, other| one.0.total_cmp(&other.0))
                .map(|(_, entry)| entry.to_owned());
            return Err(UnknownField {
                name: name.clone(),
                suggestion,
            });
        }
    }
    Ok(())
}

/// Whether one of the allowed names opens a field.
fn opens(allowed: &[String], field: &str) -> bool {
    allowed.iter().any(|name| {
        let family = name.strip_suffix(".*").unwrap_or(name);
        field == family
            || field
                .strip_prefix(family)
                .is_some_and(|rest| rest.starts_with('.'))
    })
}

/// Compares two environments field by field.
///
/// `cpu.*` counts only where neither side has a GPU. A field that one side lacks is a
/// difference. Where a side is known by its hash alone ([`HASH_FIELD`]), the hashes decide for
/// all fields but `load.*`, which every session carries itself.
///
/// # Errors
/// A name in `allowed` that is no field of the environment.
pub fn compare(
    baseline: &Facts,
    candidate: &Facts,
    allowed: &[String],
) -> Result<Comparison, UnknownField> {
    check_allowed(allowed)?;
    let mut result = Comparison::default();
    let hash_only = baseline.get(HASH_FIELD).is_some() || candidate.get(HASH_FIELD).is_some();
    let any_gpu = baseline.get("gpu.name").is_some() || candidate.get("gpu.name").is_some();
    let mut differences = baseline.differences(candidate);
    if hash_only {
        differences.retain(|difference| difference.field.starts_with("load."));
        let (before, now) = (identity_hash(baseline), identity_hash(candidate));
        if before != now {
            differences.push(Difference {
                field: HASH_FIELD.to_owned(),
                baseline: Some(before),
                candidate: Some(now),
            });
        }
    }
    for difference in differences {
        match class(&difference.field) {
            Class::Environment if any_gpu && difference.field.starts_with("cpu.") => {}
            Class::Environment if opens(allowed, &difference.field) => {
                result.allowed.push(difference);
            }
            Class::Environment => result.incompatible.push(difference),
            Class::Soft => result.soft.push(difference),
            Class::Noted => {}
        }
    }
    Ok(result)
}

/// Everything of a session that [`compare`] looks at: its environment and its load.
pub fn comparable(session: &Session) -> Facts {
    let mut facts = session.environment.clone();
    facts.0.retain(|field, _| !field.starts_with("load."));
    facts.0.extend(session.load.facts().0);
    facts
}

/// The fields that must be equal, without the load: what the environment's hash is made of.
pub fn identity(facts: &Facts) -> Facts {
    let gpu = facts.get("gpu.name").is_some();
    Facts(
        facts
            .0
            .iter()
            .filter(|(field, _)| {
                class(field) == Class::Environment
                    && !field.starts_with("load.")
                    && !(gpu && field.starts_with("cpu."))
            })
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect(),
    )
}

/// The hash of [`identity`], or the hash that a session file told where that is all there is.
pub fn identity_hash(facts: &Facts) -> String {
    facts
        .get(HASH_FIELD)
        .map_or_else(|| identity(facts).hash(), str::to_owned)
}

/// The part of an environment that names a machine type: GPU, else CPU.
pub(crate) fn machine(facts: &Facts) -> Facts {
    let mut machine = identity(facts);
    machine
        .0
        .retain(|field, _| field.starts_with("gpu.") || field.starts_with("cpu."));
    machine
}

/// The default name of an environment: a slug of the GPU's name, else of CPU model and cores
/// (`nvidia-h100-80gb-hbm3`, `amd-epyc-7b13-8-cores`). None where neither is known.
pub fn slug(facts: &Facts) -> Option<String> {
    let text = if let Some(gpu) = facts.get("gpu.name") {
        gpu.to_owned()
    } else {
        let model = facts.get("cpu.model")?;
        // Marks and words that say nothing about the machine.
        let model = model
            .replace("(R)", " ")
            .replace("(TM)", " ")
            .replace("(tm)", " ");
        let words: Vec<&str> = model
            .split_whitespace()
            .filter(|word| !matches!(*word, "CPU" | "Processor" | "@") && !word.ends_with("-Core"))
            .collect();
        match facts.get("cpu.cores") {
            Some("1") => format!("{} 1 core", words.join(" ")),
            Some(cores) => format!("{} {cores} cores", words.join(" ")),
            None => words.join(" "),
        }
    };
    let mut slug = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    // As long as a name may be (`config::safe_name`); every letter here is one byte.
    slug.truncate(100);
    let slug = slug.trim_end_matches('-');
    (!slug.is_empty()).then(|| slug.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(fields: &[(&str, &str)]) -> Facts {
        fields.iter().copied().collect()
    }

    fn fields(differences: &[Difference]) -> Vec<&str> {
        differences
            .iter()
            .map(|difference| difference.field.as_str())
            .collect()
    }

    #[test]
    fn every_class_of_field_goes_where_it_belongs() {
        let baseline = facts(&[
            ("gpu.name", "NVIDIA A10"),
            ("gpu.uuid", "GPU-1"),
            ("kernel", "6.1"),
            ("host", "one"),
            ("time", "then"),
            ("signature.inputs.x", "FP32[4]"),
            ("load.batch", "1"),
            ("cpu.model", "Fast"),
        ]);
        let candidate = facts(&[
            ("gpu.name", "NVIDIA T4"),
            ("gpu.uuid", "GPU-2"),
            ("kernel", "6.2"),
            ("host", "two"),
            ("time", "now"),
            ("signature.inputs.x", "FP32[8]"),
            ("load.batch", "2"),
            ("cpu.model", "Faster"),
        ]);
        let result = compare(&baseline, &candidate, &[]).expect("fields");
        assert_eq!(
            fields(&result.incompatible),
            ["gpu.name", "load.batch", "signature.inputs.x"]
        );
        assert_eq!(fields(&result.soft), ["gpu.uuid", "kernel"]);
        assert!(result.allowed.is_empty());
        assert!(!result.compatible());
    }

    #[test]
    fn the_cpu_counts_only_without_a_gpu() {
        let slow = facts(&[("cpu.model", "slow"), ("cpu.cores", "4")]);
        let fast = facts(&[("cpu.model", "fast"), ("cpu.cores", "8")]);
        let result = compare(&slow, &fast, &[]).expect("fields");
        assert_eq!(fields(&result.incompatible), ["cpu.cores", "cpu.model"]);
        let mut gpu = fast.clone();
        gpu.set("gpu.name", "NVIDIA L4");
        let result = compare(&slow, &gpu, &[]).expect("fields");
        assert_eq!(fields(&result.incompatible), ["gpu.name"]);
    }

    #[test]
    fn allowing_opens_one_field_or_a_family_and_nothing_else() {
        let one = facts(&[
            ("load.batch", "1"),
            ("load.workers", "1"),
            ("gpu.count", "1"),
        ]);
        let two = facts(&[
            ("load.batch", "2"),
            ("load.workers", "2"),
            ("gpu.count", "2"),
        ]);
        let result = compare(&one, &two, &["load.batch".to_owned()]).expect("fields");
        assert_eq!(fields(&result.allowed), ["load.batch"]);
        assert_eq!(fields(&result.incompatible), ["gpu.count", "load.workers"]);
        let result = compare(&one, &two, &["load".to_owned()]).expect("fields");
        assert_eq!(fields(&result.allowed), ["load.batch", "load.workers"]);
    }

    #[test]
    fn an_unknown_field_is_refused_with_the_list() {
        let error = check_allowed(&["gpu.nmae".to_owned()]).expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "cannot allow \"gpu.nmae\": it is not a field that must be equal (did you mean \
             \"gpu.name\"?); fields: gpu.name, gpu.count, gpu.mig, cpu.model, cpu.cores, \
             signature.*, load.*, environment.hash"
        );
        // Never compared, so there is nothing to open.
        assert!(check_allowed(&["host".to_owned()]).is_err());
        assert!(check_allowed(&["load.".to_owned()]).is_err());
    }

    #[test]
    fn a_field_that_one_side_lacks_is_a_difference() {
        let some = facts(&[("gpu.name", "NVIDIA L4"), ("gpu.mig", "1g.10gb")]);
        let none = facts(&[("gpu.name", "NVIDIA L4")]);
        let result = compare(&some, &none, &[]).expect("fields");
        assert_eq!(fields(&result.incompatible), ["gpu.mig"]);
    }

    #[test]
    fn a_hash_stands_for_facts_that_are_not_at_hand() {
        let known = facts(&[
            ("gpu.name", "NVIDIA L4"),
            ("host", "a"),
            ("load.batch", "1"),
        ]);
        let mut hashed = facts(&[("load.batch", "1")]);
        hashed.set(HASH_FIELD, identity_hash(&known));
        assert!(compare(&hashed, &known, &[]).expect("fields").compatible());
        hashed.set("load.batch", "2");
        let result = compare(&hashed, &known, &[]).expect("fields");
        assert_eq!(fields(&result.incompatible), ["load.batch"]);
        let other = facts(&[("gpu.name", "NVIDIA T4"), ("load.batch", "2")]);
        let result = compare(&hashed, &other, &[]).expect("fields");
        assert_eq!(fields(&result.incompatible), [HASH_FIELD]);
    }

    #[test]
    fn slugs_name_the_machine_type() {
        for (fields, expected) in [
            (
                vec![("gpu.name", "NVIDIA H100 80GB HBM3"), ("cpu.model", "x")],
                Some("nvidia-h100-80gb-hbm3"),
            ),
            (
                vec![("cpu.model", "AMD EPYC 7B13"), ("cpu.cores", "8")],
                Some("amd-epyc-7b13-8-cores"),
            ),
            (
                vec![
                    ("cpu.model", "AMD EPYC 7763 64-Core Processor"),
                    ("cpu.cores", "1"),
                ],
                Some("amd-epyc-7763-1-core"),
            ),
            (
                vec![("cpu.model", "Intel(R) Xeon(R) CPU @ 2.20GHz")],
                Some("intel-xeon-2-20ghz"),
            ),
            (vec![("host", "a")], None),
            (vec![("gpu.name", "///")], None),
        ] {
            assert_eq!(slug(&facts(&fields)).as_deref(), expected);
        }
    }
}
