//! The right contents of each logical block, in a plain table, independent of the workings of a drive.

use std::ops::Range;

use nandscape_sim::rng::mix;

use crate::drive::DriveInfo;

/// A drive's promise for blocks that Dataset Management has deallocated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Deallocation {
    /// The required minimum: a block reads as its old data or as zeros, and the same each time (NVM 3.3.3).
    OldOrZeros,
    /// Preferred deallocate units that one range covers completely read as zeros.
    WholeUnitsReadZeros,
}

/// The contents of a block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Content {
    Zeros,
    /// The data of the write with this stamp.
    Written(u64),
    /// Deallocated: one of the two above; the first read decides.
    Either(u64),
}

/// The contents of a drive.
pub(super) struct Model {
    blocks: Vec<Content>,
    lba_bytes: usize,
    unit_blocks: u64,
    deallocation: Deallocation,
    stamps: u64,
}

impl Model {
    /// A new drive's.
    pub(super) fn new(info: &DriveInfo, deallocation: Deallocation) -> Model {
        Model {
            blocks: vec![Content::Zeros; info.blocks as usize],
            lba_bytes: info.lba_bytes as usize,
            unit_blocks: u64::from(info.unit_bytes / info.lba_bytes).max(1),
            deallocation,
            stamps: 0,
        }
    }

    fn range(range: &Range<u64>) -> Range<usize> {
        range.start as usize..range.end as usize
    }

    /// A write unlike all before: its stamp, and its data.
    pub(super) fn new_data(&mut self, range: &Range<u64>) -> (u64, Vec<u8>) {
        self.stamps += 1;
        let mut data = Vec::with_capacity((range.end - range.start) as usize * self.lba_bytes);
        range.clone().for_each(|lba| data.extend(self.pattern(self.stamps, lba)));
        (self.stamps, data)
    }

    /// The data that a write puts into a block: different in every eight bytes, for every write and block.
    pub(super) fn pattern(&self, stamp: u64, lba: u64) -> impl Iterator<Item = u8> {
        let block = mix(stamp << 32 ^ lba);
        (0..self.lba_bytes as u64 / 8).flat_map(move |word| mix(block ^ word).to_le_bytes())
    }

    /// The blocks hold the data of a write.
    pub(super) fn write(&mut self, range: &Range<u64>, stamp: u64) {
        self.blocks[Model::range(range)].fill(Content::Written(stamp));
    }

    /// The blocks hold zeros.
    pub(super) fn clear(&mut self, range: &Range<u64>) {
        self.blocks[Model::range(range)].fill(Content::Zeros);
    }

    /// The blocks of one range are deallocated.
    pub(super) fn deallocate(&mut self, range: &Range<u64>) {
        for block in &mut self.blocks[Model::range(range)] {
            if let Content::Written(stamp) = *block {
                *block = Content::Either(stamp);
            }
        }
        let (first, end) = (range.start.next_multiple_of(self.unit_blocks), range.end / self.unit_blocks);
        let whole = first..end * self.unit_blocks;
        if self.deallocation == Deallocation::WholeUnitsReadZeros && !whole.is_empty() {
            self.clear(&whole);
        }
    }

    /// The data of a range, if it is known.
    pub(super) fn data(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let mut data = Vec::with_capacity((range.end - range.start) as usize * self.lba_bytes);
        for lba in range.clone() {
            match self.blocks[lba as usize] {
                Content::Zeros => data.resize(data.len() + self.lba_bytes, 0),
                Content::Written(stamp) => data.extend(self.pattern(stamp, lba)),
                Content::Either(_) => return None,
            }
        }
        Some(data)
    }

    /// Compares the data of a read with the right contents. Of a block with two possible contents, it settles which.
    ///
    /// # Errors
    /// The first block that differs.
    pub(super) fn check(&mut self, range: &Range<u64>, data: &[u8]) -> Result<(), String> {
        for (lba, bytes) in range.clone().zip(data.chunks_exact(self.lba_bytes)) {
            let is = |stamp: u64| bytes.iter().copied().eq(self.pattern(stamp, lba));
            let zeros = bytes.iter().all(|byte| *byte == 0);
            let (right, decided) = match self.blocks[lba as usize] {
                Content::Zeros => (zeros, Content::Zeros),
                Content::Written(stamp) => (is(stamp), Content::Written(stamp)),
                Content::Either(_) if zeros => (true, Content::Zeros),
                Content::Either(stamp) => (is(stamp), Content::Written(stamp)),
            };
            if !right {
                let (should, found) = (self.blocks[lba as usize], self.describe(lba, bytes));
                return Err(format!("block {lba} should hold {should:?} and holds {found}"));
            }
            self.blocks[lba as usize] = decided;
        }
        Ok(())
    }

    /// The origin of some bytes, if it can be recognised.
    pub(super) fn describe(&self, lba: u64, bytes: &[u8]) -> String {
        if bytes.iter().all(|byte| *byte == 0) {
            return "zeros".to_owned();
        }
        let recent = (1..=self.stamps).rev();
        let whole = recent.clone().find(|stamp| bytes.iter().copied().eq(self.pattern(*stamp, lba)));
        let begun = recent.clone().find(|stamp| bytes[..8].iter().copied().eq(self.pattern(*stamp, lba).take(8)));
        match (whole, begun) {
            (Some(stamp), _) => format!("the data of write {stamp}"),
            (_, Some(stamp)) => format!("a part of the data of write {stamp}"),
            _ => format!("{:02x?}...", &bytes[..8]),
        }
    }
}
