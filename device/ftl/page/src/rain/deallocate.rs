//! Deallocation of units that have parity. Whole stripes are unmapped together with their parity. The other units of a range are
//! written as zeros through the write buffer: they are zeros in the parity, but stay mapped.

use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_ftl_core::address::{Extent, Location, Lpn, Piece};
use nandscape_device_ftl_core::ftl::{LEAST_STEP_TIME, Settling, UNMAPPED};
use nandscape_device_media::MediaError;
use nandscape_sim::Wait;

use super::super::state::State;
use super::super::{PageFtl, write};
use super::members_of;

/// Stripes that are unmapped before others get a turn.
const STEP: u32 = 512;

impl State {
    /// Unmaps a stripe that is not being written. Returns the freed slots, and their waiters.
    fn unmap_stripe(&mut self, stripe: u32) -> (usize, Vec<Rc<Settling>>) {
        let (mut freed, mut watchers) = (0, Vec::new());
        let members = self.rain().dirty.remove(stripe);
        let layout = &self.rain().layout;
        let parity = layout.unit(stripe, layout.parity()).expect("each stripe has a parity");
        let units = layout.units(stripe);
        for lpn in units.map(Lpn) {
            while let Location::Buffered(slot) = self.tables.location(lpn) {
                // The older slot, if a program has failed, or else the copy on flash.
                let previous = std::mem::replace(&mut self.buffer.slot_mut(slot).previous, Location::Unmapped);
                self.tables.remap(lpn, previous);
                freed += 1;
                watchers.extend(self.buffer.remove(slot));
            }
            self.unmap(lpn);
            self.find_all_again(lpn);
        }
        debug_assert!(members_of(members).count() <= freed);
        self.unmap(parity);
        (freed, watchers)
    }

    fn unmap(&mut self, lpn: Lpn) {
        let copy = self.tables.location(lpn);
        if copy != Location::Unmapped {
            self.tables.remap(lpn, Location::Unmapped);
            self.drop_copy(copy);
        }
    }

    /// No sector of a unit is lost any more.
    fn find_all_again(&mut self, lpn: Lpn) {
        let piece = Piece { lpn, skip: 0, sectors: self.unit.sectors(), at: 0 };
        self.find_again(&piece);
    }

    /// Whether a unit reads as zeros already.
    fn is_unmapped(&self, lpn: Lpn) -> bool {
        self.tables.location(lpn) == Location::Unmapped && !self.is_absent(lpn) && self.damage.is_whole(lpn)
    }
}

impl PageFtl {
    /// Deallocates the whole units of an extent.
    ///
    /// # Errors
    /// When the drive takes no data any more, or power is cut.
    pub(in super::super) async fn deallocate_stripes(&self, extent: Extent) -> Result<(), MediaError> {
        let unit = self.state.borrow().unit;
        let sectors = u64::from(unit.sectors());
        let (first, end) = (extent.start.div_ceil(sectors) as u32, (extent.end() / sectors) as u32);
        if first >= end {
            return Ok(());
        }
        let per_stripe = self.config.rain.map_or(1, |rain| rain.width - 1);
        let last_is_whole = end == self.config.logical_units;
        let whole = first.div_ceil(per_stripe)..if last_is_whole { end.div_ceil(per_stripe) } else { end / per_stripe };
        if whole.is_empty() {
            return self.write_zeros(first..end).await;
        }
        self.write_zeros(first..whole.start * per_stripe).await?;
        self.unmap_stripes(whole.clone()).await?;
        self.write_zeros((whole.end * per_stripe).min(end)..end).await
    }

    /// Unmaps stripes, each when it is not being written.
    ///
    /// # Errors
    /// When the drive takes no data any more.
    pub(in super::super) async fn unmap_stripes(&self, stripes: Range<u32>) -> Result<(), MediaError> {
        for stripe in stripes {
            while self.state.borrow_mut().rain().is_under_way(stripe) {
                if self.read_only.get().is_some() {
                    return Err(MediaError::Store);
                }
                if !self.is_running() {
                    return Err(MediaError::PowerLost);
                }
                self.stripe_ended.changed().await;
            }
            let (freed, watchers) = self.state.borrow_mut().unmap_stripe(stripe);
            watchers.iter().for_each(|settling| settling.one_settled(None));
            self.free_slots.give(freed);
            if stripe % STEP == STEP - 1 {
                self.sim.note_work(u64::from(STEP * self.config.rain.map_or(1, |rain| rain.width)) / UNMAPPED);
                self.sim.sleep(LEAST_STEP_TIME).await;
            }
        }
        self.pump();
        Ok(())
    }

    /// Awaits `work`, unless power is cut first: nothing is written until the drive has started again.
    async fn unless_cut<T>(&self, work: impl Future<Output = T>) -> Result<T, MediaError> {
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            if !self.is_running() {
                return Poll::Ready(Err(MediaError::PowerLost));
            }
            if let Poll::Ready(result) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(result));
            }
            // It is notified of a cut.
            pin!(self.stripe_ended.changed()).poll(context).map(|()| Err(MediaError::PowerLost))
        })
        .await
    }

    /// Writes units of the host as zeros, as far as they are not zeros already.
    async fn write_zeros(&self, units: Range<u32>) -> Result<(), MediaError> {
        let unit = self.state.borrow().unit;
        for lpn in units.map(Lpn) {
            if self.state.borrow().is_unmapped(lpn) {
                continue;
            }
            let sectors = unit.sectors();
            let extent = Extent { start: u64::from(lpn.0) * u64::from(sectors), sectors };
            let mut waited = Wait::default();
            let reservation = self.unless_cut(write::reserve(self, extent, &mut waited)).await?;
            if self.read_only.get().is_some() {
                return Err(MediaError::Store);
            }
            write::accept_zeros(self, extent, reservation);
        }
        Ok(())
    }
}
