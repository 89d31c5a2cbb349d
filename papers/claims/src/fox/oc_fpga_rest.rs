//! The remaining throughputs of the Dragon Fire Card: writes of one thread to the parallel units of a channel, and all units at
//! once.

use anyhow::Result;
use nandscape_papers_fox::Kind::{Read, Write};

use crate::fox::rig::{BAND, CARD, Case, FIRMWARE, PATTERN, ROWS, TIMES, case, criteria, points};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Clock, Experiment};
use nandscape_lab_ledger::figures::Results;
use nandscape_lab_ledger::verdict::{Judgement, Published};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "oc-fpga-rest",
        source: &[(Paper::Ox, "Table 4.4, 4.4.2.2")],
        says: "one thread over 1, 2, 4 PUs writes 16.81, 23.47, 33.45 MB/s; 32 threads 300 MB/s write, 400 read",
        show: None,
        ruling: Some("rule `inputs`: 16.81"),
        check: Check::Ratio(Some(BAND)),
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[Published::of("write, 1 PU of a channel, 1 thread", "").given()],
    awaits: &[],
    parameters: &[CARD, PATTERN],
    choices: &[TIMES, ROWS],
    points: || points("dfc-mlc", CASES),
    judge,
};

static CASES: &[Case] = &[
    case("write, 1 PU of a channel, 1 thread", 16.81, Write, (1, 1, 1)),
    case("write, 2 PUs of a channel, 1 thread", 23.47, Write, (1, 2, 1)),
    case("write, 4 PUs of a channel, 1 thread", 33.45, Write, (1, 4, 1)),
    case("write, all 32 PUs, 32 threads", 300.0, Write, (8, 4, 32)),
    case("read, all 32 PUs, 32 threads", 400.0, Read, (8, 4, 32)),
];

fn judge(results: &Results) -> Result<Judgement> {
    let (criteria, table) = criteria(CASES, results)?;
    Ok(Judgement { criteria, tables: vec![table], reason: FIRMWARE.to_owned(), ..Judgement::default() })
}
