//! Everything but inference.

use tonic::{Code, Status};

use super::super::core::{Core, LoadState, Model};
use super::super::spec::{ModelControl, ModelSpec, TensorSpec};
use super::super::texts::{self, Refusal};
use crate::triton::proto::inference::model_config::SchedulingChoice;
use crate::triton::proto::inference::model_instance_group::Kind;
use crate::triton::proto::inference::model_metadata_response::TensorMetadata;
use crate::triton::proto::inference::model_version_policy::{PolicyChoice, Specific};
use crate::triton::proto::inference::repository_index_response::ModelIndex;
use crate::triton::proto::inference::{
    ModelConfig, ModelDynamicBatching, ModelInput, ModelInstanceGroup, ModelMetadataResponse,
    ModelOutput, ModelQueuePolicy, ModelReadyResponse, ModelResponseCache, ModelStatisticsResponse,
    ModelTransactionPolicy, ModelVersionPolicy, RepositoryIndexResponse, ServerMetadataResponse,
};

/// What a Triton 2.51 says that it can do, as far as it is simulated.
const EXTENSIONS: [&str; 6] = [
    "model_repository",
    "schedule_policy",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
];

pub(crate) fn server_metadata(core: &Core) -> ServerMetadataResponse {
    ServerMetadataResponse {
        name: core.spec.name.clone(),
        version: core.spec.version.clone(),
        extensions: EXTENSIONS.map(str::to_owned).to_vec(),
    }
}

/// Releases up to 26.06 answer `false` for a model that is unknown or not ready.
pub(crate) fn model_ready(
    core: &Core,
    name: &str,
    version: &str,
) -> Result<ModelReadyResponse, Status> {
    if core.is_stopping() || !core.is_ready() {
        return Err(texts::server_not_ready().into());
    }
    match core.find(name, version) {
        Ok(_) => Ok(ModelReadyResponse { ready: true }),
        Err(refusal) if refusal.code == Code::InvalidArgument => Err(refusal.into()),
        Err(_) => Ok(ModelReadyResponse { ready: false }),
    }
}

pub(crate) fn model_metadata(
    core: &Core,
    name: &str,
    version: &str,
) -> Result<ModelMetadataResponse, Status> {
    let found = core.find(name, version)?;
    let spec = &found.model.spec;
    let tensors = |tensors: &[TensorSpec]| {
        tensors
            .iter()
            .map(|tensor| TensorMetadata {
                name: tensor.name.clone(),
                datatype: tensor.datatype.name().to_owned(),
                shape: (spec.max_batch_size > 0)
                    .then_some(-1)
                    .into_iter()
                    .chain(tensor.dims.iter().copied())
                    .collect(),
            })
            .collect()
    };
    Ok(ModelMetadataResponse {
        name: spec.name.clone(),
        versions: found
            .model
            .versions
            .values()
            .map(|version| version.text.clone())
            .collect(),
        platform: spec.backend.clone(),
        inputs: tensors(&spec.inputs),
        outputs: tensors(&spec.outputs),
    })
}

pub(crate) fn model_config(core: &Core, name: &str, version: &str) -> Result<ModelConfig, Status> {
    let found = core.find(name, version)?;
    Ok(config(&found.model))
}

fn config(model: &Model) -> ModelConfig {
    let spec = &model.spec;
    let input = |tensor: &TensorSpec| ModelInput {
        name: tensor.name.clone(),
        data_type: tensor.datatype.config().into(),
        dims: tensor.dims.clone(),
        optional: tensor.optional,
        ..ModelInput::default()
    };
    let output = |tensor: &TensorSpec| ModelOutput {
        name: tensor.name.clone(),
        data_type: tensor.datatype.config().into(),
        dims: tensor.dims.clone(),
        ..ModelOutput::default()
    };
    let versions = model
        .versions
        .keys()
        .map(|number| i64::from(*number))
        .collect();
    ModelConfig {
        name: spec.name.clone(),
        backend: spec.backend.clone(),
        version_policy: Some(ModelVersionPolicy {
            policy_choice: Some(PolicyChoice::Specific(Specific { versions })),
        }),
        max_batch_size: wire(spec.max_batch_size),
        input: spec.inputs.iter().map(input).collect(),
        output: spec.outputs.iter().map(output).collect(),
        instance_group: vec![ModelInstanceGroup {
            name: format!("{}_0", spec.name),
            count: wire(spec.instances),
            kind: Kind::Cpu.into(),
            ..ModelInstanceGroup::default()
        }],
        scheduling_choice: dynamic_batching(spec).map(SchedulingChoice::DynamicBatching),
        model_transaction_policy: Some(ModelTransactionPolicy {
            decoupled: spec.decoupled,
        }),
        response_cache: spec
            .response_cache
            .then_some(ModelResponseCache { enable: true }),
        ..ModelConfig::default()
    }
}

/// Counts are signed on the wire.
fn wire(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn dynamic_batching(spec: &ModelSpec) -> Option<ModelDynamicBatching> {
    let batching = spec.dynamic_batching.as_ref()?;
    let limited = spec.max_queue_size > 0 || !spec.queue_timeout.is_zero();
    Some(ModelDynamicBatching {
        preferred_batch_size: batching
            .preferred_batch_size
            .iter()
            .map(|size| wire(*size))
            .collect(),
        max_queue_delay_microseconds: batching.max_queue_delay.as_micros() as u64,
        default_queue_policy: limited.then(|| ModelQueuePolicy {
            default_timeout_microseconds: spec.queue_timeout.as_micros() as u64,
            max_queue_size: spec.max_queue_size,
            ..ModelQueuePolicy::default()
        }),
        ..ModelDynamicBatching::default()
    })
}

pub(crate) fn statistics(
    core: &Core,
    name: &str,
    version: &str,
) -> Result<ModelStatisticsResponse, Status> {
    if core.is_stopping() || !core.is_ready() {
        return Err(texts::server_not_ready().into());
    }
    let wanted: Vec<&Model> = core
        .models
        .values()
        .map(AsRef::as_ref)
        .filter(|model| model.is_ready(core.epoch))
        .filter(|model| name.is_empty() || model.spec.name == name)
        .collect();
    if !name.is_empty() && wanted.is_empty() {
        let text = format!("requested model '{name}' is not available");
        return Err(Refusal::invalid(text).into());
    }
    let model_stats: Vec<_> = wanted
        .iter()
        .flat_map(|model| {
            model
                .versions
                .values()
                .map(|version| (&model.spec.name, version))
        })
        .filter(|(_, found)| version.is_empty() || found.text == version)
        .map(|(name, found)| found.counters.message(name, &found.text))
        .collect();
    if model_stats.is_empty() && !name.is_empty() {
        let text = format!("requested model version is not available for model '{name}'");
        return Err(Refusal::invalid(text).into());
    }
    Ok(ModelStatisticsResponse { model_stats })
}

pub(crate) fn index(
    core: &Core,
    repository: &str,
    only_ready: bool,
) -> Result<RepositoryIndexResponse, Status> {
    no_repository(repository)?;
    let mut models = Vec::new();
    for model in core.models.values() {
        let name = &model.spec.name;
        let (state, reason) = match model.state() {
            LoadState::NeverLoaded => {
                if !only_ready {
                    models.push(ModelIndex {
                        name: name.clone(),
                        ..ModelIndex::default()
                    });
                }
                continue;
            }
            LoadState::Ready if model.is_ready(core.epoch) => ("READY", String::new()),
            LoadState::Ready => ("LOADING", String::new()),
            LoadState::Unloaded => ("UNAVAILABLE", "unloaded".to_owned()),
            LoadState::Failed(reason) => ("UNAVAILABLE", reason),
        };
        if only_ready && state != "READY" {
            continue;
        }
        models.extend(model.versions.values().map(|version| ModelIndex {
            name: name.clone(),
            version: version.text.clone(),
            state: state.to_owned(),
            reason: reason.clone(),
        }));
    }
    Ok(RepositoryIndexResponse { models })
}

pub(crate) fn load(core: &Core, repository: &str, name: &str) -> Result<(), Status> {
    may_control(core, repository)?;
    let Some(model) = core.models.get(name) else {
        let text = format!("failed to load '{name}', failed to poll from model repository");
        return Err(Status::internal(text));
    };
    model.load().map_err(|reason| {
        let text = format!(
            "load failed for model '{name}': version 1 is at UNAVAILABLE state: {reason};\n"
        );
        Status::invalid_argument(text)
    })
}

/// Succeeds also for models that are not known.
pub(crate) fn unload(core: &Core, repository: &str, name: &str) -> Result<(), Status> {
    may_control(core, repository)?;
    if let Some(model) = core.models.get(name) {
        model.unload();
    }
    Ok(())
}

fn no_repository(repository: &str) -> Result<(), Status> {
    if repository.is_empty() {
        return Ok(());
    }
    Err(Status::unimplemented(
        "'repository_name' specification is not supported",
    ))
}

fn may_control(core: &Core, repository: &str) -> Result<(), Status> {
    no_repository(repository)?;
    match core.spec.model_control {
        ModelControl::Explicit => Ok(()),
        ModelControl::None => Err(Status::unavailable(
            "explicit model load / unload is not allowed if polling is enabled",
        )),
    }
}
