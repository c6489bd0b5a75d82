//! Prints what a request to a model looks like at batch 1, from its `config.pbtxt`:
//! `cargo run --example signature -- model/config.pbtxt...`

use std::process::ExitCode;

use triton_gate::triton::proto::inference::ModelMetadataResponse;
use triton_gate::triton::{ModelSignature, config_facts, proto};

#[path = "../tests/support/pbtxt.rs"]
mod pbtxt;

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        match describe(&path) {
            Ok(text) => println!("{path}\n{text}\n"),
            Err(error) => {
                eprintln!("{path}: {error}\n");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

fn describe(path: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let config = pbtxt::parse(&text)?;
    let signature = ModelSignature::new(&config, &ModelMetadataResponse::default(), "")
        .map_err(|error| error.to_string())?;
    let facts: Vec<String> = config_facts(&config)
        .0
        .iter()
        .map(|(field, value)| format!("    {field} = {value}"))
        .collect();
    Ok(format!("{signature}\n{}", facts.join("\n")))
}
