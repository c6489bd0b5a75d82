use crate::data::CheckResult;

/// The result as JSON after docs/result.schema.json, indented, with a final line break.
///
/// Fails only where a value cannot be represented at all, which no value of a result does;
/// numbers that are not finite become null.
pub fn json(result: &CheckResult) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(result)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::samples::{self, ALL_VERDICTS, HOSTILE};

    const SCHEMA: &str = include_str!("../../docs/result.schema.json");

    fn schema() -> Value {
        serde_json::from_str(SCHEMA).expect("the schema is JSON")
    }

    fn value(result: &CheckResult) -> Value {
        serde_json::from_str(&json(result).expect("serialises")).expect("is JSON")
    }

    /// The subset of JSON Schema 2020-12 that docs/result.schema.json uses; a keyword beyond it
    /// panics, so that the schema cannot grow past what is checked here.
    fn problems(root: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
        for (keyword, rule) in schema.as_object().expect("a schema is an object") {
            match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" => {}
                "$ref" => {
                    let pointer = rule.as_str().expect("a reference").trim_start_matches('#');
                    let target = root.pointer(pointer).expect("the reference resolves");
                    problems(root, target, value, at, out);
                }
                "type" => {
                    let types: Vec<&str> = match rule {
                        Value::String(one) => vec![one],
                        many => many
                            .as_array()
                            .expect("types")
                            .iter()
                            .filter_map(Value::as_str)
                            .collect(),
                    };
                    let fits = types.iter().any(|kind| match *kind {
                        "object" => value.is_object(),
                        "array" => value.is_array(),
                        "string" => value.is_string(),
                        "boolean" => value.is_boolean(),
                        "number" => value.is_number(),
                        "integer" => value.is_u64() || value.is_i64(),
                        "null" => value.is_null(),
                        other => panic!("unknown type {other}"),
                    });
                    if !fits {
                        out.push(format!("{at}: {value} is not {types:?}"));
                    }
                }
                "const" => {
                    if value != rule {
                        out.push(format!("{at}: {value} is not {rule}"));
                    }
                }
                "enum" => {
                    if !rule.as_array().expect("an enum").contains(value) {
                        out.push(format!("{at}: {value} is none of {rule}"));
                    }
                }
                "minimum" => {
                    if value.as_f64() < rule.as_f64() && value.is_number() {
                        out.push(format!("{at}: {value} is below {rule}"));
                    }
                }
                "minItems" | "maxItems" => {
                    let length = value.as_array().map_or(0, Vec::len) as u64;
                    let bound = rule.as_u64().expect("a bound");
                    if value.is_array()
                        && ((keyword == "minItems") == (length < bound))
                        && length != bound
                    {
                        out.push(format!("{at}: {length} items, {keyword} {bound}"));
                    }
                }
                "required" => {
                    for name in rule
                        .as_array()
                        .expect("names")
                        .iter()
                        .filter_map(Value::as_str)
                    {
                        if value.is_object() && value.get(name).is_none() {
                            out.push(format!("{at}: {name} is missing"));
                        }
                    }
                }
                "properties" => {
                    for (name, rule) in rule.as_object().expect("properties") {
                        if let Some(value) = value.get(name) {
                            problems(root, rule, value, &format!("{at}.{name}"), out);
                        }
                    }
                }
                "additionalProperties" => {
                    let known = schema.get("properties");
                    for (name, value) in value.as_object().into_iter().flatten() {
                        if known.is_none_or(|known| known.get(name).is_none()) {
                            problems(root, rule, value, &format!("{at}.{name}"), out);
                        }
                    }
                }
                "items" => {
                    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                        problems(root, rule, value, &format!("{at}[{index}]"), out);
                    }
                }
                other => panic!("{other} is not checked"),
            }
        }
    }

    fn check(value: &Value) -> Vec<String> {
        let schema = schema();
        let mut out = Vec::new();
        problems(&schema, &schema, value, "$", &mut out);
        out
    }

    fn samples() -> Vec<CheckResult> {
        let mut all: Vec<CheckResult> = ALL_VERDICTS
            .into_iter()
            .map(|verdict| samples::check(vec![samples::scenario("yolov9-c8", verdict)]))
            .collect();
        all.extend([
            samples::full(),
            samples::many(20),
            samples::hostile(HOSTILE),
            samples::check(Vec::new()),
        ]);
        all
    }

    #[test]
    fn samples_follow_the_schema() {
        for result in samples() {
            assert_eq!(check(&value(&result)), Vec::<String>::new());
        }
    }

    #[test]
    fn the_schema_refuses_what_is_wrong() {
        let good = value(&samples::full());
        for (pointer, wrong) in [
            ("/schema", Value::from(2)),
            ("/verdict", Value::from("fine")),
            ("/exit_code", Value::from(-1)),
            ("/exit_code", Value::from(7)),
            ("/scenarios", Value::Null),
            ("/scenarios/0/metrics/0/interval", serde_json::json!([1.0])),
            (
                "/scenarios/0/metrics/0/interval",
                serde_json::json!([1, 2, 3]),
            ),
            ("/scenarios/0/metrics/0/verdict", Value::from("accepted")),
            ("/scenarios/0/requests", Value::from("many")),
            ("/scenarios/0/breakdown/candidate", Value::from(1)),
            ("/environment/gpu.name", Value::from(1)),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).expect("the place exists") = wrong;
            assert!(!check(&bad).is_empty(), "{pointer} is not checked");
        }
        let mut missing = good;
        missing
            .as_object_mut()
            .expect("an object")
            .remove("verdict");
        assert!(!check(&missing).is_empty());
    }

    /// Every field that is written is described: with additions refused, nothing is left over.
    #[test]
    fn every_field_is_described() {
        fn close(schema: &mut Value) {
            if let Value::Object(map) = schema {
                if map.contains_key("properties") {
                    map.insert(
                        "additionalProperties".to_owned(),
                        serde_json::json!({ "type": "boolean", "const": "never" }),
                    );
                }
                for (_, part) in map.iter_mut() {
                    close(part);
                }
            } else if let Value::Array(parts) = schema {
                parts.iter_mut().for_each(close);
            }
        }
        let mut closed = schema();
        close(&mut closed);
        for result in samples() {
            let mut out = Vec::new();
            problems(&closed, &closed, &value(&result), "$", &mut out);
            assert_eq!(out, Vec::<String>::new());
        }
    }

    /// Numbers may be off by the last bit after reading; everything else is equal.
    fn assert_same(left: &Value, right: &Value, at: &str) {
        match (left, right) {
            (Value::Object(left), Value::Object(right)) => {
                let names = |map: &serde_json::Map<String, Value>| -> Vec<String> {
                    map.keys().cloned().collect()
                };
                assert_eq!(names(left), names(right), "{at}");
                for (name, value) in left {
                    assert_same(value, &right[name], &format!("{at}.{name}"));
                }
            }
            (Value::Array(left), Value::Array(right)) => {
                assert_eq!(left.len(), right.len(), "{at}");
                for (left, right) in left.iter().zip(right) {
                    assert_same(left, right, at);
                }
            }
            (Value::Number(left), Value::Number(right)) => {
                let (left, right) = (left.as_f64(), right.as_f64());
                let (left, right) = (left.expect("a number"), right.expect("a number"));
                assert!((left - right).abs() <= 1e-14 * left.abs(), "{at}");
            }
            _ => assert_eq!(left, right, "{at}"),
        }
    }

    #[test]
    fn it_reads_back_as_it_was() {
        for result in samples() {
            let written = value(&result);
            let back: CheckResult = serde_json::from_value(written.clone()).expect("reads back");
            assert_same(&written, &value(&back), "$");
            assert_eq!(back.headline, result.headline);
            assert_eq!(back.subject_changes, result.subject_changes);
        }
    }

    #[test]
    fn the_contract_at_a_glance() {
        insta::assert_snapshot!(json(&samples::full()).expect("serialises"));
    }
}
