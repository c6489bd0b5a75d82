//! `NumPy`'s `.npy` (`numpy/lib/format.py`, versions 1.0 to 3.0). Read here rather than by a crate:
//! the one that is kept multiplies the shape of a hostile header without a check.

use bytes::Bytes;

use super::error::shown;
use crate::data::FileContent;

/// The larger sizes that texts get are padding: a text ends at its last letter.
const PADDING: char = '\0';

/// What the header says.
struct Header {
    /// `<f4`: order of bytes, kind, and size.
    descr: String,
    fortran_order: bool,
    shape: Vec<i64>,
}

/// How elements become Triton's.
#[derive(Clone, Copy)]
struct Element {
    /// Triton's name.
    datatype: &'static str,
    /// Bytes of an element in the file.
    width: usize,
    /// Bytes whose order the file chooses: a number, or a letter of a text.
    unit: usize,
}

/// Reads an array; the error says what was expected.
pub(super) fn read(bytes: &[u8]) -> Result<FileContent, String> {
    let (header, rest) = header(bytes).ok_or("not a NumPy array (.npy), or cut short")?;
    let Header {
        descr,
        fortran_order,
        shape,
    } = header;
    let element = element(&descr)?;
    let Element {
        datatype, width, ..
    } = element;
    let count = shape
        .iter()
        .try_fold(1_usize, |product, &dim| {
            product.checked_mul(usize::try_from(dim).ok()?)
        })
        .and_then(|count| Some((count, count.checked_mul(width)?)));
    let Some((count, size)) = count else {
        return Err(format!(
            "its shape {shape:?} has more elements than can be counted"
        ));
    };
    if rest.len() != size {
        return Err(format!(
            "{} bytes of data for {count} values of {width} bytes: expected {size} (the file may be cut short)",
            rest.len()
        ));
    }
    let mut data = if fortran_order && shape.len() > 1 {
        row_major(rest, &shape, width)
    } else {
        rest.to_vec()
    };
    if descr.starts_with('>') && element.unit > 1 {
        for number in data.chunks_exact_mut(element.unit) {
            number.reverse();
        }
    }
    if datatype == "BYTES" {
        data = texts(&data, element)?;
    }
    Ok(FileContent::Array {
        datatype,
        shape,
        data: Bytes::from(data),
    })
}

/// The header and what follows it: magic, version, the header's length, a Python dictionary.
fn header(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let rest = bytes.strip_prefix(b"\x93NUMPY")?;
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => {
            let length = u32::from_le_bytes([*a, *b, *c, *d]);
            (usize::try_from(length).ok()?, rest)
        }
        _ => return None,
    };
    let (text, data) = rest.split_at_checked(length)?;
    let text = String::from_utf8_lossy(text);
    let field = |name: &str| {
        let (_, value) = text.split_once(&format!("'{name}':"))?;
        Some(value.trim_start())
    };
    let descr = field("descr")?;
    // Of several fields it is a list.
    let descr = match descr.strip_prefix('\'') {
        Some(inner) => inner.split('\'').next()?,
        None => descr.split('\n').next()?,
    };
    let inner = field("shape")?.strip_prefix('(')?.split(')').next()?;
    let shape: Option<Vec<i64>> = inner
        .split(',')
        .map(str::trim)
        .filter(|dim| !dim.is_empty())
        // Python 2 wrote long numbers so.
        .map(|dim| {
            dim.trim_end_matches('L')
                .parse()
                .ok()
                .filter(|dim| *dim >= 0)
        })
        .collect();
    let header = Header {
        descr: descr.to_owned(),
        fortran_order: field("fortran_order")?.starts_with("True"),
        shape: shape?,
    };
    Some((header, data))
}

/// What a descriptor like `<f4` means.
fn element(descr: &str) -> Result<Element, String> {
    let of = |datatype, width, unit| {
        Ok(Element {
            datatype,
            width,
            unit,
        })
    };
    let kind = descr.trim_start_matches(['<', '>', '|', '=']);
    let datatype = match kind {
        "b1" => "BOOL",
        "i1" => "INT8",
        "i2" => "INT16",
        "i4" => "INT32",
        "i8" => "INT64",
        "u1" => "UINT8",
        "u2" => "UINT16",
        "u4" => "UINT32",
        "u8" => "UINT64",
        "f2" => "FP16",
        "f4" => "FP32",
        "f8" => "FP64",
        _ if kind.starts_with('O') => {
            return Err(
                "an array of Python objects: expected numbers, bools, or texts (astype('U'))"
                    .to_owned(),
            );
        }
        _ => {
            let letters = |rest: &str| rest.parse().ok().filter(|&size: &usize| size > 0);
            return match (
                kind.strip_prefix('S').and_then(letters),
                kind.strip_prefix('U').and_then(letters),
            ) {
                (Some(size), _) => of("BYTES", size, 1),
                (_, Some(size)) if size <= usize::MAX / 4 => of("BYTES", size * 4, 4),
                _ => Err(format!(
                    "an array of {}: Triton has no such datatype",
                    shown(descr)
                )),
            };
        }
    };
    let width = kind
        .as_bytes()
        .last()
        .map_or(1, |digit| usize::from(digit - b'0'));
    of(datatype, width, width)
}

/// From column-major to row-major.
fn row_major(data: &[u8], shape: &[i64], width: usize) -> Vec<u8> {
    let dims: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
    let mut strides = Vec::with_capacity(dims.len());
    let mut stride = 1;
    for dim in &dims {
        strides.push(stride);
        stride *= dim;
    }
    let mut index = vec![0; dims.len()];
    let mut out = Vec::with_capacity(data.len());
    for _ in 0..stride {
        let at: usize = index
            .iter()
            .zip(&strides)
            .map(|(i, stride)| i * stride)
            .sum();
        out.extend_from_slice(data.get(at * width..(at + 1) * width).unwrap_or_default());
        for (i, dim) in index.iter_mut().zip(&dims).rev() {
            *i += 1;
            if *i < *dim {
                break;
            }
            *i = 0;
        }
    }
    out
}

/// Texts of a fixed width as Triton takes them, each after its length.
fn texts(data: &[u8], element: Element) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(data.len());
    for (index, text) in data.chunks_exact(element.width).enumerate() {
        let text = if element.unit == 4 {
            let letters: Option<String> = text
                .chunks_exact(4)
                .map(|c| match *c {
                    [a, b, c, d] => char::from_u32(u32::from_le_bytes([a, b, c, d])),
                    _ => None,
                })
                .collect();
            let text =
                letters.ok_or_else(|| format!("text {} holds what is no letter", index + 1))?;
            text.trim_end_matches(PADDING).as_bytes().to_vec()
        } else {
            let end = text.iter().rposition(|&b| b != 0).map_or(0, |at| at + 1);
            text.get(..end).unwrap_or_default().to_vec()
        };
        out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        out.extend_from_slice(&text);
    }
    Ok(out)
}
