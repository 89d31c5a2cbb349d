//! Dataset Management, and Write Zeroes that deallocates (NVM 3.3.3, 3.3.8).

use nandscape_device_ftl_core::offers::RandomWrites;
use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_device_media::MediaError;
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::Status;

use super::Nvm;
use super::read::status_of;
use super::turns::Work;
use super::write::Zeros;
use crate::command_set::Command;
use crate::namespace::Namespace;

/// Sectors deallocated between two checks for an abort: 256 MiB.
const STEP: u32 = 1 << 19;

impl<F: Ftl> Nvm<F> {
    /// Reads the list of ranges, of `bytes` bytes, and deallocates the whole mapping units of each. They read as zeros
    /// afterwards.
    pub(super) async fn deallocate(
        &self,
        command: &Command<'_>,
        extents: &[Extent],
        bytes: u64,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        command.link.receive(bytes, breakdown).await;
        self.check_writable()?;
        for extent in extents {
            self.deallocate_extent(command, *extent, breakdown).await?;
        }
        Ok(())
    }

    /// Write Zeroes with the Deallocate bit (DEAC): whole mapping units are deallocated, because deallocated blocks read as
    /// zeros; the edges are written. Without the bit, the specification lets the controller choose; this one writes zeros,
    /// and the blocks count as written.
    pub(super) async fn deallocate_to_zeroes(
        &self,
        command: &Command<'_>,
        extent: Extent,
        fua: bool,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        let unit = u64::from(self.ftl.unit().sectors());
        let inner = extent.start.next_multiple_of(unit)..extent.end() / unit * unit;
        self.check_writable()?;
        if inner.is_empty() {
            return self.write_zeros(command, extent, fua, breakdown).await;
        }
        let part =
            |range: std::ops::Range<u64>| Extent { start: range.start, sectors: (range.end - range.start) as u32 };
        self.deallocate_extent(command, part(inner.clone()), breakdown).await?;
        for edge in [extent.start..inner.start, inner.end..extent.end()] {
            if !edge.is_empty() {
                self.write_zeros(command, part(edge), fua, breakdown).await?;
            }
        }
        Ok(())
    }

    /// Writes zeros, the content of deallocated blocks.
    async fn write_zeros(
        &self,
        command: &Command<'_>,
        extent: Extent,
        fua: bool,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        match command.namespace.format.lba().metadata {
            0 => self.write(command, extent, Zeros, fua, breakdown).await,
            _ => self.write_blank(command, extent, fua, breakdown).await,
        }
    }

    /// Deallocates a namespace, so that no later namespace in its place has its data. If power is cut meanwhile, it is
    /// deallocated again after the restart of the FTL, before any other command.
    pub(super) async fn erase_for_good(&self, namespace: &Namespace) {
        let cuts = self.media.power_cuts();
        let extents = || namespace.layout.extents(0..namespace.layout.sectors());
        let ended = self.deallocate_extents(extents()).await;
        if ended.is_err() || self.media.power_cuts() != cuts {
            self.to_erase_again.borrow_mut().extend(extents());
        }
    }

    /// Deallocates again what a power cut may have restored.
    pub(super) async fn erase_again(&self) {
        let (cuts, extents) = (self.media.power_cuts(), self.to_erase_again.take());
        if extents.is_empty() {
            return;
        }
        let ended = self.deallocate_extents(extents.iter().copied()).await;
        if ended.is_err() || self.media.power_cuts() != cuts {
            self.to_erase_again.borrow_mut().extend(extents);
        }
    }

    /// Fails if power is cut meanwhile. Waiting would deadlock: the FTL does nothing until its restart, which waits for
    /// commands.
    async fn deallocate_extents(&self, extents: impl Iterator<Item = Extent>) -> Result<(), MediaError> {
        let Some(writes) = self.ftl.random_writes() else { return Ok(()) };
        for extent in extents.flat_map(|extent| extent.steps(STEP)) {
            self.media.power_returns().await;
            if let Err(MediaError::PowerLost) = writes.deallocate(extent, &mut Breakdown::new()).await {
                return Err(MediaError::PowerLost);
            }
        }
        if let Some(tables) = self.ftl.offers().stored_tables {
            tables.settle_deallocations().await;
        }
        Ok(())
    }

    async fn deallocate_extent(
        &self,
        command: &Command<'_>,
        extent: Extent,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        for step in extent.steps(STEP) {
            if self.exclusive.is_held() {
                self.wait_for_exclusive(command, step, breakdown).await?;
            }
            self.take_turn(command, (Work::Unmap, step.sectors.into()), breakdown).await?;
            command.stop.check()?;
            self.random_writes()?.deallocate(step, breakdown).await.map_err(status_of)?;
        }
        Ok(())
    }
}
