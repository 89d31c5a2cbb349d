//! The bytes of a logical block of each namespace, in a table that the drive keeps current. With it, the bytes of a
//! command can be counted from its entry alone.

use std::cell::Cell;

use crate::drive::DriveInfo;

/// See the file.
pub struct BlockSizes(Box<[Cell<u32>]>);

impl BlockSizes {
    /// A table for namespaces 1 to `most`, none of which exists yet.
    pub fn new(most: u32) -> BlockSizes {
        BlockSizes((0..=most).map(|_| Cell::new(0)).collect())
    }

    /// The table of a drive with one namespace, whose format does not change.
    pub fn of(info: &DriveInfo) -> BlockSizes {
        let sizes = BlockSizes::new(info.nsid);
        sizes.set(info.nsid, info.lba_bytes);
        sizes
    }

    /// Bytes of a logical block of a namespace; 0 if the namespace does not exist.
    #[inline]
    pub fn get(&self, nsid: u32) -> u32 {
        self.0.get(nsid as usize).map_or(0, Cell::get)
    }

    /// Sets the bytes of a logical block; 0 when the namespace is deleted.
    ///
    /// # Panics
    /// When `nsid` is beyond the table.
    pub fn set(&self, nsid: u32, bytes: u32) {
        self.0[nsid as usize].set(bytes);
    }
}
