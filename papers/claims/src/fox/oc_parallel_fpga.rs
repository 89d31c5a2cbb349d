//! uOC-2 and uOC-3 on the Dragon Fire Card: throughput by parallel units of a channel, and by channels.
//!
//! Left out: writes of one thread to the units of a channel, and all units at once, which `oc-fpga-rest` measures.

use anyhow::Result;
use nandscape_papers_fox::Kind::{Read, Write};

use crate::fox::rig::{BAND, CARD, Case, FIRMWARE, PATTERN, ROWS, TIMES, case, criteria, points};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment};
use nandscape_lab_ledger::figures::Results;
use nandscape_lab_ledger::verdict::{Judgement, Published};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "oc-parallel-fpga",
        source: &[(Paper::Ox, "Tables 4.4-4.5")],
        says: "intra-channel: write 16.81, 27.22, 37.85 MB/s and read 37.09, 49.77, 49.73 on 1, 2, 4 PUs; inter-channel: \
               44.37, 80.35, 117.84, 128.59 MB/s vectored and 45.86, 94.37, 119.90, 127.23 threaded",
        show: None,
        ruling: Some(
            "rule `inputs`: 16.81, 37.09, 49.77 and 45.86 are what the profile was fitted to; \
                      `timing.interleaving` came after the miss and is said to be a reading of the thesis, with the \
                      figures without it beside",
        ),
        check: Check::Ratio(Some(BAND)),
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("write, 1 PU of a channel, 1 thread", "").given(),
        Published::of("read, 1 PU of a channel, 1 thread", "").given(),
        Published::of("read, 2 PUs of a channel, 2 threads", "").given(),
        Published::of("write, 8 channels, 1 thread", "").given(),
    ],
    awaits: &["the figures without timing.interleaving, which is one reading of the thesis and came after a miss"],
    parameters: &[CARD, PATTERN],
    choices: &[
        TIMES,
        ROWS,
        Choice {
            open: "table 4.1 gives each thread of uOC-3 a channel; the text of table 4.5 has fewer threads rotate over all channels",
            taken: "the text: a thread goes over its share of the 8 channels in turn, a vector over the next ones",
            why: "it is about the figures of that table",
        },
        Choice {
            open: "round-robin has blocks inside pages in table 4.3, and pages inside blocks in table 4.1",
            taken: "table 4.3",
            why: "it shows FOX, which measured",
        },
    ],
    points: || points("dfc-mlc", CASES),
    judge,
};

static CASES: &[Case] = &[
    case("write, 1 PU of a channel, 1 thread", 16.81, Write, (1, 1, 1)),
    case("write, 2 PUs of a channel, 2 threads", 27.22, Write, (1, 2, 2)),
    case("write, 4 PUs of a channel, 4 threads", 37.85, Write, (1, 4, 4)),
    case("read, 1 PU of a channel, 1 thread", 37.09, Read, (1, 1, 1)),
    case("read, 2 PUs of a channel, 2 threads", 49.77, Read, (1, 2, 2)),
    case("read, 4 PUs of a channel, 4 threads", 49.73, Read, (1, 4, 4)),
    Case { vector: 1, ..case("write, 8 channels, vectors of 1 page", 44.37, Write, (8, 1, 1)) },
    Case { vector: 2, ..case("write, 8 channels, vectors of 2 pages", 80.35, Write, (8, 1, 1)) },
    Case { vector: 4, ..case("write, 8 channels, vectors of 4 pages", 117.84, Write, (8, 1, 1)) },
    Case { vector: 8, ..case("write, 8 channels, vectors of 8 pages", 128.59, Write, (8, 1, 1)) },
    case("write, 8 channels, 1 thread", 45.86, Write, (8, 1, 1)),
    case("write, 8 channels, 2 threads", 94.37, Write, (8, 1, 2)),
    case("write, 8 channels, 4 threads", 119.90, Write, (8, 1, 4)),
    case("write, 8 channels, 8 threads", 127.23, Write, (8, 1, 8)),
];

fn judge(results: &Results) -> Result<Judgement> {
    let (criteria, table) = criteria(CASES, results)?;
    Ok(Judgement { criteria, tables: vec![table], reason: FIRMWARE.to_owned(), ..Judgement::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn one_throughput_out_of_its_band_is_a_miss() {
        let results = |factor: f64| {
            let of = |(number, case): (usize, &Case)| {
                let mut figures = Figures::default();
                figures.add("throughput", case.published * if number == 3 { factor } else { 1.1 }, "MB/s");
                (case.name.to_owned(), figures)
            };
            Results(CASES.iter().enumerate().map(of).collect())
        };
        assert_eq!(judge(&results(0.9)).unwrap().verdict().0, Verdict::Reproduced);
        let (verdict, reason) = judge(&results(1.2)).unwrap().verdict();
        assert!(
            verdict == Verdict::Missed && reason.starts_with("missed: read, 1 PU of a channel, 1 thread. "),
            "{reason}"
        );
    }
}
