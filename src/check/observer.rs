use crate::load::Gauge;
use crate::run::Progress;

/// Told what is going on while it goes on.
pub trait Observer {
    /// A scenario's measurement moved on.
    fn progress(&mut self, scenario: &str, progress: &Progress);

    /// The gauges of the load that begins, for a live display.
    fn watch(&mut self, gauges: Vec<Gauge>) {
        let _ = gauges;
    }

    /// Something worth a line.
    fn note(&mut self, line: &str);
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: &str, _: &Progress) {}
    fn note(&mut self, _: &str) {}
}
