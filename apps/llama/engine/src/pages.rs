//! The interface of a store of pages: pieces are flushed together, and pages read.

use nandscape_apps_store::{Disk, StoreError};

/// The kind of a piece of a page.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The whole page: its earlier content is void.
    Base,
    /// Changes of the page, which go before its earlier content.
    Delta,
}

/// A piece of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The number of the page.
    pub lpid: u64,
    /// Its kind.
    pub kind: Kind,
    /// Pieces that the page has before this one; none before a base.
    pub before: u32,
    /// Its bytes, at most [`Shape::page_bytes`].
    pub bytes: Vec<u8>,
}

/// The limits of a store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The most bytes of a piece.
    pub page_bytes: usize,
    /// The most pieces of a page, its base included. With 1 there are no deltas.
    pub pieces: u32,
    /// The most pieces of a flush.
    pub flush_pieces: usize,
    /// The most pages; their numbers are below.
    pub pages: u64,
}

/// The work of a store, in commands and bytes at the interface of the drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct PageStats {
    /// Flushes.
    pub flushes: u64,
    /// Bytes of pieces that the tree had flushed.
    pub piece_bytes: u64,
    /// Bytes written to the drive, with all that was added.
    pub written_bytes: u64,
    /// Bytes read from the drive.
    pub read_bytes: u64,
    /// Commands to the drive.
    pub commands: u64,
    /// Segments of the log that were emptied.
    pub cleaned: u64,
    /// Bytes of pieces that were moved for that.
    pub moved_bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Bytes of checkpoints.
    pub checkpoint_bytes: u64,
    /// Bytes of the host's memory that hold the places of pages.
    pub memory: u64,
}

impl PageStats {
    /// The traffic of a disk, without figures of the store.
    pub(crate) fn of(disk: &Disk) -> PageStats {
        PageStats {
            written_bytes: disk.written_bytes.get(),
            read_bytes: disk.read_bytes.get(),
            commands: disk.commands.get(),
            ..PageStats::default()
        }
    }
}

/// A store of pages.
///
/// Flushes are sequential; reads may be concurrent. The result of reading pages during their flush does not matter:
/// a tree has them in its cache.
#[expect(async_fn_in_trait, reason = "everything is on one thread")]
pub trait PageStore: 'static {
    /// Its limits.
    fn shape(&self) -> Shape;

    /// Pages that certainly still fit, whatever their pieces.
    fn room(&self) -> u64;

    /// Makes pieces durable, all of them or, after a crash, none. In a flush a page has one piece.
    ///
    /// # Errors
    /// Why it failed. It is then unknown whether the pieces are present.
    async fn flush(&self, pieces: Vec<Piece>) -> Result<(), StoreError>;

    /// The pieces of pages, from the base on; none of a page that was never flushed.
    ///
    /// # Errors
    /// Why it did not.
    async fn read(&self, lpids: &[u64]) -> Result<Vec<Vec<Vec<u8>>>, StoreError>;

    /// Its work.
    fn stats(&self) -> PageStats;
}
