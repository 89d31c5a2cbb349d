//! Totals of a trace: requests by direction, times, disks.

use nandscape_lab_workload::Direction;

use crate::record::Record;

/// Requests and bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Requests.
    pub requests: u64,
    /// Bytes of those.
    pub bytes: u64,
}

/// Of one disk.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceTotals {
    /// Requests.
    pub requests: u64,
    /// The end of the highest address used.
    pub end: u64,
}

/// Totals of the selected requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// By direction, in the order of [`Direction::ALL`].
    pub by: [Count; Direction::ALL.len()],
    /// Times of the first and the last request, in nanoseconds.
    pub first: u64,
    /// Of the last request.
    pub last: u64,
    /// By disk.
    pub devices: Vec<DeviceTotals>,
    /// Requests that wait for a flush before them.
    pub after_flush: u64,
    /// A digest of all requests.
    pub(crate) mixed: u64,
}

/// An odd number without a pattern: the golden ratio's fraction, as a multiplier that spreads bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Totals {
    pub(crate) fn add(&mut self, record: &Record) {
        let kind = record.direction as u64 | u64::from(record.after_flush) << 8;
        for part in [record.at, record.offset, record.bytes, u64::from(record.device), kind] {
            self.mixed = (self.mixed.rotate_left(23) ^ part).wrapping_mul(SPREAD);
        }
        if self.requests() == 0 {
            self.first = record.at;
        }
        self.last = record.at;
        let count = &mut self.by[record.direction as usize];
        count.requests += 1;
        count.bytes += record.bytes;
        self.after_flush += u64::from(record.after_flush);
        let device = record.device as usize;
        if device >= self.devices.len() {
            self.devices.resize(device + 1, DeviceTotals::default());
        }
        self.devices[device].requests += 1;
        self.devices[device].end = self.devices[device].end.max(record.offset + record.bytes);
    }

    /// Requests.
    pub fn requests(&self) -> u64 {
        self.by.iter().map(|count| count.requests).sum()
    }

    /// Bytes of those.
    pub fn bytes(&self) -> u64 {
        self.by.iter().map(|count| count.bytes).sum()
    }

    /// Those of one direction.
    pub fn of(&self, direction: Direction) -> Count {
        self.by[direction as usize]
    }

    /// Nanoseconds from the first request to the last.
    pub fn duration_ns(&self) -> u64 {
        self.last - self.first
    }

    /// A digest of every request's time, address, size and direction, in order. It differs for different selections,
    /// except by chance.
    pub fn digest(&self) -> u32 {
        (self.mixed ^ (self.mixed >> 32)) as u32
    }

    /// Requests a second, from the first to the last; `None` if all arrive at once.
    pub fn rate(&self) -> Option<f64> {
        (self.duration_ns() > 0).then(|| self.requests() as f64 * 1e9 / self.duration_ns() as f64)
    }

    /// Disks with requests.
    pub fn disks(&self) -> usize {
        self.devices.iter().filter(|device| device.requests > 0).count()
    }
}
