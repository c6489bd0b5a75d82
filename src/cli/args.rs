//! The command line, as clap sees it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use super::baseline::BaselineArgs;

/// Version and commit, shown by `--version`.
pub const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("TRITON_GATE_COMMIT"),
    ")"
);

const EXIT_CODES: &str = "\
Exit codes:
  0    every gated scenario passed (or was accepted, is advisory, or is not affected)
  1    at least one regression
  2    usage, configuration or an input file is wrong
  3    could not measure: server unreachable, model missing, errors, invalid measurement
  4    inconclusive: the evidence does not decide within the budget
  5    no baseline, or one from another environment; also a check that only recorded
  130  interrupted";

/// A performance-regression gate for NVIDIA Triton Inference Server.
#[derive(Debug, Parser)]
#[command(name = "triton-gate", version = VERSION, about, after_help = EXIT_CODES)]
pub struct Cli {
    /// Only the verdict and errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// More of what is going on; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub color: ColorChoice,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// Where the output is a terminal and `NO_COLOR` is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure every scenario and compare it with its baseline: the main job.
    Check(Box<CheckArgs>),
    /// The same measurement without a verdict: a table, and CSV with -o.
    Measure(Box<MeasureArgs>),
    /// What the noise of a live server allows: false alarms on identical code, the best block
    /// length, the spread between loads, and the smallest limits that hold.
    ///
    /// Measures each scenario's model against itself through the same interleaved pairs as a check
    /// with a live reference; a configured reference and stored baselines are not used. Ends in 0,
    /// 2, 3, or 130.
    Calibrate(Box<CalibrateArgs>),
    /// A verdict from two CSV files, without a server; reads our own and `perf_analyzer` files.
    Compare(CompareArgs),
    /// Post results of earlier checks as one comment on the pull request.
    ///
    /// The pull request comes from the event of the workflow alone, never from a result.
    Comment(CommentArgs),
    /// Record, import, list, pin, accept and keep baselines.
    Baseline(BaselineArgs),
    /// What earlier checks found: each scenario's series, its last shift, and the gate's own record.
    ///
    /// Reads the results that `check` keeps and the stored baselines. Broken and foreign files are
    /// named and skipped.
    History(HistoryArgs),
    /// Write a commented thresholds file from the models of a live server.
    Init(InitArgs),
    /// An embedded server that speaks Triton's protocol: for tests and for trying the gate.
    ///
    /// It computes nothing: it answers after a chosen time. Numbers measured on it say nothing
    /// about any model.
    Simulate(SimulateArgs),
    /// Completions for a shell, to standard output.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// The manual page, to standard output.
    Man,
}

/// Where the thresholds are and what overrides them.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Thresholds file, or a folder of them; may be given more than once.
    #[arg(
        short,
        long = "config",
        value_name = "FILE-OR-FOLDER",
        default_value = "thresholds"
    )]
    pub config: Vec<PathBuf>,
    /// gRPC address of the server, over the file's and `TRITON_URL`.
    #[arg(long, value_name = "HOST:PORT")]
    pub url: Option<String>,
    /// Name of the environment, over the file's and `TRITON_GATE_ENV`.
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Only this scenario; may be given more than once.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Time for the measurement of each scenario (`90s`, `5m`).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub budget: Option<Duration>,
}

/// The lock that keeps two checks off one GPU.
#[derive(Debug, Args)]
pub struct LockArgs {
    /// Name of the host-wide lock; default: the GPU, else the server's address.
    #[arg(long, value_name = "NAME")]
    pub lock: Option<String>,
    /// How long to wait for another check to end.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30m")]
    pub lock_wait: Duration,
}

/// `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "shown under its own fields")]
    pub config: ConfigArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "shown under its own fields")]
    pub lock: LockArgs,
    /// Folder of the stored baselines, or `git:BRANCH`.
    #[arg(long, value_name = "DIR", default_value = "baselines")]
    pub baselines: PathBuf,
    /// Folder that keeps what every check measured.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
    /// Measure only scenarios with a file of their `paths` changed since REF branched off, changes
    /// that are not committed included; the rest are listed as not affected.
    #[arg(long, value_name = "REF")]
    pub changed_since: Option<String>,
    /// Checkout of the commit that the change is based on: what the change alters in the gate
    /// itself (thresholds, paths, accepted slowdowns, stored baselines) is listed in the result.
    /// It changes no verdict.
    #[arg(long, value_name = "DIR")]
    pub gate_base: Option<PathBuf>,
    /// Checkout with the change, where that is not this folder; --changed-since asks git there.
    #[arg(long, value_name = "DIR", default_value = ".", requires = "gate_base")]
    pub gate_head: PathBuf,
    /// Record a baseline for scenarios that have none (they still end in 5).
    #[arg(long)]
    pub record_missing: bool,
    /// Live baseline: another server.
    #[arg(long, value_name = "HOST:PORT")]
    pub reference_url: Option<String>,
    /// Live baseline: another model.
    #[arg(long, value_name = "MODEL")]
    pub reference_model: Option<String>,
    /// Live baseline: another version.
    #[arg(long, value_name = "VERSION")]
    pub reference_version: Option<String>,
    /// Time for the whole check.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub total_budget: Option<Duration>,
    /// Compare even though this environment field differs; may be given more than once.
    #[arg(long, value_name = "FIELD")]
    pub allow: Vec<String>,
    /// How the verdict is reached.
    #[arg(long, value_enum)]
    pub rule: Option<RuleChoice>,
    /// How sure a change must be to fail.
    #[arg(long, value_enum)]
    pub policy: Option<PolicyChoice>,
    /// What an undecided verdict means: exit 4, exit 1, or exit 0 with a warning.
    #[arg(long, value_enum)]
    pub on_inconclusive: Option<InconclusiveChoice>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "shown under its own fields")]
    pub output: OutputArgs,
    /// In a GitHub Actions job: comment on the pull request (needs `GITHUB_TOKEN`), step summary,
    /// annotations and outputs. None of it changes the exit code.
    #[arg(long)]
    pub github: bool,
    /// Name of the comment, which is updated at every check; default: the thresholds files.
    #[arg(long, value_name = "ID", requires = "github")]
    pub comment_id: Option<String>,
    /// With --github, leave the pull request without a comment.
    #[arg(long, requires = "github")]
    pub no_comment: bool,
    /// Print every value and where it came from, measure nothing.
    #[arg(long)]
    pub explain_config: bool,
}

/// Where the result goes besides the terminal.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Write the result as JSON (`-` is standard output).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a `JUnit` report.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

impl OutputArgs {
    /// The files with the options that name them.
    pub fn files(&self) -> [(&'static str, Option<&std::path::Path>); 3] {
        [
            ("--json", self.json.as_deref()),
            ("--junit", self.junit.as_deref()),
            ("--markdown", self.markdown.as_deref()),
        ]
    }
}

/// How the verdict is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuleChoice {
    /// Intervals at stated error rates.
    Evidence,
    /// Medians against the threshold, nothing else.
    Point,
}

/// How sure a change must be to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyChoice {
    /// Proven worse and estimated beyond the threshold.
    Enforce,
    /// Proven worse and estimated beyond half the threshold.
    Detect,
}

/// What an undecided verdict means for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InconclusiveChoice {
    /// Exit 4.
    Report,
    /// Exit 1.
    Fail,
    /// Exit 0 with a warning.
    Pass,
}

/// `comment`.
#[derive(Debug, Args)]
pub struct CommentArgs {
    /// Results that `check` wrote with --json; a section each.
    #[arg(required = true, value_name = "RESULT.json")]
    pub results: Vec<PathBuf>,
    /// The pull request, where no GitHub event tells it: in another CI system.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub pull_request: Option<u64>,
    /// Name of the comment, which is updated every time; default: the thresholds files.
    #[arg(long, value_name = "ID")]
    pub comment_id: Option<String>,
}

/// `measure`.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "shown under its own fields")]
    pub config: ConfigArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "shown under its own fields")]
    pub lock: LockArgs,
    /// How long to measure each scenario, the warm-up aside.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "20s")]
    pub duration: Duration,
    /// Write the blocks as CSV, readable by `compare`; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "shown under its own fields")]
    pub config: ConfigArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "shown under its own fields")]
    pub lock: LockArgs,
    /// Time for all scenarios together, shared out evenly; longer is more certain.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    pub time: Duration,
    /// Checks to resample from what was measured, for the rates on identical code.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    pub checks: u32,
    /// Write everything as JSON (`-` is standard output).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The baseline: our own CSV or one of `perf_analyzer`.
    pub baseline: PathBuf,
    /// The candidate, likewise.
    pub candidate: PathBuf,
    /// Fail when throughput fell by more; `off` does not judge it.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = drop_limit)]
    pub throughput_drop: LimitChoice,
    /// Fail when P99 rose by more; `off` does not judge it.
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = rise_limit)]
    pub p99_rise: LimitChoice,
    /// How the verdict is reached.
    #[arg(long, value_enum, default_value_t = RuleChoice::Evidence)]
    pub rule: RuleChoice,
    /// Compare even though this environment field differs; may be given more than once.
    #[arg(long, value_name = "FIELD")]
    pub allow: Vec<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "shown under its own fields")]
    pub output: OutputArgs,
}

/// `history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Folder in which `check` keeps its results.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
    /// Folder of the stored baselines, or `git:BRANCH`: their sessions are points of the series.
    #[arg(long, value_name = "DIR", default_value = "baselines")]
    pub baselines: PathBuf,
    /// Only this scenario; may be given more than once.
    #[arg(long, value_name = "NAME")]
    pub scenario: Vec<String>,
    /// Only this metric (`throughput`, `p99`); may be given more than once.
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<crate::data::Metric>,
    /// Only this environment.
    #[arg(long, value_name = "NAME", env = "TRITON_GATE_ENV")]
    pub environment: Option<String>,
    /// Only what was measured on this branch.
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Show and write the newest N points of each series; default: 20 shown, all written. Shifts and
    /// the record always rest on all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// Write the series as CSV, a row a value (`-` is standard output).
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write everything as JSON (`-` is standard output).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
/// `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// gRPC address of the server.
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "TRITON_URL",
        default_value = "localhost:8001"
    )]
    pub url: String,
    /// File to write; never overwrites one. `-` is standard output.
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "thresholds/triton.toml"
    )]
    pub output: PathBuf,
}

/// `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Description of the server; without one, a few built-in models.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on; port 0 lets the system choose.
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Write the port that was chosen to this file once the server is ready.
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
    /// Print a commented example description and end.
    #[arg(long)]
    pub example: bool,
}

/// A relative limit of the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LimitChoice {
    /// The metric is not judged.
    Off,
    /// The largest change for the worse that passes.
    At(crate::data::Fraction),
}

fn drop_limit(text: &str) -> Result<LimitChoice, String> {
    limit(text, 1.0 - f64::EPSILON, "less than 100%")
}

fn rise_limit(text: &str) -> Result<LimitChoice, String> {
    limit(text, crate::config::LARGEST_RISE, "at most 10000%")
}

fn limit(text: &str, largest: f64, allowed: &str) -> Result<LimitChoice, String> {
    if text == "off" {
        return Ok(LimitChoice::Off);
    }
    let fraction: crate::data::Fraction = text
        .parse()
        .map_err(|error: crate::data::ParseFractionError| format!("{error}, or off"))?;
    if fraction.get() > 0.0 && fraction.get() <= largest {
        return Ok(LimitChoice::At(fraction));
    }
    Err(format!(
        "{text} is out of range: expected more than 0% and {allowed}, or off"
    ))
}

/// `90s`, `5m`, `250ms`, `1h30m`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    crate::config::duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
