//! Pages of any length, as chains of pieces: the second and third form of logical pages (OX 7.2.1), version 2 of the buffers and
//! batches of [`lss`](crate::lss).
//!
//! A namespace has pages of this form from a [Format NVM](crate::opcode::AdminOpcode::FORMAT_NVM) with [`FORMAT_PIECES`] in CDW12 on,
//! until the next one without. Its blocks are the drive's then: commands on blocks are Invalid Namespace or Format.
//!
//! [`LSS_FLUSH`](crate::vendor::LSS_FLUSH): the fields are those of version 1. The data is a [`Head`] of [`VERSION`], an [`Entry`] for
//! each piece, and then the pieces, each where its entry places it. A base replaces all pieces of its page, a delta is
//! put before them; a base of no bytes removes the page. Entries count one after the other. The command ends when it is
//! durable, with Force Unit Access or without.
//!
//! [`BATCHED_READ`](crate::vendor::BATCHED_READ): CDW10 15:0 is the number of pages, counted from zero, and CDW11 15:0 the length of the
//! data in 4 KiB, counted from zero, at least [`LEAST_BATCH`]. The host sends [`LIST`] bytes with the LPIDs, 8 bytes
//! each. The controller returns as many, in which the place of each LPID has a [`Place`]. Behind them are the pages,
//! one after the other: of each the lengths of its pieces, 4 bytes each, and the pieces, the base first. A page for
//! which there is no room is left out, and its place records this.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::lss::{Head, LIST, MAGIC, PAGE};

/// The version of a buffer.
pub const VERSION: u16 = 2;
/// The most entries of a buffer.
pub const MOST_ENTRIES: usize = 4_096;
/// The most pieces of a page, its base included.
pub const MOST_PIECES: usize = 32;
/// The most bytes of a page, all pieces together.
pub const MOST_PAGE_BYTES: usize = 64 << 10;
/// The fewest bytes of the data of a batched read.
pub const LEAST_BATCH: usize = LIST + PAGE;
/// CDW12 of Format NVM: the namespace has pages of this form.
pub const FORMAT_PIECES: u32 = 1;
/// Of [`Entry::kind_bytes`]: the piece is a delta.
pub const DELTA: u32 = 1 << 31;
/// Of [`Entry::kind_bytes`]: the bits of the length; all others are zero.
const LENGTH: u32 = (1 << 24) - 1;

/// A piece of a buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// Its page (7:0).
    pub lpid: U64,
    /// Its beginning in bytes from the beginning of the buffer, after the entries (11:8).
    pub offset: U32,
    /// Its bytes, and [`DELTA`] (15:12).
    pub kind_bytes: U32,
}

/// The entry of a page in a batched read.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Place {
    /// Bytes of all pieces; 0 for a page that does not exist (3:0).
    pub bytes: U32,
    /// Its pieces (5:4).
    pub pieces: U16,
    /// 1: there was no room for it (7:6).
    pub left_out: U16,
}

/// The first bytes of the vendor area of Identify Namespace, of a namespace with such pages. Counters begin when the drive starts.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Report {
    /// "LSSP", or the namespace has no such pages (3:0).
    pub magic: [u8; 4],
    /// Version of this structure: 1 (5:4).
    pub version: U16,
    /// The most pieces of a page (7:6).
    pub pieces: U16,
    /// The most bytes of a page (11:8).
    pub page_bytes: U32,
    /// The size of each piece of a buffer in addition to its bytes (15:12).
    pub entry_bytes: U32,
    /// The largest sum of the sizes of a buffer's pieces (23:16).
    pub buffer_bytes: U64,
    /// LPIDs are below (31:24).
    pub lpids: U64,
    /// Bytes of pieces that the namespace has room for (39:32).
    pub capacity: U64,
    /// Existing pages; 0 before the namespace was used since the start (47:40).
    pub pages: U64,
    /// Bytes of their pieces (55:48).
    pub bytes: U64,
    /// Bytes of the drive's memory that hold their places (63:56).
    pub memory: U64,
    /// Bytes of pieces that the drive has moved to empty its units (71:64).
    pub moved_bytes: U64,
    /// Checkpoints of the table of pieces (79:72).
    pub checkpoints: U64,
    /// Their bytes (87:80).
    pub checkpoint_bytes: U64,
}

const _: () = assert!(size_of::<Entry>() == 16 && size_of::<Place>() == 8 && size_of::<Report>() == 88);

impl Entry {
    /// That of a piece.
    pub fn of(lpid: u64, offset: u32, bytes: u32, is_delta: bool) -> Entry {
        let kind_bytes = bytes | if is_delta { DELTA } else { 0 };
        Entry { lpid: lpid.into(), offset: offset.into(), kind_bytes: kind_bytes.into() }
    }

    /// Bytes of the piece, and whether it is a delta; `None` if a reserved bit is set.
    pub fn piece(&self) -> Option<(u32, bool)> {
        let both = self.kind_bytes.get();
        (both & !(DELTA | LENGTH) == 0).then_some((both & LENGTH, both & DELTA != 0))
    }
}

/// The head of a buffer with some entries.
pub fn head(entries: u32) -> Head {
    Head { version: VERSION.into(), ..Head::of(entries) }
}

/// The entries of the buffer that begins so; `None` if it is no buffer of this version.
pub fn entries(head: &Head) -> Option<usize> {
    let entries = head.pages.get() as usize;
    let is_valid = head.magic == MAGIC && *head == self::head(head.pages.get());
    (is_valid && (1..=MOST_ENTRIES).contains(&entries)).then_some(entries)
}

impl Report {
    /// The first bytes of "vendor specific" of a namespace with such pages.
    pub const MAGIC: [u8; 4] = *b"LSSP";

    /// The contents of the vendor area of Identify Namespace; `None` if the namespace has no such pages.
    pub fn of(area: &[u8]) -> Option<Report> {
        let (report, _) = Report::read_from_prefix(area).ok()?;
        (report.magic == Report::MAGIC && report.version.get() == 1).then_some(report)
    }

    /// An empty report.
    pub fn new() -> Report {
        Report { magic: Report::MAGIC, version: 1.into(), ..Report::new_zeroed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_length_and_kind_and_nothing_else() {
        assert_eq!(Entry::of(7, 40, 300, true).as_bytes(), b"\x07\0\0\0\0\0\0\0\x28\0\0\0\x2c\x01\0\x80");
        assert_eq!(Entry::of(7, 40, 300, true).piece(), Some((300, true)));
        assert_eq!(Entry::of(7, 40, 0, false).piece(), Some((0, false)));
        for bit in 24..31 {
            assert_eq!(Entry { kind_bytes: (5 | 1 << bit).into(), ..Entry::default() }.piece(), None, "bit {bit}");
        }
    }

    #[test]
    fn a_head_is_of_one_version() {
        assert_eq!(entries(&head(4_096)), Some(4_096));
        assert_eq!((entries(&head(0)), entries(&head(4_097))), (None, None));
        assert_eq!((entries(&Head::of(1)), head(1).pages()), (None, None));
        assert_eq!(entries(&Head { reserved_12: 1.into(), ..head(1) }), None);
        assert_eq!(entries(&Head { reserved_6: 1.into(), ..head(1) }), None);
    }

    #[test]
    fn an_area_of_zeros_is_no_report() {
        assert_eq!(Report::of(&[0; 3_712]), None);
        assert_eq!(Report::of(Report::new().as_bytes()), Some(Report::new()));
    }
}
