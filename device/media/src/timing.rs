//! The times of the flash.

use nandscape_sim::Span;
use nandscape_sim::units::Rate;

use crate::cell::Cell;
use crate::features::{Features, ProgramUnit};

/// Page registers of a plane (FEMU Fig. 3).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Registers {
    /// A data register only: an operation keeps the plane until its transfer has ended.
    Single,
    /// A data and a cache register: a transfer overlaps the array's next operation.
    Double,
}

/// The times of a kind of flash, as a profile gives them.
#[derive(Clone, PartialEq, Debug)]
pub struct Timing {
    /// Bits of a cell.
    pub cell: Cell,
    /// tR: sensing a page, for each page type.
    pub read: Vec<Span>,
    /// tPROG: programming a page, for each page type.
    pub program: Vec<Span>,
    /// tBERS: erasing a block.
    pub erase: Span,
    /// The channel's data rate.
    pub bus: Rate,
    /// Page registers of a plane.
    pub registers: Registers,
    /// Whether a read moves only the requested units over the channel, or always the whole page.
    pub partial_transfer: bool,
    /// Options beyond the plain operations.
    pub features: Features,
}

impl Timing {
    /// Pages of a block that are programmed at once: those of a word line, or one.
    pub fn pages_per_program(&self) -> u32 {
        match self.features.program_unit {
            ProgramUnit::Page => 1,
            ProgramUnit::WordLine => self.cell.page_types() as u32,
        }
    }
}

/// The times, looked up by page number within a block.
pub(crate) struct PageTimes {
    read: Vec<Span>,
    program: Vec<Span>,
}

impl PageTimes {
    pub(crate) fn new(timing: &Timing, pages_per_block: u32) -> PageTimes {
        let pattern = timing.cell.pattern(pages_per_block);
        let by_page = |times: &[Span]| pattern.iter().map(|&kind| times[usize::from(kind)]).collect();
        PageTimes { read: by_page(&timing.read), program: by_page(&timing.program) }
    }

    #[inline]
    pub(crate) fn read(&self, page_in_block: u32) -> Span {
        self.read[page_in_block as usize]
    }

    #[inline]
    pub(crate) fn program(&self, page_in_block: u32) -> Span {
        self.program[page_in_block as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing() -> Timing {
        let us = |times: &[u64]| times.iter().copied().map(Span::from_us).collect();
        Timing {
            cell: Cell::Tlc,
            read: us(&[56, 77, 106]),
            program: us(&[820, 2_225, 5_734]),
            erase: Span::from_us(3_000),
            bus: Rate::new(4_096, Span::from_us(52)),
            registers: Registers::Double,
            partial_transfer: true,
            features: Features::default(),
        }
    }

    #[test]
    fn each_page_has_the_times_of_its_type() {
        let times = PageTimes::new(&timing(), 5);
        let of =
            |time: fn(&PageTimes, u32) -> Span| (0..5).map(|page| time(&times, page).ns() / 1_000).collect::<Vec<_>>();
        assert_eq!(of(PageTimes::read), [56, 77, 106, 56, 77]);
        assert_eq!(of(PageTimes::program), [820, 2_225, 5_734, 820, 2_225]);
    }
}
