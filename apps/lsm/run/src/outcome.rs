//! The results of a run, and figures of them.

use std::collections::BTreeMap;

use nandscape_apps_lsm_engine::Stats;
use nandscape_apps_store::Host;
use nandscape_lab_run::DriveFigures;
use nandscape_sim::{Histogram, Span, Time};

use crate::load::Store;

/// See the file. Counts are those of the measured phase.
#[derive(Clone)]
pub struct Outcome {
    /// Latencies by operation.
    pub operations: BTreeMap<&'static str, Histogram>,
    /// Time of the phase.
    pub took: Span,
    /// Processor time of the host.
    pub cpu: Span,
    /// The store when the phase began.
    pub before: Stats,
    /// And when it ended.
    pub after: Stats,
    /// The drive; `None` if it does not report the bytes that it programs.
    pub drive: Option<DriveFigures>,
    /// Processor time spent on the side of the drive, if it is counted.
    pub device_cpu: Option<Span>,
    /// The processors of the controller, if known.
    pub device_processors: Option<u32>,
    /// Bytes that the host's data may have on the drive.
    pub capacity: u64,
    begun: (Time, Span),
}

impl Outcome {
    pub(crate) fn new(host: &Host) -> Outcome {
        Outcome { begun: (Time::ZERO, host.spent()), ..Outcome::default() }
    }

    pub(crate) fn begin(&mut self, host: &Host, store: &Store) {
        (self.begun, self.before) = ((host.sim().now(), host.spent()), store.stats());
    }

    pub(crate) fn record(&mut self, operation: &'static str, latency: Span) {
        self.operations.entry(operation).or_default().record(latency);
    }

    pub(crate) fn end(&mut self, host: &Host, store: &Store) {
        (self.took, self.cpu) = (host.sim().now() - self.begun.0, host.spent() - self.begun.1);
        self.after = store.stats();
    }

    /// Operations a second.
    pub fn rate(&self) -> f64 {
        if self.took.is_zero() { 0.0 } else { self.count() as f64 / self.took.as_s() }
    }

    /// Processor time of the host for each operation, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.cpu.as_us() / self.count().max(1) as f64
    }

    fn count(&self) -> u64 {
        self.operations.values().map(Histogram::count).sum()
    }

    /// Processor time on the side of the drive for each operation, in microseconds.
    pub fn device_cpu_us(&self) -> Option<f64> {
        Some(self.device_cpu?.as_us() / self.count().max(1) as f64)
    }

    /// The share of their time, from 0 to 1, that the controller's processors were busy.
    pub fn device_busy(&self) -> Option<f64> {
        let all = self.took.as_s() * f64::from(self.device_processors?);
        let spent = self.device_cpu?;
        (all > 0.0).then(|| spent.as_s() / all)
    }

    /// Bytes of keys and values that were put.
    pub fn put_bytes(&self) -> u64 {
        self.after.put_bytes - self.before.put_bytes
    }

    /// Bytes that the store had written to the drive, as the store counts them.
    pub fn store_bytes(&self) -> u64 {
        self.after.storage.written_bytes - self.before.storage.written_bytes
    }

    /// Bytes that the drive received for each byte put; `None` without puts. The store counts them if the drive does
    /// not report them.
    pub fn application_waf(&self) -> Option<f64> {
        let written = self.drive.map_or(self.store_bytes(), |drive| drive.host_bytes);
        (self.put_bytes() > 0).then(|| written as f64 / self.put_bytes() as f64)
    }

    /// Bytes that the drive programmed for each byte that it received.
    pub fn drive_waf(&self) -> Option<f64> {
        self.share(|drive| drive.flash_bytes)
    }

    /// The host data's share of [`Outcome::drive_waf`]: less than 1 if data was deallocated or replaced in the write
    /// buffer.
    pub fn data_factor(&self) -> Option<f64> {
        self.share(|drive| drive.data_bytes)
    }

    /// Of [`Outcome::drive_waf`], data that garbage collection moved.
    pub fn moved_factor(&self) -> Option<f64> {
        self.share(|drive| drive.moved_bytes)
    }

    fn share(&self, bytes: fn(&DriveFigures) -> u64) -> Option<f64> {
        let drive = self.drive.filter(|drive| self.put_bytes() > 0 && drive.host_bytes > 0)?;
        Some(bytes(&drive) as f64 / drive.host_bytes as f64)
    }

    /// Bytes that the drive programmed for each byte that was put: the product of the two.
    pub fn total_waf(&self) -> Option<f64> {
        let drive = self.drive.filter(|_| self.put_bytes() > 0)?;
        Some(drive.flash_bytes as f64 / self.put_bytes() as f64)
    }

    /// Bytes of all runs at the end, as a share of the drive.
    pub fn utilisation(&self) -> f64 {
        self.after.level_bytes.iter().sum::<u64>() as f64 / self.capacity.max(1) as f64
    }

    /// Blocks that a get read; `None` of loads that also scan, or only do so.
    pub fn blocks_a_get(&self) -> Option<f64> {
        if self.operations.contains_key("scan") {
            return None;
        }
        let gets = ["get", "read", "read_modify_write"].iter().filter_map(|name| self.operations.get(name));
        let gets: u64 = gets.map(Histogram::count).sum();
        (gets > 0).then(|| (self.after.blocks_read - self.before.blocks_read) as f64 / gets as f64)
    }
}

impl Default for Outcome {
    fn default() -> Outcome {
        Outcome {
            operations: BTreeMap::new(),
            took: Span::ZERO,
            cpu: Span::ZERO,
            before: Stats::default(),
            after: Stats::default(),
            drive: None,
            device_cpu: None,
            device_processors: None,
            capacity: 0,
            begun: (Time::ZERO, Span::ZERO),
        }
    }
}
