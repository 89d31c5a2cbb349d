//! uOC-2 and uOC-3 on the Westlake drive by CNEX: throughput by parallel units of a channel, and by channels.

use anyhow::Result;
use nandscape_papers_fox::Kind::{Read, Write};

use crate::fox::rig::{BAND, Case, PATTERN, TIMES, WESTLAKE, case, criteria, points};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment};
use nandscape_lab_ledger::figures::Results;
use nandscape_lab_ledger::verdict::{Judgement, Published};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "oc-parallel-cnex",
        source: &[(Paper::Ox, "Tables 4.6-4.7")],
        says: "intra-channel: 17.81 to 71.10 MB/s write (3.99x), 17.78 single-threaded, 156.30 to 302.65 read; inter-channel: \
               write 17.81, 73.84, 301.16 and read 156.30, 627.39, 2368.59 on 1, 4, 16 channels",
        show: None,
        ruling: Some("rule `inputs`: 17.81, 156.30, 302.65"),
        check: Check::Ratio(Some(BAND)),
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("write, 1 PU of a channel, 1 thread", "").given(),
        Published::of("read, 1 PU of a channel, 1 thread", "").given(),
        Published::of("read, 4 PUs of a channel, 4 threads", "").given(),
    ],
    awaits: &[],
    parameters: &[WESTLAKE, PATTERN],
    choices: &[
        TIMES,
        Choice {
            open: "where threads of fewer than 16 channels go",
            taken: "a thread for each channel, which is all that it writes and reads",
            why: "4.4.3 scales the number of channels with that of threads, with one parallel unit a channel",
        },
    ],
    points: || points("cnex-westlake", CASES),
    judge,
};

static CASES: &[Case] = &[
    case("write, 1 PU of a channel, 1 thread", 17.81, Write, (1, 1, 1)),
    case("write, 4 PUs of a channel, 4 threads", 71.10, Write, (1, 4, 4)),
    case("write, 4 PUs of a channel, 1 thread", 17.78, Write, (1, 4, 1)),
    case("read, 1 PU of a channel, 1 thread", 156.30, Read, (1, 1, 1)),
    case("read, 4 PUs of a channel, 4 threads", 302.65, Read, (1, 4, 4)),
    case("write, 4 channels, 4 threads", 73.84, Write, (4, 1, 4)),
    case("write, 16 channels, 16 threads", 301.16, Write, (16, 1, 16)),
    case("read, 4 channels, 4 threads", 627.39, Read, (4, 1, 4)),
    case("read, 16 channels, 16 threads", 2_368.59, Read, (16, 1, 16)),
];

fn judge(results: &Results) -> Result<Judgement> {
    let (criteria, table) = criteria(CASES, results)?;
    Ok(Judgement { criteria, tables: vec![table], ..Judgement::default() })
}
