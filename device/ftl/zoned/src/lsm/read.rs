//! Reads: the table gives the zone, and the zone FTL does the rest.

use std::convert::Infallible;
use std::rc::Rc;

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Destination, ReadError, Reader, Unreadable};
use nandscape_device_ftl_core::reading::{PageRead, Parts, SensePage};
use nandscape_drive::Breakdown;

use super::LsmFtl;
use super::table::Place;

/// Reads to destinations of type `D`.
pub struct LsmReader<D: Destination> {
    ftl: Rc<LsmFtl>,
    parts: Parts<LsmFtl, D>,
}

impl SensePage for LsmFtl {
    type Round = Infallible;

    async fn sense_page<Caller, D: Destination>(
        &self,
        read: &PageRead,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<u64, ReadError> {
        self.zones.sense_page::<Caller, D>(read, to, breakdown).await
    }
}

impl LsmFtl {
    /// Where a logical unit is.
    pub(super) fn find(&self, lpn: u32) -> Option<Place> {
        let (run, unit) = self.place_of(lpn);
        self.table.borrow().find(run, unit)
    }

    /// # Errors
    /// The first unit that was lost.
    fn check_not_lost(&self, extent: Extent) -> Result<(), ReadError> {
        let unit = self.zones.unit_size();
        let lost = extent.pieces(unit).find(|piece| self.find(piece.lpn.0) == Some(Place::Lost));
        lost.map_or(Ok(()), |piece| Err(ReadError { sector: piece.sector(unit), why: Unreadable::Lost }))
    }
}

impl<D: Destination> LsmReader<D> {
    pub(super) fn new(ftl: &Rc<LsmFtl>) -> LsmReader<D> {
        LsmReader { ftl: ftl.clone(), parts: Parts::new(&ftl.sim) }
    }
}

impl<D: Destination> Reader<D> for LsmReader<D> {
    async fn read<Caller>(&self, extent: Extent, to: &D, breakdown: &mut Breakdown) -> Result<(), ReadError> {
        self.ftl.check_not_lost(extent)?;
        let place = |lpn| match self.ftl.find(lpn) {
            Some(Place::Zone(zone, unit)) => Some((zone, unit)),
            _ => None,
        };
        let pages = self.ftl.zones.look_up_at(extent, to, place)?;
        match &pages[..] {
            [page] if u64::from(page.host_bytes) == extent.bytes() => {
                let bytes = self.ftl.sense_page::<(Caller, D), D>(page, to, breakdown).await?;
                to.deliver(bytes, breakdown).await;
                Ok(())
            }
            _ => Box::pin(self.parts.read(self.ftl.clone(), pages, extent, to, breakdown)).await,
        }
    }
}
