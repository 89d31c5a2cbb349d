//! Reads of whole extents. Their pages are read concurrently, and each is delivered as it arrives.

use std::rc::Rc;

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Destination, ReadError, Reader};
use nandscape_device_ftl_core::offers::Later;
use nandscape_device_ftl_core::reading::{PageRead, Parts, SensePage};
use nandscape_drive::Breakdown;

use super::read::Lookup;
use super::tables::MapMiss;
use super::{PageFtl, StripeRead};

/// Reads to destinations of type `D`.
pub struct PageReader<D: Destination> {
    ftl: Rc<PageFtl>,
    parts: Parts<PageFtl, D>,
}

impl<D: Destination> PageReader<D> {
    pub(super) fn new(ftl: &Rc<PageFtl>) -> PageReader<D> {
        PageReader { ftl: ftl.clone(), parts: Parts::new(&ftl.sim) }
    }
}

impl<D: Destination> Reader<D> for PageReader<D> {
    async fn read<Caller>(&self, extent: Extent, to: &D, breakdown: &mut Breakdown) -> Result<(), ReadError> {
        let mut lookup = Lookup::default();
        let missed = self.ftl.look_up(extent, to, &mut lookup)?;
        // The ordinary small read, within one page.
        if let [page] = &lookup.pages[..]
            && u64::from(page.host_bytes) == extent.bytes()
            && missed.is_none()
            && self.ftl.config.rain.is_none()
            && !self.ftl.gate.is_closed()
        {
            let sensed = self.ftl.sense::<(Caller, D)>(page, to.is_urgent(), breakdown).await;
            to.deliver(self.ftl.page_sensed(page, sensed, to)?, breakdown).await;
            return Ok(());
        }
        self.read_boxed::<Caller>((lookup, missed), extent, to, breakdown).await
    }
}

impl<D: Destination> PageReader<D> {
    /// The other reads, in boxes: of several pages, in stripes, of a part of the map that must be loaded, and while a collection keeps
    /// the host out.
    #[cold]
    fn read_boxed<'a, Caller: 'a>(
        &'a self,
        (mut lookup, missed): (Lookup, Option<MapMiss>),
        extent: Extent,
        to: &'a D,
        breakdown: &'a mut Breakdown,
    ) -> Later<'a, Result<(), ReadError>> {
        if let Some(miss) = missed {
            return Box::pin(async move {
                self.ftl.load_for(miss, extent, &mut lookup, breakdown).await?;
                let missed = self.ftl.look_up(extent, to, &mut lookup)?;
                self.read_boxed::<Caller>((lookup, missed), extent, to, breakdown).await
            });
        }
        if self.ftl.config.rain.is_some() {
            self.ftl.go_round(&mut lookup.pages);
        }
        let is_one =
            |pages: &[PageRead<StripeRead>]| pages.len() == 1 && u64::from(pages[0].host_bytes) == extent.bytes();
        if !is_one(&lookup.pages) {
            return Box::pin(self.parts.read(self.ftl.clone(), lookup.pages, extent, to, breakdown));
        }
        Box::pin(async move {
            let bytes = self.ftl.sense_page::<Caller, D>(&lookup.pages[0], to, breakdown).await?;
            to.deliver(bytes, breakdown).await;
            Ok(())
        })
    }
}

impl SensePage for PageFtl {
    type Round = StripeRead;

    async fn sense_page<Caller, D: Destination>(
        &self,
        read: &PageRead<StripeRead>,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<u64, ReadError> {
        if self.config.rain.is_some() {
            return Box::pin(self.sense_stripe::<Caller, D>(read, to, breakdown)).await;
        }
        let counted = match self.gate.is_closed() {
            true => Some(self.pass_gate(breakdown).await),
            false => None,
        };
        let sensed = self.sense::<Caller>(read, to.is_urgent(), breakdown).await;
        drop(counted);
        self.page_sensed(read, sensed, to)
    }
}
