use super::args::BaselineCommand;
use super::{accept, import, missing, pin, record, shelf};
use crate::cli::failure::Failure;
use crate::cli::terminal::Terminal;

/// Runs one subcommand on the store.
pub fn run(terminal: Terminal, command: BaselineCommand) -> Result<u8, Failure> {
    match command {
        BaselineCommand::Record(arguments) => record::run(terminal, &arguments),
        BaselineCommand::Import(arguments) => import::run(terminal, &arguments),
        BaselineCommand::Accept(arguments) => accept::run(terminal, &arguments),
        BaselineCommand::Pin(arguments) => pin::pin(terminal, &arguments),
        BaselineCommand::Unpin { store, name } => pin::unpin(terminal, &store, &name),
        BaselineCommand::Missing(arguments) => missing::run(terminal, &arguments),
        BaselineCommand::List { store } => shelf::list(terminal, &store),
        BaselineCommand::Show { store, scenario } => shelf::show(terminal, &store, &scenario),
        BaselineCommand::Prune { store, keep } => shelf::prune(terminal, &store, keep),
        BaselineCommand::Rename { store, from, to } => shelf::rename(terminal, &store, &from, &to),
    }
}
