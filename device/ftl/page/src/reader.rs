//! Reads of whole extents. Their pages are read concurrently, and each is delivered as it arrives.

use std::rc::Rc;

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Destination, ReadError, Reader};
use nandscape_device_ftl_core::reading::{PageRead, Parts, SensePage};
use nandscape_drive::Breakdown;

use super::read::Lookup;
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
        while let Some(miss) = self.ftl.look_up(extent, to, &mut lookup)? {
            Box::pin(self.ftl.load_for(miss, extent, &mut lookup, breakdown)).await?;
        }
        if self.ftl.config.rain.is_some() {
            self.ftl.go_round(&mut lookup.pages);
        }
        match &lookup.pages[..] {
            [page] if self.ftl.config.rain.is_some() && u64::from(page.host_bytes) == extent.bytes() => {
                let bytes = Box::pin(self.ftl.sense_stripe::<(Caller, D), D>(page, to, breakdown)).await?;
                to.deliver(bytes, breakdown).await;
                Ok(())
            }
            // The ordinary small read, within one page.
            [page] if u64::from(page.host_bytes) == extent.bytes() => {
                let counted = match self.ftl.gate.is_closed() {
                    true => Some(self.ftl.pass_gate(breakdown).await),
                    false => None,
                };
                let sensed = self.ftl.sense::<(Caller, D)>(page, to.is_urgent(), breakdown).await;
                drop(counted);
                to.deliver(self.ftl.page_sensed(page, sensed, to)?, breakdown).await;
                Ok(())
            }
            _ => Box::pin(self.parts.read(self.ftl.clone(), lookup.pages, extent, to, breakdown)).await,
        }
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
