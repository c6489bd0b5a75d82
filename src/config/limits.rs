//! The limits of `[gate]`: `throughput_drop`, `p99_rise`, `p99_max` and their like.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::error::Problem;
use super::layer::{At, Layer, Origin, Row};
use super::read;
use super::show::Show;
use super::text::show_duration;
use crate::data::{Bound, Fraction, Limit, Metric};

/// The four ways to limit a metric, by the ending of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Drop,
    Rise,
    Min,
    Max,
}

impl Kind {
    const fn ending(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Rise => "rise",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// The ways in which a metric can be limited. An error rate has no useful ratio: the
    /// baseline's is nearly always 0.
    const fn of(metric: Metric) -> &'static [Self] {
        match metric {
            Metric::Throughput => &[Self::Drop, Self::Min],
            Metric::ErrorRate => &[Self::Max],
            _ => &[Self::Rise, Self::Max],
        }
    }
}

type Slot = (Metric, Kind);

fn key_of((metric, kind): Slot) -> String {
    format!("{}_{}", metric.name(), kind.ending())
}

fn slots() -> impl Iterator<Item = Slot> {
    Metric::ALL
        .into_iter()
        .flat_map(|metric| Kind::of(metric).iter().map(move |&kind| (metric, kind)))
}

/// Limits of one level; none is a limit that was switched off with `"off"`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits(BTreeMap<Slot, At<Option<Bound>>>);

impl Limits {
    /// What is gated where nobody says anything.
    pub fn defaults() -> Self {
        let at = |slot, fraction| {
            let value = Some(Bound::Relative(Fraction::new(fraction)));
            let origin = Origin::Default;
            (slot, At { value, origin })
        };
        Self(BTreeMap::from([
            at((Metric::Throughput, Kind::Drop), 0.05),
            at((Metric::P99, Kind::Rise), 0.10),
        ]))
    }

    /// The limits that hold, in the order of the metrics.
    pub fn active(&self) -> Vec<Limit> {
        self.0
            .iter()
            .filter_map(|(&(metric, _), at)| at.value.map(|bound| Limit { metric, bound }))
            .collect()
    }

    /// The limit on the error rate, if any.
    pub fn error_rate(&self) -> Option<&At<Option<Bound>>> {
        self.0.get(&(Metric::ErrorRate, Kind::Max))
    }

    /// Every limit that someone spoke of, in words.
    pub fn rows(&self) -> Vec<Row> {
        self.0
            .iter()
            .map(|(&slot, at)| {
                let value = at
                    .value
                    .map_or_else(|| "off".to_owned(), |bound| show_bound(slot.0, bound));
                (key_of(slot), value, at.origin.clone())
            })
            .collect()
    }
}

fn show_bound(metric: Metric, bound: Bound) -> String {
    match bound {
        Bound::Relative(fraction) => fraction.show(),
        Bound::Absolute(value) => match metric {
            Metric::Throughput => format!("{value} infer/s"),
            Metric::ErrorRate => Fraction::new(value).show(),
            _ => show_duration(std::time::Duration::from_nanos((value * 1000.0) as u64)),
        },
    }
}

fn read_bound((metric, kind): Slot, value: &DeValue<'_>) -> Result<Option<Bound>, Problem> {
    if value.as_str() == Some("off") {
        return Ok(None);
    }
    let bound = match (kind, metric) {
        (Kind::Drop, _) => Bound::Relative(read::drop(value)?),
        (Kind::Rise, _) => Bound::Relative(read::rise(value)?),
        (Kind::Min, _) => Bound::Absolute(read::rate(value)?),
        (Kind::Max, Metric::ErrorRate) => Bound::Absolute(read::share(value)?.get()),
        (Kind::Max, _) => Bound::Absolute(read::latency(value)?),
    };
    Ok(Some(bound))
}

impl Layer for Limits {
    fn take(
        &mut self,
        key: &str,
        value: &DeValue<'_>,
        origin: &Origin,
    ) -> Option<Result<(), Problem>> {
        let slot = slots().find(|&slot| key_of(slot) == key)?;
        Some(read_bound(slot, value).map(|value| {
            let origin = origin.clone();
            self.0.insert(slot, At { value, origin });
        }))
    }

    fn keys() -> Vec<String> {
        slots().map(key_of).collect()
    }

    fn over(self, lower: &Self) -> Self {
        let mut limits = lower.0.clone();
        limits.extend(self.0);
        Self(limits)
    }
}
