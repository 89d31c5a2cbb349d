//! Blocks that an FTL must not use: factory-bad blocks, and those that went bad in the drive's life before the run.
//!
//! Left out: blocks that go bad during the run, which the FTL tracks.

use nandscape_sim::Seed;

use crate::geometry::{BlockId, Geometry};
use crate::media::Media;

impl Media {
    /// Whether an FTL must not use a block: the maker marked it as bad, or it holds an identifier.
    pub fn is_factory_bad(&self, block: BlockId) -> bool {
        self.factory_bad[block.0 as usize] || self.holds_identifier(block)
    }

    /// Whether a block went bad in the drive's life before the run.
    pub fn is_grown_bad(&self, block: BlockId) -> bool {
        self.grown_bad.get(block.0 as usize).is_some_and(|is_bad| *is_bad)
    }

    /// The number of such blocks.
    pub fn grown_bad_blocks(&self) -> u64 {
        self.grown_bad.iter().filter(|is_bad| **is_bad).count() as u64
    }

    /// Whether an FTL must not use a block from its start on: [`Media::is_factory_bad`] or [`Media::is_grown_bad`].
    pub fn is_bad_at_start(&self, block: BlockId) -> bool {
        self.is_factory_bad(block) || self.is_grown_bad(block)
    }

    pub(crate) fn set_grown_bad(&mut self, bad: Vec<bool>) {
        self.grown_bad = if bad.contains(&true) { bad } else { Vec::new() };
    }

    pub(crate) fn factory_bad(&self) -> &[bool] {
        &self.factory_bad
    }

    pub(crate) fn set_factory_bad(&mut self, bad: Vec<bool>) {
        self.factory_bad = bad;
    }
}

/// Marks `count` random blocks of each plane.
pub(crate) fn choose_bad(geometry: &Geometry, count: u32, seed: Seed) -> Vec<bool> {
    let mut rng = seed.rng();
    let plane = |_| {
        let mut marks: Vec<bool> = (0..geometry.blocks_per_plane()).map(|block| block < count).collect();
        rng.shuffle(&mut marks);
        marks
    };
    (0..geometry.planes()).flat_map(plane).collect()
}

/// The first block of each channel is good, as makers of NAND promise for the first block of a chip. If it was chosen as bad,
/// the first good block of its plane is bad instead.
pub(crate) fn keep_first_blocks(geometry: &Geometry, bad: &mut [bool]) {
    let planes_of_channel = (geometry.planes() / geometry.channels()) as usize;
    for plane in bad.chunks_exact_mut(geometry.blocks_per_plane() as usize).step_by(planes_of_channel) {
        if let Some(good) = plane.iter().position(|is_bad| !is_bad) {
            plane.swap(0, good);
        }
    }
}
