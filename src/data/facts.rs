use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Readable facts as `field -> value`, fields dotted (`gpu.name`, `instance_group.0.count`).
///
/// Environment and subject are kept in this one shape, so that comparing, hashing and showing
/// them is the same code for every field there will ever be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(pub BTreeMap<String, String>);

/// One field that two sets of facts disagree on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The dotted field.
    pub field: String,
    /// Its value at the baseline; none where the field is absent there.
    pub baseline: Option<String>,
    /// Its value now; none where the field is absent now.
    pub candidate: Option<String>,
}

impl Facts {
    /// Sets a field.
    pub fn set(&mut self, field: impl Into<String>, value: impl Into<String>) {
        self.0.insert(field.into(), value.into());
    }

    /// The value of a field.
    pub fn get(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }

    /// The first 16 hex digits of the SHA-256 over all fields and values in order.
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        for (field, value) in &self.0 {
            // Lengths first, so that no two sets of facts run together.
            hasher.update((field.len() as u64).to_le_bytes());
            hasher.update(field.as_bytes());
            hasher.update((value.len() as u64).to_le_bytes());
            hasher.update(value.as_bytes());
        }
        hasher
            .finalize()
            .iter()
            .take(8)
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
    }

    /// The fields in which `candidate` differs from these facts, in order.
    pub fn differences(&self, candidate: &Self) -> Vec<Difference> {
        let mut fields: Vec<&String> = self.0.keys().chain(candidate.0.keys()).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
            .into_iter()
            .filter(|field| self.0.get(*field) != candidate.0.get(*field))
            .map(|field| Difference {
                field: field.clone(),
                baseline: self.0.get(field).cloned(),
                candidate: candidate.0.get(field).cloned(),
            })
            .collect()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Facts {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(items: I) -> Self {
        Self(
            items
                .into_iter()
                .map(|(field, value)| (field.into(), value.into()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_changed_added_and_removed_fields() {
        let base: Facts = [("a", "1"), ("b", "2")].into_iter().collect();
        let now: Facts = [("a", "1"), ("b", "3"), ("c", "4")].into_iter().collect();
        let fields: Vec<String> = base
            .differences(&now)
            .into_iter()
            .map(|difference| difference.field)
            .collect();
        assert_eq!(fields, ["b", "c"]);
        assert!(base.differences(&base).is_empty());
    }

    #[test]
    fn the_hash_does_not_run_fields_together() {
        let one: Facts = [("ab", "c")].into_iter().collect();
        let two: Facts = [("a", "bc")].into_iter().collect();
        assert_ne!(one.hash(), two.hash());
        assert_eq!(one.hash().len(), 16);
    }
}
