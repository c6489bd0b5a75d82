/// CPU time of this machine since its start, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticks {
    /// Taken away by the hypervisor.
    pub(super) steal: u64,
    /// All, idle time included.
    pub(super) all: u64,
}

impl Ticks {
    /// The share stolen up to a later reading, 0 to 1; none where no tick went by.
    pub(super) fn stolen_until(self, later: Self) -> Option<f64> {
        let steal = later.steal.checked_sub(self.steal)?;
        let all = later.all.checked_sub(self.all)?;
        (all > 0).then(|| steal as f64 / all as f64)
    }
}

/// The ticks so far; none where the kernel does not say.
pub(super) fn read() -> Option<Ticks> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The first line of `/proc/stat`.
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .map_while(|tick| tick.parse().ok())
        .collect();
    Some(Ticks {
        steal: *ticks.get(7)?,
        all: ticks.iter().sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_eighth_tick() {
        let before = parse("cpu  100 0 50 800 10 0 0 40 0 0\n").expect("parsed");
        assert_eq!((before.steal, before.all), (40, 1000));
        let after = parse("cpu  140 0 60 840 10 0 0 50 0 0\n").expect("parsed");
        assert_eq!(before.stolen_until(after), Some(0.1));
        assert_eq!(after.stolen_until(before), None);
        assert_eq!(parse("intr 1 2 3"), None);
    }
}
