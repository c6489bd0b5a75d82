//! Measures what the search for shifts is worth.
//!
//! `cargo run --release --example shifts` prints the table of docs/evidence.md. Every figure
//! follows from the seed.

use clap::Parser;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use triton_gate::stats::{ShiftSearch, shifts};

/// Counts what the search finds in series whose shifts are known.
#[derive(Parser)]
struct Arguments {
    /// Series of each kind.
    #[arg(long, default_value_t = 1000)]
    series: u64,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How neighbouring values belong together.
#[derive(Clone, Copy)]
enum Noise {
    /// Independent, normal.
    Normal,
    /// Independent, one in ten five times as wide.
    Wild,
    /// Each value keeps half of the one before.
    Drifting,
}

impl Noise {
    fn values(self, count: usize, random: &mut ChaCha8Rng) -> Vec<f64> {
        let mut last = 0.0;
        (0..count)
            .map(|_| {
                let fresh: f64 = random.sample(StandardNormal);
                match self {
                    Self::Wild if random.random_bool(0.1) => 5.0 * fresh,
                    Self::Normal | Self::Wild => fresh,
                    Self::Drifting => {
                        last = 0.5 * last + 0.75_f64.sqrt() * fresh;
                        last
                    }
                }
            })
            .collect()
    }
}

fn main() {
    let arguments = Arguments::parse();
    println!(
        "| values | noise | change, sd | found % | place exact % | place in range % | more than one % |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (before, after, change) in [
        (12, 0, 0.0),
        (30, 0, 0.0),
        (100, 0, 0.0),
        (20, 3, 3.0),
        (20, 3, 6.0),
        (20, 10, 2.0),
        (20, 10, 3.0),
        (20, 10, 5.0),
        (60, 40, 1.0),
        (60, 40, 2.0),
    ] {
        for (noise, name) in [
            (Noise::Normal, "normal"),
            (Noise::Wild, "wild"),
            (Noise::Drifting, "drifting"),
        ] {
            row(&arguments, noise, name, before, after, change);
        }
    }
}

fn row(arguments: &Arguments, noise: Noise, name: &str, before: usize, after: usize, change: f64) {
    let (mut found, mut exact, mut within, mut several) = (0_u64, 0_u64, 0_u64, 0_u64);
    for run in 0..arguments.series {
        let seed = arguments.seed + run;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut values = noise.values(before + after, &mut random);
        for value in values.iter_mut().skip(before) {
            *value += change;
        }
        let search = ShiftSearch {
            seed,
            ..ShiftSearch::default()
        };
        let Ok(list) = shifts(&values, &search) else {
            continue;
        };
        found += u64::from(!list.is_empty());
        several += u64::from(list.len() > 1);
        exact += u64::from(list.iter().any(|shift| shift.at == before));
        within += u64::from(
            list.iter()
                .any(|shift| (shift.earliest..=shift.latest).contains(&before)),
        );
    }
    let percent = |count: u64, of: u64| 100.0 * count as f64 / of.max(1) as f64;
    let all = arguments.series;
    if after == 0 {
        println!(
            "| {before} | {name} | none | {:.1} | | | |",
            percent(found, all)
        );
    } else {
        println!(
            "| {before} + {after} | {name} | {change} | {:.0} | {:.0} | {:.0} | {:.0} |",
            percent(found, all),
            percent(exact, found),
            percent(within, found),
            percent(several, all)
        );
    }
}
