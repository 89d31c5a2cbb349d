//! Windows by drive and range of logical blocks: all drives collect at the same time, each in its own range, and no stripe has two busy
//! drives.
//!
//! Left out: a published result. The thesis describes it as future work.

use anyhow::Result;

use crate::array::{self, ARRAY, BASE, CAPACITY, DRIVE, LOADS, Line, STATE, TEAFA, WINDOW};
use crate::claim::{Check, Claim, Kind, Paper};
use crate::experiment::{Choice, Clock, Experiment, Parameter, Point};
use crate::figures::{Results, short};
use crate::verdict::{Judgement, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-2d-window",
        source: &[(Paper::Li, "6.2, Table 6.1")],
        says: "windows by drive and LBA range: every drive cleans all the time, on its own rotating range, and still no stripe sees two \
               busy sub-I/Os",
        show: None,
        check: Check::Order,
        kind: Kind::Design,
    },
    clock: Clock::Virtual,
    parameters: &[
        DRIVE,
        ARRAY,
        WINDOW,
        Parameter { what: "ranges", value: "four of each drive, as many as drives: range r of drive p in window w where (w + r) mod 4 = p", source: "Li 2020, Table 6.1" },
    ],
    choices: &[
        CAPACITY,
        LOADS,
        STATE,
        Choice { open: "the load", taken: "TPCC", why: "that of the thesis' other single results" },
        Choice {
            open: "no stripe sees two busy",
            taken: "stripe reads with two or more busy sub-I/Os are below a tenth of Base's",
            why: "a read of a range can wait for a plane that collects in another range of its drive: the ranges share planes. Table 6.1 \
                  leaves that to the drive, and names it as what is hard",
        },
        Choice {
            open: "every drive cleans all the time",
            taken: "steps of collections that begin outside a window are fewer than with windows of whole drives",
            why: "a range of each drive may be collected in every window, so that a plane need not wait for a quarter of the time",
        },
    ],
    points,
    judge,
};

const RANGES: Line =
    Line { name: "by range", array: &["array.technique=teafa", "array.window=100ms", "array.ranges=4"], drives: &[] };
const WHOLE: Line = Line { name: "whole drives", ..TEAFA };
const LINES: [Line; 3] = [BASE, WHOLE, RANGES];
const REQUESTS: u64 = 100_000;

fn points() -> Vec<Point> {
    let point = |line: Line| {
        let setup = line.under("teafa-tpcc", REQUESTS);
        Point::new(line.name, move |run| array::measure(&setup, run)).with("windows", line.name)
    };
    LINES.into_iter().map(point).collect()
}

fn judge(results: &Results) -> Result<Judgement> {
    let several = |line: &Line| -> Result<f64> {
        let of = results.of(line.name)?;
        (2..=4).map(|busy| of.number(&format!("{busy} busy"))).sum()
    };
    let outside = |line: &Line| results.of(line.name)?.number("steps of collections outside windows");
    let mut judgement = Judgement::default();
    judgement.criteria.push(order::below(
        "stripe reads with two or more busy sub-I/Os, windows by range",
        several(&RANGES)?,
        "%",
        several(&BASE)? / 10.0,
    ));
    let ranking = [("by range", vec![outside(&RANGES)?]), ("whole drives", vec![outside(&WHOLE)?])];
    judgement.criteria.push(order::never_falls("steps of collections outside windows", &ranking, ""));
    let figures = ["p99", "p99.9", "p99.99", "1 busy", "2 busy", "3 busy", "blocks cleaned", "steps of collections outside windows", "write amplification"];
    let mut rows = Vec::new();
    for line in LINES {
        let of = results.of(line.name)?;
        let row: Result<Vec<String>> = figures.iter().map(|figure| Ok(short(of.number(figure)?))).collect();
        rows.push([vec![line.name.to_owned()], row?].concat());
    }
    let head = ["", "p99, us", "p99.9", "p99.99", "1 busy, %", "2 busy", "3 busy", "blocks cleaned", "outside windows", "waf"];
    judgement.tables.push(Table { title: "reads of the array".to_owned(), head: head.map(str::to_owned).to_vec(), rows });
    judgement.reason = "All four drives collect at any time, and the planes of a drive hold all of its ranges: a read waits for the plane, \
        whatever range it collects, so that two sub-I/Os of a stripe can meet busy planes by chance"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::verdict::Verdict;

    fn verdict(several: f64, outside: f64) -> (Verdict, String) {
        let of = |line: Line| {
            let mut figures = Figures::default();
            let (busy, steps) = match line.name {
                "Base" => (1.0, 0.0),
                "by range" => (several, outside),
                _ => (0.0, 5.0),
            };
            for figure in ["p99", "p99.9", "p99.99", "1 busy", "3 busy", "4 busy", "blocks cleaned", "write amplification"] {
                figures.add(figure, 0.0, "");
            }
            figures.add("2 busy", busy, "%");
            figures.add("steps of collections outside windows", steps, "");
            (line.name.to_owned(), figures)
        };
        judge(&Results(LINES.map(of).to_vec())).unwrap().verdict()
    }

    #[test]
    fn few_stripes_have_two_busy_and_collections_stay_in_their_windows() {
        assert_eq!(verdict(0.0, 4.0).0, Verdict::Reproduced);
        assert!(verdict(0.2, 4.0).1.contains("two or more"));
        assert!(verdict(0.0, 6.0).1.contains("outside"));
    }
}
