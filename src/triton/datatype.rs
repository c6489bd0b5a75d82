use std::fmt;
use std::str::FromStr;

use super::proto::inference::DataType as Configured;

/// The element types that Triton knows on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Datatype {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned, 8 bits.
    Uint8,
    /// Unsigned, 16 bits.
    Uint16,
    /// Unsigned, 32 bits.
    Uint32,
    /// Unsigned, 64 bits.
    Uint64,
    /// Signed, 8 bits.
    Int8,
    /// Signed, 16 bits.
    Int16,
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// IEEE 754 half precision.
    Fp16,
    /// The upper half of a single-precision number.
    Bf16,
    /// IEEE 754 single precision.
    Fp32,
    /// IEEE 754 double precision.
    Fp64,
    /// Byte strings of any length, each after its length in 4 bytes; `TYPE_STRING` in a model's
    /// configuration.
    Bytes,
}

/// A datatype that is not one of Triton's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a datatype: expected one of {names}", names = Datatype::ALL.map(Datatype::name).join(", "))]
pub struct UnknownDatatype(pub String);

impl Datatype {
    /// Every datatype.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Fp16,
        Self::Bf16,
        Self::Fp32,
        Self::Fp64,
        Self::Bytes,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "BOOL",
            Self::Uint8 => "UINT8",
            Self::Uint16 => "UINT16",
            Self::Uint32 => "UINT32",
            Self::Uint64 => "UINT64",
            Self::Int8 => "INT8",
            Self::Int16 => "INT16",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Fp16 => "FP16",
            Self::Bf16 => "BF16",
            Self::Fp32 => "FP32",
            Self::Fp64 => "FP64",
            Self::Bytes => "BYTES",
        }
    }

    /// Bytes of one element; none for `BYTES`, whose elements vary.
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Uint8 | Self::Int8 => Some(1),
            Self::Uint16 | Self::Int16 | Self::Fp16 | Self::Bf16 => Some(2),
            Self::Uint32 | Self::Int32 | Self::Fp32 => Some(4),
            Self::Uint64 | Self::Int64 | Self::Fp64 => Some(8),
            Self::Bytes => None,
        }
    }

    /// Smallest and largest value of an integer type; none for other types.
    pub const fn integer_bounds(self) -> Option<(i128, i128)> {
        match self {
            Self::Uint8 => Some((0, u8::MAX as i128)),
            Self::Uint16 => Some((0, u16::MAX as i128)),
            Self::Uint32 => Some((0, u32::MAX as i128)),
            Self::Uint64 => Some((0, u64::MAX as i128)),
            Self::Int8 => Some((i8::MIN as i128, i8::MAX as i128)),
            Self::Int16 => Some((i16::MIN as i128, i16::MAX as i128)),
            Self::Int32 => Some((i32::MIN as i128, i32::MAX as i128)),
            Self::Int64 => Some((i64::MIN as i128, i64::MAX as i128)),
            Self::Bool | Self::Fp16 | Self::Bf16 | Self::Fp32 | Self::Fp64 | Self::Bytes => None,
        }
    }

    /// The largest finite value of a floating-point type; none for other types.
    pub const fn float_max(self) -> Option<f64> {
        match self {
            Self::Fp16 => Some(65_504.0),
            // 255/128 x 2^127: 7 bits of mantissa, all set.
            Self::Bf16 => Some(3.389_531_389_251_535_5e38),
            Self::Fp32 => Some(f32::MAX as f64),
            Self::Fp64 => Some(f64::MAX),
            _ => None,
        }
    }

    /// From the enum of a model's configuration; none for `TYPE_INVALID` and unknown numbers.
    pub fn from_config(number: i32) -> Option<Self> {
        Some(match Configured::try_from(number).ok()? {
            Configured::TypeInvalid => return None,
            Configured::TypeBool => Self::Bool,
            Configured::TypeUint8 => Self::Uint8,
            Configured::TypeUint16 => Self::Uint16,
            Configured::TypeUint32 => Self::Uint32,
            Configured::TypeUint64 => Self::Uint64,
            Configured::TypeInt8 => Self::Int8,
            Configured::TypeInt16 => Self::Int16,
            Configured::TypeInt32 => Self::Int32,
            Configured::TypeInt64 => Self::Int64,
            Configured::TypeFp16 => Self::Fp16,
            Configured::TypeBf16 => Self::Bf16,
            Configured::TypeFp32 => Self::Fp32,
            Configured::TypeFp64 => Self::Fp64,
            Configured::TypeString => Self::Bytes,
        })
    }
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Datatype {
    type Err = UnknownDatatype;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|datatype| datatype.name() == text)
            .ok_or_else(|| UnknownDatatype(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_the_configuration_has_its_wire_name() {
        let names: Vec<Option<&str>> = (0..=15)
            .map(|number| Datatype::from_config(number).map(Datatype::name))
            .collect();
        assert_eq!(
            names,
            [
                None,
                Some("BOOL"),
                Some("UINT8"),
                Some("UINT16"),
                Some("UINT32"),
                Some("UINT64"),
                Some("INT8"),
                Some("INT16"),
                Some("INT32"),
                Some("INT64"),
                Some("FP16"),
                Some("FP32"),
                Some("FP64"),
                Some("BYTES"),
                Some("BF16"),
                None,
            ]
        );
    }

    #[test]
    fn names_read_back_and_others_are_refused() {
        for datatype in Datatype::ALL {
            assert_eq!(datatype.name().parse(), Ok(datatype));
        }
        let error = "STRING".parse::<Datatype>().expect_err("not a wire name");
        assert!(error.to_string().contains("expected one of BOOL, UINT8"));
    }

    #[test]
    fn the_largest_bf16_is_exact() {
        let largest = half::bf16::MAX.to_f64();
        assert_eq!(Datatype::Bf16.float_max(), Some(largest));
        assert_eq!(
            Datatype::Fp16.float_max(),
            Some(half::f16::MAX.to_f64_const())
        );
    }
}
