//! P9-WCA (OX table 5.10): which data in the write cache is programmed next, and when.
//!
//! | OX | here |
//! |---|---|
//! | INIT, EXIT | the construction of the component and the drop of it; the FTL empties the cache |
//! | SUBMIT | [`WriteCaching::submit`]: the FTL puts units into slots ([`RandomWrites::accept`](crate::RandomWrites::accept)) and asks what is to be programmed |
//! | CALLBACK | [`WriteCaching::callback`]: a program has ended |
//!
//! The FTL keeps the invariants, whatever a component does: versions of a unit are programmed in their order, data
//! whose program failed is queued again, and commands complete when their data is where `buffer.mode` requires it. If
//! commands wait at the end for data that a component never submits, the program ends with a message.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use crate::address::SlotId;

/// The fill of a write cache, and the demands on it. All counts are mapping units.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CacheFill {
    /// Waiting to be programmed.
    pub queued: u32,
    /// In the cache, those that are being programmed included.
    pub used: u32,
    /// The most that the cache holds.
    pub slots: u32,
    /// In a page.
    pub page: u32,
    /// Whether a command waits for data in line: a flush, or a write that completes when it is programmed.
    pub is_awaited: bool,
    /// What writes without room wait for.
    pub room: Room,
    /// Whether another slot may be filled.
    pub may_fill: bool,
}

/// The state of room in the cache.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Room {
    /// No write waits for any.
    Enough,
    /// One waits, and programs or writes under way will make some.
    Soon,
    /// One waits, and only another program will make some.
    Never,
}

/// A slot in line.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct InLine {
    /// The slot.
    pub slot: SlotId,
    /// Whether it has all sectors of its unit. Otherwise the others are read from flash before it is programmed.
    pub is_whole: bool,
    /// Whether a command waits for it.
    pub is_awaited: bool,
}

/// The data that can be programmed now.
pub trait CachedWrites {
    /// How full the cache is.
    fn fill(&self) -> CacheFill;

    /// Shows the slots in line, the oldest first, until `each` breaks. Those whose unit has an older version in the cache are left out.
    fn visit(&self, each: &mut dyn FnMut(InLine) -> ControlFlow<()>);
}

/// The next step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Submission {
    /// Nothing yet. SUBMIT is called again on more data, on a request for room, and after a program.
    Wait,
    /// The sectors that a slot lacks are read. SUBMIT is asked again at once.
    Fill(SlotId),
    /// Whole slots are programmed together, at most a page of them; the rest of the page is padding. SUBMIT is called
    /// again at once.
    Program(SmallVec<[SlotId; 8]>),
}

/// A program that has ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EndedProgram {
    /// Units of data in it.
    pub units: u32,
    /// Whether it succeeded. Otherwise its data is in line again.
    pub is_programmed: bool,
}

/// Decides when data is programmed.
pub trait WriteCaching {
    /// SUBMIT: the next step with the data in line.
    fn submit(&self, cache: &dyn CachedWrites) -> Submission;

    /// CALLBACK: a program has ended. Does nothing by default.
    fn callback(&self, _ended: EndedProgram) {}
}
