use std::borrow::Cow;

use super::error::Problem;
use super::literal;
use super::random;
use super::rows::{Column, check_expected, of_file, of_steps};
use crate::data::{Content, DataSource, InputData, InputSpec, Value};
use crate::triton::{Datatype, ModelSignature, TensorSpec, nearest};

/// Length in characters of a random BYTES element that nothing is said about.
pub(super) const DEFAULT_LENGTH: u32 = 16;

/// What inputs get that nothing is said about.
const DEFAULT_DATA: DataSource = DataSource::Random {
    range: None,
    length: None,
};

/// One input of a request, everything about it known and checked.
#[derive(Debug)]
pub(super) struct Resolved<'a> {
    pub name: &'a str,
    pub datatype: Datatype,
    /// With the batch dimension, where there is one.
    pub wire_shape: Vec<i64>,
    /// Rows with values of their own: the batch, or 1.
    pub rows: u32,
    /// Elements of one row.
    pub row_elements: u64,
    pub data: Cow<'a, DataSource>,
}

impl Resolved<'_> {
    /// Elements of all rows; u128 since shapes are written by people.
    pub fn elements(&self) -> u128 {
        u128::from(self.row_elements) * u128::from(self.rows)
    }

    /// Size of its data on the wire, known before any of it is made.
    pub fn bytes(&self) -> u128 {
        let element = match (self.datatype.size(), self.data.as_ref()) {
            (Some(size), _) => size as u128,
            (None, DataSource::Zero | DataSource::File(_)) => 4,
            (None, DataSource::Random { length, .. }) => {
                4 + u128::from(length.unwrap_or(DEFAULT_LENGTH))
            }
            (None, DataSource::Literal(values)) => {
                return self.literal_bytes(values);
            }
        };
        self.elements().saturating_mul(element)
    }

    /// Strings as written, repeated in every row where one row is given.
    fn literal_bytes(&self, values: &[Value]) -> u128 {
        let (count, bytes) = literal::strings(values);
        if count > 0 && u128::from(count) == u128::from(self.row_elements) {
            bytes.saturating_mul(u128::from(self.rows))
        } else {
            bytes
        }
    }
}

/// Where the data of an input comes from.
#[derive(Debug)]
pub(super) enum Source<'a> {
    /// Every request carries the same.
    Constant(Resolved<'a>),
    /// Row by row from a file.
    Rows(Column<'a>),
}

/// Checks everything that the scenario says against the model; all problems at once.
pub(super) fn resolve<'a>(
    model: &'a ModelSignature,
    specs: &'a [InputSpec],
    data: Option<&InputData>,
    batch: u32,
) -> Result<Vec<Source<'a>>, Vec<Problem>> {
    let mut problems = Vec::new();
    if model.decoupled {
        problems.push(Problem::Decoupled);
    }
    if model.sequence {
        problems.push(Problem::Sequence);
    }
    check_batch(model, batch, &mut problems);
    check_names(model, specs, &mut problems);
    if let Some(data) = data {
        check_data(model, data, &mut problems);
    }
    let mut inputs = Vec::new();
    for tensor in &model.inputs {
        let spec = specs.iter().find(|spec| spec.name == tensor.name);
        match source(model, tensor, spec, data, batch) {
            Ok(input) => inputs.extend(input),
            Err(problem) => problems.push(problem),
        }
    }
    if inputs.is_empty() && problems.is_empty() {
        problems.push(no_inputs(model));
    }
    if problems.is_empty() {
        Ok(inputs)
    } else {
        Err(problems)
    }
}

/// Where an input's data comes from; none for one that is left out.
fn source<'a>(
    model: &'a ModelSignature,
    tensor: &'a TensorSpec,
    spec: Option<&'a InputSpec>,
    data: Option<&InputData>,
    batch: u32,
) -> Result<Option<Source<'a>>, Problem> {
    let shape = spec.and_then(|spec| spec.shape.as_deref());
    if let Some(data) = data {
        if holds(data, &tensor.name) {
            return match spec {
                Some(spec) if spec.data != DEFAULT_DATA => Err(Problem::GivenTwice {
                    name: tensor.name.clone(),
                    file: data.path.display().to_string(),
                }),
                _ => of_steps(model, tensor, shape, data).map(|column| Some(Source::Rows(column))),
            };
        }
        if spec.is_none() && !tensor.optional {
            return Err(Problem::NotInData {
                name: tensor.name.clone(),
                datatype: tensor.datatype,
                dims: tensor.dims.clone(),
                file: data.path.display().to_string(),
            });
        }
    }
    match spec {
        None if tensor.optional => Ok(None),
        Some(InputSpec {
            data: DataSource::File(file),
            ..
        }) => of_file(model, tensor, shape, file).map(|column| Some(Source::Rows(column))),
        _ => resolve_input(model, tensor, spec, batch).map(|input| Some(Source::Constant(input))),
    }
}

fn holds(data: &InputData, name: &str) -> bool {
    data.steps
        .iter()
        .any(|step| step.tensors.iter().any(|tensor| tensor.name == name))
}

/// Whether what a file names are the model's inputs and outputs, and whether the expected outputs
/// could be theirs.
fn check_data(model: &ModelSignature, data: &InputData, problems: &mut Vec<Problem>) {
    let mut unknown: Vec<&str> = Vec::new();
    for step in &data.steps {
        for tensor in &step.tensors {
            let name = tensor.name.as_str();
            // perf_analyzer's files may say there which model they are for.
            let of_model = name == "model"
                && matches!(&tensor.content, Content::Values(values) if matches!(values.as_slice(), [Value::Text(_)]));
            if model.input(name).is_none() && !of_model && !unknown.contains(&name) {
                unknown.push(name);
                let known = || model.inputs.iter().map(|input| input.name.as_str());
                problems.push(
                    Problem::UnknownInput {
                        name: name.to_owned(),
                        nearest: nearest(name, known()).map(str::to_owned),
                        known: known().map(str::to_owned).collect(),
                    }
                    .at(data, step),
                );
            }
        }
    }
    let wrong = data.steps.iter().find_map(|step| {
        step.expected.iter().find_map(|found| {
            let outputs = || model.outputs.iter().map(|output| output.name.as_str());
            let Some(tensor) = model
                .outputs
                .iter()
                .find(|output| output.name == found.name)
            else {
                return Some(
                    Problem::UnknownOutput {
                        name: found.name.clone(),
                        nearest: nearest(&found.name, outputs()).map(str::to_owned),
                        known: outputs().map(str::to_owned).collect(),
                    }
                    .at(data, step),
                );
            };
            let checked = check_expected(model, tensor, found);
            checked
                .err()
                .map(|problem| Problem::Expected(Box::new(problem)).at(data, step))
        })
    });
    problems.extend(wrong);
}

fn check_batch(model: &ModelSignature, batch: u32, problems: &mut Vec<Problem>) {
    if batch == 0 {
        problems.push(Problem::ZeroBatch);
    } else if !model.batched() {
        if batch > 1 {
            problems.push(Problem::NoBatching { batch });
        }
    } else if batch > model.max_batch_size {
        problems.push(Problem::BatchTooLarge {
            batch,
            max: model.max_batch_size,
        });
    }
}

fn check_names(model: &ModelSignature, specs: &[InputSpec], problems: &mut Vec<Problem>) {
    let known = || model.inputs.iter().map(|input| input.name.as_str());
    for (index, spec) in specs.iter().enumerate() {
        if model.input(&spec.name).is_none() {
            problems.push(Problem::UnknownInput {
                name: spec.name.clone(),
                nearest: nearest(&spec.name, known()).map(str::to_owned),
                known: known().map(str::to_owned).collect(),
            });
        }
        let earlier = specs.iter().take(index);
        if earlier.filter(|other| other.name == spec.name).count() == 1 {
            problems.push(Problem::Duplicate {
                name: spec.name.clone(),
            });
        }
    }
}

pub(super) fn no_inputs(model: &ModelSignature) -> Problem {
    let names: Vec<String> = model
        .inputs
        .iter()
        .map(|input| format!("`{}` {} {:?}", input.name, input.datatype, input.dims))
        .collect();
    Problem::NoInputs {
        inputs: if names.is_empty() {
            " (the model declares none)".to_owned()
        } else {
            format!(" (all are optional: {})", names.join(", "))
        },
        example: model
            .inputs
            .first()
            .map(|input| (input.name.clone(), input.dims.clone())),
    }
}

fn resolve_input<'a>(
    model: &ModelSignature,
    tensor: &'a TensorSpec,
    spec: Option<&'a InputSpec>,
    batch: u32,
) -> Result<Resolved<'a>, Problem> {
    let data = spec.map_or(Cow::Owned(DEFAULT_DATA), |spec| Cow::Borrowed(&spec.data));
    let shape = resolve_shape(model, tensor, spec)?;
    let bad_data = |reason| Problem::Data {
        name: tensor.name.clone(),
        datatype: tensor.datatype,
        reason,
    };
    let wire_shape = model.wire_shape(tensor, batch, &shape);
    let with_batch = wire_shape.len() > shape.len();
    let too_large = |elements: u128| Problem::TooLarge {
        bytes: elements.saturating_mul(tensor.datatype.size().unwrap_or(4) as u128),
        batch,
        largest: tensor.name.clone(),
    };
    let row_elements = elements(&shape);
    let row_elements = u64::try_from(row_elements).map_err(|_| too_large(row_elements))?;
    let input = Resolved {
        name: &tensor.name,
        datatype: tensor.datatype,
        rows: if with_batch { batch } else { 1 },
        row_elements,
        wire_shape,
        data,
    };
    match input.data.as_ref() {
        // A file's rows are no constant: `source` took them.
        DataSource::Zero | DataSource::File(_) => {}
        DataSource::Random { range, length } => {
            random::check(tensor.datatype, *range, *length).map_err(bad_data)?;
        }
        DataSource::Literal(values) => {
            literal::check(tensor.datatype, values, &shape, input.rows).map_err(bad_data)?;
        }
    }
    Ok(input)
}

/// The number of elements of a shape; saturates, since shapes are written by people.
pub(super) fn elements(shape: &[i64]) -> u128 {
    if shape.contains(&0) {
        // However large the others are.
        return 0;
    }
    shape.iter().fold(1_u128, |product, dim| {
        product.saturating_mul(u128::from(dim.unsigned_abs()))
    })
}

/// The shape without the batch dimension.
fn resolve_shape(
    model: &ModelSignature,
    tensor: &TensorSpec,
    spec: Option<&InputSpec>,
) -> Result<Vec<i64>, Problem> {
    let (name, dims) = (tensor.name.clone(), tensor.dims.clone());
    let Some(spec) = spec else {
        return if tensor.fixed() {
            Ok(dims)
        } else {
            Err(Problem::MissingInput {
                name,
                datatype: tensor.datatype,
                dims,
            })
        };
    };
    // Values that are written out have a shape of their own.
    let written = match &spec.data {
        DataSource::Literal(values) if spec.shape.is_none() && !tensor.fixed() => {
            literal::nested_shape(values).filter(|shape| shape.len() == dims.len())
        }
        _ => None,
    };
    let Some(shape) = spec.shape.clone().or(written) else {
        return if tensor.fixed() {
            Ok(dims)
        } else {
            Err(Problem::MissingShape { name, dims })
        };
    };
    fitting(model, tensor, shape)
}

/// A shape without the batch dimension, if the model takes it.
pub(super) fn fitting(
    model: &ModelSignature,
    tensor: &TensorSpec,
    shape: Vec<i64>,
) -> Result<Vec<i64>, Problem> {
    let (name, dims) = (tensor.name.clone(), tensor.dims.clone());
    let batch_dimension = model.batched() && !tensor.shape_tensor;
    if shape.len() == dims.len() + 1 && batch_dimension {
        return Err(Problem::BatchDimension { name, shape, dims });
    }
    if shape.len() != dims.len() {
        return Err(Problem::Rank { name, shape, dims });
    }
    if shape.iter().any(|dim| *dim < 0) {
        return Err(Problem::NegativeDim { name, shape, dims });
    }
    if shape
        .iter()
        .zip(&dims)
        .any(|(own, dim)| *dim >= 0 && own != dim)
    {
        return Err(Problem::Dims { name, shape, dims });
    }
    Ok(shape)
}
