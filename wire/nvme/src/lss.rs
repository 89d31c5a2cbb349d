//! Flush of a buffer of a log-structured store (LSS), and batched reads of its pages: the additions of OX-ELEOS to
//! NVMe (OX 7.2.2).
//!
//! A logical page has a number, its LPID, and 4 KiB ([`PAGE`]): the fixed form of OX 7.2.1. LPID n of a namespace is its n-th 4 KiB,
//! so that ordinary commands reach the same data.
//!
//! [`LSS_FLUSH`](crate::vendor::LSS_FLUSH): CDW10 15:0 is the length of the buffer in [`PAGE`]s, counted from zero; CDW12 30 is
//! Force Unit Access. The data is the buffer: a [`Head`], an [`Entry`] for each page, and from [`METADATA`] on the pages, each where
//! its entry places it. After a power cut all pages of a buffer are present, or none, and no reader sees a page of an
//! incomplete buffer. Of two entries with one LPID the later one counts.
//!
//! [`BATCHED_READ`](crate::vendor::BATCHED_READ): CDW10 15:0 is the number of pages, counted from zero. It moves data both ways: the
//! host sends [`LIST`] bytes with the LPIDs, 8 bytes each. The controller returns as many bytes, in which the place of
//! each LPID has the bytes of its page, 0 if it was never written. Then the pages follow, one after the other; a page
//! that was never written is zeros.
//!
//! Pages of other lengths, and chains of deltas (OX 7.2.1, the second and third form), are in [`pieces`](crate::pieces).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a logical page.
pub const PAGE: usize = 4_096;
/// Bytes at the beginning of a buffer that are not for pages, used or not: a buffer of 1 MiB has 252 pages (OX 7.3.1).
pub const METADATA: usize = 16 << 10;
/// The most pages of a buffer.
pub const MOST_PAGES: usize = (METADATA - size_of::<Head>()) / size_of::<Entry>();
/// The first bytes of a buffer.
pub const MAGIC: [u8; 4] = *b"LSSB";
/// The version of its form.
pub const VERSION: u16 = 1;
/// Bytes of the list of a batched read, used or not.
pub const LIST: usize = 4_096;
/// The most pages of a batched read.
pub const MOST_BATCHED: usize = LIST / size_of::<u64>();

/// How a buffer begins.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Head {
    /// [`MAGIC`] (3:0).
    pub magic: [u8; 4],
    /// [`VERSION`] (5:4).
    pub version: U16,
    /// Zero (7:6).
    pub reserved_6: U16,
    /// Pages, at least one (11:8).
    pub pages: U32,
    /// Zero (15:12).
    pub reserved_12: U32,
}

/// A page of a buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// Its logical page (7:0).
    pub lpid: U64,
    /// Its beginning in bytes from the beginning of the buffer, at least [`METADATA`] (11:8).
    pub offset: U32,
    /// Its bytes: [`PAGE`] (15:12).
    pub bytes: U32,
}

const _: () = assert!(size_of::<Head>() == 16 && size_of::<Entry>() == 16);

impl Head {
    /// That of a buffer with some pages.
    pub fn of(pages: u32) -> Head {
        Head { magic: MAGIC, version: VERSION.into(), pages: pages.into(), ..Head::default() }
    }

    /// The pages of the buffer that begins so; `None` if it is no buffer of this form.
    pub fn pages(&self) -> Option<usize> {
        let is_valid = *self == Head::of(self.pages.get());
        let pages = self.pages.get() as usize;
        (is_valid && (1..=MOST_PAGES).contains(&pages)).then_some(pages)
    }
}

/// Pages that a buffer of `bytes` has room for.
pub const fn room(bytes: usize) -> usize {
    let pages = bytes.saturating_sub(METADATA) / PAGE;
    if pages < MOST_PAGES { pages } else { MOST_PAGES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_a_mebibyte_has_the_pages_of_the_thesis() {
        assert_eq!((room(1 << 20), room(METADATA), room(0), room(16 << 20)), (252, 0, 0, MOST_PAGES));
    }

    #[test]
    fn a_head_is_valid_as_a_whole() {
        assert_eq!(Head::of(252).pages(), Some(252));
        assert_eq!(Head::of(0).pages(), None);
        assert_eq!(Head::of(MOST_PAGES as u32 + 1).pages(), None);
        assert_eq!(Head { version: 2.into(), ..Head::of(1) }.pages(), None);
        assert_eq!(Head { reserved_6: 1.into(), ..Head::of(1) }.pages(), None);
        assert_eq!(Head { magic: *b"LSSA", ..Head::of(1) }.pages(), None);
        assert_eq!(Head::of(3).as_bytes(), b"LSSB\x01\0\0\0\x03\0\0\0\0\0\0\0");
    }
}
