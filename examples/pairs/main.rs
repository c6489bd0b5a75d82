//! What the live decision is worth on a real server: records interleaved pairs of identical and of
//! slowed models at several block lengths in turns, then plays checks over them through the real
//! gate. `scripts/evidence-pairs` starts the server and runs both steps.

mod record;
mod store;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

/// Pairs of a live server, as evidence.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Record pairs. The first scenario is the reference, every further one a candidate; the first
    /// of these is to be identical.
    Record {
        /// Thresholds file with the scenarios.
        #[arg(short, long)]
        config: PathBuf,
        /// How long.
        #[arg(long, value_parser = duration, default_value = "45m")]
        time: Duration,
        /// File to write, a unit a line.
        #[arg(short, long)]
        output: PathBuf,
        /// Seed of the orders.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Play checks over a recording and print the tables as Markdown.
    Table {
        /// What `record` wrote.
        recording: PathBuf,
        /// Checks for each figure.
        #[arg(long, default_value_t = 2000)]
        checks: u32,
        /// Time of a check after its warm-up.
        #[arg(long, value_parser = duration, default_value = "270s")]
        budget: Duration,
        /// Seed of the resampling.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn duration(text: &str) -> Result<Duration, String> {
    triton_gate::config::duration(text).map_err(|error| error.to_string())
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Record {
            config,
            time,
            output,
            seed,
        } => record::record(&config, time, &output, seed),
        Command::Table {
            recording,
            checks,
            budget,
            seed,
        } => {
            let lines = store::read(&recording)?;
            print!("{}", table::table(&lines, checks, budget, seed)?);
            Ok(())
        }
    }
}
