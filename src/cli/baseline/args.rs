//! The arguments of `baseline`, as clap sees them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::args::{ConfigArgs, LockArgs, duration};

/// `baseline`.
#[derive(Debug, Args)]
pub struct BaselineArgs {
    /// What to do with the store.
    #[command(subcommand)]
    pub command: BaselineCommand,
}

/// Subcommands of `baseline`.
#[derive(Debug, Subcommand)]
pub enum BaselineCommand {
    /// Measure and append sessions.
    Record(Box<RecordArgs>),
    /// Take sessions from CSV files, our own or those of `perf_analyzer`.
    ///
    /// All files of one command are taken for visits to one running server, which count as one
    /// session, unless they tell otherwise or --restarted says so.
    Import(ImportArgs),
    /// Take what a check measured as the new level, after a shift that is wanted.
    ///
    /// The baseline's mean starts anew at the accepted session; how much sessions vary is still
    /// told by the older ones. A slowdown that is wanted for a while only is committed as [[accept]]
    /// in the thresholds file instead.
    Accept(AcceptArgs),
    /// Keep the sessions of a release for good; `check` compares with them, too.
    Pin(PinArgs),
    /// Let a pinned release go. Its sessions stay in the baseline until pruned.
    Unpin {
        #[command(flatten)]
        store: StoreArgs,
        /// The pin.
        name: String,
    },
    /// Name the scenarios that have nothing to be compared with, one a line: no stored session in
    /// this environment, and no live reference.
    ///
    /// Ends with 5 where there are some, with 0 where there are none. Nothing is measured.
    Missing(Box<MissingArgs>),
    /// List environments, scenarios and sessions.
    List {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Show the sessions of a scenario.
    Show {
        #[command(flatten)]
        store: StoreArgs,
        /// The scenario.
        scenario: String,
    },
    /// Keep the newest sessions of every scenario and delete the rest; pinned ones stay.
    Prune {
        #[command(flatten)]
        store: StoreArgs,
        /// How many to keep.
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        keep: u32,
    },
    /// Give a scenario's sessions a new name.
    Rename {
        #[command(flatten)]
        store: StoreArgs,
        /// The name in the store.
        from: String,
        /// The new name.
        to: String,
    },
}

/// Which store.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Folder of the stored baselines, or `git:BRANCH`.
    #[arg(long, value_name = "DIR", default_value = "baselines")]
    pub baselines: PathBuf,
    /// Only this environment.
    #[arg(long, value_name = "NAME", env = "TRITON_GATE_ENV")]
    pub environment: Option<String>,
}

/// `baseline record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    #[command(flatten)]
    pub config: ConfigArgs,
    #[command(flatten)]
    pub lock: LockArgs,
    /// Folder of the stored baselines, or `git:BRANCH`.
    #[arg(long, value_name = "DIR", default_value = "baselines")]
    pub baselines: PathBuf,
    /// Folder that keeps a session that is refused.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
    /// Sessions to record. More than one needs a server that can be started anew
    /// (`launch`) or that loads and unloads models on request.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub sessions: u32,
    /// Length of a session's measurement, the warm-up aside; default: as long as a first look
    /// needs.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Append a session even though it regresses against the baseline (else exit 1): the
    /// baseline's level starts anew with it.
    #[arg(long)]
    pub accept: bool,
    /// Sessions of each scenario that stay; older ones are deleted, pinned ones are not.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,
}

/// `baseline missing`.
#[derive(Debug, Args)]
pub struct MissingArgs {
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Folder of the stored baselines, or `git:BRANCH`.
    #[arg(long, value_name = "DIR", default_value = "baselines")]
    pub baselines: PathBuf,
}

/// `baseline import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The files.
    #[arg(required = true, value_name = "FILE.csv")]
    pub files: Vec<PathBuf>,
    /// The scenario's name; default: that in the file. A `perf_analyzer` file with several levels
    /// of load makes one scenario a level (`NAME-c8`).
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// The model, where a `perf_analyzer` file names none.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// When a `perf_analyzer` file was measured (`2026-01-31T12:00:00Z`).
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub recorded_at: Option<String>,
    /// What a `perf_analyzer` file was measured at.
    #[arg(long, value_name = "COMMIT")]
    pub commit: Option<String>,
    /// The server was restarted, or the model loaded anew, before each of the files.
    #[arg(long)]
    pub restarted: bool,
}

/// `baseline accept`.
#[derive(Debug, Args)]
pub struct AcceptArgs {
    /// Folder of the stored baselines, or `git:BRANCH`.
    #[arg(long, value_name = "DIR", default_value = "baselines")]
    pub baselines: PathBuf,
    /// The check's JSON in the results folder, or one session's CSV there.
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Only this scenario, also where the check did not decide; may be given more than once.
    /// Default: every scenario that regressed or improved.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
}

/// `baseline pin`.
#[derive(Debug, Args)]
pub struct PinArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// A session, a commit (at least 4 digits), or a tag.
    #[arg(value_name = "SESSION-COMMIT-OR-TAG")]
    pub what: String,
    /// The pin's name, such as the release's: letters, digits and `. - _ +`.
    pub name: String,
    /// Only this scenario; may be given more than once.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
}

fn time(text: &str) -> Result<String, String> {
    chrono::DateTime::parse_from_rfc3339(text)
        .map(|_| text.to_owned())
        .map_err(|error| format!("{error}: expected a time like 2026-01-31T12:00:00Z"))
}
