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

/// How often rate and latency are drawn anew on a terminal.
const DRAW: Duration = Duration::from_secs(1);
/// How often they are a line of a log.
const LINE: Duration = Duration::from_secs(15);

/// Shows what is going on.
pub struct Display {
    terminal: Terminal,
    /// The line that is drawn over, where standard error is a terminal.
    bar: Option<ProgressBar>,
    figures: Figures,
}

/// The thread that keeps the figures fresh.
struct Figures {
    gauges: Arc<Mutex<Vec<Gauge>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Display {
    /// A spinner where standard error is a terminal, lines elsewhere.
    pub fn new(terminal: Terminal) -> Self {
        let bar = terminal.live_progress().then(spinner);
        let figures = match &bar {
            Some(bar) => {
                let bar = bar.clone();
                Figures::start(DRAW, move |text| bar.set_prefix(text))
            }
            None => Figures::start(LINE, move |text| {
                if !text.is_empty() {
                    terminal.say(format!("  {text}"));
                }
            }),
        };
        Self {
            terminal,
            bar,
            figures,
        }
    }

    fn line(&self, text: String) {
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => self.terminal.say(text),
        }
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {prefix} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

impl Figures {
    fn start(every: Duration, show: impl FnMut(String) + Send + 'static) -> Self {
        let gauges = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let thread = {
            let (gauges, over) = (Arc::clone(&gauges), Arc::clone(&over));
            std::thread::spawn(move || draw(every, show, &gauges, &over))
        };
        Self {
            gauges,
            over,
            thread: Some(thread),
        }
    }
}

/// Shows rate and mean latency of the last `every` until the display is over.
fn draw(
    every: Duration,
    mut show: impl FnMut(String),
    gauges: &Mutex<Vec<Gauge>>,
    over: &AtomicBool,
) {
    let mut before = (0, 0);
    let mut since = Instant::now();
    loop {
        std::thread::park_timeout(every);
        if over.load(Ordering::Relaxed) {
            return;
        }
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
        show(text);
    }
}

/// `174 req/s, mean 22.9 ms`; empty where nothing completed.
fn figures(completed: u64, latency_ns: u64, seconds: f64) -> String {
    if completed == 0 || seconds <= 0.0 {
        return String::new();
    }
    format!(
        "{}, mean {}",
        format::request_rate(completed as f64 / seconds),
        format::latency(latency_ns as f64 / completed as f64 / 1e3)
    )
}

impl Drop for Display {
    fn drop(&mut self) {
        self.figures.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.figures.thread.take() {
            thread.thread().unpark();
            // It only shows; what became of it does not matter.
            let _ = thread.join();
        }
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
                for text in plan.texts() {
                    self.note(&format!("{scenario}: {text}"));
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
        match &self.bar {
            Some(bar) => bar.suspend(|| self.terminal.say(line)),
            None => self.terminal.say(line),
        }
    }

    fn watch(&mut self, gauges: Vec<Gauge>) {
        let watched = self.figures.gauges.lock();
        *watched.unwrap_or_else(PoisonError::into_inner) = gauges;
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
        assert_eq!(figures(1, 3_000_000_000, 3.0), "0.33 req/s, mean 3.00 s");
        assert_eq!(figures(0, 0, 1.0), "");
    }
}
