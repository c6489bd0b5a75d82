//! What the subcommands share.

use super::args::StoreArgs;
use crate::baseline::{Entry, Store};
use crate::cli::failure::Failure;
use crate::report::Exit;

/// The store that was named.
pub fn open(arguments: &StoreArgs) -> Result<Store, Failure> {
    Store::locate(&arguments.baselines).map_err(Failure::usage)
}

/// The environments that were asked for: one, or all of the store.
pub fn environments(arguments: &StoreArgs, store: &Store) -> Result<Vec<String>, Failure> {
    match &arguments.environment {
        Some(name) => Ok(vec![name.clone()]),
        None => store.environments().map_err(Failure::usage),
    }
}

/// Every file of the environments that were asked for.
pub fn entries(arguments: &StoreArgs, store: &Store) -> Result<Vec<Entry>, Failure> {
    let entries = store.list().map_err(Failure::usage)?;
    Ok(entries
        .into_iter()
        .filter(|entry| {
            arguments
                .environment
                .as_ref()
                .is_none_or(|name| *name == entry.environment)
        })
        .collect())
}

/// That there is no baseline at all.
pub fn none(arguments: &StoreArgs) -> Failure {
    let place = arguments.baselines.display();
    let message = match &arguments.environment {
        Some(name) => format!("there is no baseline in {place} for environment {name:?}"),
        None => format!("there is no baseline in {place}"),
    };
    Failure::new(Exit::NoBaseline, message).next("record one with `triton-gate baseline record`")
}
