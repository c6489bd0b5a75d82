use serde::{Deserialize, Serialize};

/// What a change of the repository alters in the gate itself: beside the verdict, never part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateChanges {
    /// Whose thresholds judged.
    pub judged_by: GateSide,
    /// What differs, what makes the gate milder first. Empty where nothing does.
    pub changes: Vec<GateChange>,
}

/// The two checkouts that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateSide {
    /// The commit that the change is based on.
    Base,
    /// The commit with the change.
    Head,
}

/// One thing that differs in the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateChange {
    /// What kind of thing it is.
    pub kind: GateChangeKind,
    /// The scenario; none where it is about all.
    #[serde(default)]
    pub scenario: Option<String>,
    /// The environment whose section says so; none where it holds in the checked one.
    #[serde(default)]
    pub environment: Option<String>,
    /// The key in the thresholds file, `gate.p99_rise`; empty where it is not about one.
    #[serde(default)]
    pub key: String,
    /// What the base says; none where it says nothing.
    pub base: Option<String>,
    /// What the head says; none where it says nothing.
    pub head: Option<String>,
    /// Whether the gate lets more through than before.
    pub milder: bool,
}

/// The kinds of things that differ in a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateChangeKind {
    /// One side's thresholds cannot be read.
    Unreadable,
    /// A scenario is gone: no longer gated.
    ScenarioRemoved,
    /// A setting has another value.
    Setting,
    /// Other files affect a scenario.
    Paths,
    /// A slowdown is accepted, or no longer.
    Accept,
    /// Stored baselines were added, changed or removed.
    Baselines,
    /// A scenario is new.
    ScenarioAdded,
}
