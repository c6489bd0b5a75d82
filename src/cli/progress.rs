//! Progress on standard error: one line that is drawn over on a terminal, plain lines elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::terminal::Terminal;
use crate::check::Observer;
use crate::data::Side;
use crate::run::Progress;

/// Shows what is going on.
pub struct Display {
    terminal: Terminal,
    bar: Option<ProgressBar>,
}

impl Display {
    /// A spinner where standard error is a terminal.
    pub fn new(terminal: Terminal) -> Self {
        let bar = terminal.live_progress().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { terminal, bar }
    }

    fn line(&self, text: String) {
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => self.terminal.say(text),
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Display {
    fn progress(&mut self, scenario: &str, progress: &Progress) {
        let text = match progress {
            Progress::WarmingUp { side } => format!("{scenario}: warming up{}", of(*side)),
            Progress::Measuring { have, next, last } => {
                format!("{scenario}: measuring, {have} of {next} to the next look (at most {last})")
            }
            Progress::Planned { plan } => {
                for percentile in &plan.percentiles {
                    self.note(&format!("{scenario}: {}", percentile.text()));
                }
                format!(
                    "{scenario}: pairs of {} ms blocks, {} a unit, at most {} units of {:.1} s",
                    plan.block.as_millis(),
                    plan.pairs_per_unit,
                    plan.max_units,
                    plan.unit_seconds
                )
            }
            Progress::Confirming => {
                format!("{scenario}: a regression is being confirmed after a reload")
            }
        };
        self.line(text);
    }

    fn note(&mut self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.terminal.say(line)),
            None => self.terminal.say(line),
        }
    }
}

fn of(side: Side) -> &'static str {
    match side {
        Side::Candidate => "",
        Side::Baseline => " the reference",
    }
}
