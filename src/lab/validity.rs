//! Whether a measurement may be judged at all: pure rules over what was seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::data::{Block, ErrorClass, ErrorCounts, Flag, Fraction, Reason};

/// Share of foreign requests beyond which a measurement is invalid.
const FOREIGN_LIMIT: f64 = 0.01;
/// Share of our requests that the server's counters may lack.
const UNCOUNTED_LIMIT: f64 = 0.01;
/// Share of a core at which a client thread is at its limit.
const SATURATED: f64 = 0.95;
/// Share of a core at which a client thread is worth a note.
const BUSY: f64 = 0.80;

/// What was seen of one side's load.
#[derive(Debug, Clone, Default)]
pub struct Observed<'a> {
    /// The blocks that count.
    pub blocks: &'a [Block],
    /// Blocks that had to be discarded.
    pub discarded: u32,
    /// Failures over the whole load, ramp and drain included.
    pub errors: ErrorCounts,
    /// Completions over the whole load, ramp and drain included.
    pub completed: u64,
    /// The first message of each class.
    pub examples: BTreeMap<ErrorClass, String>,
    /// Versions named in the responses.
    pub model_versions: BTreeSet<String>,
    /// Completions held no output bytes.
    pub empty_outputs: bool,
    /// Requests that the server counted as successful over the same time; none where unknown.
    pub server_requests: Option<u64>,
    /// Requests of ours from before that the server may count only now: it counts just after the
    /// answer, and it may answer what the client has given up.
    pub late: u64,
    /// Requests that the server's response cache answered.
    pub cache_hits: u64,
    /// The server's counters started anew meanwhile.
    pub reloaded: bool,
    /// Requests in flight.
    pub concurrency: u32,
    /// Share of failures up to which a measurement is valid.
    pub max_error_rate: Fraction,
    /// Accept a client at its limit.
    pub allow_saturated: bool,
}

/// Judges the measurement: flags where it may be judged, the reason where it may not.
pub fn assess(seen: &Observed<'_>) -> Result<Vec<Flag>, Reason> {
    errors(seen)?;
    server(seen)?;
    let mut flags = client(seen)?;
    flags.extend(little(seen));
    if seen.empty_outputs {
        flags.push(flag("empty_outputs", "responses held no output data"));
    }
    Ok(flags)
}

fn errors(seen: &Observed<'_>) -> Result<(), Reason> {
    let failed = seen.errors.total();
    let all = failed + seen.completed;
    if all == 0 {
        return Err(reason(
            "nothing_completed",
            "no request completed within the measurement".to_owned(),
            "lengthen the block ([measure] block) beyond the model's latency, or look at the \
             server's log",
        ));
    }
    let rate = failed as f64 / all as f64;
    if rate > seen.max_error_rate.get() {
        let classes: Vec<String> = seen
            .errors
            .0
            .iter()
            .map(|(class, count)| {
                let example = seen.examples.get(class).map(|text| format!(" ({text})"));
                format!("{count} x {class}{}", example.unwrap_or_default())
            })
            .collect();
        return Err(reason(
            "errors",
            format!(
                "{failed} of {all} requests failed ({:.2} %, accepted are {}): {}",
                rate * 100.0,
                seen.max_error_rate,
                classes.join("; ")
            ),
            next_for(&seen.errors),
        ));
    }
    let silent = seen.blocks.iter().all(|block| block.requests == 0);
    // Where all were discarded, that is the trouble, and it is judged elsewhere.
    if silent && (!seen.blocks.is_empty() || seen.discarded == 0) {
        return Err(reason(
            "nothing_completed",
            "no request completed within the counted blocks".to_owned(),
            "lengthen the block ([measure] block) beyond the model's latency",
        ));
    }
    Ok(())
}

/// The advice for the class that occurred most.
fn next_for(errors: &ErrorCounts) -> &'static str {
    let most = errors
        .0
        .iter()
        .max_by_key(|(_, count)| **count)
        .map(|(class, _)| *class);
    match most {
        Some(ErrorClass::Connection | ErrorClass::ServerUnavailable) => {
            "see whether the server is still running and what its log says, then measure again"
        }
        Some(ErrorClass::Timeout) => {
            "see whether the server hangs; raise [measure] request_timeout if the model is that slow"
        }
        Some(ErrorClass::QueueFull | ErrorClass::QueueTimeout) => {
            "lower the concurrency, or raise max_queue_size or the queue timeout of the model"
        }
        Some(ErrorClass::InvalidRequest) => {
            "correct the scenario's inputs; `triton-gate init` writes what the model expects"
        }
        Some(ErrorClass::ModelUnavailable) => "load the model, or correct its name and version",
        Some(ErrorClass::RateLimited) => {
            "lift the rate limit in front of the server for this check"
        }
        Some(ErrorClass::Unauthorized) => "correct the credentials in [server] metadata",
        Some(ErrorClass::Execution) => "the model itself fails: its message above says why",
        Some(ErrorClass::MessageTooLarge) => "lower the batch, or raise the limit of the proxy",
        _ => "mend the cause, or accept a share of failures with [measure] max_error_rate",
    }
}

fn server(seen: &Observed<'_>) -> Result<(), Reason> {
    if seen.reloaded {
        return Err(reason(
            "model_reloaded",
            "the model was reloaded or the server restarted during the measurement".to_owned(),
            "keep deployments away from the server while it is measured, then measure again",
        ));
    }
    if seen.model_versions.len() > 1 {
        let versions: Vec<&str> = seen.model_versions.iter().map(String::as_str).collect();
        return Err(reason(
            "version_changed",
            format!(
                "model versions {} answered within one measurement",
                versions.join(" and ")
            ),
            "name the version in the scenario (version = \"...\")",
        ));
    }
    if seen.cache_hits > 0 {
        return Err(reason(
            "response_cache",
            format!(
                "the server's response cache answered {} requests",
                seen.cache_hits
            ),
            "switch response_cache off for the model while it is measured",
        ));
    }
    if let Some(counted) = seen.server_requests {
        // A reload early in a model's life leaves counters that are higher than before: only the
        // sum tells. Triton counts a request just after its answer, so the last may be missing.
        let uncounted = seen.completed.saturating_sub(counted);
        if uncounted > u64::from(seen.concurrency)
            && uncounted as f64 / seen.completed as f64 > UNCOUNTED_LIMIT
        {
            return Err(reason(
                "requests_not_counted",
                format!(
                    "the server's counters hold {counted} of our {} requests: the model was \
                     reloaded during the measurement, or several servers answer at one address",
                    seen.completed
                ),
                "keep deployments away from the server while it is measured, and measure one \
                 server rather than a load balancer",
            ));
        }
        // Triton's Python backend counts a request that the model answered with an error as a
        // success, so that failures of ours may be among them.
        let ours = seen.completed + seen.late + seen.errors.total();
        let foreign = counted.saturating_sub(ours);
        if counted > 0 && foreign as f64 / counted as f64 > FOREIGN_LIMIT {
            return Err(reason(
                "foreign_traffic",
                format!(
                    "the server answered {foreign} requests of others besides our {} ({:.1} %)",
                    seen.completed,
                    foreign as f64 / counted as f64 * 100.0
                ),
                "keep other clients away from the model while it is measured",
            ));
        }
    }
    Ok(())
}

fn client(seen: &Observed<'_>) -> Result<Vec<Flag>, Reason> {
    let shares: Vec<f64> = seen
        .blocks
        .iter()
        .filter_map(|block| block.client.cpu)
        .collect();
    let over = |limit: f64| shares.iter().filter(|share| **share >= limit).count();
    let most = shares.iter().copied().fold(0.0, f64::max);
    if over(SATURATED) * 2 > shares.len() && !seen.allow_saturated {
        return Err(reason(
            "client_saturated",
            format!(
                "the client was at its limit in {} of {} blocks: a worker thread used {:.0} % of \
                 a core, so the client is what would be measured",
                over(SATURATED),
                shares.len(),
                most * 100.0
            ),
            "raise [measure] workers, use a machine with more cores, or accept it with \
             [measure] allow_saturated = true",
        ));
    }
    if over(BUSY) * 2 > shares.len() {
        return Ok(vec![flag(
            "client_busy",
            &format!("a client thread used up to {:.0} % of a core", most * 100.0),
        )]);
    }
    Ok(Vec::new())
}

/// Little's law ties concurrency, throughput and mean latency; a gap means that the load was not
/// what was asked.
fn little(seen: &Observed<'_>) -> Option<Flag> {
    let completions: u64 = seen.blocks.iter().map(|block| block.requests).sum();
    let ratios: Vec<(f64, u64)> = seen
        .blocks
        .iter()
        .filter_map(|block| Some((block.client.little?, block.requests)))
        .collect();
    let weight: u64 = ratios.iter().map(|(_, requests)| requests).sum();
    if weight == 0 {
        return None;
    }
    let mean = ratios
        .iter()
        .map(|(ratio, n)| ratio * *n as f64)
        .sum::<f64>()
        / weight as f64;
    let tolerance = (2.0 * f64::from(seen.concurrency) / completions as f64).max(0.05);
    ((mean - 1.0).abs() > tolerance).then(|| {
        flag(
            "little",
            &format!(
                "throughput x mean latency is {:.0} % of the concurrency asked: the load was not \
                 held",
                mean * 100.0
            ),
        )
    })
}

fn flag(code: &str, text: &str) -> Flag {
    Flag {
        code: code.to_owned(),
        text: text.to_owned(),
    }
}

fn reason(code: &str, text: String, next: &str) -> Reason {
    Reason {
        code: code.to_owned(),
        text,
        next: next.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ClientSide, Latency, Side};

    fn block(requests: u64, cpu: f64, little: f64) -> Block {
        Block {
            side: Side::Candidate,
            index: 0,
            duration_ns: 2_000_000_000,
            batch: 1,
            requests,
            errors: ErrorCounts::default(),
            latency: Latency::default(),
            histogram: None,
            client: ClientSide {
                cpu: Some(cpu),
                little: Some(little),
                ..ClientSide::default()
            },
            server: None,
            gpu: None,
            steal: None,
            stated_throughput: None,
        }
    }

    fn healthy(blocks: &[Block]) -> Observed<'_> {
        Observed {
            blocks,
            completed: 1000,
            server_requests: Some(1000),
            concurrency: 4,
            max_error_rate: Fraction::new(0.0),
            model_versions: ["1".to_owned()].into(),
            ..Observed::default()
        }
    }

    fn code(seen: &Observed<'_>) -> String {
        match assess(seen) {
            Ok(flags) => flags
                .iter()
                .map(|flag| flag.code.clone())
                .collect::<Vec<_>>()
                .join(","),
            Err(reason) => format!("!{}", reason.code),
        }
    }

    #[test]
    fn a_healthy_measurement_has_no_flags() {
        let blocks = vec![block(500, 0.3, 1.0); 2];
        assert_eq!(code(&healthy(&blocks)), "");
    }

    #[test]
    fn every_kind_of_trouble_is_named() {
        let blocks = vec![block(500, 0.3, 1.0); 2];
        let base = healthy(&blocks);
        let mut one_error = ErrorCounts::default();
        one_error.add(ErrorClass::Execution);
        let table: Vec<(&str, Observed<'_>)> = vec![
            (
                "!errors",
                Observed {
                    errors: one_error.clone(),
                    ..base.clone()
                },
            ),
            (
                "",
                Observed {
                    errors: one_error,
                    max_error_rate: Fraction::new(0.01),
                    ..base.clone()
                },
            ),
            (
                "!nothing_completed",
                Observed {
                    completed: 0,
                    ..base.clone()
                },
            ),
            (
                "!model_reloaded",
                Observed {
                    reloaded: true,
                    ..base.clone()
                },
            ),
            (
                "!version_changed",
                Observed {
                    model_versions: ["1".to_owned(), "2".to_owned()].into(),
                    ..base.clone()
                },
            ),
            (
                "!response_cache",
                Observed {
                    cache_hits: 1,
                    ..base.clone()
                },
            ),
            (
                "!foreign_traffic",
                Observed {
                    server_requests: Some(1011),
                    ..base.clone()
                },
            ),
            (
                "",
                Observed {
                    server_requests: Some(1009),
                    ..base.clone()
                },
            ),
            (
                // Errors that the model answered with, counted as successes.
                "",
                Observed {
                    completed: 980,
                    errors: ErrorCounts([(ErrorClass::Execution, 20)].into()),
                    max_error_rate: Fraction::new(0.05),
                    server_requests: Some(1000),
                    ..base.clone()
                },
            ),
            (
                // Its own of a moment ago, counted just after their answer.
                "",
                Observed {
                    completed: 66,
                    server_requests: Some(68),
                    late: 2,
                    ..base.clone()
                },
            ),
            (
                "!foreign_traffic",
                Observed {
                    completed: 66,
                    server_requests: Some(68),
                    late: 1,
                    ..base.clone()
                },
            ),
            (
                "!requests_not_counted",
                Observed {
                    server_requests: Some(989),
                    ..base.clone()
                },
            ),
            (
                "",
                Observed {
                    server_requests: Some(990),
                    ..base.clone()
                },
            ),
            (
                // No more than were in flight: counted just after their answer.
                "",
                Observed {
                    completed: 20,
                    server_requests: Some(16),
                    ..base.clone()
                },
            ),
            (
                "empty_outputs",
                Observed {
                    empty_outputs: true,
                    ..base.clone()
                },
            ),
        ];
        for (expected, seen) in table {
            assert_eq!(code(&seen), expected);
        }
    }

    #[test]
    fn a_client_at_its_limit_is_invalid_unless_allowed() {
        let blocks = vec![
            block(500, 0.97, 1.0),
            block(500, 0.96, 1.0),
            block(500, 0.5, 1.0),
        ];
        assert_eq!(code(&healthy(&blocks)), "!client_saturated");
        let allowed = Observed {
            allow_saturated: true,
            ..healthy(&blocks)
        };
        assert_eq!(code(&allowed), "client_busy");
        let half = vec![block(500, 0.97, 1.0), block(500, 0.5, 1.0)];
        assert_eq!(code(&healthy(&half)), "");
    }

    #[test]
    fn a_load_that_was_not_held_is_flagged() {
        let blocks = vec![block(500, 0.3, 0.9); 2];
        assert_eq!(code(&healthy(&blocks)), "little");
        // Few completions: the edges of a block explain the gap.
        let few = vec![block(20, 0.3, 0.9); 2];
        assert_eq!(code(&healthy(&few)), "");
    }
}
