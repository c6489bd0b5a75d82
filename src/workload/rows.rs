//! Inputs that come from files: each row is one inference's worth, without the batch dimension.

use bytes::Bytes;

use super::error::Problem;
use super::literal;
use super::resolve::{elements, fitting};
use crate::data::{Content, FileContent, InputData, InputFile, TensorData, Texts, Value};
use crate::triton::{Datatype, ModelSignature, TensorSpec};

/// One input's data for one inference.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// Without the batch dimension.
    pub shape: Vec<i64>,
    /// As on the wire.
    pub data: Bytes,
}

/// One input's data for one inference after another.
#[derive(Debug)]
pub(super) struct Column<'a> {
    pub name: &'a str,
    pub datatype: Datatype,
    /// Whether a batch dimension comes before the shape.
    pub batched: bool,
    /// None where a step leaves an optional input out.
    pub rows: Vec<Option<Row>>,
}

/// What is known of a tensor before a row of it is read.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    model: &'a ModelSignature,
    tensor: &'a TensorSpec,
    /// From the thresholds file, for rows that give none.
    shape: Option<&'a [i64]>,
}

/// The rows of an input in the steps of a file.
pub(super) fn of_steps<'a>(
    model: &'a ModelSignature,
    tensor: &'a TensorSpec,
    shape: Option<&[i64]>,
    data: &InputData,
) -> Result<Column<'a>, Problem> {
    let wanted = Wanted {
        model,
        tensor,
        shape,
    };
    let mut rows = Vec::with_capacity(data.steps.len());
    for step in &data.steps {
        let at = |problem: Problem| problem.at(data, step);
        match step.tensors.iter().find(|found| found.name == tensor.name) {
            None if tensor.optional => rows.push(None),
            None => return Err(at(missing(tensor))),
            Some(found) => match &found.content {
                Content::File(content) => {
                    rows.extend(
                        of_content(wanted, content)
                            .map_err(at)?
                            .into_iter()
                            .map(Some),
                    );
                }
                content => rows.push(Some(one(wanted, found, content).map_err(at)?)),
            },
        }
    }
    Ok(column(model, tensor, rows))
}

/// The rows of an input in a file of its own.
pub(super) fn of_file<'a>(
    model: &'a ModelSignature,
    tensor: &'a TensorSpec,
    shape: Option<&[i64]>,
    file: &InputFile,
) -> Result<Column<'a>, Problem> {
    let wanted = Wanted {
        model,
        tensor,
        shape,
    };
    let rows = of_content(wanted, &file.content).map_err(|problem| Problem::InFile {
        place: file.path.display().to_string(),
        problem: Box::new(problem),
    })?;
    Ok(column(model, tensor, rows.into_iter().map(Some).collect()))
}

/// Whether the data of an output that a file expects could be the model's.
pub(super) fn check_expected(
    model: &ModelSignature,
    tensor: &TensorSpec,
    found: &TensorData,
) -> Result<(), Problem> {
    let wanted = Wanted {
        model,
        tensor,
        shape: None,
    };
    match one(wanted, found, &found.content) {
        // Its shape is the model's answer's to give.
        Err(Problem::MissingShape { .. }) => Ok(()),
        other => other.map(drop),
    }
}

fn column<'a>(
    model: &ModelSignature,
    tensor: &'a TensorSpec,
    rows: Vec<Option<Row>>,
) -> Column<'a> {
    Column {
        name: &tensor.name,
        datatype: tensor.datatype,
        batched: model.batched() && !tensor.shape_tensor,
        rows,
    }
}

fn missing(tensor: &TensorSpec) -> Problem {
    Problem::NotInStep {
        name: tensor.name.clone(),
        datatype: tensor.datatype,
        dims: tensor.dims.clone(),
    }
}

/// The row that a step holds.
fn one(wanted: Wanted<'_>, found: &TensorData, content: &Content) -> Result<Row, Problem> {
    let given = found.shape.as_deref().or(wanted.shape);
    match content {
        Content::Values(values) => from_values(wanted, given, values),
        Content::Encoded(data) if wanted.tensor.datatype == Datatype::Bytes => {
            encoded_texts(wanted, given, data)
        }
        Content::Encoded(data) => numbers(wanted, given, data, "base64 data"),
        Content::File(content) => {
            let mut rows = of_content(wanted, content)?;
            match (rows.pop(), rows.is_empty()) {
                (Some(row), true) => Ok(row),
                _ => Err(wanted.bad("holds several rows: expected one".to_owned())),
            }
        }
    }
}

fn from_values(
    wanted: Wanted<'_>,
    given: Option<&[i64]>,
    values: &[Value],
) -> Result<Row, Problem> {
    let nested = || literal::nested_shape(values).filter(|shape| shape.len() > 1);
    let shape = match given {
        Some(given) => wanted.fitting(given.to_vec())?,
        None if wanted.tensor.fixed() => wanted.tensor.dims.clone(),
        None => match nested() {
            Some(nested) => wanted.fitting(nested)?,
            None => wanted.inferred(values.len() as u64)?,
        },
    };
    let datatype = wanted.tensor.datatype;
    let mut data = Vec::new();
    literal::check(datatype, values, &shape, 1)
        .and_then(|()| literal::fill(&mut data, datatype, values, elements(&shape) as u64, 1))
        .map_err(|reason| wanted.bad(reason))?;
    Ok(Row {
        shape,
        data: Bytes::from(data),
    })
}

/// Numbers as on the wire, one row.
fn numbers(
    wanted: Wanted<'_>,
    given: Option<&[i64]>,
    data: &Bytes,
    what: &str,
) -> Result<Row, Problem> {
    let width = wanted.tensor.datatype.size().unwrap_or(1) as u64;
    let shape = match given {
        Some(given) => wanted.fitting(given.to_vec())?,
        None if wanted.tensor.fixed() => wanted.tensor.dims.clone(),
        None => wanted.inferred(data.len() as u64 / width)?,
    };
    let expected = elements(&shape).saturating_mul(u128::from(width));
    if data.len() as u128 != expected {
        return Err(wanted.bad(format!(
            "{what} of {} bytes for shape {shape:?}: expected {expected}",
            data.len()
        )));
    }
    wanted.bools(data)?;
    Ok(Row {
        shape,
        data: data.clone(),
    })
}

/// Base64 of texts: with their lengths before them as `perf_analyzer` wants it, or one text without.
fn encoded_texts(wanted: Wanted<'_>, given: Option<&[i64]>, data: &Bytes) -> Result<Row, Problem> {
    // A length beyond this much more than there is is no length but the start of a picture.
    const SLACK: usize = 1024;
    let chain = prefixed(data);
    let (data, count) = match chain {
        Ok(count) => (data.clone(), count),
        Err(cut) if cut.length <= cut.left.saturating_mul(2).saturating_add(SLACK) => {
            return Err(wanted.bad(cut.to_string()));
        }
        Err(_) => (with_length(data), 1),
    };
    let shape = match given {
        Some(given) => wanted.fitting(given.to_vec())?,
        None if wanted.tensor.fixed() => wanted.tensor.dims.clone(),
        None => wanted.inferred(count)?,
    };
    if elements(&shape) != u128::from(count) {
        return Err(wanted.bad(format!(
            "base64 data of {count} elements for shape {shape:?}: expected {}",
            elements(&shape)
        )));
    }
    Ok(Row { shape, data })
}

/// The rows of a file of one input.
fn of_content(wanted: Wanted<'_>, content: &FileContent) -> Result<Vec<Row>, Problem> {
    match content {
        FileContent::Array {
            datatype,
            shape,
            data,
        } => array(wanted, datatype, shape, data),
        FileContent::Plain { data, texts } => plain(wanted, data, *texts),
    }
}

fn array(
    wanted: Wanted<'_>,
    datatype: &str,
    shape: &[i64],
    data: &Bytes,
) -> Result<Vec<Row>, Problem> {
    let tensor = wanted.tensor;
    if datatype != tensor.datatype.name() {
        return Err(wanted.bad(format!(
            "the array holds {datatype}: expected {}",
            tensor.datatype
        )));
    }
    let row = if shape.len() == tensor.dims.len() + 1 {
        shape.get(1..).unwrap_or_default()
    } else {
        shape
    };
    let row = wanted.fitting(row.to_vec())?;
    if let Some(given) = wanted.shape
        && given != row
    {
        return Err(wanted.bad(format!(
            "the array's rows have the shape {row:?}: expected {given:?} as in the thresholds file"
        )));
    }
    if shape.len() == tensor.dims.len() {
        return Ok(vec![Row {
            shape: row,
            data: data.clone(),
        }]);
    }
    let count = shape.first().copied().unwrap_or_default() as u64;
    cut(wanted, &row, data, Some(count))
}

fn plain(wanted: Wanted<'_>, data: &Bytes, texts: Texts) -> Result<Vec<Row>, Problem> {
    let shape = match wanted.shape {
        Some(given) => wanted.fitting(given.to_vec())?,
        None if wanted.tensor.fixed() => wanted.tensor.dims.clone(),
        None => {
            return Err(Problem::MissingShape {
                name: wanted.tensor.name.clone(),
                dims: wanted.tensor.dims.clone(),
            });
        }
    };
    if wanted.tensor.datatype != Datatype::Bytes {
        wanted.bools(data)?;
        return cut(wanted, &shape, data, None);
    }
    let data = match texts {
        Texts::Lines => lines(data),
        Texts::Whole => with_length(data),
        Texts::Prefixed => {
            prefixed(data).map_err(|cut| wanted.bad(cut.to_string()))?;
            data.clone()
        }
    };
    cut(wanted, &shape, &data, None)
}

/// Cuts data into rows of a shape; `count` where the data says how many there are.
fn cut(
    wanted: Wanted<'_>,
    shape: &[i64],
    data: &Bytes,
    count: Option<u64>,
) -> Result<Vec<Row>, Problem> {
    let elements = elements(shape);
    let mut rows = Vec::new();
    let mut rest = data.clone();
    let none = || wanted.bad("no data: expected at least one row".to_owned());
    if elements == 0 {
        // Empty tensors: as many as were counted, or one.
        return match (data.is_empty(), count.unwrap_or(1)) {
            (true, 0) => Err(none()),
            (true, count) => Ok((0..count)
                .map(|_| Row {
                    shape: shape.to_vec(),
                    data: Bytes::new(),
                })
                .collect()),
            (false, _) => Err(wanted.bad(format!(
                "{} bytes for the shape {shape:?}, which holds nothing",
                data.len()
            ))),
        };
    }
    if rest.is_empty() {
        return Err(none());
    }
    while !rest.is_empty() {
        let size = match wanted.tensor.datatype.size() {
            Some(width) => usize::try_from(elements.saturating_mul(width as u128)).ok(),
            None => texts_size(&rest, elements),
        };
        match size {
            Some(size) if size <= rest.len() => rows.push(Row {
                shape: shape.to_vec(),
                data: rest.split_to(size),
            }),
            _ => {
                let what = match wanted.tensor.datatype.size() {
                    Some(width) => format!(
                        "{} bytes are no multiple of the {} that shape {shape:?} has",
                        data.len(),
                        elements.saturating_mul(width as u128)
                    ),
                    None => format!(
                        "{} texts are no multiple of the {elements} that shape {shape:?} has",
                        prefixed(data).unwrap_or_default()
                    ),
                };
                return Err(wanted.bad(what));
            }
        }
    }
    Ok(rows)
}

/// The bytes of so many texts with their lengths; none where there are fewer.
fn texts_size(data: &[u8], count: u128) -> Option<usize> {
    let mut at = 0_usize;
    for _ in 0..count {
        let length = length(data.get(at..)?)?;
        at = at.checked_add(4)?.checked_add(length)?;
        if at > data.len() {
            return None;
        }
    }
    Some(at)
}

/// A text that is not all there.
struct Cut {
    element: u64,
    length: usize,
    left: usize,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            element,
            length,
            left,
        } = self;
        write!(
            f,
            "element {element} is cut: its length prefix says {length} bytes, {left} follow"
        )
    }
}

/// The number of texts, each after its length in 4 bytes.
fn prefixed(data: &[u8]) -> Result<u64, Cut> {
    let (mut rest, mut count) = (data, 0);
    while !rest.is_empty() {
        count += 1;
        let length = length(rest).unwrap_or(usize::MAX);
        let left = rest.len().saturating_sub(4);
        rest = rest
            .get(4..)
            .and_then(|rest| rest.get(length..))
            .ok_or(Cut {
                element: count,
                length,
                left,
            })?;
    }
    Ok(count)
}

fn length(data: &[u8]) -> Option<usize> {
    match data {
        [a, b, c, d, ..] => usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok(),
        _ => None,
    }
}

fn with_length(text: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 4);
    out.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(text);
    Bytes::from(out)
}

/// Each line a text; the end of the last may be missing.
fn lines(data: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(data.len() + data.len() / 8);
    let data = data.strip_suffix(b"\n").unwrap_or(data);
    if data.is_empty() {
        return Bytes::new();
    }
    for line in data.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        out.extend_from_slice(&with_length(line));
    }
    Bytes::from(out)
}

impl Wanted<'_> {
    fn bad(&self, reason: String) -> Problem {
        Problem::Data {
            name: self.tensor.name.clone(),
            datatype: self.tensor.datatype,
            reason,
        }
    }

    fn fitting(&self, shape: Vec<i64>) -> Result<Vec<i64>, Problem> {
        fitting(self.model, self.tensor, shape)
    }

    /// The shape of so many values where the model leaves exactly one dimension open.
    fn inferred(&self, count: u64) -> Result<Vec<i64>, Problem> {
        let dims = &self.tensor.dims;
        let missing = || Problem::MissingShape {
            name: self.tensor.name.clone(),
            dims: dims.clone(),
        };
        if dims.iter().filter(|dim| **dim < 0).count() != 1 {
            return Err(missing());
        }
        let fixed: Vec<i64> = dims.iter().copied().filter(|dim| *dim >= 0).collect();
        let fixed = elements(&fixed);
        if fixed == 0 {
            return Err(missing());
        }
        if u128::from(count) % fixed != 0 {
            return Err(self.bad(format!(
                "{count} values for the model's {dims:?}: expected a multiple of {fixed}"
            )));
        }
        let open = i64::try_from(u128::from(count) / fixed).unwrap_or(i64::MAX);
        Ok(dims
            .iter()
            .map(|&dim| if dim < 0 { open } else { dim })
            .collect())
    }

    /// A BOOL on the wire is 0 or 1; backends take others for true, or crash.
    fn bools(&self, data: &[u8]) -> Result<(), Problem> {
        let wrong = data.iter().find(|&&byte| byte > 1);
        match (self.tensor.datatype, wrong) {
            (Datatype::Bool, Some(byte)) => Err(self.bad(format!(
                "a byte {byte} among its values: expected 0 and 1 only"
            ))),
            _ => Ok(()),
        }
    }
}
