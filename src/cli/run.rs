use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use super::args::{Cli, Command};
use super::failure::Failure;
use super::terminal::Terminal;
use super::{baseline, calibrate, check, comment, compare, history, init, measure, simulate};
use crate::report::Exit;

/// The program: parses the command line, runs the command, ends with its code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers; anything else is a usage error, exit 2.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() {
                Exit::Usage.code()
            } else {
                0
            });
        }
    };
    let terminal = Terminal::new(cli.quiet, cli.color);
    trace(cli.verbose);
    let result = match cli.command {
        Command::Check(arguments) => check::run(terminal, &arguments),
        Command::Measure(arguments) => measure::run(terminal, &arguments),
        Command::Calibrate(arguments) => calibrate::run(terminal, &arguments),
        Command::Compare(arguments) => compare::run(terminal, &arguments),
        Command::Comment(arguments) => comment::run(terminal, &arguments),
        Command::Baseline(arguments) => baseline::run(terminal, arguments.command),
        Command::History(arguments) => history::run(terminal, &arguments),
        Command::Init(arguments) => init::run(terminal, &arguments),
        Command::Simulate(arguments) => simulate::run(terminal, &arguments),
        Command::Completions { shell } => completions(terminal, shell),
        Command::Man => manual(terminal),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            terminal.fail(&failure);
            ExitCode::from(failure.exit.code())
        }
    }
}

/// `-v` shows what the program does in detail. Its libraries stay silent: their logs could hold
/// metadata.
fn trace(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => "triton_gate=debug",
        _ => "triton_gate=trace",
    };
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(level))
        .with_writer(std::io::stderr)
        .init();
}

fn completions(terminal: Terminal, shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "triton-gate", &mut text);
    terminal.data(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

fn manual(terminal: Terminal) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut text)
        .map_err(|error| Failure::not_measured(format!("failed to render the manual: {error}")))?;
    terminal.data(&String::from_utf8_lossy(&text))?;
    Ok(0)
}
