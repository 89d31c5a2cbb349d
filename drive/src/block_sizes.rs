//! The bytes of a logical block of each namespace: a table that the drive keeps up to date, so that the bytes of a command
//! can be counted where only its entry is known.

use std::cell::Cell;

use crate::drive::DriveInfo;

/// See the file.
pub struct BlockSizes(Box<[Cell<u32>]>);

impl BlockSizes {
    /// A table for namespaces 1 to `most`, of which there is none yet.
    pub fn new(most: u32) -> BlockSizes {
        BlockSizes((0..=most).map(|_| Cell::new(0)).collect())
    }

    /// The table of a drive with one namespace, whose format does not change.
    pub fn of(info: &DriveInfo) -> BlockSizes {
        let sizes = BlockSizes::new(info.nsid);
        sizes.set(info.nsid, info.lba_bytes);
        sizes
    }

    /// Bytes of a logical block of a namespace; 0 where there is none.
    #[inline]
    pub fn get(&self, nsid: u32) -> u32 {
        self.0.get(nsid as usize).map_or(0, Cell::get)
    }

    /// Sets them; 0 when the namespace is gone.
    ///
    /// # Panics
    /// When the table does not reach so far.
    pub fn set(&self, nsid: u32, bytes: u32) {
        self.0[nsid as usize].set(bytes);
    }
}
