//! `[wear]`: how the flash ages, and how old it is.

use nandscape_sim::Span;
use nandscape_sim::units::Ratio;

use super::KeyDoc;
use crate::aging_values::{Age, ErrorModel};
use crate::values::Text;

section! {
    /// How the flash ages, and how old it is. Without any of these keys it does not age.
    AgingKeys at "wear" {
        /// The [raw bit error rate](techniques/aging.md) by erases, hours since the program, and reads of the block for each
        /// of its pages: `"tlc-72-layers"`, `"qlc-from-tlc"`; nine numbers, base, a, k, b, m, n, c, p, q of `base + a e^k +
        /// b e^m t^n + c e^p r^q`; or `"none"`. Left out, flash of tlc and qlc has its model if another key of `wear` is
        /// given, else none. Without a model bits do not fail; `erase_growth`, `erase_failures`, `program_failures`,
        /// `failure_shape`, `cycles` and `cycles_spread` are valid then.
        rber: ErrorModel,
        /// Errors of a codeword (`timing.ecc.codeword`) that are corrected: `288`. Left out, 72 for each KiB; of qlc, 115.
        correctable: u32,
        /// Retries of a page that could not be corrected, at other voltages, 0 to 16: `8`. A retry takes
        /// `timing.read_retry.time` in addition to sensing, a transfer and decoding.
        retry_steps: u32,
        /// The share of the errors of retention and disturb that is left after each retry: `"50%"`.
        retry_keeps: Text<Ratio>,
        /// Factors of the error rate of each page type, from the lowest: `[0.86, 1.28, 0.86]`.
        page_types: Vec<f64>,
        /// By how much the error rate is higher in the first and last layer of a block than in its mean, up to `"100%"`.
        layer_spread: Text<Ratio>,
        /// Standard deviation of the logarithm of the error rate from block to block: `"20%"`.
        block_spread: Text<Ratio>,
        /// The same from die to die: not all chips are equal.
        die_spread: Text<Ratio>,
        /// By how much longer an erase takes after `timing.rated_erases`: `"50%"`. It grows in proportion to the erases.
        erase_growth: Text<Ratio>,
        /// Share of the blocks that fail to be erased within `timing.rated_erases`: `"1%"`. They go bad, before the run too.
        erase_failures: Text<Ratio>,
        /// Share of the blocks in which a program fails within `timing.rated_erases`: `"1%"`. They go bad, before the run too.
        program_failures: Text<Ratio>,
        /// How failures grow with erases: the exponent of a Weibull distribution, 0.1 to 20; 1 is a constant rate: `3`.
        failure_shape: f64,
        /// The share of the error rate that can be corrected at which a block is written anew, with `ftl.kind = "page"`: `"80%"`, by what
        /// is known of its erases, its age and its reads, and with `scrub` by the errors of its pages. 0 is never.
        refresh: Text<Ratio>,
        /// In which time each block is read once, with `ftl.kind = "page"` and `refresh`: `"60s"`. Left out or 0, blocks are not read for
        /// that.
        scrub: Text<Span>,
        /// Time that a new drive was in use before a run: `"18months"`, `"2years"`, `"90days"` or `"12h"`. A drive in a file
        /// or from a state has its own age.
        age: Text<Age>,
        /// Writes of the whole capacity on each day of `age`, 0 to 1000: `1`.
        writes_per_day: f64,
        /// Write amplification of the time before a run, 1 to 1000: `1`. It multiplies the erases that follow from
        /// `writes_per_day`, and divides the host writes that SMART reports for `cycles`.
        write_amplification: f64,
        /// Reads of the whole capacity on each day of `age`, 0 to 1000: `1`. The present data was read at this rate since it
        /// was written.
        reads_per_day: f64,
        /// Erases of each block when a run begins, in the mean: `1500`. Left out, those of `age`, `writes_per_day` and
        /// `write_amplification`.
        cycles: u32,
        /// Standard deviation of the erases of blocks, as a share of their mean: `"5%"`.
        cycles_spread: Text<Ratio>,
        /// For how long the drive has lain without power after that: `"3months"`. All data is at least as old.
        shelf: Text<Age>,
    }
}
