//! What drives have done for an engine.

use std::rc::Rc;

use nandscape_device_ssd::Ssd;

/// The work of drives. Garbage collection of runs empties zones, which count as blocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct DriveFigures {
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Bytes that were programmed.
    pub flash_bytes: u64,
    /// Of these, data of the host.
    pub data_bytes: u64,
    /// Bytes that garbage collection moved.
    pub moved_bytes: u64,
    /// Blocks that garbage collection reclaimed.
    pub gc_blocks: u64,
}

impl DriveFigures {
    /// The work of several drives so far.
    pub fn of(ssds: &[Rc<Ssd>]) -> DriveFigures {
        let mut all = DriveFigures::default();
        for ssd in ssds {
            let (stats, unit) = (ssd.ftl_stats(), u64::from(ssd.controller().info().unit_bytes));
            all.host_bytes += stats.host_bytes;
            all.flash_bytes += stats.programmed_units() * unit;
            all.data_bytes += stats.host_units * unit;
            all.moved_bytes += stats.gc_units * unit;
            all.gc_blocks += stats.gc_blocks;
        }
        all
    }

    /// What has been added since earlier figures of the same drives.
    #[must_use]
    pub fn since(&self, earlier: &DriveFigures) -> DriveFigures {
        DriveFigures {
            host_bytes: self.host_bytes - earlier.host_bytes,
            flash_bytes: self.flash_bytes - earlier.flash_bytes,
            data_bytes: self.data_bytes - earlier.data_bytes,
            moved_bytes: self.moved_bytes - earlier.moved_bytes,
            gc_blocks: self.gc_blocks - earlier.gc_blocks,
        }
    }
}
