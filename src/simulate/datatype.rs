use serde::Deserialize;

use crate::triton::proto::inference::DataType;

/// Datatypes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Wire {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Fp16,
    Bf16,
    Fp32,
    Fp64,
    Bytes,
}

/// Every datatype: its name, its number in a model's configuration, bytes per element.
const TABLE: [(Wire, &str, DataType, u64); 14] = [
    (Wire::Bool, "BOOL", DataType::TypeBool, 1),
    (Wire::Uint8, "UINT8", DataType::TypeUint8, 1),
    (Wire::Uint16, "UINT16", DataType::TypeUint16, 2),
    (Wire::Uint32, "UINT32", DataType::TypeUint32, 4),
    (Wire::Uint64, "UINT64", DataType::TypeUint64, 8),
    (Wire::Int8, "INT8", DataType::TypeInt8, 1),
    (Wire::Int16, "INT16", DataType::TypeInt16, 2),
    (Wire::Int32, "INT32", DataType::TypeInt32, 4),
    (Wire::Int64, "INT64", DataType::TypeInt64, 8),
    (Wire::Fp16, "FP16", DataType::TypeFp16, 2),
    (Wire::Bf16, "BF16", DataType::TypeBf16, 2),
    (Wire::Fp32, "FP32", DataType::TypeFp32, 4),
    (Wire::Fp64, "FP64", DataType::TypeFp64, 8),
    (Wire::Bytes, "BYTES", DataType::TypeString, 0),
];

impl Wire {
    fn row(self) -> &'static (Wire, &'static str, DataType, u64) {
        // The table is in the order of the enum; the test below holds it there.
        TABLE.get(self as usize).unwrap_or(&TABLE[0])
    }

    /// The name in requests and metadata.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The number in a model's configuration.
    pub(crate) fn config(self) -> DataType {
        self.row().2
    }

    /// Bytes of one element; none for BYTES.
    pub(crate) fn size(self) -> Option<u64> {
        (self != Self::Bytes).then(|| self.row().3)
    }

    /// By name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_names_are_those_of_the_wire() {
        for (wire, name, ..) in TABLE {
            assert_eq!(wire.name(), name);
            assert_eq!(Wire::parse(name), Some(wire));
            let read: Wire = serde_json::from_str(&format!("\"{name}\"")).expect("known name");
            assert_eq!(read, wire);
        }
        assert_eq!(Wire::parse("FP8"), None);
    }
}
