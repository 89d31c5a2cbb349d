//! The raw bit error rate (RBER) of flash by its erases, the age of its data and the reads of its block.
//!
//! Left out: temperature, whose effect on retention is included in the hours of the model.

use crate::cell::Cell;

/// A model of the error rate: `base + a e^k + b e^m t^n + c e^p r^q`, with `e` erases, `t` hours since the program, and
/// `r` reads of the block for each of its pages. The terms are those of B. S. Kim, J. Choi and S. L. Min, "Design
/// Tradeoffs for SSD Reliability", FAST 2019: wear, loss of charge over time, and disturb by reads.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct ErrorRates {
    /// Errors of a new block.
    pub base: f64,
    /// Factor and exponent of wear: a, k.
    pub wear: (f64, f64),
    /// Factor, exponent of erases and exponent of hours: b, m, n.
    pub retention: (f64, f64, f64),
    /// Factor, exponent of erases and exponent of reads: c, p, q.
    pub disturb: (f64, f64, f64),
}

impl ErrorRates {
    /// The TLC chip of 72 layers of the paper. We have its constants, and that its time is in hours, from a transcription.
    pub const TLC_72_LAYERS: ErrorRates = ErrorRates {
        base: 1.48e-3,
        wear: (3.90e-10, 2.05),
        retention: (6.28e-5, 0.14, 0.54),
        disturb: (3.73e-9, 0.33, 1.71),
    };

    /// QLC, derived from [`ErrorRates::TLC_72_LAYERS`], because we know of no published constants for QLC. There are
    /// two assumptions, both ours. At the same share of its rated erases ([`Cell::rated_erases`]) a cell is misread at
    /// each boundary between two states with the same probability. A misread cell has one wrong bit (Gray code). An
    /// erase therefore counts as three of TLC, and a bit has 45/28 of the errors: 15 boundaries for four bits, against
    /// 7 for three. Three digits.
    pub const QLC_FROM_TLC: ErrorRates = ErrorRates {
        base: 2.38e-3,
        wear: (5.96e-9, 2.05),
        retention: (1.18e-4, 0.14, 0.54),
        disturb: (8.61e-9, 0.33, 1.71),
    };

    /// Cells without errors.
    pub const ERROR_FREE: ErrorRates =
        ErrorRates { base: 0.0, wear: (0.0, 0.0), retention: (0.0, 0.0, 0.0), disturb: (0.0, 0.0, 0.0) };

    /// All models with names.
    pub const ALL: [(&str, ErrorRates); 2] =
        [("tlc-72-layers", ErrorRates::TLC_72_LAYERS), ("qlc-from-tlc", ErrorRates::QLC_FROM_TLC)];

    /// The model of a kind of cell; `None` for cells without published figures.
    pub fn of_cell(cell: Cell) -> Option<ErrorRates> {
        match cell {
            Cell::Tlc => Some(ErrorRates::TLC_72_LAYERS),
            Cell::Qlc => Some(ErrorRates::QLC_FROM_TLC),
            Cell::Slc | Cell::Mlc => None,
        }
    }

    /// A model of nine numbers: base, a, k, b, m, n, c, p, q.
    pub fn of(numbers: [f64; 9]) -> ErrorRates {
        let [base, a, k, b, m, n, c, p, q] = numbers;
        ErrorRates { base, wear: (a, k), retention: (b, m, n), disturb: (c, p, q) }
    }

    /// The numbers of [`ErrorRates::of`].
    pub fn numbers(&self) -> [f64; 9] {
        let ((a, k), (b, m, n), (c, p, q)) = (self.wear, self.retention, self.disturb);
        [self.base, a, k, b, m, n, c, p, q]
    }

    /// The rate of errors that other voltages do not remove (base and wear), and of those that they remove (retention
    /// and disturb). `reads` is reads of the block for each of its pages.
    pub fn parts(&self, erases: u32, hours: f64, reads: f64) -> (f64, f64) {
        let erases = f64::from(erases);
        let power = |of: f64, exponent: f64| libm::pow(of, exponent);
        let ((a, k), (b, m, n), (c, p, q)) = (self.wear, self.retention, self.disturb);
        let floor = self.base + a * power(erases, k);
        // In the literal model, a block that was never erased loses no data; one erase is the minimum here.
        let erases = erases.max(1.0);
        (floor, b * power(erases, m) * power(hours, n) + c * power(erases, p) * power(reads, q))
    }

    /// The rate of all errors.
    pub fn rber(&self, erases: u32, hours: f64, reads: f64) -> f64 {
        let (floor, shift) = self.parts(erases, hours, reads);
        floor + shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terms, worked out by hand at a point of each.
    #[test]
    fn the_terms_are_those_of_the_formula() {
        let rates = ErrorRates::TLC_72_LAYERS;
        let close = |one: f64, other: f64| assert!((one / other - 1.0).abs() < 1e-9, "{one} is not {other}");
        close(rates.rber(0, 0.0, 0.0), 1.48e-3);
        close(rates.rber(1_000, 0.0, 0.0), 1.48e-3 + 3.90e-10 * libm::pow(1_000.0, 2.05));
        let retention = 6.28e-5 * libm::pow(1_000.0, 0.14) * libm::pow(720.0, 0.54);
        close(rates.parts(1_000, 720.0, 0.0).1, retention);
        let disturb = 3.73e-9 * libm::pow(1_000.0, 0.33) * libm::pow(500.0, 1.71);
        close(rates.parts(1_000, 0.0, 500.0).1, disturb);
        assert_eq!(ErrorRates::of(rates.numbers()), rates);
    }

    /// A cell of QLC has 15 boundaries for four bits, one of TLC 7 for three, and wears out in a third of the erases.
    #[test]
    fn worn_qlc_errs_more_than_tlc_at_the_same_share_of_its_rated_erases() {
        let (qlc, tlc) = (ErrorRates::QLC_FROM_TLC, ErrorRates::TLC_72_LAYERS);
        let erases_of_tlc = Cell::Tlc.rated_erases() / Cell::Qlc.rated_erases();
        for (erases, hours, reads) in [(1, 0.0, 0.0), (500, 24.0, 0.0), (1_000, 0.0, 0.0), (1_000, 8_760.0, 2_000.0)] {
            let (worn, denser) = (tlc.rber(erases * erases_of_tlc, hours, reads), (15.0 / 4.0) / (7.0 / 3.0));
            let ratio = qlc.rber(erases, hours, reads) / worn;
            assert!((ratio / denser - 1.0).abs() < 5e-3, "{erases} erases: {ratio} times the errors, not {denser}");
        }
        let rated = |cell: Cell| ErrorRates::of_cell(cell).expect("it has a model").rber(cell.rated_erases(), 0.0, 0.0);
        assert!(rated(Cell::Qlc) > 1.5 * rated(Cell::Tlc));
        assert_eq!((ErrorRates::of_cell(Cell::Slc), ErrorRates::of_cell(Cell::Mlc)), (None, None));
    }

    /// The shapes on which flash measurements agree: each cause adds errors, wear more than proportionally, retention most in
    /// the first days.
    #[test]
    fn errors_grow_with_wear_time_and_reads() {
        let rates = ErrorRates::TLC_72_LAYERS;
        let wear = |erases| rates.rber(erases, 0.0, 0.0) - rates.base;
        assert!(wear(2_000) > 2.0 * wear(1_000));
        let loss = |hours| rates.parts(3_000, hours, 0.0).1;
        assert!(loss(240.0) > loss(24.0) && loss(48.0) - loss(24.0) < loss(24.0));
        assert!(rates.rber(3_000, 24.0, 1e4) > rates.rber(3_000, 24.0, 1e3));
        assert!(loss(24.0) > rates.parts(1_000, 24.0, 0.0).1, "worn cells lose charge faster");
    }
}
