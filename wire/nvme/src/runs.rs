//! Sorted runs: the commands that a drive with an FTL for LSM-trees adds to NVMe (OX 7.6, the thesis' next step).
//!
//! The blocks of a namespace are divided into places of equal size, each of which may have a run. A run is written from its beginning to
//! its end by Write, and read by Read. It has a level, which indicates how long its data will live.
//!
//! [`RUN_OPEN`](crate::vendor::RUN_OPEN): CDW10 7:0 is a level. The controller begins a run, and returns the number of its place in DW0.
//!
//! [`RUN_COMMIT`](crate::vendor::RUN_COMMIT): CDW10 15:0 is the number of edits, counted from zero. The data is an [`Edit`] for each: all
//! of them are made or none, at one instant.
//!
//! [`RUN_REPORT`](crate::vendor::RUN_REPORT): CDW10 is the length in dwords, counted from zero; CDW11 is the first
//! place of the report. The controller returns a [`Head`] and a [`Descriptor`] of each run from there on, as many as
//! fit.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Levels: 0 to 15.
pub const LEVELS: u8 = 16;
/// The most edits of a commit.
pub const MOST_EDITS: usize = 4_096;

/// A change of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Edit {
    /// The place of the run (3:0).
    pub run: U32,
    /// One of [`action`] (4).
    pub action: u8,
    /// The new level, of [`action::RELEVEL`] (5).
    pub level: u8,
    /// Zero (7:6).
    pub reserved_6: U16,
}

/// The change of a run.
pub mod action {
    /// The run counts from now on, and may still be written.
    pub const PUBLISH: u8 = 1;
    /// The run is complete, and counts.
    pub const SEAL: u8 = 2;
    /// The run is of another level.
    pub const RELEVEL: u8 = 3;
    /// The run is no more.
    pub const DROP: u8 = 4;
    /// The run is not written any more, and does not count yet: the rest of its zone is for other runs.
    pub const CLOSE: u8 = 5;
}

/// How a report begins.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Head {
    /// Runs from the first place of the report on (3:0).
    pub runs: U32,
    /// Blocks from one place to the next, a power of two (7:4).
    pub span: U32,
    /// The most blocks of a run (11:8).
    pub most: U32,
    /// Blocks that are erased together: a run whose length is a multiple shares none with others (15:12).
    pub grain: U32,
    /// Blocks that all runs may have together (23:16).
    pub capacity: U64,
    /// Zero (31:24).
    pub reserved_24: U64,
}

/// A run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Descriptor {
    /// Its place (3:0).
    pub run: U32,
    /// Blocks that were written (7:4).
    pub blocks: U32,
    /// Runs that were published or sealed later have higher ones (15:8).
    pub order: U64,
    /// Its level (16).
    pub level: u8,
    /// One of [`state`] (17).
    pub state: u8,
    /// Zero (23:18).
    pub reserved_18: [u8; 6],
}

/// States of runs.
pub mod state {
    /// It was opened.
    pub const NEW: u8 = 0;
    /// It was published.
    pub const PUBLISHED: u8 = super::action::PUBLISH;
    /// It was sealed.
    pub const SEALED: u8 = super::action::SEAL;
}

const _: () = assert!(size_of::<Edit>() == 8 && size_of::<Head>() == 32 && size_of::<Descriptor>() == 24);
