use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::JoinHandle as Task;

use super::gpu::run;
use super::metrics::{fetch, gpu_sample};
use crate::data::GpuSample;

/// Time between two readings of a local GPU.
const LOCAL_PERIOD: Duration = Duration::from_millis(200);
/// Time between two readings of a metrics endpoint; Triton renews them every 2 s by default.
const REMOTE_PERIOD: Duration = Duration::from_secs(1);
/// Readings that are kept: more than half an hour of a local GPU.
const KEPT: usize = 10_000;

/// What is asked of each local GPU, in this order. The last was called otherwise before driver 535.
const COLUMNS: &str = "index,utilization.gpu,power.draw,memory.used,clocks.sm";
const REASONS: [&str; 2] = [
    "clocks_event_reasons.active",
    "clocks_throttle_reasons.active",
];

/// Watches the GPUs of a server beside the load, from another process or over its metrics
/// endpoint. Where neither answers, nothing is known and nothing is said.
#[derive(Debug)]
pub struct GpuWatch {
    readings: Arc<Readings>,
    period: Duration,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Local(Child),
    Metrics(Task<()>),
}

#[derive(Debug, Default)]
struct Readings(Mutex<VecDeque<(Instant, GpuSample)>>);

impl GpuWatch {
    /// Watches the GPUs of this machine through `nvidia-smi`; none where there are none.
    pub fn local() -> Option<Self> {
        let column = REASONS.into_iter().find(|reasons| {
            run(&[&format!("--query-gpu={reasons}"), "--format=csv,noheader"]).is_some()
        })?;
        let mut child = Command::new("nvidia-smi")
            .arg(format!("--query-gpu={COLUMNS},{column}"))
            .arg("--format=csv,noheader,nounits")
            .arg(format!("--loop-ms={}", LOCAL_PERIOD.as_millis()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let lines = BufReader::new(child.stdout.take()?).lines();
        let readings = Arc::new(Readings::default());
        let theirs = Arc::clone(&readings);
        // It ends with the pipe. Nobody waits for it: a wrapper script around `nvidia-smi` may leave
        // a process behind that holds the pipe open.
        let reader = thread::Builder::new()
            .name("gpu-watch".to_owned())
            .spawn(move || {
                let mut cards = BTreeMap::new();
                for line in lines.map_while(Result::ok) {
                    if let Some((card, sample)) = row(&line) {
                        cards.insert(card, sample);
                        theirs.push(together(cards.values()));
                    }
                }
            });
        if reader.is_err() {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        Some(Self {
            readings,
            period: LOCAL_PERIOD,
            source: Source::Local(child),
        })
    }

    /// Watches the GPUs that a server's metrics endpoint tells of.
    pub fn metrics(runtime: &Handle, url: &str) -> Self {
        let readings = Arc::new(Readings::default());
        let theirs = Arc::clone(&readings);
        let url = url.to_owned();
        let task = runtime.spawn(async move {
            loop {
                if let Ok(text) = fetch(&url).await
                    && let Some(sample) = gpu_sample(&text)
                {
                    theirs.push(sample);
                }
                tokio::time::sleep(REMOTE_PERIOD).await;
            }
        });
        Self {
            readings,
            period: REMOTE_PERIOD,
            source: Source::Metrics(task),
        }
    }

    /// The GPUs between two moments: means, and every reason for which clocks were held down. A
    /// period without a reading of its own has that of the last one, where it is fresh.
    pub fn during(&self, from: Instant, to: Instant) -> Option<GpuSample> {
        let readings = self.readings.lock();
        let first = readings.partition_point(|(at, _)| *at < from);
        let last = readings.partition_point(|(at, _)| *at <= to);
        if first < last {
            return Some(over(readings.range(first..last).map(|(_, sample)| sample)));
        }
        let (at, sample) = readings.get(last.checked_sub(1)?)?;
        (to.saturating_duration_since(*at) <= self.period * 3).then_some(*sample)
    }
}

impl Drop for GpuWatch {
    fn drop(&mut self) {
        match &mut self.source {
            Source::Local(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Source::Metrics(task) => task.abort(),
        }
    }
}

impl Readings {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, GpuSample)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, sample: GpuSample) {
        let mut readings = self.lock();
        if readings.len() >= KEPT {
            readings.pop_front();
        }
        readings.push_back((Instant::now(), sample));
    }
}

/// The processes that compute on this machine's GPUs; none where `nvidia-smi` does not answer.
pub fn gpu_processes() -> Option<BTreeSet<String>> {
    let text = run(&[
        "--query-compute-apps=pid,process_name",
        "--format=csv,noheader",
    ])?;
    Some(
        text.lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
            .collect(),
    )
}

/// `index, utilisation %, watts, MiB, MHz, reasons`; what a card does not know is `[N/A]`.
fn row(line: &str) -> Option<(u32, GpuSample)> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let [card, utilisation, power, memory, clock, reasons] = cells.as_slice() else {
        return None;
    };
    let number = |cell: &str| cell.parse::<f64>().ok().filter(|value| value.is_finite());
    let sample = GpuSample {
        utilisation: number(utilisation).map(|percent| percent / 100.0),
        power_w: number(power),
        memory_bytes: number(memory).map(|mebibytes| mebibytes * f64::from(1 << 20)),
        clock_mhz: number(clock),
        throttle: reasons
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok()),
    };
    Some((card.parse().ok()?, sample))
}

/// Several cards at one moment: mean utilisation, summed power and memory, the lowest clock.
fn together<'a>(cards: impl Iterator<Item = &'a GpuSample> + Clone) -> GpuSample {
    let all = |part: fn(&GpuSample) -> Option<f64>| {
        let values: Vec<f64> = cards.clone().filter_map(part).collect();
        (!values.is_empty()).then_some(values)
    };
    let sum = |part| all(part).map(|values| values.iter().sum());
    GpuSample {
        utilisation: mean(all(|gpu| gpu.utilisation)),
        power_w: sum(|gpu| gpu.power_w),
        memory_bytes: sum(|gpu| gpu.memory_bytes),
        clock_mhz: all(|gpu| gpu.clock_mhz).and_then(|values| values.into_iter().reduce(f64::min)),
        throttle: reasons(cards),
    }
}

/// One moment after the other.
fn over<'a>(samples: impl Iterator<Item = &'a GpuSample> + Clone) -> GpuSample {
    let all = |part: fn(&GpuSample) -> Option<f64>| {
        mean(Some(samples.clone().filter_map(part).collect()))
    };
    GpuSample {
        utilisation: all(|gpu| gpu.utilisation),
        power_w: all(|gpu| gpu.power_w),
        memory_bytes: all(|gpu| gpu.memory_bytes),
        clock_mhz: all(|gpu| gpu.clock_mhz),
        throttle: reasons(samples),
    }
}

fn reasons<'a>(samples: impl Iterator<Item = &'a GpuSample>) -> Option<u64> {
    samples
        .filter_map(|gpu| gpu.throttle)
        .reduce(|one, other| one | other)
}

fn mean(values: Option<Vec<f64>>) -> Option<f64> {
    crate::stats::mean(&values?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_added_up_and_what_they_do_not_know_is_left_out() {
        let cards: Vec<GpuSample> = [
            "0, 50, 300.50, 1024, 1980, 0x0000000000000004",
            "1, 100, 99.50, 1024, 1500, 0x0000000000000008",
            "2, [N/A], [N/A], [N/A], [N/A], [N/A]",
        ]
        .iter()
        .map(|line| row(line).expect("a row").1)
        .collect();
        let sample = together(cards.iter());
        assert_eq!(sample.utilisation, Some(0.75));
        assert_eq!(sample.power_w, Some(400.0));
        assert_eq!(sample.memory_bytes, Some(2048.0 * 1024.0 * 1024.0));
        assert_eq!(sample.clock_mhz, Some(1500.0));
        assert_eq!(sample.throttle, Some(0xC));
        assert_eq!(together([].iter()), GpuSample::default());
    }

    #[test]
    fn what_is_no_row_is_none() {
        for line in ["", "1, 2", "x, 1, 2, 3, 4, 0x0", "No devices were found"] {
            assert_eq!(row(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_period_without_a_reading_has_the_last_fresh_one() {
        let watch = GpuWatch {
            readings: Arc::new(Readings::default()),
            period: Duration::from_millis(200),
            source: Source::Metrics(
                tokio::runtime::Builder::new_current_thread()
                    .build()
                    .expect("a runtime")
                    .spawn(async {}),
            ),
        };
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let sample = |watts| GpuSample {
            power_w: Some(watts),
            ..GpuSample::default()
        };
        watch
            .readings
            .lock()
            .extend([(at(1000), sample(100.0)), (at(1200), sample(300.0))]);
        let power = |from, to| watch.during(at(from), at(to)).and_then(|gpu| gpu.power_w);
        assert_eq!(power(0, 500), None, "nothing was known yet");
        assert_eq!(power(900, 1300), Some(200.0));
        assert_eq!(power(1250, 1350), Some(300.0));
        assert_eq!(power(5000, 5100), None, "too old");
    }
}
