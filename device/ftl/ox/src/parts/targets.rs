//! Which block is recycled next: by the merit of a victim policy.

use nandscape_device_ftl_core::component::GarbageCollection;
use nandscape_device_ftl_core::policy::{Candidate, VictimPolicy};
use nandscape_device_media::BlockId;

/// Recycles the block with the highest merit, of equals the one with the lowest number.
pub struct ByMerit<P>(pub P);

impl<P: VictimPolicy> GarbageCollection for ByMerit<P> {
    fn target(&self, blocks: &mut dyn Iterator<Item = (BlockId, Candidate)>) -> Option<BlockId> {
        let merit = |(block, candidate): (BlockId, Candidate)| (self.0.merit(&candidate), block);
        let best = blocks.map(merit).max_by_key(|(merit, block)| (*merit, std::cmp::Reverse(block.0)));
        best.map(|(_, block)| block)
    }
}

/// The block that became full longest ago has the highest merit.
pub struct Oldest;

impl VictimPolicy for Oldest {
    fn merit(&self, candidate: &Candidate) -> u64 {
        candidate.age
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::policy::Greedy;

    use super::*;

    #[test]
    fn each_takes_the_block_that_it_is_named_for() {
        let candidate = |(valid, age)| Candidate { valid, units: 64, age, erases: 0 };
        let target = |gc: &dyn GarbageCollection| {
            let blocks = [(9, 1), (5, 3), (5, 2), (30, 70)].map(candidate);
            gc.target(&mut (0..).map(BlockId).zip(blocks))
        };
        assert_eq!(target(&ByMerit(Greedy)), Some(BlockId(1)));
        assert_eq!(target(&ByMerit(Oldest)), Some(BlockId(3)));
        assert_eq!(ByMerit(Greedy).target(&mut std::iter::empty()), None);
    }
}
