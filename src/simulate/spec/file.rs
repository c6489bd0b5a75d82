//! From a TOML file, with the line and the key in every complaint.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::validate::Step;
use super::{SimulateError, SimulateSpec, check};

impl SimulateSpec {
    /// Reads a description; `file` is only named in messages.
    ///
    /// # Errors
    /// TOML that does not parse, an unknown key, a value of the wrong type, or one that makes no
    /// sense; each with its line.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, SimulateError> {
        let spec: Self = toml::from_str(text).map_err(|error| SimulateError::Syntax {
            file: file.to_owned(),
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            message: error.message().trim().replace('\n', ", "),
        })?;
        check(&spec).map_err(|complaint| SimulateError::Value {
            file: file.to_owned(),
            line: find(text, &complaint.path).map_or(1, |offset| line_of(text, offset)),
            key: complaint.key(),
            message: complaint.message,
        })?;
        Ok(spec)
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
}

/// The offset of a key, or of the nearest table around it that the file holds.
fn find(text: &str, path: &[Step]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut offset = None;
    let mut value: Option<&Spanned<DeValue<'_>>> = None;
    for step in path {
        let next = match step {
            Step::Key(key) => {
                let table = match value {
                    None => Some(root.get_ref()),
                    Some(value) => value.get_ref().as_table(),
                };
                let entry = table.and_then(|table| table.iter().find(|(k, _)| k.get_ref() == key));
                if let Some((key, _)) = entry {
                    offset = Some(key.span().start);
                }
                entry.map(|(_, value)| value)
            }
            Step::Index(index) => {
                let item = value
                    .and_then(|value| value.get_ref().as_array())
                    .and_then(|array| array.get(*index));
                if let Some(item) = item {
                    offset = Some(item.span().start);
                }
                item
            }
        };
        let Some(next) = next else { break };
        value = Some(next);
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_name_file_line_and_key() {
        let table = [
            ("listen = 7", "failed to read s.toml, line 1: invalid type"),
            (
                "name = \"x\"\nnmae = 1",
                "failed to read s.toml, line 2: unknown field `nmae`, expected",
            ),
            (
                "schema = 2",
                "failed to use s.toml, line 1: `schema` is newer",
            ),
            (
                "seed = 3",
                "failed to use s.toml, line 1: `model` is missing",
            ),
            (
                "\n[[model]]\nname = \"m\"\n\n[[model]]\nname = \"m\"\n",
                "failed to use s.toml, line 6: `model[1].name` is taken",
            ),
            (
                "[[model]]\nname = \"m\"\n[model.latency]\nbase = \"5 parsecs\"",
                "failed to read s.toml, line 4: invalid value: string \"5 parsecs\", expected a \
                 duration",
            ),
            (
                "[[model]]\nname = \"m\"\n[model.latency]\nbase = \"5ms\"\nsigma = -1.0",
                "failed to use s.toml, line 5: `model[0].latency.sigma` must be 0 to 5",
            ),
            (
                "[[model]]\nname = \"m\"\n[[model.fault]]\nkind = \"stall\"\n",
                "failed to use s.toml, line 3: `model[0].fault[0].length` is missing",
            ),
            (
                "[[model]]\nname = \"m\"\n[[model.fault]]\nkind = \"error\"\nerror = \"oops\"\n",
                "failed to read s.toml, line 5: unknown variant `oops`",
            ),
            (
                "[[model]]\nname = \"m\"\ninstances = 0\n",
                "failed to use s.toml, line 3: `model[0].instances` must be 1 to 4096",
            ),
            (
                "[[model]]\nname = \"m\"\n[[model.input]]\nname = \"a\"\ndatatype = \"FP8\"\ndims = [1]",
                "failed to read s.toml, line 5: unknown variant `FP8`",
            ),
            (
                "[[model]]\nname = \"m\"\ninput = [{ name = \"a\", datatype = \"FP32\", dims = [0] }]",
                "failed to use s.toml, line 3: `model[0].input[0].dims` must hold",
            ),
        ];
        for (text, expected) in table {
            let error = SimulateSpec::from_toml(text, "s.toml")
                .expect_err(text)
                .to_string();
            assert!(
                error.starts_with(expected),
                "{text}\n  {error}\n  {expected}"
            );
        }
    }

    /// The keys that a table takes, from the complaint about one that it does not.
    fn keys_of(table: &str) -> Vec<String> {
        let text = format!("{table}no_such_key = 1\n");
        let error = SimulateSpec::from_toml(&text, "x")
            .expect_err("unknown key")
            .to_string();
        // "expected one of `a`, `b`" or "expected `a` or `b`".
        let (_, list) = error.split_once("expected ").expect("a list of keys");
        list.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn the_example_is_valid_and_shows_every_key() {
        let example = SimulateSpec::example_toml();
        let spec = SimulateSpec::from_toml(example, "example.toml").expect("the example is valid");
        assert_eq!(spec.models.len(), 2);
        // Keys that are commented out are keys too.
        let is_key = |rest: &str| {
            rest.split_once(" = ")
                .is_some_and(|(key, _)| !key.contains(' '))
        };
        let with_all: Vec<&str> = example
            .lines()
            .map(|line| {
                line.strip_prefix("# ")
                    .filter(|rest| is_key(rest))
                    .unwrap_or(line)
            })
            .collect();
        SimulateSpec::from_toml(&with_all.join("\n"), "example.toml").expect("also with all keys");
        for table in [
            "",
            "[[model]]\n",
            "[[model.input]]\n",
            "[model.responses]\n",
            "[model.dynamic_batching]\n",
            "[model.latency]\n",
            "[[model.version]]\n",
            "[[model.fault]]\n",
        ] {
            for key in keys_of(table) {
                assert!(example.contains(&key), "{table} {key}");
            }
        }
    }

    #[test]
    fn the_built_in_server_is_valid() {
        assert_eq!(check(&SimulateSpec::builtin()), Ok(()));
    }
}
