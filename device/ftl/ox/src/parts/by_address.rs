//! Recycling in the order of addresses: the whole block is read, and its units are programmed sorted by logical unit.
//! Neighbours that were written at different times are placed together, so that reads of ranges touch fewer pages. This needs
//! controller memory for the data of a block; page order needs memory for one page.
//!
//! Left out: units of several blocks together, and planted states, which keep page order.

use nandscape_device_ftl_core::component::{GarbageCollection, Process, Recycling};
use nandscape_device_ftl_core::policy::Candidate;
use nandscape_device_media::BlockId;

/// The component that chooses blocks.
pub struct ByAddress<G>(pub G);

impl<G: GarbageCollection> GarbageCollection for ByAddress<G> {
    fn target(&self, blocks: &mut dyn Iterator<Item = (BlockId, Candidate)>) -> Option<BlockId> {
        self.0.target(blocks)
    }

    fn recycle<'a>(&'a self, block: &'a dyn Recycling) -> Process<'a> {
        Box::pin(async move {
            let mut units = Vec::new();
            for page in 0..block.pages() {
                units.extend(block.read(page).await?);
            }
            units.sort_unstable_by_key(|(lpn, _)| lpn.0);
            for units in units.chunks(block.units_per_page()) {
                block.program(units.to_vec()).await?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::task::{Context, Poll, Waker};

    use nandscape_device_ftl_core::address::Lpn;
    use nandscape_device_ftl_core::component::RecycledUnit;
    use nandscape_device_ftl_core::policy::Greedy;
    use nandscape_device_media::UnitId;

    use super::*;
    use crate::parts::ByMerit;

    /// A block of three pages whose reads need no time.
    struct Block {
        pages: [Vec<RecycledUnit>; 3],
        programmed: RefCell<Vec<Vec<u32>>>,
    }

    impl Recycling for Block {
        fn pages(&self) -> u32 {
            3
        }

        fn units_per_page(&self) -> usize {
            2
        }

        fn read(&self, page: u32) -> Process<'_, Vec<RecycledUnit>> {
            Box::pin(async move { Ok(self.pages[page as usize].clone()) })
        }

        fn program(&self, units: Vec<RecycledUnit>) -> Process<'_> {
            Box::pin(async move {
                self.programmed.borrow_mut().push(units.iter().map(|(lpn, _)| lpn.0).collect());
                Ok(())
            })
        }
    }

    fn order_of(gc: &dyn GarbageCollection) -> Vec<Vec<u32>> {
        let unit = |(lpn, unit)| (Lpn(lpn), UnitId(unit));
        let pages = [vec![(7, 0), (2, 1)], vec![], vec![(1, 4), (6, 5)]];
        let block =
            Block { pages: pages.map(|page| page.into_iter().map(unit).collect()), programmed: RefCell::default() };
        let mut recycled = gc.recycle(&block);
        assert_eq!(recycled.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())));
        drop(recycled);
        block.programmed.into_inner().into_iter().filter(|units| !units.is_empty()).collect()
    }

    #[test]
    fn units_are_moved_in_the_order_of_pages_or_of_addresses() {
        assert_eq!(order_of(&ByMerit(Greedy)), [[7, 2], [1, 6]]);
        assert_eq!(order_of(&ByAddress(ByMerit(Greedy))), [[1, 2], [6, 7]]);
    }
}
