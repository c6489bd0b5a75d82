/// CPU time that the hypervisor took from this machine, between two readings.
#[derive(Debug, Clone, Copy)]
pub struct StealMeter {
    last: Option<(u64, u64)>,
}

impl StealMeter {
    /// Takes the first reading.
    pub fn start() -> Self {
        Self { last: read() }
    }

    /// The share of all CPU time stolen since the last reading, 0 to 1; none where the kernel
    /// does not say.
    pub fn share(&mut self) -> Option<f64> {
        let now = read();
        let share = match (self.last, now) {
            (Some(before), Some(after)) => difference(before, after),
            _ => None,
        };
        self.last = now;
        share
    }
}

fn read() -> Option<(u64, u64)> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// `(steal, all)` ticks of the first line of `/proc/stat`.
fn parse(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .map_while(|tick| tick.parse().ok())
        .collect();
    let steal = *ticks.get(7)?;
    Some((steal, ticks.iter().sum()))
}

fn difference(before: (u64, u64), after: (u64, u64)) -> Option<f64> {
    let steal = after.0.checked_sub(before.0)?;
    let all = after.1.checked_sub(before.1)?;
    (all > 0).then(|| steal as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_eighth_tick() {
        let before = parse("cpu  100 0 50 800 10 0 0 40 0 0\n").expect("parsed");
        assert_eq!(before, (40, 1000));
        let after = parse("cpu  140 0 60 840 10 0 0 50 0 0\n").expect("parsed");
        assert_eq!(difference(before, after), Some(0.1));
        assert_eq!(difference(after, before), None);
        assert_eq!(parse("intr 1 2 3"), None);
    }
}
