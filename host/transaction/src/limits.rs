//! The limits of one transaction, from the drive's Identify data.

use nandscape_wire_nvme::identify::Controller;
use nandscape_wire_nvme::vendor::{ATOMIC_LIST, Capabilities};

/// The limits of one transaction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of all ranges together.
    pub bytes: u32,
    /// Mapping units that the ranges touch, counted for each range. [`DriveInfo::unit_bytes`] is their size.
    ///
    /// [`DriveInfo::unit_bytes`]: nandscape_drive::DriveInfo::unit_bytes
    pub units: u32,
}

impl Limits {
    /// The limits from Identify Controller; `None` for a drive without transactions.
    pub fn of(controller: &Controller) -> Option<Limits> {
        let table = Capabilities::of(&controller.vendor)?;
        let (bytes, units) = (table.atomic_bytes.get(), table.atomic_units.get());
        (units > 0).then_some(Limits { bytes: bytes.saturating_sub(ATOMIC_LIST as u32), units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_wire_nvme::vendor::MAGIC;
    use zerocopy::IntoBytes;

    #[test]
    fn limits_are_those_of_a_drive_with_transactions() {
        let mut controller = Controller::zeroed();
        assert_eq!(Limits::of(&controller), None);
        let mut table = Capabilities { magic: MAGIC, version: 1.into(), ..Capabilities::default() };
        controller.vendor[..table.as_bytes().len()].copy_from_slice(table.as_bytes());
        assert_eq!(Limits::of(&controller), None);
        (table.atomic_units, table.atomic_bytes) = (64.into(), (1 << 20).into());
        controller.vendor[..table.as_bytes().len()].copy_from_slice(table.as_bytes());
        assert_eq!(Limits::of(&controller), Some(Limits { bytes: (1 << 20) - 4_096, units: 64 }));
    }
}
