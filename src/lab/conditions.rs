//! The machine and its GPUs beside the load: what is known of each block, and which blocks do not
//! count because of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;

use super::side::SideLab;
use crate::data::{Block, GpuSample, Side};
use crate::probe::{GpuWatch, HostPeriod, HostWatch, gpu_processes, is_local};

/// Share of the CPU time that the hypervisor may take from this machine within a block.
const STOLEN: f64 = 0.20;

/// Reasons in `nvidia-smi`'s mask for which a block does not count: hardware slowdown, software
/// thermal slowdown, hardware thermal slowdown, hardware power brake. (NVML,
/// `nvmlClocksEventReasons`.) A software power cap is no such reason: it is how the card works.
const SLOWED: u64 = 0x8 | 0x20 | 0x40 | 0x80;

/// Watches what surrounds the load of a lab.
pub(super) struct Conditions {
    host: HostWatch,
    gpus: BTreeMap<Side, Arc<GpuWatch>>,
    local_gpu: bool,
}

impl Conditions {
    /// Begins to watch this machine, and the GPUs of each side's server where they can be seen.
    pub(super) fn watch(runtime: &Handle, sides: &BTreeMap<Side, SideLab>) -> Self {
        let mut local: Option<Option<Arc<GpuWatch>>> = None;
        let mut gpus = BTreeMap::new();
        for (side, lab) in sides {
            let watch = if is_local(lab.target.client.endpoint().host()) {
                local
                    .get_or_insert_with(|| GpuWatch::local().map(Arc::new))
                    .clone()
            } else {
                None
            };
            let watch = watch.or_else(|| {
                let url = lab.metrics_url.as_deref()?;
                Some(Arc::new(GpuWatch::metrics(runtime, url)))
            });
            if let Some(watch) = watch {
                gpus.insert(*side, watch);
            }
        }
        Self {
            host: HostWatch::start(),
            gpus,
            local_gpu: local.flatten().is_some(),
        }
    }

    /// A block begins or ends here.
    pub(super) fn mark(&self) {
        self.host.mark();
    }

    /// The processes on the local GPUs; none where there are none to be seen.
    pub(super) fn processes(&self) -> Option<BTreeSet<String>> {
        self.local_gpu.then(gpu_processes).flatten()
    }

    /// Fills in what is known of blocks with their times, and tells those that do not count:
    /// position and reason.
    pub(super) fn describe(
        &self,
        side: Side,
        blocks: &mut [Block],
        times: &[(Instant, Instant)],
    ) -> BTreeMap<usize, &'static str> {
        let mut spoiled = BTreeMap::new();
        for (position, (block, (from, to))) in blocks.iter_mut().zip(times).enumerate() {
            let host = self.host.during(*from, *to);
            block.steal = host.steal;
            block.gpu = self
                .gpus
                .get(&side)
                .and_then(|watch| watch.during(*from, *to));
            if let Some(reason) = spoils(host, block.gpu) {
                spoiled.insert(position, reason);
            }
        }
        if let Some((from, _)) = times.first() {
            self.host.forget_before(*from);
        }
        spoiled
    }
}

/// Why a block under these conditions does not count; none where it does.
fn spoils(host: HostPeriod, gpu: Option<GpuSample>) -> Option<&'static str> {
    let slowed = gpu
        .and_then(|gpu| gpu.throttle)
        .is_some_and(|reasons| reasons & SLOWED != 0);
    if host.stalled {
        Some("suspended")
    } else if slowed {
        Some("throttled")
    } else if host.steal.is_some_and(|share| share > STOLEN) {
        Some("cpu_steal")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_and_hardware_spoil_a_block_a_power_cap_does_not() {
        let of = |throttle| {
            let gpu = GpuSample {
                throttle: Some(throttle),
                ..GpuSample::default()
            };
            spoils(HostPeriod::default(), Some(gpu))
        };
        for reasons in [0, 0x1, 0x2, 0x4, 0x10, 0x100] {
            assert_eq!(of(reasons), None, "{reasons:#x}");
        }
        for reasons in [0x8, 0x20, 0x40, 0x80, 0x4 | 0x40] {
            assert_eq!(of(reasons), Some("throttled"), "{reasons:#x}");
        }
        assert_eq!(spoils(HostPeriod::default(), None), None);
    }

    #[test]
    fn stolen_time_and_standstill_spoil_a_block() {
        let of = |steal, stalled| spoils(HostPeriod { steal, stalled }, None);
        assert_eq!(of(Some(0.2), false), None);
        assert_eq!(of(Some(0.21), false), Some("cpu_steal"));
        assert_eq!(of(None, true), Some("suspended"));
    }
}
