//! The times of flash operations: initially the vendor's specification, then measurements (Li 3.1.7, 6.1).

use nandscape_drive::flash::FlashSheet;
use nandscape_sim::Span;

/// The largest change that one measurement makes, as a fraction of the known time, and its lower bound. The known
/// time thereby follows the median: rare delays do not count, and one odd measurement does not cause all reads to be
/// rejected.
const PART: u64 = 32;
const LEAST: u64 = 250;
/// A measurement moves a mean by one part in this.
const OF_MEAN: i64 = 64;

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
    /// Mean excess of the time that a garbage collection step holds a chip, since it waits for the channel with each
    /// page.
    pub hold_waits: Span,
    /// The same of a program.
    pub program_waits: Span,
}

impl FlashTimes {
    /// From the vendor's data sheet, which has no times of controller and link.
    pub fn of(sheet: &FlashSheet) -> FlashTimes {
        let FlashSheet { read, program, erase, transfer, command, .. } = sheet.clone();
        FlashTimes {
            read,
            program,
            erase,
            transfer,
            command,
            overhead: Span::ZERO,
            hold_waits: Span::ZERO,
            program_waits: Span::ZERO,
        }
    }

    /// Sensing a page.
    pub fn sense(&self, page: u32) -> Span {
        self.read.get(page as usize).copied().unwrap_or_default()
    }

    /// An undelayed page took `took` to sense.
    pub(super) fn sensed(&mut self, page: u32, took: Span) {
        if let Some(known) = self.read.get_mut(page as usize) {
            *known = renewed(*known, took);
        }
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

/// The known wait after one that differed from it by `off` nanoseconds. Unlike the time of an operation it is a mean:
/// waits add up before a read, also the rare long ones.
pub(crate) fn averaged(known: Span, off: i64) -> Span {
    Span::from_ns(known.ns().saturating_add_signed(off / OF_MEAN))
}

/// The known time after a measurement.
pub(super) fn renewed(known: Span, measured: Span) -> Span {
    let most = (known.ns() / PART).max(LEAST);
    Span::from_ns(measured.ns().clamp(known.ns().saturating_sub(most), known.ns().saturating_add(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_followed_and_bad_numbers_are_no_pages() {
        let mut known = Span::from_us(500);
        (0..200).for_each(|_| known = renewed(known, Span::from_us(300)));
        assert!(known < Span::from_us(301), "{known}");
        let measured = |number: u64| Span::from_us(if number.is_multiple_of(10) { 5_000 } else { 300 });
        let rare = (0..1_000).fold(known, |known, number| renewed(known, measured(number)));
        assert!(rare < Span::from_us(320), "{rare}");
        assert!(renewed(Span::ZERO, Span::from_ms(40)) < Span::from_us(1), "one odd measurement");
        let mean = (0..4_000).fold(Span::ZERO, |known, number: u64| {
            let waited = if number.is_multiple_of(4) { 400_000 } else { 0 };
            averaged(known, waited - known.ns() as i64)
        });
        assert!((90..110).contains(&(mean.ns() / 1_000)), "a quarter of them waits for 400 us: {mean}");
        let us = Span::from_us;
        let times = FlashTimes {
            read: vec![us(40)],
            program: vec![us(100), us(300)],
            erase: us(2_000),
            transfer: us(4),
            command: us(1),
            overhead: us(5),
            hold_waits: us(0),
            program_waits: us(0),
        };
        assert_eq!((times.moving(8_192), times.moving(0)), (us(9), us(0)));
        assert_eq!((times.programming(0, 1), times.programming(7, 7), times.sense(9)), (us(300), us(0), us(0)));
        assert_eq!(times.without_page_types().program, [us(200), us(200)]);
    }
}
