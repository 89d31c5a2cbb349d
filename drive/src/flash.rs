//! Flash as seen by a host that manages it: the operations that its FTL sends to chips and their ends, and the
//! location of data. An operating system with the FTL of an open-channel drive knows both (MittOS, Li 3.1.7).
//!
//! Left out: durations of operations, and the order in which chips and channels serve them. A host has to measure
//! both.

use nandscape_sim::Span;

/// What an operation does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FlashKind {
    /// Senses a page and transfers bytes of it.
    Read,
    /// Moves pages in and programs them at once.
    Program,
    /// Erases a block.
    Erase,
    /// Keeps the chip for several operations in a row, such as a step of a collection.
    Hold,
}

/// An operation that is sent to a chip.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlashOp {
    /// The kind of operation.
    pub kind: FlashKind,
    /// The chip, counted over all channels. A chip executes one operation at a time.
    pub chip: u32,
    /// Its channel.
    pub channel: u32,
    /// The number of the page in its block; the lowest of several that are programmed at once; 0 of an erase.
    pub page: u32,
    /// The highest page of those programmed at once.
    pub last_page: u32,
    /// Pages that are programmed at once; 1 of other operations.
    pub pages: u32,
    /// Bytes on the channel.
    pub bytes: u32,
    /// How long the FTL means to keep the chip, of a [`FlashKind::Hold`].
    pub hold: Span,
    /// Whether the FTL keeps the channel with it.
    pub holds_channel: bool,
    /// Whether the chip is held for this operation.
    pub is_held: bool,
    /// Whether a command of a host to read is waiting for it.
    pub for_host_read: bool,
}

/// Observes operations.
pub trait FlashWatch {
    /// An operation is sent; the result names it.
    fn began(&self, op: &FlashOp) -> u64;

    /// The operation of that name has ended.
    fn ended(&self, ticket: u64);
}

/// A page that a read of logical blocks senses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlashPage {
    /// The chip, counted over all channels.
    pub chip: u32,
    /// Its channel.
    pub channel: u32,
    /// The number of the page in its block.
    pub page: u32,
    /// Bytes on the channel.
    pub bytes: u32,
}

/// The vendor's data sheet of the flash.
#[derive(Clone, PartialEq, Debug)]
pub struct FlashSheet {
    /// Chips of all channels.
    pub chips: u32,
    /// Channels.
    pub channels: u32,
    /// Whether a page moves over the channel while its chip does the next operation.
    pub overlaps: bool,
    /// Sensing a page, by its number in a block.
    pub read: Vec<Span>,
    /// Programming a page, by its number in a block.
    pub program: Vec<Span>,
    /// Erasing a block.
    pub erase: Span,
    /// Moving 4,096 bytes over a channel.
    pub transfer: Span,
    /// Channel time of a command itself.
    pub command: Span,
}

/// Knows where data is.
pub trait FlashMap {
    /// Calls `each` for each page that a read of logical blocks senses. Data in memory, blocks without data and
    /// blocks beyond the end sense none.
    fn pages(&self, slba: u64, blocks: u32, each: &mut dyn FnMut(FlashPage));
}
