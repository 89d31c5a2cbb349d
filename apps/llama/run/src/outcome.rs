//! The results of a run, and figures of them.

use std::collections::BTreeMap;

use nandscape_apps_llama_engine::{AnyStore, BwTree, Host, TreeStats};
use nandscape_lab_run::DriveFigures;
use nandscape_sim::{Histogram, Sim, Span, Time};

/// Processor time that the device side spent in the measured phase.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceCpu {
    /// All of it.
    pub spent: Span,
    /// Of this, garbage collection moves, tables and logs, if counted separately.
    pub own: Option<Span>,
    /// The processors of the controller, if known.
    pub processors: Option<u32>,
}

/// See the module. Counts are those of the measured phase.
#[derive(Clone)]
pub struct Outcome {
    /// Latencies of all operations.
    pub all: Histogram,
    /// And by operation.
    pub operations: BTreeMap<&'static str, Histogram>,
    /// Time of the phase.
    pub took: Span,
    /// Processor time of the host.
    pub cpu: Span,
    /// The tree when the phase began.
    pub before: TreeStats,
    /// And when it ended.
    pub after: TreeStats,
    /// The drive, if it is in this process.
    pub drive: Option<DriveFigures>,
    /// The processors on the side of the drive, if they are counted.
    pub device_cpu: Option<DeviceCpu>,
    begun: (Time, Span),
}

impl Outcome {
    pub(crate) fn new(host: &Host) -> Outcome {
        Outcome { begun: (Time::ZERO, host.spent()), ..Outcome::default() }
    }

    pub(crate) fn begin(&mut self, sim: &Sim, host: &Host, tree: &BwTree<AnyStore>) {
        (self.begun, self.before) = ((sim.now(), host.spent()), tree.stats());
    }

    pub(crate) fn record(&mut self, operation: &'static str, latency: Span) {
        self.all.record(latency);
        self.operations.entry(operation).or_default().record(latency);
    }

    pub(crate) fn end(&mut self, sim: &Sim, host: &Host, tree: &BwTree<AnyStore>) {
        (self.took, self.cpu) = (sim.now() - self.begun.0, host.spent() - self.begun.1);
        self.after = tree.stats();
    }

    /// Operations a second.
    pub fn rate(&self) -> f64 {
        let seconds = self.took.as_s();
        if seconds > 0.0 { self.all.count() as f64 / seconds } else { 0.0 }
    }

    /// Bytes of keys and values that were put.
    pub fn put_bytes(&self) -> u64 {
        self.after.put_bytes - self.before.put_bytes
    }

    /// Bytes that the store wrote to the drive for each byte put; `None` without puts. A drive in this process counts
    /// them, so that this times [`Outcome::drive_waf`] is [`Outcome::total_waf`].
    pub fn application_waf(&self) -> Option<f64> {
        let by_store = self.after.store.written_bytes - self.before.store.written_bytes;
        let written = self.drive.map_or(by_store, |drive| drive.host_bytes);
        (self.put_bytes() > 0).then(|| written as f64 / self.put_bytes() as f64)
    }

    /// Bytes that the drive programmed for each byte that was written to it.
    pub fn drive_waf(&self) -> Option<f64> {
        let drive = self.drive.filter(|drive| drive.host_bytes > 0)?;
        Some(drive.flash_bytes as f64 / drive.host_bytes as f64)
    }

    /// Bytes that the drive programmed for each byte that was put.
    pub fn total_waf(&self) -> Option<f64> {
        let drive = self.drive.filter(|_| self.put_bytes() > 0)?;
        Some(drive.flash_bytes as f64 / self.put_bytes() as f64)
    }

    /// Processor time of the host for each operation, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.cpu.as_us() / self.all.count().max(1) as f64
    }

    /// Processor time on the side of the drive for each operation, in microseconds.
    pub fn device_cpu_us(&self) -> Option<f64> {
        Some(self.device_cpu?.spent.as_us() / self.all.count().max(1) as f64)
    }

    /// The share of their time, from 0 to 1, that the controller's processors were busy.
    pub fn device_busy(&self) -> Option<f64> {
        let DeviceCpu { spent, processors, .. } = self.device_cpu?;
        let all = self.took.as_s() * f64::from(processors?);
        (all > 0.0).then(|| spent.as_s() / all)
    }

    /// Bytes of the host's memory at the end: pages, the mapping table of pages in memory, and that of places on the drive.
    pub fn memory(&self) -> [u64; 3] {
        [self.after.cache_memory, self.after.table_memory, self.after.store.memory]
    }
}

impl Default for Outcome {
    fn default() -> Outcome {
        Outcome {
            all: Histogram::default(),
            operations: BTreeMap::new(),
            took: Span::ZERO,
            cpu: Span::ZERO,
            before: TreeStats::default(),
            after: TreeStats::default(),
            drive: None,
            device_cpu: None,
            begun: (Time::ZERO, Span::ZERO),
        }
    }
}
