//! Every block in turn, from plane to plane, so that no plane is read for long.

use nandscape_device_media::{BlockId, Geometry, PlaneId};

use super::PatrolOrder;
use crate::component::BlockInfo;

/// The first block of every plane, then the second of every plane, and so on.
#[derive(Clone, Default, Debug)]
pub struct InTurn {
    next: u32,
}

impl PatrolOrder for InTurn {
    fn next(&mut self, geometry: &Geometry, _: &dyn Fn(BlockId) -> BlockInfo) -> Option<BlockId> {
        let (turn, planes) = (self.next, geometry.planes());
        self.next = (turn + 1) % geometry.blocks();
        geometry.blocks_of(PlaneId(turn % planes)).nth((turn / planes) as usize)
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_rig::TestFlash;

    use super::*;
    use crate::component::BlockState;

    #[test]
    fn it_visits_each_block_once_and_planes_in_turn() {
        let geometry = TestFlash { channels: 2, planes: 3, blocks: 5, ..TestFlash::default() }.geometry();
        let info =
            BlockInfo { state: BlockState::Full, valid: 0, allocated: 0, programmed: 0, erases: 0, sealed_at: 0 };
        let mut order = InTurn::default();
        let mut next = || order.next(&geometry, &|_| info).expect("each turn has a block");
        let first: Vec<BlockId> = (0..30).map(|_| next()).collect();
        let planes = first.iter().map(|block| geometry.plane_of(*block).0);
        assert!(planes.eq((0..30).map(|turn| turn % 6)));
        let again: Vec<BlockId> = (0..30).map(|_| next()).collect();
        assert_eq!(first, again);
        let mut all = first;
        all.sort_unstable_by_key(|block| block.0);
        assert!(all.iter().map(|block| block.0).eq(0..30));
    }
}
