//! Scrubbing: a patrol reads every block once in an interval, at low priority, and refreshes blocks with pages near the
//! correctable limit.
//!
//! Each block has a turn in the interval. In its turn, its pages are read one after the other, as programs and reads of
//! hosts permit, and a decoder reports their errors. Reads have the cause of wear levelling, and the last priority. The
//! patrol does not keep a simulation alive ([`Sim::sleep_in_background`](nandscape_sim::Sim::sleep_in_background)): an
//! idle drive is still scrubbed for as long as the run lasts.
//!
//! Left out: blocks whose turn falls into a time in which a host holds internal work off, which are read in the next
//! interval; blocks that are being written, which are read when they are full; and reads of several blocks at a time: a
//! block that takes longer than its turn delays the next.

use std::rc::Rc;

use nandscape_device_ftl_core::component::{BlockInfo, BlockMetadata, BlockState};
use nandscape_device_ftl_core::policy::{NearLimit, PatrolOrder, RefreshPolicy};
use nandscape_device_media::{BlockId, MediaError, PageId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Class, Span, Time, Who};

use super::PageFtl;

/// Behind everything else.
const READER: Who = Who::new(cause::WEAR, Class::new(3));

impl PageFtl {
    /// Scrubs blocks in an order, if the flash must be scrubbed: from now on, and for as long as the FTL exists.
    pub(super) fn patrol(self: &Rc<PageFtl>, order: Box<dyn PatrolOrder>) {
        let Some(aging) = self.media.aging() else { return };
        let (Some(interval), Some(share)) = (aging.scrub, aging.refresh) else { return };
        let turns = u64::from(self.media.geometry().blocks());
        let (policy, mut order) = (NearLimit { share }, order);
        let (sim, weak, begun) = (self.sim.clone(), Rc::downgrade(self), self.sim.now());
        self.sim.spawn(async move {
            for turn in 1.. {
                sim.sleep_in_background(until_turn(sim.now(), begun, interval, (turn, turns))).await;
                let Some(ftl) = weak.upgrade() else { return };
                let block = order.next(ftl.media.geometry(), &|block| ftl.info(block));
                if let Some(block) = block
                    && ftl.look_at(block, &policy).await
                {
                    ftl.refresh(block);
                }
            }
        });
    }

    fn info(&self, block: BlockId) -> BlockInfo {
        *self.state.borrow().tables.blocks.get(block)
    }

    /// Reads the pages of a block, until one of them requires a rewrite of the block; returns whether one does.
    async fn look_at(&self, block: BlockId, policy: &dyn RefreshPolicy) -> bool {
        let geometry = *self.media.geometry();
        let sealed_at = self.info(block).sealed_at;
        for page in (0..geometry.pages_per_block()).map(|number| geometry.page_at(block, number)) {
            // The block may be collected meanwhile, and written again.
            let info = self.info(block);
            if info.state != BlockState::Full || info.sealed_at != sealed_at || !self.is_scrubbed(block) {
                return false;
            }
            match self.read_for_scrub(page).await {
                Ok(()) if self.media.decoded(page).is_some_and(|page| policy.is_due_by(&page)) => return true,
                Ok(()) => {}
                // The remaining data of the block is saved before it is too late.
                Err(MediaError::Uncorrectable) => return true,
                Err(_) => return false,
            }
        }
        false
    }

    /// Whether a block may be read, and moved if necessary.
    fn is_scrubbed(&self, block: BlockId) -> bool {
        let state = self.state.borrow();
        let is_in_use = !state.collectors.is_out_of_use(state.geometry.plane_of(block));
        let may_begin = !state.pace.is_suspended && !state.orders.hold();
        self.is_running() && is_in_use && may_begin && state.damage.read_only.is_none()
    }

    /// Reads a page, whose block is not erased meanwhile.
    async fn read_for_scrub(&self, page: PageId) -> Result<(), MediaError> {
        let geometry = self.media.geometry();
        self.state.borrow_mut().tables.blocks.pin(geometry.block_of(page));
        self.scrubbing.set(true);
        let read = self.media.read(page, geometry.page_size(), READER, &mut Breakdown::new()).await;
        self.scrubbing.set(false);
        self.media.count_scrub_read();
        match read {
            Ok(()) => self.unpin(page),
            // A plane that does not answer goes out of use.
            Err(error) => self.page_not_read(page, error),
        }
        read
    }
}

/// The time until turn `turn` of `turns` in an interval. A late turn begins after a nanosecond.
fn until_turn(now: Time, begun: Time, interval: Span, (turn, turns): (u64, u64)) -> Span {
    let at = (u128::from(interval.ns()) * u128::from(turn) / u128::from(turns)).min(u128::from(u64::MAX / 2)) as u64;
    (begun + Span::from_ns(at)).since(now).max(Span::from_ns(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_have_equal_shares_of_the_interval() {
        let at = |now, turn| until_turn(Time::from_ns(now), Time::from_ns(50), Span::from_ns(1_000), (turn, 3)).ns();
        assert_eq!((at(50, 1), at(50, 2), at(60, 3), at(50, 4)), (333, 666, 990, 1_333));
        assert_eq!(at(5_000, 1), 1, "late");
        let never = until_turn(Time::ZERO, Time::ZERO, Span::from_ns(u64::MAX), (u64::MAX, 1));
        assert_eq!(never.ns(), u64::MAX / 2);
    }
}
