//! Options of the flash and of its controller beyond reading, programming and erasing page by page.
//!
//! All options are off by default and then take no time. docs/techniques/nand-timing.md gives the cost of each step.

use nandscape_sim::units::Rate;
use nandscape_sim::{Seed, Span};

use crate::interleave::Interleaving;

/// Which operations the planes of a die can do concurrently.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum PlaneMode {
    /// Planes work independently.
    #[default]
    Independent,
    /// One operation at a time on the whole die.
    Die,
    /// As `Die`, and pages of the same number on several planes can be read or programmed together.
    MultiPlane,
}

impl PlaneMode {
    /// All modes, by their names in profiles.
    pub const ALL: [(&str, PlaneMode); 3] =
        [("independent", PlaneMode::Independent), ("die", PlaneMode::Die), ("multi_plane", PlaneMode::MultiPlane)];
}

/// The pages of a block that one program command programs.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum ProgramUnit {
    /// A page.
    #[default]
    Page,
    /// All pages of a word line at once.
    WordLine,
}

impl ProgramUnit {
    /// All units, by their names in profiles.
    pub const ALL: [(&str, ProgramUnit); 2] = [("page", ProgramUnit::Page), ("word_line", ProgramUnit::WordLine)];
}

/// Error correction of read data.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Ecc {
    /// Decoding one codeword; zero is no error correction.
    pub time: Span,
    /// Bytes of a codeword.
    pub codeword: u32,
    /// Decoders of the drive, which the channels share; 0 is no limit.
    pub engines: u32,
    /// Whether codewords are decoded as they come off the channel, or after the whole transfer.
    pub pipelined: bool,
}

impl Ecc {
    /// Time from the end of the transfer of `bytes` until they are decoded.
    pub(crate) fn tail(&self, bytes: u32, bus: Rate) -> Span {
        let codewords = u64::from(bytes.div_ceil(self.codeword));
        match self.pipelined {
            false => self.time * codewords,
            true => {
                let behind = self.time.saturating_sub(bus.time_for(self.codeword.into()));
                self.time + behind * codewords.saturating_sub(1)
            }
        }
    }
}

/// Repeated reads, at other voltages, of pages that could not be corrected.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ReadRetry {
    /// Shares of the pages that need one retry, two, and so on.
    pub probability: Vec<f64>,
    /// Array time of a retry in addition to sensing.
    pub time: Span,
}

impl ReadRetry {
    /// How many retries a page needs until its block is erased again.
    pub(crate) fn count(&self, seed: Seed, page: u32, erases: u32) -> u32 {
        let draw = seed.nth(page.into()).nth(erases.into()).rng().unit();
        let mut sum = 0.0;
        let within = |share: &f64| {
            sum += share;
            draw < sum
        };
        self.probability.iter().position(within).map_or(0, |index| index as u32 + 1)
    }
}

/// Interrupting programs and erases for reads.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Suspend {
    /// Time from the suspend command of a program until the array is free; `None` where programs cannot be suspended.
    pub program: Option<Span>,
    /// The same for an erase.
    pub erase: Option<Span>,
    /// Time from the resume command until the operation continues.
    pub resume: Span,
    /// The shortest time that an operation runs before each suspension.
    pub min_run: Span,
    /// The most suspensions of an operation; `None` is no limit.
    pub limit: Option<u32>,
}

/// All options.
#[derive(Clone, PartialEq, Debug)]
pub struct Features {
    /// Command and address cycles of a command, on the channel.
    pub command: Span,
    /// The concurrency of the planes of a die.
    pub planes: PlaneMode,
    /// What one program command programs.
    pub program_unit: ProgramUnit,
    /// When a LUN may program again.
    pub interleaving: Interleaving,
    /// With two registers: whether a page is transferred out while the array works.
    pub cache_read: bool,
    /// With two registers: whether a page is loaded while the array works.
    pub cache_program: bool,
    /// Error correction.
    pub ecc: Ecc,
    /// Read retry.
    pub read_retry: ReadRetry,
    /// Suspension.
    pub suspend: Suspend,
}

impl Default for Features {
    fn default() -> Features {
        Features {
            command: Span::ZERO,
            planes: PlaneMode::default(),
            program_unit: ProgramUnit::default(),
            interleaving: Interleaving::default(),
            cache_read: true,
            cache_program: true,
            ecc: Ecc::default(),
            read_retry: ReadRetry::default(),
            suspend: Suspend::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked out as a line of two machines, channel and decoder, codeword by codeword.
    #[test]
    fn the_tail_of_decoding_is_that_of_a_line_of_two_machines() {
        let bus = Rate::new(1_024, Span::from_ns(700));
        for (time, codeword, bytes) in [(500, 1_024, 4_096), (900, 1_024, 4_096), (700, 2_048, 3_000), (40, 4_096, 1)] {
            let codewords = u64::from(u32::div_ceil(bytes, codeword));
            let each = bus.time_for(codeword.into()).ns();
            let (mut decoded, mut arrived) = (0, 0);
            for _ in 0..codewords {
                arrived += each;
                decoded = u64::max(decoded, arrived) + time;
            }
            let ecc = Ecc { time: Span::from_ns(time), codeword, engines: 0, pipelined: true };
            assert_eq!(ecc.tail(bytes, bus).ns(), decoded - arrived, "{time} ns, {bytes} bytes");
            let ecc = Ecc { pipelined: false, ..ecc };
            assert_eq!(ecc.tail(bytes, bus).ns(), codewords * time);
        }
    }

    /// The shares of pages come out, within five standard deviations; a page keeps its number until it is erased.
    #[test]
    fn pages_need_retries_in_the_shares_given() {
        let retry = ReadRetry { probability: vec![0.2, 0.05], time: Span::ZERO };
        let seed = Seed::new(1);
        let mut counts = [0u32; 3];
        let pages = 100_000;
        for page in 0..pages {
            counts[retry.count(seed, page, 3) as usize] += 1;
        }
        for (count, share) in counts.into_iter().zip([0.75, 0.2, 0.05]) {
            let (mean, variance) = (f64::from(pages) * share, f64::from(pages) * share * (1.0 - share));
            assert!((f64::from(count) - mean).abs() < 5.0 * variance.sqrt(), "{count} instead of {mean}");
        }
        assert!((0..100).all(|page| retry.count(seed, page, 3) == retry.count(seed, page, 3)));
        assert!((0..100).any(|page| retry.count(seed, page, 3) != retry.count(seed, page, 4)));
        assert_eq!(ReadRetry::default().count(seed, 7, 0), 0);
    }
}
