//! Reads a model's `config.pbtxt` as a server would, for tests and the `signature` example.

use super::proto::inference::ModelConfig;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};

/// Fields of Triton's own schema that the subset in `proto/` leaves out.
const UNDECLARED: [&str; 6] = [
    "batch_input",
    "batch_output",
    "model_metrics",
    "model_operations",
    "model_repository_agents",
    "optimization",
];

/// Parses a configuration; undeclared fields at the top level are skipped, as on the wire.
pub fn parse(text: &str) -> Result<ModelConfig, String> {
    let files = protox::compile(
        ["grpc_service.proto"],
        [concat!(env!("CARGO_MANIFEST_DIR"), "/proto")],
    )
    .map_err(|error| error.to_string())?;
    let pool =
        DescriptorPool::from_file_descriptor_set(files).map_err(|error| error.to_string())?;
    let descriptor = pool
        .get_message_by_name("inference.ModelConfig")
        .ok_or("no ModelConfig in proto/")?;
    let text = without_undeclared(text);
    let message =
        DynamicMessage::parse_text_format(descriptor, &text).map_err(|error| error.to_string())?;
    ModelConfig::decode(message.encode_to_vec().as_slice()).map_err(|error| error.to_string())
}

/// Drops undeclared fields with their values, and writes the colon before a list that the text
/// format lets one leave out and the parser wants.
fn without_undeclared(text: &str) -> String {
    let mut kept = String::new();
    let mut depth = 0_i32;
    let mut skipping = false;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let word = line
            .trim_start()
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .next()
            .unwrap_or_default();
        if depth == 0 && !word.is_empty() {
            skipping = UNDECLARED.contains(&word);
        }
        let mut last = ' ';
        for c in line.chars() {
            match c {
                '{' | '[' => depth += 1,
                '}' | ']' => depth -= 1,
                _ => {}
            }
            if skipping {
                continue;
            }
            if c == '[' && (last.is_alphanumeric() || last == '_') {
                kept.push(':');
            }
            kept.push(c);
            if !c.is_whitespace() {
                last = c;
            }
        }
        kept.push('\n');
    }
    kept
}
