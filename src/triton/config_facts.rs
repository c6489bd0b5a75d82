use std::fmt::Display;

use super::proto::inference::model_config::SchedulingChoice;
use super::proto::inference::model_instance_group::Kind;
use super::proto::inference::model_queue_policy::TimeoutAction;
use super::proto::inference::model_sequence_batching::StrategyChoice;
use super::proto::inference::model_version_policy::PolicyChoice;
use super::proto::inference::{
    ModelConfig, ModelDynamicBatching, ModelEnsembling, ModelInstanceGroup, ModelQueuePolicy,
    ModelSequenceBatching, ModelVersionPolicy,
};
use crate::data::Facts;

/// The parts of a model's configuration that a change of speed may come from, as readable dotted
/// fields (`instance_group.0.count`, `dynamic_batching.max_queue_delay_microseconds`).
///
/// Left out are names that the server fills in, inputs and outputs (they are the signature),
/// labels, and whatever has its default.
pub fn config_facts(config: &ModelConfig) -> Facts {
    let mut facts = Fields(Facts::default());
    facts.text("backend", &config.backend);
    facts.text("platform", &config.platform);
    facts.text("runtime", &config.runtime);
    facts.text("default_model_filename", &config.default_model_filename);
    facts.set("max_batch_size", config.max_batch_size);
    for (capability, file) in &config.cc_model_filenames {
        facts.text(&format!("cc_model_filenames.{capability}"), file);
    }
    for (index, group) in config.instance_group.iter().enumerate() {
        instance_group(&mut facts, &format!("instance_group.{index}"), group);
    }
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => {
            dynamic_batching(&mut facts, batching);
        }
        Some(SchedulingChoice::SequenceBatching(batching)) => {
            sequence_batching(&mut facts, batching);
        }
        Some(SchedulingChoice::EnsembleScheduling(ensemble)) => {
            ensemble_steps(&mut facts, ensemble);
        }
        None => {}
    }
    if let Some(policy) = &config.version_policy {
        version_policy(&mut facts, policy);
    }
    if config
        .model_transaction_policy
        .as_ref()
        .is_some_and(|policy| policy.decoupled)
    {
        facts.set("model_transaction_policy.decoupled", true);
    }
    if config
        .response_cache
        .as_ref()
        .is_some_and(|cache| cache.enable)
    {
        facts.set("response_cache.enable", true);
    }
    for (key, parameter) in &config.parameters {
        let field = format!("parameter.{key}");
        if secret_like(key) {
            facts.set(&field, "(hidden)");
        } else {
            facts.set(&field, &parameter.string_value);
        }
    }
    for (index, warmup) in config.model_warmup.iter().enumerate() {
        facts.set(
            &format!("model_warmup.{index}.batch_size"),
            warmup.batch_size,
        );
        facts.number(&format!("model_warmup.{index}.count"), warmup.count);
    }
    facts.0
}

/// Facts are written into files and reports, where no credential belongs. Plain `token` is no
/// mark: it counts the tokens of language models.
fn secret_like(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    [
        "secret",
        "password",
        "passwd",
        "credential",
        "api_key",
        "apikey",
        "access_token",
        "auth_token",
        "hf_token",
    ]
    .iter()
    .any(|mark| key.contains(mark))
}

/// Facts that leave out what says nothing.
struct Fields(Facts);

impl Fields {
    fn set(&mut self, field: &str, value: impl Display) {
        self.0.set(field, value.to_string());
    }

    fn text(&mut self, field: &str, value: &str) {
        if !value.is_empty() {
            self.0.set(field, value);
        }
    }

    fn number<T: Default + PartialEq + Display>(&mut self, field: &str, value: T) {
        if value != T::default() {
            self.set(field, value);
        }
    }

    fn list<T: ToString>(&mut self, field: &str, values: &[T]) {
        if !values.is_empty() {
            let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
            self.0.set(field, texts.join(", "));
        }
    }
}

fn instance_group(facts: &mut Fields, at: &str, group: &ModelInstanceGroup) {
    facts.number(&format!("{at}.count"), group.count);
    let kind = Kind::try_from(group.kind).map_or_else(
        |_| group.kind.to_string(),
        |kind| kind.as_str_name().to_owned(),
    );
    facts.set(&format!("{at}.kind"), kind);
    facts.list(&format!("{at}.gpus"), &group.gpus);
    facts.list(&format!("{at}.profile"), &group.profile);
    facts.text(&format!("{at}.host_policy"), &group.host_policy);
    facts.number(&format!("{at}.passive"), group.passive);
    if let Some(limiter) = &group.rate_limiter {
        facts.number(&format!("{at}.rate_limiter.priority"), limiter.priority);
        for resource in &limiter.resources {
            facts.set(
                &format!("{at}.rate_limiter.{}", resource.name),
                resource.count,
            );
        }
    }
}

fn dynamic_batching(facts: &mut Fields, batching: &ModelDynamicBatching) {
    // The delay is always said: its presence is what turns dynamic batching on.
    facts.set(
        "dynamic_batching.max_queue_delay_microseconds",
        batching.max_queue_delay_microseconds,
    );
    facts.list(
        "dynamic_batching.preferred_batch_size",
        &batching.preferred_batch_size,
    );
    facts.number(
        "dynamic_batching.preserve_ordering",
        batching.preserve_ordering,
    );
    facts.number("dynamic_batching.priority_levels", batching.priority_levels);
    facts.number(
        "dynamic_batching.default_priority_level",
        batching.default_priority_level,
    );
    if let Some(policy) = &batching.default_queue_policy {
        queue_policy(facts, "dynamic_batching.default_queue_policy", policy);
    }
    for (level, policy) in &batching.priority_queue_policy {
        let at = format!("dynamic_batching.priority_queue_policy.{level}");
        queue_policy(facts, &at, policy);
    }
}

fn queue_policy(facts: &mut Fields, at: &str, policy: &ModelQueuePolicy) {
    if policy.timeout_action == TimeoutAction::Delay as i32 {
        facts.set(
            &format!("{at}.timeout_action"),
            TimeoutAction::Delay.as_str_name(),
        );
    }
    facts.number(
        &format!("{at}.default_timeout_microseconds"),
        policy.default_timeout_microseconds,
    );
    facts.number(
        &format!("{at}.allow_timeout_override"),
        policy.allow_timeout_override,
    );
    facts.number(&format!("{at}.max_queue_size"), policy.max_queue_size);
}

fn sequence_batching(facts: &mut Fields, batching: &ModelSequenceBatching) {
    facts.set(
        "sequence_batching.max_sequence_idle_microseconds",
        batching.max_sequence_idle_microseconds,
    );
    facts.number(
        "sequence_batching.iterative_sequence",
        batching.iterative_sequence,
    );
    match &batching.strategy_choice {
        Some(StrategyChoice::Direct(direct)) => {
            facts.set("sequence_batching.strategy", "direct");
            facts.number(
                "sequence_batching.direct.max_queue_delay_microseconds",
                direct.max_queue_delay_microseconds,
            );
            facts.number(
                "sequence_batching.direct.minimum_slot_utilization",
                direct.minimum_slot_utilization,
            );
        }
        Some(StrategyChoice::Oldest(oldest)) => {
            facts.set("sequence_batching.strategy", "oldest");
            facts.number(
                "sequence_batching.oldest.max_candidate_sequences",
                oldest.max_candidate_sequences,
            );
            facts.number(
                "sequence_batching.oldest.max_queue_delay_microseconds",
                oldest.max_queue_delay_microseconds,
            );
            facts.list(
                "sequence_batching.oldest.preferred_batch_size",
                &oldest.preferred_batch_size,
            );
            facts.number(
                "sequence_batching.oldest.preserve_ordering",
                oldest.preserve_ordering,
            );
        }
        None => {}
    }
}

fn ensemble_steps(facts: &mut Fields, ensemble: &ModelEnsembling) {
    for (index, step) in ensemble.step.iter().enumerate() {
        let version = if step.model_version < 0 {
            "newest".to_owned()
        } else {
            step.model_version.to_string()
        };
        facts.set(
            &format!("ensemble.{index}"),
            format!("{} (version {version})", step.model_name),
        );
    }
    facts.number(
        "ensemble.max_inflight_requests",
        ensemble.max_inflight_requests,
    );
}

fn version_policy(facts: &mut Fields, policy: &ModelVersionPolicy) {
    match &policy.policy_choice {
        // One latest version is the default that the server fills in.
        Some(PolicyChoice::Latest(latest)) if latest.num_versions > 1 => {
            facts.set("version_policy.latest", latest.num_versions);
        }
        Some(PolicyChoice::All(_)) => facts.set("version_policy", "all"),
        Some(PolicyChoice::Specific(specific)) => {
            facts.list("version_policy.specific", &specific.versions);
        }
        Some(PolicyChoice::Latest(_)) | None => {}
    }
}
