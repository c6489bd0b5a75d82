use std::collections::BTreeMap;

use super::error::PaError;
use super::refuse;
use crate::baseline::Place;

/// Where each known column is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    /// All names, trimmed.
    pub names: Vec<String>,
    pub concurrency: Option<usize>,
    pub rate: Option<usize>,
    pub throughput: usize,
    pub response_throughput: Option<usize>,
    pub send: Option<usize>,
    pub network: Option<usize>,
    pub queue: Option<usize>,
    pub input: Option<usize>,
    pub infer: Option<usize>,
    pub output: Option<usize>,
    /// The one column of 2019.
    pub compute: Option<usize>,
    pub receive: Option<usize>,
    pub mean: Option<usize>,
    pub percentiles: BTreeMap<u8, usize>,
    pub gpu: [Option<usize>; 3],
    /// Columns that tell rows apart, by their name in keys.
    pub labels: BTreeMap<String, usize>,
    /// The first column that the GPUs' own cells are in; rows may end before it.
    pub gpu_from: usize,
}

/// Columns that tell rows apart wherever they are, with the name that they get in keys.
const LABELS: [(&str, &str); 8] = [
    ("model", "model"),
    ("model name", "model"),
    ("model_name", "model"),
    ("batch", "batch"),
    ("batch size", "batch"),
    ("batch_size", "batch"),
    ("version", "version"),
    ("model_version", "version"),
];

/// Measurements of the tool: wherever people move them, they tell no rows apart.
const MEASUREMENTS: [&str; 18] = [
    "inferences/second",
    "response throughput",
    "client send",
    "network+server send/recv",
    "server queue",
    "server compute",
    "server compute input",
    "server compute infer",
    "server compute output",
    "server cache hit",
    "server cache miss",
    "client recv",
    "avg latency",
    "request/response",
    "response wait",
    "send/recv",
    "delayed request count",
    "total gpu memory",
];

fn is_measurement(lower: &str) -> bool {
    MEASUREMENTS.contains(&lower)
        || percentile(lower).is_some()
        || lower.starts_with("avg gpu ")
        || lower.starts_with("max gpu ")
}

/// Columns that number the rows: what spreadsheets and data frames add.
fn is_row_number(name: &str) -> bool {
    name.is_empty() || name.starts_with("unnamed:") || name == "index"
}

impl Header {
    pub fn new(names: Vec<String>, place: &Place) -> Result<Self, PaError> {
        refuse::by_header(&names, place)?;
        let find = |wanted: &str| find(&names, wanted, place);
        let missing = |column| PaError::MissingColumn {
            place: place.clone(),
            column,
        };
        let throughput = find("Inferences/Second")?.ok_or_else(|| missing("Inferences/Second"))?;
        let concurrency = find("Concurrency")?;
        let rate = find("Request Rate")?;
        let level = match (concurrency, rate) {
            (Some(one), Some(other)) => one.min(other),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Err(missing("Concurrency")),
        };
        let gpu = [
            find("Avg GPU Utilization")?,
            find("Avg GPU Power Usage")?,
            find("Max GPU Memory Usage")?,
        ];
        let total = find("Total GPU Memory")?;
        let gpu_from = gpu
            .iter()
            .chain([&total])
            .filter_map(|column| *column)
            .min()
            .unwrap_or(names.len());
        Ok(Self {
            concurrency,
            rate,
            throughput,
            response_throughput: find("Response Throughput")?,
            send: find("Client Send")?,
            network: find("Network+Server Send/Recv")?,
            queue: find("Server Queue")?,
            input: find("Server Compute Input")?,
            infer: find("Server Compute Infer")?,
            output: find("Server Compute Output")?,
            compute: find("Server Compute")?,
            receive: find("Client Recv")?,
            mean: find("Avg latency")?,
            percentiles: percentiles(&names, place)?,
            gpu,
            labels: labels(&names, level, [concurrency, rate], place)?,
            gpu_from,
            names,
        })
    }
}

/// A column by name: as written if there is one, else whatever the case. People add a
/// `concurrency` of their own beside the tool's `Concurrency`.
fn find(names: &[String], wanted: &str, place: &Place) -> Result<Option<usize>, PaError> {
    let at = |matches: &dyn Fn(&str) -> bool| -> Vec<usize> {
        names
            .iter()
            .enumerate()
            .filter(|(_, name)| matches(name))
            .map(|(index, _)| index)
            .collect()
    };
    let mut found = at(&|name| name == wanted);
    if found.is_empty() {
        found = at(&|name| name.eq_ignore_ascii_case(wanted));
    }
    if found.len() > 1 {
        return Err(PaError::RepeatedColumn {
            place: place.clone(),
            column: wanted.to_owned(),
        });
    }
    Ok(found.first().copied())
}

/// `p99 latency` since mid-2019, `99-th Percentile` before.
fn percentile(name: &str) -> Option<u8> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(" latency").unwrap_or(&name);
    let number = match name.strip_suffix(" percentile") {
        Some(old) => ["-th", "th", "-st", "st", "-nd", "nd", "-rd", "rd"]
            .iter()
            .find_map(|ending| old.strip_suffix(ending))?,
        None => name.strip_prefix('p')?,
    };
    number
        .parse()
        .ok()
        .filter(|number| (1..=99).contains(number))
}

fn percentiles(names: &[String], place: &Place) -> Result<BTreeMap<u8, usize>, PaError> {
    let mut found = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        if let Some(number) = percentile(name)
            && found.insert(number, index).is_some()
        {
            return Err(PaError::RepeatedColumn {
                place: place.clone(),
                column: format!("p{number} latency"),
            });
        }
    }
    Ok(found)
}

/// The columns that tell rows apart: `model`, `batch`, `version` wherever they are, and all
/// that stands before the load: people put their own columns in front of the tool's.
fn labels(
    names: &[String],
    level: usize,
    loads: [Option<usize>; 2],
    place: &Place,
) -> Result<BTreeMap<String, usize>, PaError> {
    let mut labels = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        if loads.contains(&Some(index)) {
            continue;
        }
        let lower = name.to_ascii_lowercase();
        let known = LABELS.iter().find(|(column, _)| *column == lower);
        let key = match known {
            Some((_, key)) => (*key).to_owned(),
            None if index < level && !is_row_number(&lower) && !is_measurement(&lower) => {
                name.clone()
            }
            None => continue,
        };
        if labels.insert(key, index).is_some() {
            return Err(PaError::RepeatedColumn {
                place: place.clone(),
                column: name.clone(),
            });
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_every_age_are_known() {
        for (name, expected) in [
            ("p99 latency", Some(99)),
            ("p85 latency", Some(85)),
            ("P50 Latency", Some(50)),
            ("99-th Percentile", Some(99)),
            ("95th percentile latency", Some(95)),
            ("p100 latency", None),
            ("Avg latency", None),
            ("power", None),
            ("percentile", None),
        ] {
            assert_eq!(percentile(name), expected, "{name}");
        }
    }
}
