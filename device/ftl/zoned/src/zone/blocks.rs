//! The blocks of the flash: which are erased, which are being erased, which are bad, and how often each was erased.
//!
//! Left out: which zone a block belongs to.

use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_device_media::{BlockId, Geometry, Media, PlaneId};

/// The use of a block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Erased, and part of no zone.
    Free,
    /// Part of a zone.
    InZone,
    /// Part of no zone any more, and to be erased.
    Stale,
    /// Out of use.
    Bad,
}

#[derive(Copy, Clone, Debug)]
pub(super) struct Block {
    pub(super) used: Use,
    pub(super) erases: u32,
    /// A program in it has failed: it becomes bad instead of being erased.
    pub(super) is_broken: bool,
    /// It is being erased, or waits for that.
    is_erasing: bool,
    /// Reads and programs that are under way in it.
    pins: u32,
}

/// See the file.
pub(super) struct Blocks {
    geometry: Geometry,
    all: Vec<Block>,
    /// The free blocks of each plane.
    free: Vec<Vec<BlockId>>,
    /// Stale blocks of each plane that will be used again.
    stale: Vec<u32>,
    coming: Vec<u32>,
    /// Blocks of each plane that zones need.
    needed: u32,
    /// Good blocks beyond those that zones need, now and when new.
    spare: (u64, u64),
    /// Blocks that have gone bad in use, in a life before the run too.
    pub(super) retired: u64,
}

impl Blocks {
    /// All erased as often as in `media`, except its bad ones. `needed` blocks of each plane are for zones.
    pub(super) fn new(media: &Media, needed: u32) -> Blocks {
        let (geometry, is_bad) = (media.geometry(), |block| media.is_bad_at_start(block));
        let block = |erases| Block { used: Use::Free, erases, is_broken: false, is_erasing: false, pins: 0 };
        let mut all: Vec<Block> = (0..geometry.blocks()).map(|number| block(media.erases(BlockId(number)))).collect();
        let mut free = Vec::new();
        for plane in (0..geometry.planes()).map(PlaneId) {
            let (bad, good): (Vec<BlockId>, Vec<BlockId>) = geometry.blocks_of(plane).partition(|block| is_bad(*block));
            bad.iter().for_each(|block| all[block.0 as usize].used = Use::Bad);
            free.push(good);
        }
        let beyond = |good: usize| (good as u64).saturating_sub(needed.into());
        let when_new = |plane| beyond(geometry.blocks_of(plane).filter(|block| !media.is_factory_bad(*block)).count());
        let spare =
            (free.iter().map(|free| beyond(free.len())).sum(), (0..geometry.planes()).map(PlaneId).map(when_new).sum());
        let (stale, coming, retired) = (vec![0; free.len()], vec![0; free.len()], media.grown_bad_blocks());
        Blocks { geometry: *geometry, all, free, stale, coming, needed, spare, retired }
    }

    pub(super) fn get(&self, block: BlockId) -> &Block {
        &self.all[block.0 as usize]
    }

    pub(super) fn spare(&self) -> (u64, u64) {
        self.spare
    }

    /// Whether each plane has as many good blocks as zones need.
    pub(super) fn has_room_on_all_planes(&self) -> bool {
        (0..self.geometry.planes()).map(PlaneId).all(|plane| {
            let good = self.geometry.blocks_of(plane).filter(|block| self.get(*block).used != Use::Bad);
            good.count() >= self.needed as usize
        })
    }

    /// Good blocks of a plane, without blocks in which a program failed.
    pub(super) fn good(&self, plane: PlaneId) -> u32 {
        let blocks = self.geometry.blocks_of(plane).map(|block| self.get(block));
        blocks.filter(|block| block.used != Use::Bad && !block.is_broken).count() as u32
    }

    /// Blocks of a plane that are free, or will be when they are erased.
    pub(super) fn to_be_had(&self, plane: PlaneId) -> u32 {
        self.free[plane.0 as usize].len() as u32 + self.coming[plane.0 as usize]
    }

    /// Takes the free block of a plane that was erased least often, and of those the first.
    pub(super) fn take(&mut self, plane: PlaneId) -> Option<BlockId> {
        let free = &self.free[plane.0 as usize];
        let least = (0..free.len()).min_by_key(|index| (self.all[free[*index].0 as usize].erases, free[*index].0))?;
        let block = self.free[plane.0 as usize].swap_remove(least);
        self.all[block.0 as usize].used = Use::InZone;
        Some(block)
    }

    /// Gives a block back that was taken and not written.
    pub(super) fn give_back(&mut self, block: BlockId) {
        self.all[block.0 as usize].used = Use::Free;
        self.free[self.geometry.plane_of(block).0 as usize].push(block);
    }

    /// A zone no longer uses a block.
    pub(super) fn make_stale(&mut self, block: BlockId) {
        assert_eq!(self.get(block).used, Use::InZone, "{block:?}");
        self.all[block.0 as usize].used = Use::Stale;
        let plane = self.geometry.plane_of(block).0 as usize;
        self.stale[plane] += 1;
        self.coming[plane] += u32::from(!self.get(block).is_broken);
    }

    /// Whether blocks of a plane must be erased.
    pub(super) fn has_stale(&self, plane: PlaneId) -> bool {
        self.stale[plane.0 as usize] > 0
    }

    /// All blocks to be erased.
    pub(super) fn stale(&self) -> Vec<BlockId> {
        let all = self.all.iter().zip(0..).filter(|(block, _)| block.used == Use::Stale);
        all.map(|(_, number)| BlockId(number)).collect()
    }

    /// An erase of a stale block begins. Returns whether none had begun.
    pub(super) fn begin_erase(&mut self, block: BlockId) -> bool {
        let of_block = &mut self.all[block.0 as usize];
        of_block.used == Use::Stale && !std::mem::replace(&mut of_block.is_erasing, true)
    }

    /// Power was lost during an erase.
    pub(super) fn not_erased(&mut self, block: BlockId) {
        self.all[block.0 as usize].is_erasing = false;
    }

    /// A stale block was erased.
    pub(super) fn erased(&mut self, block: BlockId) {
        let plane = self.geometry.plane_of(block).0 as usize;
        let of_block = &mut self.all[block.0 as usize];
        *of_block = Block { used: Use::Free, erases: of_block.erases + 1, is_erasing: false, ..*of_block };
        self.stale[plane] -= 1;
        self.coming[plane] -= 1;
        self.free[plane].push(block);
    }

    /// A stale block goes out of use.
    pub(super) fn retire(&mut self, block: BlockId) {
        let plane = self.geometry.plane_of(block).0 as usize;
        self.stale[plane] -= 1;
        self.coming[plane] -= u32::from(!self.get(block).is_broken);
        self.all[block.0 as usize].used = Use::Bad;
        self.retired += 1;
        self.spare.0 = self.spare.0.saturating_sub(1);
    }

    /// A program in a block has failed.
    pub(super) fn broke(&mut self, block: BlockId) {
        let was_good = !std::mem::replace(&mut self.all[block.0 as usize].is_broken, true);
        if was_good && self.get(block).used == Use::Stale {
            self.coming[self.geometry.plane_of(block).0 as usize] -= 1;
        }
    }

    pub(super) fn pin(&mut self, block: BlockId) {
        self.all[block.0 as usize].pins += 1;
    }

    /// Whether it was the last pin.
    pub(super) fn unpin(&mut self, block: BlockId) -> bool {
        let pins = &mut self.all[block.0 as usize].pins;
        *pins -= 1;
        *pins == 0
    }

    pub(super) fn is_pinned(&self, block: BlockId) -> bool {
        self.get(block).pins > 0
    }

    /// Free blocks.
    pub(super) fn free(&self) -> u64 {
        self.free.iter().map(|free| free.len() as u64).sum()
    }

    /// Notes the blocks of a drive at rest.
    pub(super) fn save(&self, to: &mut Writer) {
        for block in &self.all {
            to.byte(block.used as u8 | u8::from(block.is_broken) << 7);
            to.word(block.erases);
        }
        to.long(self.spare.0);
    }

    /// Restores noted blocks.
    pub(super) fn restore(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        self.free.iter_mut().for_each(Vec::clear);
        for (block, number) in self.all.iter_mut().zip(0..) {
            let (marks, erases) = (from.byte()?, from.word()?);
            let used = [Use::Free, Use::InZone, Use::Bad].into_iter().find(|used| *used as u8 == marks & 0x7f);
            let used = used.ok_or_else(|| from.malformed(format!("block {number} is {marks:#x}")))?;
            *block = Block { used, erases, is_broken: marks >> 7 != 0, ..*block };
            if used == Use::Free {
                self.free[self.geometry.plane_of(BlockId(number)).0 as usize].push(BlockId(number));
            }
        }
        self.spare.0 = from.long()?.min(self.spare.1);
        Ok(())
    }

    /// Lowest, highest and summed erase count of the blocks in use.
    pub(super) fn erases(&self) -> (u32, u32, u64) {
        let of = self.all.iter().filter(|block| block.used != Use::Bad).map(|block| block.erases);
        let (low, high) = (of.clone().min().unwrap_or(0), of.clone().max().unwrap_or(0));
        (low, high, of.map(u64::from).sum())
    }
}
