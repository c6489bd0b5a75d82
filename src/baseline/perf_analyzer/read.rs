use std::collections::BTreeMap;

use csv::StringRecord;

use super::error::PaError;
use super::header::Header;
use super::refuse;
use super::table::{Gpu, Row, Server, Table};
use crate::baseline::place::Lines;
use crate::baseline::{LevelKey, LevelLoad, Place};
use crate::data::Latency;

/// Times beyond this are not times: the tool subtracts unsigned counters, and a model that was
/// reloaded meanwhile leaves numbers near 2^64. 11 days in microseconds.
const LONGEST_US: f64 = 1e12;

/// Reads a CSV that `perf_analyzer` wrote, whatever its version and options.
///
/// # Errors
/// A file of another kind, named with what to do; a row that cannot be trusted, with its line.
pub fn read(text: &str, file: &str) -> Result<Table, PaError> {
    let text = text.trim_start_matches('\u{feff}');
    refuse::by_text(text, file)?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let last_is_open = !text.ends_with('\n');
    let mut lines = Lines::new(text);
    let mut header: Option<Header> = None;
    let mut rows = Vec::new();
    let mut records = reader.records().peekable();
    while let Some(record) = records.next() {
        let record = record.map_err(|error| PaError::Csv {
            place: Place::new(file, error.position().map_or(1, csv::Position::line)),
            message: error.to_string(),
        })?;
        // Spreadsheets leave rows of nothing but commas.
        if record.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        let place = Place::new(file, lines.of(record.position()));
        // Files that were put together hold a header a part.
        let is_header = record
            .iter()
            .any(|cell| cell.trim().eq_ignore_ascii_case("Inferences/Second"));
        match &header {
            Some(header) if !is_header => {
                let cut = last_is_open && records.peek().is_none();
                rows.push(row(header, &record, place, cut)?);
            }
            _ => {
                let mut names: Vec<String> =
                    record.iter().map(|name| name.trim().to_owned()).collect();
                // A trailing comma.
                while names.last().is_some_and(String::is_empty) {
                    names.pop();
                }
                header = Some(Header::new(names, &place)?);
            }
        }
    }
    if rows.is_empty() {
        return Err(PaError::NoRows(Place::new(file, 1)));
    }
    Ok(Table {
        file: file.to_owned(),
        rows,
    })
}

struct Cells<'a> {
    header: &'a Header,
    record: &'a StringRecord,
    place: Place,
}

impl Cells<'_> {
    fn text(&self, column: Option<usize>) -> Option<&str> {
        let cell = self.record.get(column?)?.trim();
        (!cell.is_empty()).then_some(cell)
    }

    fn bad(&self, column: usize, expected: &'static str) -> PaError {
        PaError::BadValue {
            place: self.place.clone(),
            column: self.header.names.get(column).cloned().unwrap_or_default(),
            value: self.text(Some(column)).unwrap_or_default().to_owned(),
            expected,
        }
    }

    /// A finite number of at least 0; none where the cell is empty or the column missing.
    fn number(&self, column: Option<usize>) -> Result<Option<f64>, PaError> {
        let (Some(index), Some(text)) = (column, self.text(column)) else {
            return Ok(None);
        };
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(Some(value)),
            _ => Err(self.bad(index, "a finite number of at least 0")),
        }
    }

    /// A latency in microseconds.
    fn latency(&self, column: Option<usize>) -> Result<Option<f64>, PaError> {
        match (column, self.number(column)?) {
            (Some(index), Some(value)) if value > LONGEST_US => {
                Err(self.bad(index, "microseconds below 11 days"))
            }
            (_, value) => Ok(value),
        }
    }

    /// A part of the latency; unknown where the tool's subtraction went below zero.
    fn part(&self, column: Option<usize>) -> Result<Option<f64>, PaError> {
        Ok(self.number(column)?.filter(|value| *value <= LONGEST_US))
    }

    /// The values of a `uuid:value;uuid:value;` cell; people's files lack the last `;`.
    fn gpu(&self, column: Option<usize>) -> Result<Vec<f64>, PaError> {
        let (Some(index), Some(text)) = (column, self.text(column)) else {
            return Ok(Vec::new());
        };
        text.split(';')
            .filter(|part| !part.trim().is_empty())
            .map(|part| {
                part.rsplit_once(':')
                    .and_then(|(_, value)| value.trim().parse::<f64>().ok())
                    .filter(|value| value.is_finite() && *value >= 0.0)
                    .ok_or_else(|| self.bad(index, "uuid:value pairs with ; between them"))
            })
            .collect()
    }
}

fn row(header: &Header, record: &StringRecord, place: Place, open: bool) -> Result<Row, PaError> {
    let expected = header.names.len();
    let found = record.len();
    let wrong = |why| PaError::Cells {
        place: place.clone(),
        found,
        expected,
        why,
    };
    if record
        .iter()
        .skip(expected)
        .any(|cell| !cell.trim().is_empty())
    {
        return Err(wrong(
            "its columns may have shifted (a comma in a number or a name?)",
        ));
    }
    if found < header.gpu_from.min(expected) || (found < expected && open) {
        return Err(wrong("it is cut short; get the whole file"));
    }
    let cells = Cells {
        header,
        record,
        place,
    };
    let throughput = cells
        .number(Some(header.throughput))?
        .filter(|value| *value > 0.0)
        .ok_or_else(|| cells.bad(header.throughput, "inferences per second above 0"))?;
    let mut percentiles = BTreeMap::new();
    for (number, column) in &header.percentiles {
        if let Some(value) = cells.latency(Some(*column))? {
            percentiles.insert(*number, value);
        }
    }
    let latency = Latency {
        p50: percentiles.remove(&50),
        p90: percentiles.remove(&90),
        p95: percentiles.remove(&95),
        p99: percentiles.remove(&99),
        mean: cells.latency(header.mean)?,
        ..Latency::default()
    };
    Ok(Row {
        line: cells.place.line,
        key: key(&cells)?,
        throughput,
        response_throughput: cells.number(header.response_throughput)?,
        latency,
        other_percentiles: percentiles,
        client_send_us: cells.part(header.send)?,
        client_receive_us: cells.part(header.receive)?,
        network_us: cells.part(header.network)?,
        server: server(&cells)?,
        gpu: gpu(&cells)?,
    })
}

fn key(cells: &Cells<'_>) -> Result<LevelKey, PaError> {
    let header = cells.header;
    let load = match (header.concurrency, header.rate) {
        (Some(column), _) if cells.text(Some(column)).is_some() => {
            let level = cells.text(Some(column)).and_then(whole);
            LevelLoad::Concurrency(
                level.ok_or_else(|| cells.bad(column, "a whole number of requests in flight"))?,
            )
        }
        (_, Some(column)) => {
            let rate = cells
                .number(Some(column))?
                .ok_or_else(|| cells.bad(column, "requests per second"))?;
            LevelLoad::RateMilli((rate * 1000.0).round() as u64)
        }
        (column, None) => {
            return Err(cells.bad(
                column.unwrap_or_default(),
                "a whole number of requests in flight",
            ));
        }
    };
    let labels = header
        .labels
        .iter()
        .filter_map(|(name, column)| {
            let cell = cells.text(Some(*column))?;
            Some((name.clone(), cell.to_owned()))
        })
        .collect();
    Ok(LevelKey { load, labels })
}

/// A whole number above 0; data frames write `8.0`.
fn whole(text: &str) -> Option<u32> {
    let text = text.strip_suffix(".0").unwrap_or(text);
    text.parse().ok().filter(|value| *value > 0)
}

fn server(cells: &Cells<'_>) -> Result<Option<Server>, PaError> {
    let header = cells.header;
    let Some(queue_us) = cells.part(header.queue)? else {
        return Ok(None);
    };
    if let Some(compute) = cells.part(header.compute)? {
        return Ok(Some(Server {
            queue_us,
            compute_input_us: 0.0,
            compute_infer_us: compute,
            compute_output_us: 0.0,
        }));
    }
    let parts = (
        cells.part(header.input)?,
        cells.part(header.infer)?,
        cells.part(header.output)?,
    );
    let (Some(compute_input_us), Some(compute_infer_us), Some(compute_output_us)) = parts else {
        return Ok(None);
    };
    Ok(Some(Server {
        queue_us,
        compute_input_us,
        compute_infer_us,
        compute_output_us,
    }))
}

fn gpu(cells: &Cells<'_>) -> Result<Option<Gpu>, PaError> {
    let [utilisation, power, memory] = cells.header.gpu;
    let utilisation = cells.gpu(utilisation)?;
    let sum = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>());
    let gpu = Gpu {
        utilisation: sum(&utilisation).map(|total| total / utilisation.len() as f64),
        power_w: sum(&cells.gpu(power)?),
        memory_bytes: sum(&cells.gpu(memory)?),
    };
    Ok((gpu != Gpu::default()).then_some(gpu))
}
