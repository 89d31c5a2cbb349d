//! Namespaces: each a part of the FTL's sectors, with a format and identifiers. A namespace never changes while it exists; a
//! new format makes another one under the same number.
//!
//! | file | what |
//! |---|---|
//! | `table` | the namespaces of a subsystem, by number |
//! | `attached` | those that one controller has attached |
//! | `format` | LBA formats |
//! | `layout` | where its sectors lie among those of the FTL |
//! | `identifiers` | NGUID, EUI64 and UUID |
//!
//! Left out: what its data structures in Identify look like, which the command set knows.

mod attached;
mod format;
mod identifiers;
mod layout;
mod table;

pub(crate) use attached::Attached;
pub(crate) use format::LBA_FORMATS;
pub(crate) use identifiers::Identifiers;
pub(crate) use layout::Layout;
pub(crate) use table::{Common, GRANULE_BOUNDARY, MAX_NAMESPACES, Namespaces};

use nandscape_device_ftl::Extent;
use nandscape_device_ftl::address::SECTOR;

/// A namespace.
pub struct Namespace {
    pub(crate) nsid: u32,
    /// Its size in logical blocks.
    pub(crate) blocks: u64,
    /// Bytes of a logical block.
    pub(crate) lba_bytes: u32,
    /// The most logical blocks that one command may move.
    pub(crate) max_blocks: u32,
    /// Whether data written is kept.
    pub(crate) keeps_data: bool,
    /// Whether several controllers may have it attached.
    pub(crate) is_shared: bool,
    pub(crate) identifiers: Identifiers,
    pub(crate) layout: Layout,
}

impl Namespace {
    /// Sectors of a logical block.
    #[inline]
    pub(crate) fn lba_sectors(&self) -> u64 {
        u64::from(self.lba_bytes / SECTOR)
    }

    /// Bytes of flash set aside for it.
    pub(crate) fn capacity(&self) -> u64 {
        self.layout.sectors() * u64::from(SECTOR)
    }

    /// The sectors of the FTL that hold logical blocks; `None` when some lie elsewhere than the others. The blocks are
    /// there.
    #[inline]
    pub(crate) fn extent_of(&self, slba: u64, blocks: u32) -> Option<Extent> {
        let sectors = self.lba_sectors();
        self.layout.place(slba * sectors, blocks * sectors as u32)
    }

    /// The blocks from `slba` on that lie in a row.
    pub(crate) fn blocks_in_run(&self, slba: u64) -> u64 {
        let sectors = self.lba_sectors();
        self.layout.left_in_run(slba * sectors) / sectors
    }

    /// The index of its LBA format.
    pub(crate) fn format_index(&self) -> u8 {
        LBA_FORMATS.iter().position(|bytes| *bytes == self.lba_bytes).expect("it has one of them") as u8
    }

    /// The logical block that a sector of the FTL belongs to, which is one of this namespace.
    pub(crate) fn lba_of(&self, sector: u64) -> u64 {
        self.layout.offset_of(sector) / self.lba_sectors()
    }
}
