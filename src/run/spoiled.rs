use std::collections::BTreeMap;

use crate::data::Reason;

/// Share of discarded blocks beyond which a measurement is invalid.
const MOST: f64 = 0.30;
/// Blocks from which on that is judged while measuring goes on.
const ENOUGH: u32 = 24;

/// Blocks that counted and blocks that did not.
#[derive(Debug, Clone, Default)]
pub struct Spoiled {
    counted: u32,
    discarded: BTreeMap<String, u32>,
}

impl Spoiled {
    /// Adds what a measurement brought.
    pub fn add(&mut self, counted: u32, discarded: &BTreeMap<String, u32>) {
        self.counted += counted;
        for (reason, count) in discarded {
            *self.discarded.entry(reason.clone()).or_default() += count;
        }
    }

    /// Why too much was discarded to go on; none while that is not clear.
    pub fn hopeless(&self) -> Option<Reason> {
        (self.counted + self.total() >= ENOUGH)
            .then(|| self.invalid())
            .flatten()
    }

    /// Why too much was discarded to judge what is left.
    pub fn invalid(&self) -> Option<Reason> {
        let (lost, all) = (self.total(), self.counted + self.total());
        if f64::from(lost) <= MOST * f64::from(all) {
            return None;
        }
        let (worst, _) = self.discarded.iter().max_by_key(|(_, count)| **count)?;
        let parts: Vec<String> = self
            .discarded
            .iter()
            .map(|(reason, count)| format!("{count} {}", words(reason)))
            .collect();
        Some(Reason {
            code: worst.clone(),
            text: format!(
                "{lost} of {all} blocks had to be discarded ({}): more than {:.0} %",
                parts.join(", "),
                MOST * 100.0
            ),
            next: advice(worst).to_owned(),
        })
    }

    fn total(&self) -> u32 {
        self.discarded.values().sum()
    }
}

/// A reason for which blocks are discarded, in words.
fn words(reason: &str) -> &str {
    match reason {
        "throttled" => "while the GPU was slowed down by heat or its hardware",
        "cpu_steal" => "while the hypervisor took CPU time from this machine",
        "suspended" => "while this machine or program stood still",
        "gpu_processes" => "while processes came to or left the GPU",
        other => other,
    }
}

fn advice(reason: &str) -> &'static str {
    match reason {
        "throttled" => {
            "cool the GPU, or lock its clocks where it can hold them (nvidia-smi --lock-gpu-clocks)"
        }
        "cpu_steal" => "measure on a machine whose CPUs are its own",
        "suspended" => "keep the machine awake and the program in the foreground",
        "gpu_processes" => "keep other work off the GPU while it is measured",
        _ => "measure again on a quieter machine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counted: u32, discarded: &[(&str, u32)]) -> Spoiled {
        let mut spoiled = Spoiled::default();
        let discarded = discarded
            .iter()
            .map(|(reason, count)| ((*reason).to_owned(), *count))
            .collect();
        spoiled.add(counted, &discarded);
        spoiled
    }

    #[test]
    fn more_than_three_in_ten_is_invalid() {
        assert_eq!(Spoiled::default().invalid(), None);
        assert_eq!(of(7, &[("throttled", 3)]).invalid(), None);
        let reason = of(6, &[("throttled", 1), ("cpu_steal", 3)])
            .invalid()
            .expect("4 of 10");
        assert_eq!(reason.code, "cpu_steal");
        assert_eq!(
            reason.text,
            "4 of 10 blocks had to be discarded (3 while the hypervisor took CPU time from this \
             machine, 1 while the GPU was slowed down by heat or its hardware): more than 30 %"
        );
        assert!(of(0, &[("suspended", 1)]).invalid().is_some());
    }

    #[test]
    fn it_goes_on_while_a_few_blocks_say_little() {
        assert_eq!(of(6, &[("throttled", 4)]).hopeless(), None);
        assert!(of(16, &[("throttled", 8)]).hopeless().is_some());
        assert_eq!(of(20, &[("throttled", 8)]).hopeless(), None);
    }
}
