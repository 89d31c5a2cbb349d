//! OX-MQ: null commands a second through queue pairs between layers.
//!
//! Left out: OX's library itself. The ring between a client's thread and a reactor takes its place.

use anyhow::Result;

use crate::wall::{TURNS, in_turns};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ox-mq",
        source: &[(Paper::Ox, "Fig. 3.4")],
        says: "null commands through queue pairs, two threads a pair: up to 1.08 M IOPS on 8 hardware threads of a desktop, \
               622 K on 8 Xeon cores, 360 K on 8 ARM cores, 2.43 M on 32 server threads",
        show: Some("millions a second here by number of pairs, and per core; at least 0.3 M a core"),
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Wall,
    runs: 1,
    published: &[Published::of("a core, *", "0.14, 0.08, 0.05 by machine").amount(0.14)],
    awaits: &[],
    parameters: &[
        Parameter { what: "commands", value: "null: without data, completed where they arrive", source: "OX 3.5" },
        Parameter {
            what: "threads of a pair",
            value: "two, on two cores: a client's, which submits and takes completions, and a reactor's",
            source: "OX 3.5",
        },
        Parameter { what: "spread", value: "all pairs equally loaded", source: "OX 3.5" },
    ],
    choices: &[
        Choice {
            open: "queue depth",
            taken: "256 commands a pair at a time",
            why: "the thesis does not say; its queues hold at least that",
        },
        Choice {
            open: "pairs",
            taken: "1, 2, 4 and 8, each with a drive of its own; as many reactors as pairs, and one for each core at most",
            why: "the thesis goes on until all cores are used: with more pairs than that, cores are shared. A drive is never \
                  shared by two reactors. Beside it: one reactor for all pairs",
        },
        Choice {
            open: "the drive at the end of a pair",
            taken: "judged: a drive that completes each command at once; shown in addition: an NVMe controller, whose Flush has \
                    nothing to flush",
            why: "the thesis measures the queues alone. The other figure includes the work of an NVMe controller",
        },
        Choice {
            open: "cores",
            taken: "two for each pair, or all of them",
            why: "a pair has two threads, each kept on a core",
        },
    ],
    points: || in_turns(measure),
    judge,
};

/// Pairs.
const PAIRS: [usize; 4] = [1, 2, 4, 8];
/// The drive at their end, and the reactors at most: the first is judged.
const ENDS: [(&str, usize); 4] = [
    ("queues alone", usize::MAX),
    ("queues alone, one reactor", 1),
    ("with an NVMe controller", usize::MAX),
    ("with an NVMe controller, one reactor", 1),
];
/// Millions of commands a second that a core has to pass.
const BOUND: f64 = 0.3;

fn of(what: &str, end: &str, pairs: usize) -> String {
    format!("{what}, {end}, pairs: {pairs}")
}

#[cfg(not(target_os = "linux"))]
use crate::wall::cannot as measure;

#[cfg(target_os = "linux")]
fn measure(run: &nandscape_lab_ledger::experiment::Run<'_>) -> Result<nandscape_lab_ledger::figures::Figures> {
    use crate::wall::null::{Behind, Done, Pairs};
    use nandscape_lab_ledger::experiment::Effort;
    use nandscape_lab_ledger::machine::cores;

    let mut series = Vec::new();
    let behind = [Behind::Nothing, Behind::Nothing, Behind::Controller, Behind::Controller];
    for ((end, most), behind) in ENDS.into_iter().zip(behind) {
        for count in PAIRS {
            series.push((end, count, Pairs::new(behind, count, most, run.seed.value())?, Done::default()));
        }
    }
    let Effort { rounds, slice, .. } = run.effort;
    for round in 0..rounds {
        (run.progress)(f64::from(round) / f64::from(rounds));
        series.iter_mut().try_for_each(|(_, _, pairs, done)| pairs.run(slice, done))?;
    }
    let mut figures = nandscape_lab_ledger::figures::Figures::default();
    for (end, count, pairs, done) in &series {
        figures.add(of("commands", end, *count), done.commands as f64, "");
        figures.add(of("millions a second", end, *count), pairs.rate(done) / 1e6, "M/s");
        figures.add(of("reactors", end, *count), pairs.reactors() as f64, "");
        figures.add(of("cores", end, *count), cores().min(2 * count) as f64, "");
    }
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let (figures, mut judgement) = (results.of(TURNS)?, Judgement::default());
    for (end, _) in ENDS {
        let mut rows = Vec::new();
        for pairs in PAIRS {
            let number = |what: &str| figures.number(&of(what, end, pairs));
            let (rate, cores) = (number("millions a second")?, number("cores")?);
            if end == ENDS[0].0 {
                let what = format!("a core, pairs: {pairs}, cores: {cores}");
                judgement.criteria.push(order::at_least(what, rate / cores, "M/s", BOUND));
            }
            let columns = [number("reactors")?, cores, number("commands")?, rate, rate / cores];
            rows.push(std::iter::once(pairs.to_string()).chain(columns.map(short)).collect());
        }
        judgement.tables.push(Table {
            title: end.to_owned(),
            head: ["pairs", "reactors", "cores", "commands", "M/s", "M/s a core"].map(str::to_owned).to_vec(),
            rows,
        });
    }
    judgement.notes.push(
        "published a core: 0.14 M on the desktop, 0.08 M on the Xeon, 0.05 M on the ARM cores, each with 8".to_owned(),
    );
    judgement.reason =
        "With more pairs than cores, several threads share a core, and each turn costs a switch".to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn every_number_of_pairs_has_the_bound_per_core() {
        for (last, verdict) in [(2.4, Verdict::Reproduced), (2.3, Verdict::Missed)] {
            let mut figures = Figures::default();
            for (end, _) in ENDS {
                for pairs in PAIRS {
                    let queues_alone = end == ENDS[0].0;
                    let rate = if pairs == 8 && queues_alone { last } else { 2.4 };
                    figures.add(of("millions a second", end, pairs), if queues_alone { rate } else { 0.1 }, "M/s");
                    figures.add(of("cores", end, pairs), 8.0, "");
                    figures.add(of("reactors", end, pairs), 4.0, "");
                    figures.add(of("commands", end, pairs), 1.0, "");
                }
            }
            let judgement = judge(&Results(vec![(TURNS.to_owned(), figures)])).unwrap();
            assert_eq!((judgement.verdict().0, judgement.criteria.len()), (verdict, 4), "{judgement:?}");
        }
    }
}
