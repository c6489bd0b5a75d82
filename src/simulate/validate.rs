//! Checks a request in Triton's order and with its texts.

use bytes::{BufMut, Bytes, BytesMut};
use tonic::Code;

use super::datatype::Wire;
use super::spec::{ModelSpec, TensorSpec};
use super::texts::{self, Refusal};
use crate::triton::proto::inference::infer_parameter::ParameterChoice;
use crate::triton::proto::inference::model_infer_request::InferInputTensor;
use crate::triton::proto::inference::{InferParameter, InferTensorContents, ModelInferRequest};

/// A request that may run.
#[derive(Debug, PartialEq)]
pub(crate) struct Accepted {
    /// Inferences in it; 1 where the model does not batch.
    pub(crate) batch: u32,
    /// Its inputs, with raw data.
    pub(crate) inputs: Vec<Input>,
    /// Positions of the wanted outputs among the model's.
    pub(crate) outputs: Vec<usize>,
    /// Whether a stream wants the empty final response.
    pub(crate) empty_final: bool,
}

/// One input of an accepted request.
#[derive(Debug, PartialEq)]
pub(crate) struct Input {
    pub(crate) datatype: Wire,
    pub(crate) shape: Vec<i64>,
    pub(crate) raw: Bytes,
}

/// The name and data of an input before it is checked against the model.
struct Given<'a> {
    tensor: &'a InferInputTensor,
    raw: Bytes,
}

pub(crate) fn validate(
    model: &ModelSpec,
    request: &ModelInferRequest,
) -> Result<Accepted, Refusal> {
    let empty_final = parameters(request)?;
    for (index, input) in request.inputs.iter().enumerate() {
        if request
            .inputs
            .iter()
            .take(index)
            .any(|earlier| earlier.name == input.name)
        {
            let text = format!("input '{}' already exists in request", input.name);
            return Err(Refusal::invalid(text).of_request(&request.id));
        }
    }
    let given = data(&model.name, request)?;
    let outputs = wanted_outputs(model, request)?;
    let specs = count_and_names(model, request)?;
    let batch = batch(model, request)?;
    let mut inputs = Vec::with_capacity(given.len());
    for (given, spec) in given.into_iter().zip(specs) {
        inputs.push(
            content(model, spec, given).map_err(|refusal| match refusal.code {
                // Raised by the backend, which does not know the request's id.
                Code::Internal => refusal,
                _ => refusal.of_request(&request.id),
            })?,
        );
    }
    Ok(Accepted {
        batch,
        inputs,
        outputs,
        empty_final,
    })
}

/// Request parameters; answers whether the empty final response is wanted.
fn parameters(request: &ModelInferRequest) -> Result<bool, Refusal> {
    let wrong_type = |key: &str, expected: &str| {
        let text = format!("invalid value type for '{key}' parameter, expected {expected}.");
        Refusal::invalid(text)
    };
    let mut empty_final = false;
    for (key, InferParameter { parameter_choice }) in &request.parameters {
        use ParameterChoice::{BoolParam, Int64Param, StringParam, Uint64Param};
        match (key.as_str(), parameter_choice) {
            ("sequence_id", Some(Int64Param(_) | StringParam(_)))
            | ("sequence_start" | "sequence_end", Some(BoolParam(_)))
            | ("priority", Some(Uint64Param(_)))
            | ("timeout", Some(Int64Param(_))) => {}
            ("priority", Some(Int64Param(value))) if *value >= 0 => {}
            ("priority", Some(Int64Param(_))) => {
                let text = "invalid value for 'priority', expected value >= 0.";
                return Err(Refusal::invalid(text));
            }
            ("triton_enable_empty_final_response", Some(BoolParam(value))) => empty_final = *value,
            ("sequence_id", _) => return Err(wrong_type(key, "int64_param or string_param")),
            ("priority", _) => return Err(wrong_type(key, "int64_param or uint64_param")),
            ("timeout", _) => return Err(wrong_type(key, "int64_param")),
            ("sequence_start" | "sequence_end" | "triton_enable_empty_final_response", _) => {
                return Err(wrong_type(key, "bool_param"));
            }
            (reserved, _) if reserved.starts_with("triton_") => {
                return Err(Refusal::invalid(
                    "parameter keys starting with 'triton_' are reserved for Triton usage. Only \
                     the following keys starting with 'triton_' are allowed: \
                     triton_enable_empty_final_response",
                ));
            }
            (_, Some(Uint64Param(_)) | None) => {
                return Err(wrong_type(key, "int64_param, bool_param, or string_param"));
            }
            _ => {}
        }
    }
    Ok(empty_final)
}

/// The data of each input, typed contents turned into raw.
fn data<'a>(model: &str, request: &'a ModelInferRequest) -> Result<Vec<Given<'a>>, Refusal> {
    let mut raws = request.raw_input_contents.iter();
    let mut given = Vec::with_capacity(request.inputs.len());
    for tensor in &request.inputs {
        let name = &tensor.name;
        if let Some(region) = tensor.parameters.get("shared_memory_region") {
            let region = match &region.parameter_choice {
                Some(ParameterChoice::StringParam(region)) => region.as_str(),
                _ => "",
            };
            let text = format!("Unable to find shared memory region: '{region}'");
            return Err(Refusal::new(Code::NotFound, text));
        }
        let raw = match (&tensor.contents, request.raw_input_contents.is_empty()) {
            (Some(_), false) => {
                return Err(Refusal::invalid(format!(
                    "contents field must not be specified when using raw_input_contents for \
                     '{name}' for model '{model}'"
                )));
            }
            (Some(contents), true) => {
                raw_of(contents, Wire::parse(&tensor.datatype)).map_err(|got| {
                    Refusal::invalid(format!(
                        "unexpected explicit tensor data for input tensor '{name}' for model \
                         '{model}' of type '{got}', expected datatype '{}'",
                        tensor.datatype
                    ))
                })?
            }
            (None, _) => raws.next().cloned().ok_or_else(|| {
                Refusal::invalid(format!(
                    "unable to find data for input tensor '{name}' for model '{model}' in request."
                ))
            })?,
        };
        given.push(Given { tensor, raw });
    }
    Ok(given)
}

/// Raw bytes of typed contents; the error is the kind that was found instead.
fn raw_of(contents: &InferTensorContents, declared: Option<Wire>) -> Result<Bytes, &'static str> {
    let mut raw = BytesMut::new();
    let is = |wires: &[Wire]| declared.is_some_and(|declared| wires.contains(&declared));
    let allow = |wires: &[Wire], got| if is(wires) { Ok(()) } else { Err(got) };
    if !contents.bool_contents.is_empty() {
        allow(&[Wire::Bool], "BOOL")?;
        contents
            .bool_contents
            .iter()
            .for_each(|value| raw.put_u8(u8::from(*value)));
    }
    if !contents.int_contents.is_empty() {
        allow(&[Wire::Int8, Wire::Int16, Wire::Int32], "INT32")?;
        for value in &contents.int_contents {
            match declared {
                Some(Wire::Int8) => raw.put_i8(*value as i8),
                Some(Wire::Int16) => raw.put_i16_le(*value as i16),
                _ => raw.put_i32_le(*value),
            }
        }
    }
    if !contents.int64_contents.is_empty() {
        allow(&[Wire::Int64], "INT64")?;
        contents
            .int64_contents
            .iter()
            .for_each(|value| raw.put_i64_le(*value));
    }
    if !contents.uint_contents.is_empty() {
        allow(&[Wire::Uint8, Wire::Uint16, Wire::Uint32], "UINT32")?;
        for value in &contents.uint_contents {
            match declared {
                Some(Wire::Uint8) => raw.put_u8(*value as u8),
                Some(Wire::Uint16) => raw.put_u16_le(*value as u16),
                _ => raw.put_u32_le(*value),
            }
        }
    }
    if !contents.uint64_contents.is_empty() {
        allow(&[Wire::Uint64], "UINT64")?;
        contents
            .uint64_contents
            .iter()
            .for_each(|value| raw.put_u64_le(*value));
    }
    if !contents.fp32_contents.is_empty() {
        allow(&[Wire::Fp32], "FP32")?;
        contents
            .fp32_contents
            .iter()
            .for_each(|value| raw.put_f32_le(*value));
    }
    if !contents.fp64_contents.is_empty() {
        allow(&[Wire::Fp64], "FP64")?;
        contents
            .fp64_contents
            .iter()
            .for_each(|value| raw.put_f64_le(*value));
    }
    if !contents.bytes_contents.is_empty() {
        allow(&[Wire::Bytes], "BYTES")?;
        for value in &contents.bytes_contents {
            raw.put_u32_le(value.len() as u32);
            raw.put_slice(value);
        }
    }
    Ok(raw.freeze())
}

/// Positions of the requested outputs; none requested is all.
fn wanted_outputs(model: &ModelSpec, request: &ModelInferRequest) -> Result<Vec<usize>, Refusal> {
    if request.outputs.is_empty() {
        return Ok((0..model.outputs.len()).collect());
    }
    request
        .outputs
        .iter()
        .map(|wanted| {
            model
                .outputs
                .iter()
                .position(|output| output.name == wanted.name)
                .ok_or_else(|| {
                    Refusal::invalid(format!(
                        "unexpected inference output '{}' for model '{}'",
                        wanted.name, model.name
                    ))
                })
        })
        .collect()
}

/// The model's tensor for each input. Presence goes by count, as in Triton: with optional inputs
/// a missing required one can pass.
fn count_and_names<'a>(
    model: &'a ModelSpec,
    request: &ModelInferRequest,
) -> Result<Vec<&'a TensorSpec>, Refusal> {
    let required = model.inputs.iter().filter(|input| !input.optional).count();
    if !(required..=model.inputs.len()).contains(&request.inputs.len()) {
        let got: Vec<&str> = request
            .inputs
            .iter()
            .map(|input| input.name.as_str())
            .collect();
        return Err(texts::input_count(&model.name, &model.inputs, &got).of_request(&request.id));
    }
    request
        .inputs
        .iter()
        .map(|input| {
            model
                .inputs
                .iter()
                .find(|spec| spec.name == input.name)
                .ok_or_else(|| {
                    Refusal::invalid(format!(
                        "unexpected inference input '{}' for model '{}'",
                        input.name, model.name
                    ))
                })
        })
        .collect()
}

/// The batch on which all inputs agree.
fn batch(model: &ModelSpec, request: &ModelInferRequest) -> Result<u32, Refusal> {
    let refuse = |text: String| Err(Refusal::invalid(text).of_request(&request.id));
    let name = &model.name;
    let batching = model.max_batch_size > 0;
    let mut batch: Option<i64> = None;
    for input in &request.inputs {
        if batching && input.shape.is_empty() {
            return refuse(format!(
                "input '{}' has no shape but model requires batch dimension for '{name}'",
                input.name
            ));
        }
        if input.shape.iter().any(|dim| *dim < 0) {
            return refuse(format!(
                "All input dimensions should be specified for input '{}' for model '{name}', got {}",
                input.name,
                texts::shape(&input.shape)
            ));
        }
        if let (true, Some(first)) = (batching, input.shape.first()) {
            if batch.is_some_and(|batch| batch != *first) {
                return refuse(format!(
                    "input '{}' batch size does not match other inputs for '{name}'",
                    input.name
                ));
            }
            batch = Some(*first);
        }
    }
    let batch = batch.unwrap_or(1);
    if batching && batch > i64::from(model.max_batch_size) {
        return refuse(format!(
            "inference request batch-size must be <= {} for '{name}'",
            model.max_batch_size
        ));
    }
    Ok(batch as u32)
}

/// Datatype, shape, and byte size of one input.
fn content(model: &ModelSpec, spec: &TensorSpec, given: Given<'_>) -> Result<Input, Refusal> {
    let Given { tensor, raw } = given;
    let (input, name) = (&spec.name, &model.name);
    let datatype = Wire::parse(&tensor.datatype);
    if datatype != Some(spec.datatype) {
        return Err(Refusal::invalid(format!(
            "inference input '{input}' data-type is '{}', but model '{name}' expects '{}'",
            datatype.map_or("<invalid>", Wire::name),
            spec.datatype.name()
        )));
    }
    let batching = model.max_batch_size > 0;
    let expected: Vec<i64> = batching
        .then_some(-1)
        .into_iter()
        .chain(spec.dims.iter().copied())
        .collect();
    let fits = expected.len() == tensor.shape.len()
        && expected
            .iter()
            .zip(&tensor.shape)
            .all(|(want, got)| *want == -1 || want == got);
    if !fits {
        return Err(texts::shape_mismatch(
            input,
            name,
            &expected,
            &tensor.shape,
            batching,
        ));
    }
    let elements = elements(&tensor.shape);
    match spec.datatype.size() {
        Some(size) => {
            let expected = elements.saturating_mul(size);
            if expected != raw.len() as u64 {
                return Err(Refusal::invalid(format!(
                    "input byte size mismatch for input '{input}' for model '{name}'. Expected \
                     {expected}, got {}",
                    raw.len()
                )));
            }
        }
        None => strings(input, name, elements, &raw)?,
    }
    Ok(Input {
        datatype: spec.datatype,
        shape: tensor.shape.clone(),
        raw,
    })
}

/// How many elements a shape has, as far as 64 bits reach.
pub(crate) fn elements(shape: &[i64]) -> u64 {
    shape.iter().fold(1u64, |product, dim| {
        product.saturating_mul((*dim).max(0) as u64)
    })
}

/// Length-prefixed strings.
fn strings(input: &str, model: &str, expected: u64, raw: &[u8]) -> Result<(), Refusal> {
    let mut rest = raw;
    let mut found = 0u64;
    while !rest.is_empty() {
        if found == expected {
            return Err(Refusal::invalid(format!(
                "unexpected number of string elements {} for inference input '{input}' for model \
                 '{model}', expecting {expected}",
                found + 1
            )));
        }
        let Some((prefix, after)) = rest.split_first_chunk::<4>() else {
            return Err(Refusal::invalid(format!(
                "incomplete string length indicator for inference input '{input}' for model \
                 '{model}', expecting 4 bytes but only {} bytes available. Please make sure the \
                 string length indicator is in one buffer.",
                rest.len()
            )));
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        let Some(after) = after.get(length..) else {
            return Err(Refusal::new(
                Code::Internal,
                format!(
                    "incomplete string data for inference input '{input}', expecting string of \
                     length {length} but only {} bytes available",
                    after.len()
                ),
            ));
        };
        rest = after;
        found += 1;
    }
    if found < expected {
        return Err(Refusal::invalid(format!(
            "expected {expected} string elements for inference input '{input}' for model \
             '{model}', got {found}"
        )));
    }
    Ok(())
}
