use std::fmt;

use super::datatype::Datatype;
use super::proto::inference::model_config::SchedulingChoice;
use super::proto::inference::model_metadata_response::TensorMetadata;
use super::proto::inference::{ModelConfig, ModelMetadataResponse};

/// What a request to a model must look like, from its configuration and metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSignature {
    /// The model's name.
    pub name: String,
    /// The version that was asked for; empty leaves the choice to the server.
    pub version: String,
    /// The versions that the server offers.
    pub versions: Vec<String>,
    /// The platform, or the backend where no platform is set.
    pub platform: String,
    /// The largest batch; 0 where requests have no batch dimension.
    pub max_batch_size: u32,
    /// The inputs, in the model's order.
    pub inputs: Vec<TensorSpec>,
    /// The outputs, in the model's order.
    pub outputs: Vec<TensorSpec>,
    /// Answers zero to many times per request, over a stream only.
    pub decoupled: bool,
    /// Keeps state between requests of a sequence.
    pub sequence: bool,
    /// The models that an ensemble calls, each once; empty for a plain model.
    pub ensemble_steps: Vec<String>,
    /// Whether repeated requests may be answered from a cache.
    pub response_cache: bool,
    /// Whether the server gathers requests into batches.
    pub dynamic_batching: bool,
}

/// One input or output of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// The tensor's name.
    pub name: String,
    /// The element type.
    pub datatype: Datatype,
    /// The shape without the batch dimension; -1 is variable.
    pub dims: Vec<i64>,
    /// Whether a request may leave it out.
    pub optional: bool,
    /// Its values are a shape: never has a batch dimension.
    pub shape_tensor: bool,
    /// Whether requests in one batch may differ in shape.
    pub ragged: bool,
}

/// Why a model cannot be described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// A tensor without a usable datatype, in configuration and metadata alike.
    #[error(
        "{kind} `{tensor}` of model `{model}` has no known datatype (configuration: {configured}, metadata: {reported:?}): this version of triton-gate does not know it"
    )]
    Datatype {
        /// The model.
        model: String,
        /// `input` or `output`.
        kind: &'static str,
        /// The tensor.
        tensor: String,
        /// The number in the configuration.
        configured: i32,
        /// The name in the metadata; empty where absent.
        reported: String,
    },
    /// A batch limit below zero.
    #[error("model `{model}` has max_batch_size {value}: expected 0 or more")]
    MaxBatchSize {
        /// The model.
        model: String,
        /// The configured value.
        value: i32,
    },
}

impl ModelSignature {
    /// Reads a model's configuration and metadata; `version` is what was asked for, empty for the
    /// server's choice.
    ///
    /// Whether there is a batch dimension is decided by `max_batch_size` alone: a leading -1 in
    /// the metadata's shape may as well be a variable dimension.
    pub fn new(
        config: &ModelConfig,
        metadata: &ModelMetadataResponse,
        version: &str,
    ) -> Result<Self, SignatureError> {
        let name = [&config.name, &metadata.name]
            .into_iter()
            .find(|name| !name.is_empty())
            .cloned()
            .unwrap_or_default();
        let max_batch_size =
            u32::try_from(config.max_batch_size).map_err(|_| SignatureError::MaxBatchSize {
                model: name.clone(),
                value: config.max_batch_size,
            })?;
        let inputs = config.input.iter().map(|input| Configured {
            name: &input.name,
            data_type: input.data_type,
            dims: &input.dims,
            optional: input.optional,
            shape_tensor: input.is_shape_tensor,
            ragged: input.allow_ragged_batch,
        });
        let outputs = config.output.iter().map(|output| Configured {
            name: &output.name,
            data_type: output.data_type,
            dims: &output.dims,
            optional: false,
            shape_tensor: output.is_shape_tensor,
            ragged: false,
        });
        let batched = max_batch_size > 0;
        Ok(Self {
            inputs: tensors(&name, "input", inputs, &metadata.inputs, batched)?,
            outputs: tensors(&name, "output", outputs, &metadata.outputs, batched)?,
            version: version.to_owned(),
            versions: metadata.versions.clone(),
            platform: platform(config, metadata),
            max_batch_size,
            decoupled: config
                .model_transaction_policy
                .as_ref()
                .is_some_and(|policy| policy.decoupled),
            sequence: matches!(
                config.scheduling_choice,
                Some(SchedulingChoice::SequenceBatching(_))
            ),
            ensemble_steps: ensemble_steps(config),
            response_cache: config
                .response_cache
                .as_ref()
                .is_some_and(|cache| cache.enable),
            dynamic_batching: matches!(
                config.scheduling_choice,
                Some(SchedulingChoice::DynamicBatching(_))
            ),
            name,
        })
    }

    /// Whether requests carry a batch dimension.
    pub const fn batched(&self) -> bool {
        self.max_batch_size > 0
    }

    /// The input of that name.
    pub fn input(&self, name: &str) -> Option<&TensorSpec> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// The shape that a request carries for a tensor whose own shape is `shape`: the batch first,
    /// but for shape tensors and models without a batch dimension.
    pub fn wire_shape(&self, tensor: &TensorSpec, batch: u32, shape: &[i64]) -> Vec<i64> {
        let mut wire = Vec::with_capacity(shape.len() + 1);
        if self.batched() && !tensor.shape_tensor {
            wire.push(i64::from(batch));
        }
        wire.extend_from_slice(shape);
        wire
    }
}

impl TensorSpec {
    /// Whether every dimension is given by the model.
    pub fn fixed(&self) -> bool {
        self.dims.iter().all(|dim| *dim >= 0)
    }
}

/// One line a tensor: `INPUT FP32 [1, 3, -1] optional`, with a batch of 1.
impl fmt::Display for ModelSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} max_batch_size {}", self.name, self.max_batch_size)?;
        for (set, word) in [
            (self.decoupled, "decoupled"),
            (self.sequence, "sequence"),
            (self.dynamic_batching, "dynamic_batching"),
            (self.response_cache, "response_cache"),
        ] {
            if set {
                write!(f, " {word}")?;
            }
        }
        if !self.ensemble_steps.is_empty() {
            write!(f, " ensemble of {}", self.ensemble_steps.join(", "))?;
        }
        for input in &self.inputs {
            let shape = self.wire_shape(input, 1, &input.dims);
            write!(f, "\n  {} {} {shape:?}", input.name, input.datatype)?;
            for (set, word) in [
                (input.optional, "optional"),
                (input.shape_tensor, "shape tensor"),
                (input.ragged, "ragged"),
            ] {
                if set {
                    write!(f, " {word}")?;
                }
            }
        }
        Ok(())
    }
}

/// What inputs and outputs have in common in a configuration.
struct Configured<'a> {
    name: &'a str,
    data_type: i32,
    dims: &'a [i64],
    optional: bool,
    shape_tensor: bool,
    ragged: bool,
}

fn tensors<'a>(
    model: &str,
    kind: &'static str,
    configured: impl Iterator<Item = Configured<'a>>,
    reported: &[TensorMetadata],
    batched: bool,
) -> Result<Vec<TensorSpec>, SignatureError> {
    let unknown = |tensor: &str, configured: i32, reported: &str| SignatureError::Datatype {
        model: model.to_owned(),
        kind,
        tensor: tensor.to_owned(),
        configured,
        reported: reported.to_owned(),
    };
    let mut specs = Vec::new();
    for tensor in configured {
        let named = reported
            .iter()
            .find(|other| other.name == tensor.name)
            .map_or("", |other| other.datatype.as_str());
        let datatype = Datatype::from_config(tensor.data_type)
            .or_else(|| named.parse().ok())
            .ok_or_else(|| unknown(tensor.name, tensor.data_type, named))?;
        specs.push(TensorSpec {
            name: tensor.name.to_owned(),
            datatype,
            dims: tensor.dims.to_vec(),
            optional: tensor.optional,
            shape_tensor: tensor.shape_tensor,
            ragged: tensor.ragged,
        });
    }
    if !specs.is_empty() {
        return Ok(specs);
    }
    // Some backends complete their configuration without tensors; the metadata has them.
    reported
        .iter()
        .map(|tensor| {
            let datatype = tensor
                .datatype
                .parse()
                .map_err(|_| unknown(&tensor.name, 0, &tensor.datatype))?;
            let without_batch = usize::from(batched);
            Ok(TensorSpec {
                name: tensor.name.clone(),
                datatype,
                dims: tensor.shape.iter().skip(without_batch).copied().collect(),
                optional: false,
                shape_tensor: false,
                ragged: false,
            })
        })
        .collect()
}

fn platform(config: &ModelConfig, metadata: &ModelMetadataResponse) -> String {
    [&config.platform, &config.backend, &metadata.platform]
        .into_iter()
        .find(|text| !text.is_empty())
        .cloned()
        .unwrap_or_default()
}

fn ensemble_steps(config: &ModelConfig) -> Vec<String> {
    let Some(SchedulingChoice::EnsembleScheduling(ensemble)) = &config.scheduling_choice else {
        return Vec::new();
    };
    let mut steps: Vec<String> = Vec::new();
    for step in &ensemble.step {
        if !steps.contains(&step.model_name) {
            steps.push(step.model_name.clone());
        }
    }
    steps
}
