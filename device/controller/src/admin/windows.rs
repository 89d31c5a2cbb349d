//! Windows by schedule (vendor feature C0h), in which a drive of an array does background work. The value belongs to the
//! drive, whichever controller sets it, and holds until it is set again.
//!
//! On setting, the epoch is converted to the drive's time by the controller's current Timestamp.

use nandscape_device_ftl_core::policy::Schedule;
use nandscape_drive::HostMem;
use nandscape_sim::Span;
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::vendor::{MAGIC, Windows};
use zerocopy::{FromBytes, IntoBytes};

use super::Answer;
use super::features::data;
use crate::engine::NvmeController;

/// The shortest and the longest window that can be set.
const SHORTEST: Span = Span::from_ms(1);
const LONGEST: Span = Span::from_s(3_600);

impl NvmeController {
    /// Whether the drive has windows by schedule.
    pub(super) fn has_windows(&self) -> bool {
        self.subsystem.config.windows.is_some() && self.subsystem.set.windows().is_some()
    }

    /// Get Features: the current value, or the default.
    pub(super) fn get_windows(&self, current: bool) -> Answer {
        let windows = if current { self.subsystem.windows.get() } else { None };
        Answer::data(windows.unwrap_or(Windows::none()).as_bytes())
    }

    /// Set Features. It takes effect at once.
    pub(super) fn set_windows(&self, mem: &HostMem) -> Result<(), Status> {
        let given = Windows::read_from_bytes(&data::<64>(mem, size_of::<Windows>())?).expect("as many bytes");
        let rules = self.subsystem.config.windows.ok_or(Status::INVALID_FIELD)?;
        let drive = self.subsystem.set.windows().ok_or(Status::INVALID_FIELD)?;
        let is_zero = given.reserved_12.get() == 0 && given.reserved_48 == [0; 16];
        if given.magic != MAGIC || given.version.get() != 1 || !is_zero {
            return Err(Status::INVALID_FIELD);
        }
        let (width, position) = (given.width.get(), given.position.get());
        if width == 0 {
            self.subsystem.windows.set(None);
            drive.ftl.set_schedule(None);
            return Ok(());
        }
        let ranges = given.ranges.get().max(1);
        let may_have = ranges == 1 || ranges == drive.ftl.ranges();
        let recommended = rules.recommended(width).max(SHORTEST).min(LONGEST);
        let length = match given.length.get() {
            0 => recommended,
            ns => Span::from_ns(ns),
        };
        if position >= width || !may_have || !(SHORTEST..=LONGEST).contains(&length) {
            return Err(Status::INVALID_FIELD);
        }
        let (shortest, longest) = rules.spans(width);
        let in_force = Windows {
            length: length.ns().into(),
            shortest: shortest.ns().into(),
            longest: longest.map_or(u64::MAX, Span::ns).into(),
            ..given
        };
        let epoch = i128::from(given.epoch_us.get()) * 1_000 - i128::from(self.clock_ms_at_zero()) * 1_000_000;
        self.subsystem.windows.set(Some(in_force));
        drive.ftl.set_schedule(Some(Schedule {
            width,
            position,
            ranges,
            length,
            is_long: length >= rules.bears(width).clamp(SHORTEST, LONGEST),
            epoch,
        }));
        Ok(())
    }
}
