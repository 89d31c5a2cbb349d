//! How long operations of flash take: as the vendor specifies them at first, and then as they are measured (Li 3.1.7, 6.1).

use nandscape_sim::Span;

/// Parts of a new measurement that go into what is known.
const SHARE: i64 = 8;

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct FlashTimes {
    /// Sensing a page, by its number in a block.
    pub read: Vec<Span>,
    /// Programming a page, by its number in a block: the page-type table.
    pub program: Vec<Span>,
    /// Erasing a block.
    pub erase: Span,
    /// Moving 4,096 bytes over a channel.
    pub transfer: Span,
    /// Channel time of the command itself.
    pub command: Span,
    /// From the completion of a read's last page to that of the read, and from its submission to its first page: controller and link.
    pub overhead: Span,
}

impl FlashTimes {
    /// Sensing a page.
    pub fn sense(&self, page: u32) -> Span {
        self.read.get(page as usize).copied().unwrap_or_default()
    }

    /// Moving bytes over a channel.
    pub fn moving(&self, bytes: u32) -> Span {
        if bytes == 0 {
            return Span::ZERO;
        }
        self.command + Span::from_ns(self.transfer.ns().saturating_mul(bytes.into()) / 4_096)
    }

    /// Programming pages at once, from one number in their block to another.
    pub fn programming(&self, first: u32, last: u32) -> Span {
        let all = self.program.get(first as usize..=last as usize).unwrap_or_default();
        all.iter().copied().max().unwrap_or_default()
    }

    /// The same times with one for all pages to program: their mean.
    #[must_use]
    pub fn without_page_types(mut self) -> FlashTimes {
        let mean = self.program.iter().copied().sum::<Span>() / (self.program.len() as u64).max(1);
        self.program.iter_mut().for_each(|time| *time = mean);
        self
    }
}

/// What is known after a measurement.
pub(super) fn renewed(known: Span, measured: Span) -> Span {
    let change = (measured.ns() as i64).saturating_sub(known.ns() as i64) / SHARE;
    Span::from_ns(known.ns().saturating_add_signed(change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_followed_and_bad_numbers_are_no_pages() {
        let mut known = Span::from_us(500);
        (0..200).for_each(|_| known = renewed(known, Span::from_us(300)));
        assert!(known < Span::from_us(301), "{known}");
        let us = Span::from_us;
        let times = FlashTimes {
            read: vec![us(40)],
            program: vec![us(100), us(300)],
            erase: us(2_000),
            transfer: us(4),
            command: us(1),
            overhead: us(5),
        };
        assert_eq!((times.moving(8_192), times.moving(0)), (us(9), us(0)));
        assert_eq!((times.programming(0, 1), times.programming(7, 7), times.sense(9)), (us(300), us(0), us(0)));
        assert_eq!(times.without_page_types().program, [us(200), us(200)]);
    }
}
