//! Progress on standard error: one line that is drawn over on a terminal, plain lines elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::terminal::Terminal;
use crate::check::Observer;
use crate::data::Side;
use crate::load::Gauge;
use crate::report::format;
use crate::run::Progress;

/// How often rate and latency are drawn anew.
const DRAW: Duration = Duration::from_secs(1);

/// Shows what is going on.
pub struct Display {
    terminal: Terminal,
    live: Option<Live>,
}

/// The line that is drawn over, and the thread that keeps its figures fresh.
struct Live {
    bar: ProgressBar,
    gauges: Arc<Mutex<Vec<Gauge>>>,
    over: Arc<AtomicBool>,
    drawer: Option<JoinHandle<()>>,
}

impl Display {
    /// A spinner where standard error is a terminal.
    pub fn new(terminal: Terminal) -> Self {
        let live = terminal.live_progress().then(Live::start);
        Self { terminal, live }
    }

    fn line(&self, text: String) {
        match &self.live {
            Some(live) => live.bar.set_message(text),
            None => self.terminal.say(text),
        }
    }
}

impl Live {
    fn start() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {prefix} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        let gauges = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let drawer = {
            let (bar, gauges, over) = (bar.clone(), Arc::clone(&gauges), Arc::clone(&over));
            std::thread::spawn(move || draw(&bar, &gauges, &over))
        };
        Self {
            bar,
            gauges,
            over,
            drawer: Some(drawer),
        }
    }
}

/// Draws rate and mean latency of the last second until the display is over.
fn draw(bar: &ProgressBar, gauges: &Mutex<Vec<Gauge>>, over: &AtomicBool) {
    let mut before = (0, 0);
    let mut since = Instant::now();
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout(DRAW);
        let now = gauges
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(Gauge::read)
            .fold((0, 0), |sum, read| (sum.0 + read.0, sum.1 + read.1));
        let seconds = since.elapsed().as_secs_f64();
        since = Instant::now();
        // Another scenario's gauges begin at 0 again.
        let text = match (now.0.checked_sub(before.0), now.1.checked_sub(before.1)) {
            (Some(completed), Some(latency_ns)) => figures(completed, latency_ns, seconds),
            _ => String::new(),
        };
        before = now;
        bar.set_prefix(text);
    }
}

/// `174 req/s, mean 22.9 ms`; empty where nothing completed.
fn figures(completed: u64, latency_ns: u64, seconds: f64) -> String {
    if completed == 0 || seconds <= 0.0 {
        return String::new();
    }
    format!(
        "{:.0} req/s, mean {}",
        completed as f64 / seconds,
        format::latency(latency_ns as f64 / completed as f64 / 1e3)
    )
}

impl Drop for Display {
    fn drop(&mut self) {
        let Some(live) = &mut self.live else { return };
        live.over.store(true, Ordering::Relaxed);
        if let Some(drawer) = live.drawer.take() {
            drawer.thread().unpark();
            // It only draws; what became of it does not matter.
            let _ = drawer.join();
        }
        live.bar.finish_and_clear();
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
            Progress::Starting { side } => {
                format!("{scenario}: starting the server of the {}", name(*side))
            }
            Progress::Session { number, most, side } => format!(
                "{scenario}: session {number} of at most {most}, the {}",
                name(*side)
            ),
            Progress::Confirming => {
                format!("{scenario}: a regression is being confirmed after a reload")
            }
        };
        self.line(text);
    }

    fn note(&mut self, line: &str) {
        match &self.live {
            Some(live) => live.bar.suspend(|| self.terminal.say(line)),
            None => self.terminal.say(line),
        }
    }

    fn watch(&mut self, gauges: Vec<Gauge>) {
        if let Some(live) = &self.live {
            *live.gauges.lock().unwrap_or_else(PoisonError::into_inner) = gauges;
        }
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Candidate => "candidate",
        Side::Baseline => "reference",
    }
}

fn of(side: Side) -> &'static str {
    match side {
        Side::Candidate => "",
        Side::Baseline => " the reference",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_last_second_alone() {
        assert_eq!(figures(200, 2_000_000_000, 1.0), "200 req/s, mean 10.0 ms");
        assert_eq!(figures(0, 0, 1.0), "");
    }
}
