//! Reads: the table tells the zone, and the zone FTL the rest.

use std::rc::Rc;

use nandscape_drive::Breakdown;

use super::LsmFtl;
use crate::address::Extent;
use crate::ftl::{Destination, ReadError, Reader};
use crate::reading::{PageRead, Parts, SensePage};

/// Reads to destinations of type `D`.
pub struct LsmReader<D: Destination> {
    ftl: Rc<LsmFtl>,
    parts: Parts<LsmFtl, D>,
}

impl SensePage for LsmFtl {
    async fn sense_page<Caller, D: Destination>(
        &self,
        read: &PageRead,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<u64, ReadError> {
        self.zones.sense_page::<Caller, D>(read, to, breakdown).await
    }
}

impl<D: Destination> LsmReader<D> {
    pub(super) fn new(ftl: &Rc<LsmFtl>) -> LsmReader<D> {
        LsmReader { ftl: ftl.clone(), parts: Parts::new(&ftl.sim) }
    }
}

impl<D: Destination> Reader<D> for LsmReader<D> {
    async fn read<Caller>(&self, extent: Extent, to: &D, breakdown: &mut Breakdown) -> Result<(), ReadError> {
        let place = |lpn| {
            let (run, unit) = self.ftl.place_of(lpn);
            self.ftl.table.borrow().find(run, unit)
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
