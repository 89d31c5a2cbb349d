//! The tail of reads and their bandwidth over the number of readers, on a host whose processors and uplink are shared.
//!
//! Left out: the values of figure 5.6 beyond those of the text.

use anyhow::Result;

use crate::engine::rig::{self, DRIVES, FLASH, HOST, LOAD, OTHERS, PLACES, READ_COUNT, RUNS, of};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::Results;
use nandscape_lab_ledger::verdict::{Judgement, Published, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "kv-load",
        source: &[(Paper::Shin, "Fig. 5.6")],
        says: "p99.9999 and read bandwidth over the number of reader threads: at 16 mixed and epochs are in tens of \
               ms, GC control under 1 ms; from 32 it rises (processor cores); bandwidth of epochs and GC control \
               alike, far above mixed; 1.148 of 1.5 GB/s with writes while p99.9999 stays under 1 ms",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[
        Published::of("read bandwidth*", "far above mixed"),
        Published::of("*GC control, 16 readers*", "under 1 ms"),
        Published::of("*16 readers*", "tens of ms"),
        Published::of("*rises*", "it rises from 32"),
        Published::of("bandwidth under 1 ms*", "1.148 GB/s of 1.5"),
    ],
    awaits: &[],
    parameters: &[
        LOAD,
        Parameter { what: "readers", value: "8, 16, 32, 64", source: "Shin 2017, Fig. 5.6" },
        DRIVES,
        HOST,
        READ_COUNT,
    ],
    choices: &[
        FLASH,
        PLACES,
        OTHERS,
        Choice { open: "the preconditioning", taken: "each block written once in order", why: "kv-tail shows both" },
        Choice {
            open: "\"tens of ms\", \"far above\", \"two thirds\"",
            taken: "above 10 ms; above; above 1.0 GB/s",
            why: "the least that the words allow",
        },
    ],
    points,
    judge,
};

const POLICIES: [(&str, &str); 3] = [("raid0", "mixed"), ("epochs", "epochs"), ("gc_control", "GC control")];
const READERS: [u64; 4] = [8, 16, 32, 64];
const HIGHEST: &str = "p99.9999";

fn case(policy: &str, readers: u64) -> String {
    format!("{policy}, {readers} readers")
}

fn cases() -> Vec<(&'static str, u64, String)> {
    let of = |(id, policy): (&'static str, &str)| READERS.map(|readers| (id, readers, case(policy, readers)));
    POLICIES.into_iter().flat_map(of).collect()
}

fn points() -> Vec<Point> {
    cases().into_iter().map(|(id, readers, case)| rig::micro(case, id, (readers, 1))).collect()
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let all = |policy: &str, readers: u64, figure: &str| of(results, &case(policy, readers), figure);
    let at = |policy: &str, readers: u64| all(policy, readers, HIGHEST);
    judgement.criteria.push(order::below(
        format!("{HIGHEST}, GC control, 16 readers"),
        at("GC control", 16)?,
        "us",
        1_000.0,
    ));
    for policy in ["mixed", "epochs"] {
        let what = format!("{HIGHEST}, {policy}, 16 readers");
        judgement.criteria.push(order::above(what, at(policy, 16)?, "us", 10_000.0));
    }
    let rising = [("16 readers", at("GC control", 16)?), ("32", at("GC control", 32)?), ("64", at("GC control", 64)?)];
    judgement.criteria.push(order::never_falls(format!("{HIGHEST} of GC control rises"), &rising, "us"));
    let ends = [("16 readers", at("GC control", 16)?), ("64", at("GC control", 64)?)];
    judgement.criteria.push(order::ranked(format!("{HIGHEST} of GC control rises beyond 32"), &ends, "us"));
    for readers in READERS {
        for policy in ["epochs", "GC control"] {
            let ranking = [("mixed", all("mixed", readers, "read")?), (policy, all(policy, readers, "read")?)];
            judgement.criteria.push(order::ranked(
                format!("read bandwidth of {policy}, {readers} readers"),
                &ranking,
                "MB/s",
            ));
        }
    }
    judgement.criteria.push(order::above(
        "bandwidth under 1 ms, GC control",
        most_below_1_ms(results)?,
        "MB/s",
        1_000.0,
    ));
    let cases: Vec<String> = cases().into_iter().map(|(_, _, case)| case).collect();
    judgement.tables.push(rig::table(results, &cases)?);
    judgement.notes.push(
        "\"alike\" of the bandwidths of epochs and GC control has no bound in the paper: the table shows both"
            .to_owned(),
    );
    judgement.reason = "A read of mixed or epochs waits for operations of its die in line, an erase of 3.8 ms the longest. With epochs, collections go on \
        while the drive is read"
        .to_owned();
    Ok(judgement)
}

/// The most bandwidth, reads and writes, of a load whose tail is below 1 ms, run by run.
fn most_below_1_ms(results: &Results) -> Result<Vec<f64>> {
    let mut most = vec![0.0f64; RUNS as usize];
    for readers in READERS {
        let case = case("GC control", readers);
        let figure = |figure| of(results, &case, figure);
        let (tail, read, written) = (figure(HIGHEST)?, figure("read")?, figure("written")?);
        for (run, most) in most.iter_mut().enumerate().filter(|(run, _)| tail[*run] < 1_000.0) {
            *most = most.max(read[run] + written[run]);
        }
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rig::tests::results;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn one_value_for_all_figures_is_a_miss() {
        let all: Vec<(String, f64)> = cases().into_iter().map(|(_, _, case)| (case, 500.0)).collect();
        let judgement = judge(&results(&all)).unwrap();
        assert_eq!(judgement.verdict().0, Verdict::Missed);
        assert_eq!(most_below_1_ms(&results(&all)).unwrap(), [1_000.0; RUNS as usize]);
        let slow: Vec<(String, f64)> = all.into_iter().map(|(case, _)| (case, 2_000.0)).collect();
        assert_eq!(most_below_1_ms(&results(&slow)).unwrap(), [0.0; RUNS as usize]);
    }
}
