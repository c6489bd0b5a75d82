//! No request, however odd, gets past the checks or breaks them.

use proptest::prelude::*;

use super::*;
use crate::simulate::validate::validate;

fn dim() -> impl Strategy<Value = i64> {
    prop_oneof![-2i64..6, Just(i64::MAX), Just(i64::MIN), Just(1i64 << 40)]
}

proptest! {
    #[test]
    fn what_is_accepted_has_the_bytes_that_its_shape_needs(
        shape in prop::collection::vec(dim(), 0..4),
        raw in prop::collection::vec(any::<u8>(), 0..64),
        max_batch_size in 0u32..4,
        strings in any::<bool>(),
        dims in prop::collection::vec(prop_oneof![Just(-1i64), 1i64..4], 0..3),
    ) {
        let wire = if strings { Wire::Bytes } else { Wire::Int16 };
        let mut model = ModelSpec::new("m").input("in", wire, &dims);
        model.max_batch_size = max_batch_size;
        let request = ModelInferRequest {
            inputs: vec![tensor("in", wire.name(), &shape)],
            raw_input_contents: vec![Bytes::from(raw.clone())],
            ..ModelInferRequest::default()
        };
        match validate(&model, &request) {
            Err(refusal) => prop_assert!(refusal.text.contains("'in'") || refusal.text.contains("batch-size")),
            Ok(accepted) => {
                let elements = shape.iter().product::<i64>() as u64;
                prop_assert!(shape.iter().all(|dim| *dim >= 0));
                prop_assert!(accepted.batch <= max_batch_size.max(1));
                if strings {
                    prop_assert!(raw.len() as u64 >= 4 * elements);
                } else {
                    prop_assert_eq!(raw.len() as u64, 2 * elements);
                }
            }
        }
    }

    #[test]
    fn odd_requests_meet_only_the_checks(
        names in prop::collection::vec("[a-c]", 0..4),
        kinds in prop::collection::vec(prop_oneof![Just("FP32"), Just("BYTES"), Just("X")], 4),
        raws in 0usize..5,
        version in "[-0-9a-z]{0,3}",
    ) {
        let mut model = ModelSpec::new("m")
            .input("a", Wire::Fp32, &[1])
            .input("b", Wire::Bytes, &[1]);
        model.inputs[1].optional = true;
        let request = ModelInferRequest {
            model_version: version,
            inputs: names.iter().zip(&kinds).map(|(name, kind)| tensor(name, kind, &[1])).collect(),
            raw_input_contents: vec![Bytes::from_static(&[0; 4]); raws],
            ..ModelInferRequest::default()
        };
        if let Ok(accepted) = validate(&model, &request) {
            prop_assert_eq!(accepted.inputs.len(), names.len());
            prop_assert!(raws >= names.len());
        }
    }
}
