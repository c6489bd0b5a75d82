//! `triton-gate init`.

use super::args::InitArgs;
use super::context::Context;
use super::failure::Failure;
use super::terminal::Terminal;
use crate::data::{Reason, ServerSpec};
use crate::init::{InitInput, InitModel, render};
use crate::lab::{client_reason, connect};
use crate::triton::Client;

/// Asks a server for its models and writes a thresholds file for them.
pub fn run(terminal: Terminal, arguments: &InitArgs) -> Result<u8, Failure> {
    let to_stdout = arguments.output.as_os_str() == "-";
    if !to_stdout && arguments.output.exists() {
        return Err(exists(arguments));
    }
    let context = Context::start(terminal)?;
    let runtime = context.handle();
    let server = ServerSpec {
        url: arguments.url.clone(),
        metrics_url: None,
        tls: None,
        metadata: Vec::new(),
        launch: Vec::new(),
        stop: Vec::new(),
        explicit_models: false,
    };
    let (mut client, _) = connect(&runtime, &server).map_err(failure)?;
    let models = runtime.block_on(models(&mut client)).map_err(failure)?;
    let text = render(&arguments.url, None, &models);
    if to_stdout {
        terminal.data(&text)?;
        return Ok(0);
    }
    if let Some(folder) = arguments
        .output
        .parent()
        .filter(|path| !path.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::usage(format!(
                "failed to make the folder {}: {error}",
                folder.display()
            ))
        })?;
    }
    crate::baseline::write_new(&arguments.output, text.as_bytes()).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            exists(arguments)
        } else {
            Failure::usage(format!(
                "failed to write {}: {error}",
                arguments.output.display()
            ))
            .next("check that the folder is writable and has space")
        }
    })?;
    terminal.say(format!(
        "wrote {} with {} models; read it, then record a baseline: triton-gate baseline record -c \
         {0}",
        arguments.output.display(),
        models.len()
    ));
    Ok(0)
}

fn exists(arguments: &InitArgs) -> Failure {
    Failure::usage(format!(
        "{} exists, and init overwrites nothing",
        arguments.output.display()
    ))
    .next("choose another file with -o, or - for standard output")
}

fn failure(reason: Reason) -> Failure {
    Failure::not_measured(reason.text).next(reason.next)
}

/// What the server says of each of its models.
async fn models(client: &mut Client) -> Result<Vec<InitModel>, Reason> {
    let index = client
        .index()
        .await
        .map_err(|error| client_reason(&error))?;
    let mut names: Vec<&str> = index.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut models = Vec::with_capacity(names.len());
    for name in names {
        let ready = index
            .iter()
            .any(|entry| entry.name == name && entry.state == "READY");
        let mut model = InitModel {
            name: name.to_owned(),
            ready,
            ..InitModel::default()
        };
        if ready && let Ok(signature) = client.signature(name, None).await {
            model.versions.clone_from(&signature.versions);
            model.max_batch = signature.max_batch_size;
            model.decoupled = signature.decoupled;
            model.sequence = signature.sequence;
            model.inputs = signature
                .inputs
                .iter()
                .map(|input| InitInput {
                    name: input.name.clone(),
                    datatype: input.datatype.to_string(),
                    dims: input.dims.clone(),
                    optional: input.optional,
                })
                .collect();
        }
        models.push(model);
    }
    Ok(models)
}
