//! Flash as the host that manages it sees it: the operations that its FTL sends to chips and their ends, and where the data of
//! logical blocks is. An operating system with the FTL of an open-channel drive has both (MittOS, Li 3.1.7).
//!
//! Left out: how long operations take, and in which order chips and channels serve them. A host has to find that out.

use nandscape_sim::Span;

/// What an operation does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FlashKind {
    /// Senses a page and moves bytes of it out.
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
    /// What it does.
    pub kind: FlashKind,
    /// The chip, counted over all channels: what executes one operation at a time.
    pub chip: u32,
    /// Its channel.
    pub channel: u32,
    /// The number of the page in its block; the lowest of several that are programmed at once; 0 of an erase.
    pub page: u32,
    /// The highest of those numbers.
    pub last_page: u32,
    /// Pages that are programmed at once; 1 of other operations.
    pub pages: u32,
    /// Bytes on the channel.
    pub bytes: u32,
    /// How long the FTL means to keep the chip, of a [`FlashKind::Hold`].
    pub hold: Span,
    /// Whether the FTL keeps the channel with it.
    pub holds_channel: bool,
    /// Whether it is one of those for which the chip is kept.
    pub is_held: bool,
    /// Whether a command of a host to read is waiting for it.
    pub for_host_read: bool,
}

/// Is told of operations.
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

/// What a vendor says of flash.
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
    /// Calls `told` with each page that a read of logical blocks senses; with none for data in memory, for blocks without data and for
    /// those that there are not.
    fn pages(&self, slba: u64, blocks: u32, told: &mut dyn FnMut(FlashPage));
}
