//! The error rate of the model compared with published figures of other chips. Nothing here is fitted: a row that
//! misses stays in the table of `docs/validation/aging.md` as a miss, and this test keeps the two the same.
//!
//! Left out: curves of which we have not seen numbers.

use nandscape_device_media::aging::{Correction, ErrorRates};

/// A figure: its name, the range that counts as the published one, the model's figure, and whether that is inside.
struct Row {
    what: &'static str,
    published: (f64, f64),
    model: f64,
    holds: bool,
}

const RATES: ErrorRates = ErrorRates::TLC_72_LAYERS;
const YEAR: f64 = 8_760.0;
/// 72 errors of 1 KiB, four codewords of a page, and eight retries that leave half of the shift errors.
const CORRECTION: Correction = Correction { bits: 8 << 10, correctable: 72, codewords: 4 };

fn shift(erases: u32, hours: f64) -> f64 {
    RATES.parts(erases, hours, 0.0).1
}

/// The share of pages that no retry corrects.
fn lost(erases: u32, hours: f64, reads: f64) -> f64 {
    let (floor, shift) = RATES.parts(erases, hours, reads);
    CORRECTION.page_fails(floor + shift * libm::pow(0.5, 8.0))
}

fn rows() -> Vec<Row> {
    let (three_hours, days) = (3.0, 11.0 * 24.0);
    let row = |what, published, model, holds| Row { what, published, model, holds };
    vec![
        // Luo et al., SIGMETRICS 2018: "another order of magnitude by 11 days" at 10,000 erases, after three hours.
        row(
            "growth by retention, 3 hours to 11 days",
            (7.0, 14.0),
            shift(10_000, days) / shift(10_000, three_hours),
            true,
        ),
        row(
            "growth of all errors in that time",
            (7.0, 14.0),
            RATES.rber(10_000, days, 0.0) / RATES.rber(10_000, three_hours, 0.0),
            false,
        ),
        // The same: an order of magnitude in about three hours, from the first reading after seven minutes on.
        row(
            "growth by retention, 7 minutes to 3 hours",
            (7.0, 14.0),
            shift(10_000, 3.0) / shift(10_000, 7.0 / 60.0),
            false,
        ),
        // Hetzler, 2012, Figure 3: 3x nm MLC.
        row(
            "a year at 3,000 erases over new",
            (1e4, 4e4),
            RATES.rber(3_000, YEAR, 0.0) / RATES.rber(1, 0.0, 0.0),
            false,
        ),
        // Schroeder et al., FAST 2016: linear in the erases. The second half of the rated erases adds as much as the first.
        row(
            "errors of the second half of 3,000 erases over those of the first",
            (0.8, 1.25),
            (RATES.rber(3_000, 0.0, 0.0) - RATES.rber(1_500, 0.0, 0.0))
                / (RATES.rber(1_500, 0.0, 0.0) - RATES.rber(0, 0.0, 0.0)),
            false,
        ),
        // Sheldon and Freie, JPL 08-7, 2008: 100,000 reads of a block of MLC are within what makers advise; 256 pages.
        row(
            "pages lost after 100,000 reads of a block, 1,000 erases",
            (0.0, 1e-12),
            lost(1_000, 0.0, 1e5 / 256.0),
            true,
        ),
        // The same: none failed after a million reads of new flash.
        row("pages lost after 1,000,000 reads of a new block", (0.0, 1e-12), lost(0, 0.0, 1e6 / 256.0), true),
        // JESD218B, Table 1, client: a year at the end of the rated erases with 1e-15 errors a bit; a page of 4 KiB.
        row("pages lost after a year at 3,000 erases", (0.0, 3.3e-11), lost(3_000, YEAR, 0.0), false),
    ]
}

#[test]
fn the_error_rate_beside_published_figures() {
    let page = include_str!("../../../../docs/validation/aging.md");
    for Row { what, published: (low, high), model, holds } in rows() {
        assert_eq!((low..=high).contains(&model), holds, "{what}: {model}, published {low} to {high}");
        let shown =
            if model != 0.0 && !(1e-3..1e4).contains(&model) { format!("{model:.1e}") } else { format!("{model:.3}") };
        let line = page.lines().find(|line| line.starts_with(&format!("| {what} |")));
        let line = line.unwrap_or_else(|| panic!("docs/validation/aging.md has no row \"{what}\""));
        let verdict = if holds { "| holds |" } else { "| **missed** |" };
        assert!(
            line.contains(&format!("| {shown} |")) && line.contains(verdict),
            "{what} is {shown}, {verdict}: {line}"
        );
    }
}
