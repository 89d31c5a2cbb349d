//! The formulas of TeaFA's windows, as drives compute them, with the thesis' example; and their values for its emulated drive.
//!
//! Left out: whether windows of these lengths serve their purpose, the subject of other claims.

use anyhow::{Context as _, Result};
use nandscape_device_ftl_core::windows::Collections;
use nandscape_device_ssd::Profile;

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Table, exact};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-window-formulas",
        source: &[(Paper::Li, "3.2.4, 3.2.5, Table 3.1")],
        says: "T_gc 0.2108 s; B_gc 455 MB/s; T_win between b x T_gc and 6.4 s at B_u 1 GB/s and 16 drives; N_d 3 from 455/121; four \
               planes: T_gc 0.25688 s, B_gc 1495 MB/s, N_d 12 at 5 DWPD and 21 at 3 DWPD",
        show: Some(
            "N_d in decimal TB; Table 3.1's T_gc 0.4 s and the text's 121 MB/s and 42 DWPD listed as inconsistent",
        ),
        ruling: None,
        check: Check::Exact,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[],
    awaits: &[],
    parameters: &[
        Parameter { what: "current share of a block", value: "25%", source: "Li 2020, table 3.1" },
        Parameter { what: "read, program, erase", value: "100 us, 1.5 ms, 6 ms", source: "Li 2020, table 3.1" },
        Parameter { what: "block", value: "512 pages, 8 MiB", source: "Li 2020, table 3.1" },
        Parameter { what: "channels", value: "16", source: "Li 2020, table 3.1" },
        Parameter { what: "space for new data", value: "100 GB, 5% of 2 TB", source: "Li 2020, table 3.1" },
        Parameter { what: "transfer of a 16 KiB page", value: "60 us", source: "Li 2020, 3.2.5" },
    ],
    choices: &[
        Choice { open: "T_gc", taken: "the formula; table 3.1 has 0.4 s", why: "0.2108 s gives the published B_gc" },
        Choice {
            open: "units of B_gc",
            taken: "2^20 bytes, with blocks of 8 MiB; for the bound of T_win one unit for all",
            why: "455 and 1495 are published, 478 and 1567 are the same in 10^6 bytes",
        },
        Choice {
            open: "N_d by drive writes per day",
            taken: "B_gc in 2^20 bytes over B_u in 10^6 bytes, of a drive of 2 x 10^12 bytes; in one unit is also shown",
            why: "only so 12 and 21 come out. The text's 121 MB/s at 5 DWPD is that of 2 TiB in 2^20 bytes, and 1 GB/s is 42 DWPD of \
                  2 TiB; in 2^20 bytes alone 3 DWPD give 20, in 10^6 alone 22",
        },
    ],
    points: || vec![Point::new(EXAMPLE, |_| Ok(example())), Point::new(DRIVE, |_| drive())],
    judge,
};

const EXAMPLE: &str = "table 3.1";
const DRIVE: &str = "the emulated drive";
const MIB: f64 = 1_048_576.0;
/// Names and published values.
const PUBLISHED: [(&str, &str, &str); 9] = [
    ("T_gc", "s", "0.2108"),
    ("B_gc", "MB/s", "455"),
    ("longest T_win, 16 drives at 1 GB/s", "s", "6.4"),
    ("shortest T_win, b = 1", "s", "0.2108"),
    ("N_d at 121 MB/s", "", "3"),
    ("T_gc, four planes", "s", "0.25688"),
    ("B_gc, four planes", "MB/s", "1,495"),
    ("N_d at 5 DWPD, four planes", "", "12"),
    ("N_d at 3 DWPD, four planes", "", "21"),
];

/// Table 3.1.
const PLAIN: Collections = Collections {
    valid: 0.25,
    read: 100e-6,
    program: 1_500e-6,
    erase: 6e-3,
    transfer: 60e-6,
    transfers: 0.0,
    pages: 512.0,
    block: 8.0 * MIB,
    at_a_time: 16.0,
};
/// 3.2.5: three further planes of each die send and receive a page each.
const FOUR_PLANES: Collections = Collections { transfers: 6.0, at_a_time: 64.0, ..PLAIN };

/// Bytes a second that write a drive of 2 TB a number of times a day.
fn drive_writes(per_day: f64) -> f64 {
    per_day * 2e12 / 86_400.0
}

fn example() -> Figures {
    let bounds = PLAIN.bounds(16.0, 1e9, 100e9, 1.0);
    // B_gc in 2^20 bytes and B_u in 10^6, as the thesis has them.
    let mixed = |user: f64| FOUR_PLANES.most_drives(user / 1e6 * MIB);
    let values = [
        PLAIN.time(),
        PLAIN.rate() / MIB,
        bounds.longest.unwrap_or(f64::INFINITY),
        bounds.shortest,
        PLAIN.most_drives(121.0 * MIB),
        FOUR_PLANES.time(),
        FOUR_PLANES.rate() / MIB,
        mixed(drive_writes(5.0)),
        mixed(drive_writes(3.0)),
    ];
    let mut figures = Figures::default();
    PUBLISHED.iter().zip(values).for_each(|((name, unit, _), value)| figures.add(*name, value, unit));
    for per_day in [5.0, 3.0] {
        let name = format!("N_d at {per_day} DWPD, four planes, 10^6 bytes alone");
        figures.add(name, FOUR_PLANES.most_drives(drive_writes(per_day)), "");
    }
    figures
}

/// The values that the drive of 3.6 reports for four drives.
fn drive() -> Result<Figures> {
    let rules = Profile::load("femu-teafa")?.resolve()?.windows().context("it has windows")?;
    let bounds = rules.bounds(4);
    let mut figures = Figures::default();
    figures.add("T_gc", rules.collections.time() * 1e3, "ms");
    figures.add("B_gc", rules.collections.rate() / 1e6, "MB/s");
    figures.add("B_u, what the flash programs", rules.user_rate / 1e6, "MB/s");
    figures.add("C_ovp", rules.space / 1e9, "GB");
    figures.add("shortest T_win", bounds.shortest * 1e3, "ms");
    figures.add("longest T_win", bounds.longest.unwrap_or(f64::INFINITY) * 1e3, "ms");
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let of = results.of(EXAMPLE)?;
    let mut judgement = Judgement::default();
    for (name, unit, published) in PUBLISHED {
        judgement.criteria.push(exact::number(name, of.number(name)?, unit, published));
    }
    let mut rows = Vec::new();
    for per_day in ["5", "3"] {
        let mixed = of.number(&format!("N_d at {per_day} DWPD, four planes"))?;
        let one = of.number(&format!("N_d at {per_day} DWPD, four planes, 10^6 bytes alone"))?;
        rows.push(vec![format!("{per_day} DWPD"), short(mixed), short(one)]);
    }
    let head = ["", "B_gc in 2^20, B_u in 10^6 bytes", "both in 10^6 bytes"].map(str::to_owned).to_vec();
    judgement.tables.push(Table { title: "N_d by unit".to_owned(), head, rows });
    let of = results.of(DRIVE)?;
    let names = ["T_gc", "B_gc", "B_u, what the flash programs", "C_ovp", "shortest T_win", "longest T_win"];
    let units = ["ms", "MB/s", "MB/s", "GB", "ms", "ms"];
    let row = |(name, unit): (&str, &str)| Ok(vec![name.to_owned(), short(of.number(name)?), unit.to_owned()]);
    let rows = names.into_iter().zip(units).map(row).collect::<Result<_>>()?;
    let head = ["", "value", "unit"].map(str::to_owned).to_vec();
    let title = "what femu-teafa says of itself for four drives; the thesis takes windows of 100 ms".to_owned();
    judgement.tables.push(Table { title, head, rows });
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn every_figure_must_be_the_published_one() {
        let results = |odd: Option<&str>| {
            let mut figures = Figures::default();
            let whole = example();
            for (name, unit, _) in PUBLISHED {
                let value = whole.number(name).unwrap();
                figures.add(name, if odd == Some(name) { value * 2.0 } else { value }, unit);
            }
            for per_day in [5, 3] {
                figures.add(format!("N_d at {per_day} DWPD, four planes, 10^6 bytes alone"), 13.0, "");
            }
            Results(vec![(EXAMPLE.to_owned(), figures), (DRIVE.to_owned(), drive().unwrap())])
        };
        assert_eq!(judge(&results(None)).unwrap().verdict().0, Verdict::Reproduced);
        for (name, ..) in PUBLISHED {
            let (verdict, reason) = judge(&results(Some(name))).unwrap().verdict();
            assert!(verdict == Verdict::Missed && reason.contains(name), "{name}: {reason}");
        }
    }

    /// By hand: 64 pages of 240 us and an erase; 64 planes that gain 192 pages of 4 KiB each in that time.
    #[test]
    fn the_emulated_drive_says_what_its_profile_gives() {
        let drive = drive().unwrap();
        let number = |name| drive.number(name).unwrap();
        assert!((number("T_gc") - 17.36).abs() < 1e-6 && number("shortest T_win") == number("T_gc"));
        assert!((number("B_gc") - 64.0 * 192.0 * 4.096 / 17.36).abs() < 1e-3);
        assert!(number("longest T_win") > number("shortest T_win"));
    }
}
