//! Makes requests fit a drive: several disks one after another, addresses beyond the capacity, and requests that are
//! not whole logical blocks. All changes are counted and reported.

use std::fmt;
use std::str::FromStr;

use nandscape_drive::DriveInfo;
use nandscape_lab_workload::{Direction, Request};
use nandscape_sim::units::Bytes;

use crate::record::Record;
use crate::totals::Totals;

/// Disks start at multiples of this, and scaled addresses move in steps of it, so that adjacent requests stay adjacent.
const STEP: u64 = 1 << 20;

/// The mapping of addresses.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Address {
    /// Addresses beyond the capacity wrap to 0.
    #[default]
    Wrap,
    /// All addresses are scaled to the drive's capacity.
    Scale,
}

impl Address {
    /// Both, by their names.
    pub const ALL: [(&str, Address); 2] = [("wrap", Address::Wrap), ("scale", Address::Scale)];
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let found = Address::ALL.iter().find(|(name, _)| *name == text).map(|(_, address)| *address);
        found.ok_or_else(|| format!("\"{text}\" is not wrap or scale"))
    }
}

/// Makes the requests of one trace fit one drive.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    address: Address,
    capacity: u64,
    lba_bytes: u64,
    /// The start of each disk, and the end of the last one.
    starts: Vec<u128>,
    span: u128,
    disks: usize,
    seen: u64,
    wrapped: u64,
    widened: u64,
    cut: u64,
}

impl Fit {
    pub(crate) fn new(totals: &Totals, address: Address, drive: &DriveInfo) -> Fit {
        let mut fit = Fit {
            address,
            capacity: drive.bytes(),
            lba_bytes: u64::from(drive.lba_bytes),
            starts: Vec::with_capacity(totals.devices.len()),
            span: 0,
            disks: totals.disks(),
            seen: 0,
            wrapped: 0,
            widened: 0,
            cut: 0,
        };
        for device in &totals.devices {
            fit.starts.push(fit.span);
            // The end of the last disk is the end of the trace, so it is not rounded up.
            fit.span = match device.end {
                0 => fit.span,
                end if fit.disks == 1 => end.into(),
                end => fit.span + u128::from(end).next_multiple_of(STEP.into()),
            };
        }
        fit
    }

    /// The request in the drive's addresses.
    pub(crate) fn request(&mut self, record: &Record) -> Request {
        self.seen += 1;
        let direction = record.direction;
        if direction == Direction::Flush {
            return Request { direction, offset: 0, bytes: 0 };
        }
        let first = self.starts[record.device as usize] + u128::from(record.offset);
        let end = first + u128::from(record.bytes);
        let lba = u128::from(self.lba_bytes);
        let (begin, stop) = (first / lba * lba, end.next_multiple_of(lba));
        self.widened += u64::from((begin, stop) != (first, end));
        let bytes = self.shortened((stop - begin) as u64);
        let place = match self.address {
            Address::Wrap => {
                self.wrapped += u64::from(stop > u128::from(self.capacity));
                (begin % u128::from(self.capacity)) as u64
            }
            Address::Scale => self.scaled(begin),
        };
        // A request that would reach beyond the end is moved back to end there.
        Request { direction, offset: place.min(self.capacity - bytes), bytes }
    }

    fn shortened(&mut self, bytes: u64) -> u64 {
        self.cut += u64::from(bytes > self.capacity);
        bytes.min(self.capacity)
    }

    fn scaled(&self, begin: u128) -> u64 {
        let step = u128::from(STEP);
        let (steps, of) = (u128::from(self.capacity) / step, self.span.div_ceil(step).max(1));
        let moved = begin / step * steps.max(1) / of;
        (moved * step + begin % step).min(u128::from(self.capacity)) as u64
    }

    /// Notes on the changes.
    pub(crate) fn notes(&self) -> Vec<String> {
        let (capacity, seen) = (Bytes(self.capacity), self.seen);
        let gib = |bytes: u128| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64);
        let mut notes = Vec::new();
        if self.disks > 1 {
            let span = gib(self.span);
            notes.push(format!("the trace has {} disks, placed one after another: {span}; --disk selects", self.disks));
        }
        if self.wrapped > 0 {
            let wrapped = self.wrapped;
            notes.push(format!(
                "{wrapped} of {seen} requests lie beyond the drive's {capacity} and wrap; the trace spans {}",
                gib(self.span)
            ));
        }
        if self.address == Address::Scale {
            notes.push(format!("the trace's {} of addresses are scaled to the drive's {capacity}", gib(self.span)));
        }
        if self.widened > 0 {
            let (widened, lba) = (self.widened, self.lba_bytes);
            notes.push(format!("{widened} of {seen} requests are widened to whole logical blocks of {lba} B"));
        }
        if self.cut > 0 {
            notes.push(format!("{} of {seen} requests are larger than the drive and are cut", self.cut));
        }
        notes
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Address::ALL.iter().find(|(_, address)| address == self).map_or("?", |(name, _)| name);
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::DeviceTotals;
    use proptest::prelude::*;

    fn drive(bytes: u64, lba_bytes: u32) -> DriveInfo {
        DriveInfo {
            nsid: 1,
            blocks: bytes / u64::from(lba_bytes),
            lba_bytes,
            metadata_bytes: 0,
            max_blocks: 256,
            unit_bytes: 4_096,
            volatile_cache: false,
            keeps_data: false,
        }
    }

    fn fit(ends: &[u64], address: Address, drive: &DriveInfo) -> Fit {
        let devices = ends.iter().map(|end| DeviceTotals { requests: u64::from(*end > 0), end: *end }).collect();
        Fit::new(&Totals { devices, ..Totals::default() }, address, drive)
    }

    fn place(fit: &mut Fit, device: u32, offset: u64, bytes: u64) -> (u64, u64) {
        let request =
            fit.request(&Record { at: 0, device, direction: Direction::Read, offset, bytes, after_flush: false });
        (request.offset, request.bytes)
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_fits_stays_as_it_is_and_needs_no_note() {
        let mut fit = fit(&[64 * MIB], Address::Wrap, &drive(64 * MIB, 512));
        assert_eq!(place(&mut fit, 0, 64 * MIB - 512, 512), (64 * MIB - 512, 512));
        assert_eq!(fit.notes(), [""; 0]);
    }

    #[test]
    fn what_lies_beyond_wraps_and_what_crosses_the_end_ends_there() {
        let mut fit = fit(&[200 * MIB], Address::Wrap, &drive(64 * MIB, 512));
        assert_eq!(place(&mut fit, 0, 130 * MIB, 4_096), (2 * MIB, 4_096));
        assert_eq!(place(&mut fit, 0, 64 * MIB - 512, 1_024), (64 * MIB - 1_024, 1_024));
        assert_eq!(place(&mut fit, 0, 0, 65 * MIB), (0, 64 * MIB));
        let notes = fit.notes();
        assert_eq!(notes[0], "3 of 3 requests lie beyond the drive's 64MiB and wrap; the trace spans 0.2 GiB");
        assert_eq!(notes[1], "1 of 3 requests are larger than the drive and are cut");
    }

    #[test]
    fn parts_of_blocks_become_whole_ones() {
        let mut fit = fit(&[MIB], Address::Wrap, &drive(64 * MIB, 4_096));
        assert_eq!(place(&mut fit, 0, 512, 512), (0, 4_096));
        assert_eq!(place(&mut fit, 0, 4_095, 2), (0, 8_192));
        assert_eq!(place(&mut fit, 0, 4_096, 4_096), (4_096, 4_096));
        assert_eq!(fit.notes(), ["2 of 3 requests are widened to whole logical blocks of 4096 B"]);
    }

    #[test]
    fn disks_lie_one_after_another() {
        let mut fit = fit(&[MIB + 1, 0, 512, 3 * MIB], Address::Wrap, &drive(64 * MIB, 512));
        assert_eq!(place(&mut fit, 0, 0, 512), (0, 512));
        assert_eq!(place(&mut fit, 2, 0, 512), (2 * MIB, 512));
        assert_eq!(place(&mut fit, 3, 512, 512), (3 * MIB + 512, 512));
        assert!(fit.notes()[0].starts_with("the trace has 3 disks, placed one after another: 0.0 GiB"));
    }

    #[test]
    fn scaling_fills_the_drive_and_keeps_what_is_next_to_each_other() {
        let mut down = fit(&[640 * MIB], Address::Scale, &drive(64 * MIB, 512));
        assert_eq!(place(&mut down, 0, 320 * MIB + 4_096, 4_096), (32 * MIB + 4_096, 4_096));
        assert_eq!(place(&mut down, 0, 639 * MIB, 4_096), (63 * MIB, 4_096));
        let mut up = fit(&[64 * MIB], Address::Scale, &drive(640 * MIB, 512));
        assert_eq!(place(&mut up, 0, 63 * MIB + 512, 512), (630 * MIB + 512, 512));
        assert_eq!(up.notes(), ["the trace's 0.1 GiB of addresses are scaled to the drive's 640MiB"]);
    }

    #[test]
    fn a_flush_has_no_place() {
        let mut fit = fit(&[MIB], Address::Wrap, &drive(64 * MIB, 512));
        let flush = Record { at: 0, device: 0, direction: Direction::Flush, offset: 0, bytes: 0, after_flush: false };
        assert_eq!(fit.request(&flush), Request { direction: Direction::Flush, offset: 0, bytes: 0 });
    }

    proptest! {
        #[test]
        fn everything_lies_on_the_drive_in_whole_blocks(
            offset in 0u64..1 << 62,
            bytes in 1u64..1 << 40,
            capacity in 64u64 << 20..1 << 40,
            lba in prop::sample::select(vec![512u32, 4_096]),
            scale in any::<bool>(),
        ) {
            let address = if scale { Address::Scale } else { Address::Wrap };
            let drive = drive(capacity / u64::from(lba) * u64::from(lba), lba);
            let mut fit = fit(&[offset + bytes, 1 << 62], address, &drive);
            for device in 0..2 {
                let (place, length) = place(&mut fit, device, offset, bytes);
                prop_assert!(place + length <= drive.bytes() && length > 0);
                prop_assert!(place.is_multiple_of(lba.into()) && length.is_multiple_of(lba.into()));
                prop_assert!(length >= bytes.min(drive.bytes()));
            }
        }
    }
}
