use half::{bf16, f16};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::triton::Datatype;

/// Range of integers that nothing is said about: small enough for every type, large enough not
/// to be all alike, and valid as token numbers of most models.
const DEFAULT_INTEGERS: (i128, i128) = (0, 127);

/// Range of floats that nothing is said about: `[0, 1)`, as of normalised images.
const DEFAULT_FLOATS: (f64, f64) = (0.0, 1.0);

/// 64 characters, so that six random bits are one of them.
const ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -";

/// Whether values can be made as asked for; the error says what was expected.
pub(super) fn check(
    datatype: Datatype,
    range: Option<(f64, f64)>,
    length: Option<u32>,
) -> Result<(), String> {
    if length.is_some() && datatype != Datatype::Bytes {
        return Err("`length` is for BYTES inputs only".to_owned());
    }
    let Some((low, high)) = range else {
        return Ok(());
    };
    if !(low.is_finite() && high.is_finite() && low <= high) {
        return Err(format!(
            "range [{low}, {high}] is not a range: expected two finite numbers, the smaller first"
        ));
    }
    match datatype {
        Datatype::Bytes => Err("BYTES has no numeric range: use `length`".to_owned()),
        Datatype::Bool => Err("BOOL has no range: its values are 0 and 1".to_owned()),
        _ => {
            if let Some((least, most)) = datatype.integer_bounds() {
                if low < least as f64 || high > most as f64 {
                    return Err(format!(
                        "range [{low}, {high}] does not fit: expected {least} to {most}"
                    ));
                }
                if integers(low, high).is_none() {
                    return Err(format!("range [{low}, {high}] holds no integer"));
                }
            } else if let Some(most) = datatype.float_max()
                && (low < -most || high > most || !(high - low).is_finite())
            {
                return Err(format!(
                    "range [{low}, {high}] does not fit: expected {:e} to {most:e}, and a finite width",
                    -most
                ));
            }
            Ok(())
        }
    }
}

/// The integers from `low` to `high`, both included; none where there is none between.
fn integers(low: f64, high: f64) -> Option<(i128, i128)> {
    let (low, high) = (low.ceil() as i128, high.floor() as i128);
    (low <= high).then_some((low, high))
}

/// Appends `elements` values, the same for the same seed and name on every machine.
///
/// The range has been checked. Floats are rounded to the datatype; those that rounding would
/// take to the upper end or beyond become the lower one.
pub(super) fn fill(
    buffer: &mut Vec<u8>,
    datatype: Datatype,
    elements: u64,
    range: Option<(f64, f64)>,
    length: u32,
    seed: u64,
    name: &str,
) {
    let mut random = generator(seed, name);
    if datatype == Datatype::Bytes {
        for _ in 0..elements {
            buffer.extend_from_slice(&length.to_le_bytes());
            text(buffer, length, &mut random);
        }
    } else if let Some(bounds) = datatype.integer_bounds() {
        let (low, high) = range
            .and_then(|(low, high)| integers(low, high))
            .unwrap_or(DEFAULT_INTEGERS);
        // f64 cannot hold the ends of 64-bit types exactly.
        let (low, high) = (
            low.clamp(bounds.0, bounds.1),
            high.clamp(bounds.0, bounds.1),
        );
        let span = (high - low).unsigned_abs() + 1;
        let width = datatype.size().unwrap_or_default();
        for _ in 0..elements {
            // Multiply-shift: the high half of a 128-bit product is even over the span.
            let offset = (u128::from(random.next_u64()) * span) >> 64;
            let value = low + offset.cast_signed();
            buffer.extend_from_slice(value.to_le_bytes().get(..width).unwrap_or_default());
        }
    } else if datatype == Datatype::Bool {
        for _ in 0..elements {
            buffer.push((random.next_u32() & 1) as u8);
        }
    } else {
        let (low, high) = range.unwrap_or(DEFAULT_FLOATS);
        for _ in 0..elements {
            // 53 bits: every multiple of 2^-53 in [0, 1).
            let unit = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            float(buffer, datatype, low, high, low + unit * (high - low));
        }
    }
}

/// Puts items into an order that the seed alone decides (Fisher and Yates).
pub(super) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut random = generator(seed, "order of requests");
    for last in (1..items.len()).rev() {
        // A bias of one in 2^64 per item does no harm.
        let chosen = (u128::from(random.next_u64()) * (last as u128 + 1)) >> 64;
        items.swap(last, chosen as usize);
    }
}

/// SHA-256 of seed and name, so that neither the order nor the presence of other inputs matters.
fn generator(seed: u64, name: &str) -> ChaCha8Rng {
    let mut hasher = Sha256::new();
    hasher.update(seed.to_le_bytes());
    hasher.update(name.as_bytes());
    ChaCha8Rng::from_seed(hasher.finalize().into())
}

fn text(buffer: &mut Vec<u8>, length: u32, random: &mut ChaCha8Rng) {
    let mut bits = 0_u64;
    for index in 0..length {
        if index % 10 == 0 {
            bits = random.next_u64();
        }
        let at = (bits & 63) as usize;
        buffer.push(ALPHABET.get(at).copied().unwrap_or(b' '));
        bits >>= 6;
    }
}

fn float(buffer: &mut Vec<u8>, datatype: Datatype, low: f64, high: f64, value: f64) {
    let beyond = |rounded: f64| rounded >= high && high > low;
    match datatype {
        Datatype::Fp16 => {
            let rounded = to_f16(value);
            let rounded = if beyond(rounded.to_f64_const()) {
                to_f16(low)
            } else {
                rounded
            };
            buffer.extend_from_slice(&rounded.to_le_bytes());
        }
        Datatype::Bf16 => {
            let rounded = to_bf16(value);
            let rounded = if beyond(rounded.to_f64_const()) {
                to_bf16(low)
            } else {
                rounded
            };
            buffer.extend_from_slice(&rounded.to_le_bytes());
        }
        Datatype::Fp32 => {
            let rounded = value as f32;
            let rounded = if beyond(f64::from(rounded)) {
                low as f32
            } else {
                rounded
            };
            buffer.extend_from_slice(&rounded.to_le_bytes());
        }
        _ => {
            let value = if beyond(value) { low } else { value };
            buffer.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// To half precision by way of single. The `const` conversion is plain code; the other one uses
/// the processor's instructions where it has them, which may round differently.
pub(super) const fn to_f16(value: f64) -> f16 {
    f16::from_f32_const(value as f32)
}

/// To bfloat16, by way of single precision for the same reason.
pub(super) const fn to_bf16(value: f64) -> bf16 {
    bf16::from_f32_const(value as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(datatype: Datatype, elements: u64, range: Option<(f64, f64)>, seed: u64) -> Vec<u8> {
        let mut buffer = Vec::new();
        fill(&mut buffer, datatype, elements, range, 16, seed, "x");
        buffer
    }

    fn numbers(datatype: Datatype, bytes: &[u8]) -> Vec<f64> {
        let width = datatype.size().expect("fixed size");
        bytes
            .chunks_exact(width)
            .map(|chunk| {
                let mut wide = [0; 16];
                wide[..width].copy_from_slice(chunk);
                let raw = u128::from_le_bytes(wide);
                match datatype {
                    Datatype::Fp16 => f16::from_bits(raw as u16).to_f64(),
                    Datatype::Bf16 => bf16::from_bits(raw as u16).to_f64(),
                    Datatype::Fp32 => f64::from(f32::from_bits(raw as u32)),
                    Datatype::Fp64 => f64::from_bits(raw as u64),
                    Datatype::Int8 => f64::from((raw as u8).cast_signed()),
                    Datatype::Int16 => f64::from((raw as u16).cast_signed()),
                    Datatype::Int32 => f64::from((raw as u32).cast_signed()),
                    Datatype::Int64 => (raw as u64).cast_signed() as f64,
                    _ => raw as f64,
                }
            })
            .collect()
    }

    #[test]
    fn defaults_are_in_their_ranges_and_not_all_alike() {
        for datatype in Datatype::ALL {
            let Some(width) = datatype.size() else {
                continue;
            };
            let bytes = made(datatype, 5000, None, 1);
            assert_eq!(bytes.len(), 5000 * width);
            let values = numbers(datatype, &bytes);
            let (low, high) = match datatype {
                Datatype::Bool => (0.0, 1.0),
                _ if datatype.integer_bounds().is_some() => (0.0, 127.0),
                _ => (0.0, 1.0 - f64::EPSILON / 2.0),
            };
            assert!(
                values.iter().all(|value| (low..=high).contains(value)),
                "{datatype}"
            );
            let largest = values.iter().copied().fold(f64::MIN, f64::max);
            let smallest = values.iter().copied().fold(f64::MAX, f64::min);
            assert!(largest - smallest > 0.9 * (high - low), "{datatype}");
        }
    }

    #[test]
    fn the_values_never_change() {
        // A change here changes the payload of every stored baseline.
        let golden = [
            hex(&made(Datatype::Uint8, 8, None, 42)),
            hex(&made(Datatype::Fp32, 2, None, 42)),
            hex(&made(Datatype::Fp16, 4, None, 42)),
            hex(&made(Datatype::Bf16, 4, None, 42)),
            String::from_utf8_lossy(&made(Datatype::Bytes, 1, None, 42)[4..]).into_owned(),
        ];
        assert_eq!(
            golden,
            [
                "2a202e0327202c3f",
                "1caaab3ef2db813e",
                "5d350f34d2357527",
                "ac3e823eba3eef3c",
                "pDRfozCdvx1Zx5Fb",
            ]
        );
    }

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write as _;
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    #[test]
    fn seed_and_name_both_matter() {
        let base = made(Datatype::Int32, 16, None, 1);
        assert_eq!(base, made(Datatype::Int32, 16, None, 1));
        assert_ne!(base, made(Datatype::Int32, 16, None, 2));
        let mut other = Vec::new();
        fill(&mut other, Datatype::Int32, 16, None, 16, 1, "y");
        assert_ne!(base, other);
        // A larger batch begins with the smaller one.
        assert_eq!(base, made(Datatype::Int32, 32, None, 1)[..base.len()]);
    }

    #[test]
    fn strings_have_their_length_before_them() {
        let mut bytes = Vec::new();
        fill(&mut bytes, Datatype::Bytes, 3, None, 25, 7, "prompt");
        assert_eq!(bytes.len(), 3 * 29);
        for element in bytes.chunks_exact(29) {
            assert_eq!(element[..4], 25_u32.to_le_bytes());
            assert!(element[4..].iter().all(|byte| (b' '..=b'~').contains(byte)));
        }
        assert_ne!(bytes[4..29], bytes[33..58]);
    }

    #[test]
    fn ranges_are_checked() {
        let table = [
            (
                Datatype::Int8,
                Some((-129.0, 0.0)),
                None,
                "expected -128 to 127",
            ),
            (
                Datatype::Uint8,
                Some((-1.0, 0.0)),
                None,
                "expected 0 to 255",
            ),
            (Datatype::Int32, Some((0.2, 0.8)), None, "holds no integer"),
            (Datatype::Fp32, Some((1.0, 0.0)), None, "the smaller first"),
            (Datatype::Fp32, Some((0.0, f64::NAN)), None, "finite"),
            (Datatype::Fp16, Some((0.0, 70_000.0)), None, "6.5504e4"),
            (
                Datatype::Fp64,
                Some((-f64::MAX, f64::MAX)),
                None,
                "finite width",
            ),
            (Datatype::Bytes, Some((0.0, 1.0)), None, "use `length`"),
            (Datatype::Bool, Some((0.0, 1.0)), None, "0 and 1"),
            (Datatype::Fp32, None, Some(4), "BYTES inputs only"),
        ];
        for (datatype, range, length, part) in table {
            let error = check(datatype, range, length).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(check(Datatype::Bytes, None, Some(0)), Ok(()));
    }

    #[test]
    fn a_range_without_a_value_of_the_datatype_gives_the_nearest() {
        let one = |datatype| numbers(datatype, &made(datatype, 1, Some((98.31, 98.31)), 0));
        assert_eq!(one(Datatype::Bf16), [98.5]);
        assert_eq!(one(Datatype::Fp16), [98.3125]);
    }

    proptest! {
        #[test]
        fn values_stay_in_range(
            which in 1_usize..13,
            low in -100.0_f64..100.0,
            width in 0.0_f64..27.0,
            seed: u64,
        ) {
            let datatype = Datatype::ALL[which];
            let range = (low, low + width);
            prop_assume!(check(datatype, Some(range), None).is_ok());
            for value in numbers(datatype, &made(datatype, 64, Some(range), seed)) {
                // The lower end itself may be rounded.
                let slack = low.abs() / 128.0;
                prop_assert!(
                    value >= low - slack && value <= (low + width).max(low + slack),
                    "{datatype} {value}"
                );
            }
        }

        #[test]
        fn whole_64_bit_ranges_work(seed: u64) {
            for datatype in [Datatype::Int64, Datatype::Uint64] {
                let (low, high) = datatype.integer_bounds().expect("integer");
                let range = (low as f64, high as f64);
                prop_assert_eq!(check(datatype, Some(range), None), Ok(()));
                prop_assert_eq!(made(datatype, 3, Some(range), seed).len(), 24);
            }
        }
    }
}
