//! Write, Write Zeroes (NVM 3.3.6, 3.3.8).

use std::rc::Rc;

use nandscape_device_ftl::ftl::{Milestone, Refusal, Settled, Settling};
use nandscape_device_ftl::{Extent, Ftl};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_sim::Span;
use nandscape_wire_nvme::Status;

use super::read::status_of;
use crate::config::BufferMode;
use crate::controller::NvmeController;

impl<F: Ftl> NvmeController<F> {
    /// Room in the write buffer, the data over the link, and into the buffer: a part at a time if the command is larger
    /// than that. Where the buffer does not make a write durable, waits for the flash.
    pub(crate) async fn write(
        &self,
        extent: Extent,
        data: Option<&HostMem>,
        fua: bool,
        log: &mut Breakdown,
    ) -> Result<(), Status> {
        let watch = self.write_waits_for(fua);
        let mut settling = Vec::new();
        for (part, at) in parts(extent, self.ftl.max_reserve()) {
            let reservation = self.ftl.reserve(part, log.waits(Stage::Queue)).await;
            let mem = data.map(|mem| mem.part(at, part.bytes() as usize));
            if data.is_some() {
                self.link.receive(part.bytes(), log).await;
            }
            self.check_writable()?;
            if let Some(mem) = &mem {
                // A guest may have unmapped it since: better no data than zeros.
                mem.cover(part.bytes() as usize)?;
            }
            settling.extend(self.ftl.accept(part, mem.as_ref(), reservation, watch));
        }
        self.settle(settling, log).await
    }

    /// A drive that has too few good blocks left takes no more data.
    pub(super) fn check_writable(&self) -> Result<(), Status> {
        match self.ftl.is_read_only() {
            true => Err(Status::READ_ONLY_RANGE),
            false => Ok(()),
        }
    }

    /// Write Zeroes with the Deallocate bit (DEAC): whole mapping units are deallocated, for deallocated blocks read as
    /// zeros; the edges are written. Without the bit the specification leaves it to the controller whether it
    /// deallocates; this one writes zeros, and the blocks count as written.
    pub(crate) async fn deallocate_to_zeroes(
        &self,
        extent: Extent,
        fua: bool,
        log: &mut Breakdown,
    ) -> Result<(), Status> {
        let unit = u64::from(self.ftl.unit().sectors());
        let end = extent.start + u64::from(extent.sectors);
        let inner = extent.start.next_multiple_of(unit)..end / unit * unit;
        self.check_writable()?;
        if inner.is_empty() {
            return self.write(extent, None, fua, log).await;
        }
        let part =
            |range: std::ops::Range<u64>| Extent { start: range.start, sectors: (range.end - range.start) as u32 };
        self.ftl.deallocate(part(inner.clone()), log).await.map_err(status_of)?;
        for edge in [extent.start..inner.start, inner.end..end] {
            if !edge.is_empty() {
                self.write(part(edge), None, fua, log).await?;
            }
        }
        Ok(())
    }

    /// How far a completed write must have come; `None` is into the buffer.
    fn write_waits_for(&self, fua: bool) -> Option<Milestone> {
        let must_be_durable = fua || !self.admin.write_cache_enabled();
        match self.config.buffer {
            BufferMode::Volatile | BufferMode::Register if must_be_durable => Some(Milestone::Flash),
            BufferMode::Capacitor | BufferMode::Volatile => None,
            BufferMode::Register => Some(Milestone::Register),
            BufferMode::Through => Some(Milestone::Flash),
        }
    }

    /// Waits until all parts of a write are on flash.
    async fn settle(&self, settling: Vec<Rc<Settling>>, log: &mut Breakdown) -> Result<(), Status> {
        let begun = self.sim.now();
        let mut last = None;
        for part in settling {
            last = match (last, part.settled().await) {
                (Some(Err(why)), _) => Some(Err(why)),
                (_, settled) => Some(settled),
            };
        }
        let waited = self.sim.now() - begun;
        match last {
            None => Ok(()),
            // The last part's own program tells where the time went, if it covers all of it.
            Some(Ok(Settled { waited: until_issued, breakdown }))
                if until_issued.total() + breakdown.total() == waited && waited > Span::ZERO =>
            {
                *log.waits(Stage::Queue) += until_issued;
                *log += &breakdown;
                Ok(())
            }
            Some(Ok(Settled { waited: until_issued, .. })) => {
                log.waits(Stage::Queue).add(until_issued.main_cause(), waited);
                Ok(())
            }
            Some(Err(why)) => {
                log.waits(Stage::Queue).add(cause::HOST_WRITE, waited);
                Err(refused(why))
            }
        }
    }
}

/// What a command ends with whose data does not come to flash (NVM 3.1.2.3).
pub(super) fn refused(why: Refusal) -> Status {
    match why {
        Refusal::ReadOnly => Status::WRITE_FAULT,
        Refusal::PowerLost => Status::ABORTED_POWER_LOSS,
    }
}

/// An extent in parts of at most `most` sectors, with the byte offset of each.
fn parts(extent: Extent, most: u32) -> impl Iterator<Item = (Extent, usize)> {
    (0..extent.sectors).step_by(most as usize).map(move |first| {
        let part = Extent { start: extent.start + u64::from(first), sectors: most.min(extent.sectors - first) };
        (part, first as usize * 512)
    })
}
