//! Reads that an array sends to its drives beyond those of Base: TeaFA's after busy answers, Proactive's always.
//!
//! Left out: latencies, which teafa-vs compares.

use anyhow::Result;

use crate::teafa::rig::{self, ARRAY, BASE, CAPACITY, DRIVE, LOADS, Line, STATE, TEAFA, WINDOW};
use nandscape_lab_ledger::claim::{Band, BandOf, Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Point};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Table, ratio};

const BAND: Band = Band { of: BandOf::Value, within: &[(2.0, 2.8), (1.0, 1.15)] };

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-extra-load",
        source: &[(Paper::Li, "3.6.4, Fig. 3.12b")],
        says: "Proactive sends 2.4x the reads of Base, TeaFA 6% more",
        show: None,
        ruling: None,
        check: Check::Ratio(Some(BAND)),
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[],
    awaits: &[],
    parameters: &[DRIVE, ARRAY, WINDOW],
    choices: &[
        CAPACITY,
        LOADS,
        STATE,
        Choice { open: "the load", taken: "TPCC", why: "3.6.4: due to space constraints, only one benchmark, TPCC" },
        Choice {
            open: "the reads that count",
            taken: "reads of chunks for reads of the host; those of read-modify-writes are left out",
            why: "the latter are the same in all, and are no reads of the host",
        },
    ],
    points,
    judge,
};

/// All chunks of a stripe, always.
const PROACTIVE: Line = Line { name: "Proactive", array: &["array.technique=proactive"], drives: &[] };
/// Lines, and the published ratio to the first.
const LINES: [(Line, f64); 3] = [(BASE, 1.0), (PROACTIVE, 2.4), (TEAFA, 1.06)];
const REQUESTS: u64 = 100_000;

fn points() -> Vec<Point> {
    let point = |(line, _): (Line, f64)| {
        let setup = line.under("teafa-tpcc", REQUESTS);
        Point::new(line.name, move |run| rig::measure(&setup, run)).with("line", line.name)
    };
    LINES.into_iter().map(point).collect()
}

fn judge(results: &Results) -> Result<Judgement> {
    // Random draws make points differ by a few requests, so reads per stripe read are compared.
    let per_stripe = |line: &Line| -> Result<f64> {
        let of = results.of(line.name)?;
        Ok(of.number("sub-reads")? / of.number("stripe reads")?)
    };
    let base = per_stripe(&BASE)?;
    let mut judgement = Judgement::default();
    let mut rows = Vec::new();
    for (number, (line, published)) in LINES.iter().enumerate() {
        let measured = per_stripe(line)? / base;
        if number > 0 {
            let what = format!("sub-reads of {} over those of Base", line.name);
            judgement.criteria.push(ratio::in_band(what, measured, *published, BAND, number - 1));
        }
        let of = results.of(line.name)?;
        let figures: Result<Vec<String>> = ["stripe reads", "sub-reads", "extra sub-reads", "1 busy"]
            .iter()
            .map(|figure| Ok(short(of.number(figure)?)))
            .collect();
        rows.push([vec![line.name.to_owned()], figures?, vec![short(measured), short(*published)]].concat());
    }
    let head = ["", "stripe reads", "sub-reads", "extra", "1 busy, %", "ratio", "published"];
    judgement.tables.push(Table {
        title: "reads sent to drives".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    });
    judgement.reason = "Proactive's ratio is set by the sizes of reads: one of a single chunk becomes four, one of a whole stripe four for \
        three. Those of the trace are known by their mean only"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(proactive: f64, teafa: f64) -> Verdict {
        let of = |sub: f64| {
            let mut figures = Figures::default();
            for (name, value) in
                [("stripe reads", 1_000.0), ("sub-reads", sub), ("extra sub-reads", 0.0), ("1 busy", 7.0)]
            {
                figures.add(name, value, "");
            }
            figures
        };
        let points = [("Base", 1_500.0), ("Proactive", 1_500.0 * proactive), ("TeaFA", 1_500.0 * teafa)];
        judge(&Results(points.map(|(name, sub)| (name.to_owned(), of(sub))).to_vec())).unwrap().verdict().0
    }

    #[test]
    fn each_ratio_has_its_band() {
        assert_eq!(verdict(2.4, 1.06), Verdict::Reproduced);
        assert_eq!(verdict(1.9, 1.06), Verdict::Missed);
        assert_eq!(verdict(2.4, 1.2), Verdict::Missed);
    }
}
