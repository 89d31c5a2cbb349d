//! The optional features of OX-Block.

use std::rc::Rc;

use nandscape_device_ftl_core::Ftl;
use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use nandscape_device_ftl_core::offers::{Held, Later, StoredTables, Transactions};
use nandscape_drive::HostMem;
use nandscape_sim::Wait;

use super::write::Reservation;
use super::{OxBlock, deallocate, held, uncommitted, write};

impl Transactions<OxBlock> for OxBlock {
    fn most_units(&self) -> u32 {
        self.config.buffer_units
    }

    fn reserve<'a, 'w>(&'a self, extents: &'w [Extent], waited: &'w mut Wait) -> Later<'w, Reservation<'a>>
    where
        'a: 'w,
    {
        let units = extents.iter().map(|extent| extent.units(self.unit)).sum();
        Box::pin(write::reserve(self, units, waited))
    }

    fn accept(
        &self,
        extents: &[Extent],
        data: Option<&HostMem>,
        reservation: Reservation<'_>,
        watch: Option<Milestone>,
    ) -> Option<Rc<Settling>> {
        write::accept(self, extents, data, reservation, watch, true)
    }

    fn settle<'a>(&'a self, extent: Extent) -> Later<'a, ()> {
        Box::pin(uncommitted::settle(self, extent))
    }
}

impl StoredTables for OxBlock {
    fn hold_map<'a>(&'a self, extents: &'a [Extent]) -> Later<'a, Option<Held>> {
        Box::pin(held::hold(self, extents))
    }

    fn settle_deallocations<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(deallocate::settle(self))
    }

    fn shut_down<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async {
            self.in_service().await;
            if let Some(settling) = self.flush() {
                // Data that cannot be written stays where it is.
                let _ = settling.settled().await;
            }
            self.checkpoint().await;
        })
    }
}
