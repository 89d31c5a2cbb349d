//! Page types: which pages of a block are fast and which are slow.
//!
//! A cell of n bits is read and programmed as n pages, each with its own type. Makers choose how page numbers map to
//! types. SLC has one type. MLC uses the pattern of the drive that FEMU was validated against (FEMU 3.2.3; Li 3.1.7,
//! where only the string of 512 digits fills a block). TLC and QLC take their types in turn, page by page.

/// Bits of a cell.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cell {
    /// One bit.
    Slc,
    /// Two bits: lower and upper pages.
    Mlc,
    /// Three bits: lower, middle and upper pages.
    Tlc,
    /// Four bits.
    Qlc,
}

/// Head of the MLC pattern: pages 0 to 9; 0 is lower, 1 is upper.
const MLC_HEAD: [u8; 10] = [0, 0, 0, 0, 0, 0, 1, 0, 0, 1];
/// The pattern between head and tail, repeated.
const MLC_MIDDLE: [u8; 4] = [0, 0, 1, 1];
/// Tail of the MLC pattern: the last ten pages.
const MLC_TAIL: [u8; 10] = [0, 0, 1, 1, 0, 0, 1, 0, 0, 1];

impl Cell {
    /// Number of page types.
    pub const fn page_types(self) -> usize {
        match self {
            Cell::Slc => 1,
            Cell::Mlc => 2,
            Cell::Tlc => 3,
            Cell::Qlc => 4,
        }
    }

    /// How often a block can be erased before it is worn out, where a data sheet does not rate it: the order of magnitude
    /// of the cell.
    pub const fn rated_erases(self) -> u32 {
        match self {
            Cell::Slc => 100_000,
            Cell::Mlc => 10_000,
            Cell::Tlc => 3_000,
            Cell::Qlc => 1_000,
        }
    }

    /// The name in profiles.
    pub const fn name(self) -> &'static str {
        match self {
            Cell::Slc => "slc",
            Cell::Mlc => "mlc",
            Cell::Tlc => "tlc",
            Cell::Qlc => "qlc",
        }
    }

    /// The type of each page of a block, from 0, the lowest and fastest.
    ///
    /// MLC blocks of other than 512 pages keep head and tail, and repeat the middle as often as it fits. Blocks of
    /// fewer than 20 pages keep as much of head and tail as fits.
    pub fn pattern(self, pages_per_block: u32) -> Vec<u8> {
        let pages = pages_per_block as usize;
        match self {
            Cell::Mlc => (0..pages).map(|page| mlc(page, pages)).collect(),
            _ => (0..pages).map(|page| (page % self.page_types()) as u8).collect(),
        }
    }
}

fn mlc(page: usize, pages: usize) -> u8 {
    let from_end = pages - 1 - page;
    match page {
        page if page < MLC_HEAD.len() => MLC_HEAD[page],
        _ if from_end < MLC_TAIL.len() => MLC_TAIL[MLC_TAIL.len() - 1 - from_end],
        page => MLC_MIDDLE[(page - MLC_HEAD.len()) % MLC_MIDDLE.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole table of 512, from the string "11111121121122...2112" with 1122 between (claim `femu-registers`).
    #[test]
    fn the_mlc_pattern_is_the_one_of_the_papers() {
        let string: String = ["1111112112", &"1122".repeat(123), "1122112112"].concat();
        let expected: Vec<u8> = string.bytes().map(|digit| digit - b'1').collect();
        let pattern = Cell::Mlc.pattern(512);
        assert_eq!((pattern.len(), &pattern), (512, &expected));
        let lower = |page: usize| pattern[page] == 0;
        assert!((0..6).chain(7..9).chain([502, 503, 506, 507, 509, 510]).all(lower));
        assert!(![6, 9, 504, 505, 508, 511].into_iter().any(lower));
    }

    /// Head and tail stay where they are as blocks grow; small blocks have as much as fits, the head first.
    #[test]
    fn mlc_blocks_of_other_sizes_keep_head_and_tail() {
        let (head, tail) = ("1111112112", "1122112112");
        for pages in [20, 21, 22, 24, 64, 256, 768, 1_024] {
            let middle: String = "1122".chars().cycle().take(pages - 20).collect();
            let expected: Vec<u8> = [head, &middle, tail].concat().bytes().map(|digit| digit - b'1').collect();
            assert_eq!(Cell::Mlc.pattern(pages as u32), expected, "{pages} pages");
        }
        for pages in 4..20 {
            let (first, last) = (pages.min(10), pages.max(10) - 10);
            let expected: Vec<u8> =
                [&head[..first], &tail[10 - last..]].concat().bytes().map(|digit| digit - b'1').collect();
            assert_eq!(Cell::Mlc.pattern(pages as u32), expected, "{pages} pages");
        }
    }

    /// Word by word: each group of as many pages as the cell has bits holds each type once, the fastest first.
    #[test]
    fn other_cells_take_their_types_in_turn() {
        assert_eq!(Cell::Slc.pattern(3), [0, 0, 0]);
        assert_eq!(Cell::Tlc.pattern(5), [0, 1, 2, 0, 1]);
        assert_eq!(Cell::Qlc.pattern(5), [0, 1, 2, 3, 0]);
        for (cell, word) in [(Cell::Slc, &[0][..]), (Cell::Tlc, &[0, 1, 2]), (Cell::Qlc, &[0, 1, 2, 3])] {
            assert_eq!(cell.page_types(), word.len());
            assert!(cell.pattern(768).chunks(word.len()).all(|group| group == word), "{cell:?}");
        }
    }
}
