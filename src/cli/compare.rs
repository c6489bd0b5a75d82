//! `triton-gate compare`.

use std::path::Path;
use std::time::Duration;

use super::args::{CompareArgs, LimitChoice, RuleChoice};
use super::failure::Failure;
use super::files;
use super::output;
use super::terminal::Terminal;
use crate::baseline::environment::check_allowed;
use crate::baseline::perf_analyzer::{ImportInfo, levels};
use crate::baseline::{Level, Measured, read_any};
use crate::check::{RecordedFile, compare};
use crate::data::{
    Bound, Facts, Fraction, GateSpec, Limit, Metric, Mode, OnInconclusive, OnMissing, Policy, Rule,
    Side,
};
use crate::gate::Design;

/// Judges two files.
pub fn run(terminal: Terminal, arguments: &CompareArgs) -> Result<u8, Failure> {
    check_allowed(&arguments.allow).map_err(Failure::usage)?;
    files::distinct(
        &arguments.output.files(),
        &[&arguments.baseline, &arguments.candidate],
    )?;
    let baseline = read(&arguments.baseline, Side::Baseline)?;
    let candidate = read(&arguments.candidate, Side::Candidate)?;
    let spec = gate(arguments);
    if spec.limits.is_empty() {
        return Err(Failure::usage(
            "nothing to judge: --throughput-drop and --p99-rise are both off",
        )
        .next("leave one of them on"));
    }
    let design =
        Design::new(&spec, spec.limits.len() as u32, u32::MAX, false).map_err(Failure::usage)?;
    if files::same(&arguments.baseline, &arguments.candidate) {
        terminal.warn(format!(
            "{} is compared with itself",
            arguments.baseline.display()
        ));
    }
    let result = compare(
        &design,
        &baseline,
        &candidate,
        &arguments.allow,
        env!("CARGO_PKG_VERSION"),
    );
    output::show(terminal, &arguments.output, &result)
}

fn read(path: &Path, side: Side) -> Result<RecordedFile, Failure> {
    let text = files::read(path, "the measurements")?;
    let file = path.display().to_string();
    let measured = read_any(&text, &file).map_err(Failure::usage)?;
    let levels = match measured {
        Measured::Own(sessions) => sessions.into_iter().map(Level::of_session).collect(),
        Measured::PerfAnalyzer(table) => levels(
            &table,
            &ImportInfo {
                side,
                scenario: "perf_analyzer".to_owned(),
                model: String::new(),
                recorded_at: String::new(),
                commit: None,
                id: file.clone(),
                environment: Facts::default(),
            },
        ),
    };
    Ok(RecordedFile { file, levels })
}

fn gate(arguments: &CompareArgs) -> GateSpec {
    let relative = |metric, choice| match choice {
        LimitChoice::Off => None,
        LimitChoice::At(limit) => Some(Limit {
            metric,
            bound: Bound::Relative(limit),
        }),
    };
    GateSpec {
        mode: Mode::Enforce,
        limits: [
            relative(Metric::Throughput, arguments.throughput_drop),
            relative(Metric::P99, arguments.p99_rise),
        ]
        .into_iter()
        .flatten()
        .collect(),
        false_alarm: Fraction::new(0.01),
        missed_regression: Fraction::new(0.05),
        budget: Duration::ZERO,
        on_inconclusive: OnInconclusive::Report,
        on_missing: OnMissing::Fail,
        rule: match arguments.rule {
            RuleChoice::Evidence => Rule::Evidence,
            RuleChoice::Point => Rule::Point,
        },
        policy: Policy::Enforce,
        assumed_noise: None,
        suspicious_gain: Fraction::new(0.25),
    }
}
