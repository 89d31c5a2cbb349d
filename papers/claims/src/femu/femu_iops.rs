//! FEMU's steps from trapped doorbells to polling: the same reads by the same client, with one doorbell method
//! after the other.
//!
//! Left out: the guest, and with it the cost of leaving it at each trap. A trap here is a message and a thread that takes it.

use anyhow::Result;

use crate::wall::{TURNS, idle, in_turns};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "femu-iops",
        source: &[(Paper::Li, "5.3.3, Fig. 5.4")],
        says: "IOPS at 64 threads rise about 10x from stock QEMU NVMe through shadow doorbells, polling and heap storage; \
               doorbells kept: 189 and 264 us at 32 and 64 threads",
        show: Some(
            "wall clock: doorbell-per-command, shadow doorbell, polling, each faster than the one before; over 0.71 M \
             IOPS at 64 in flight without NAND delay",
        ),
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Wall,
    runs: 1,
    published: &[
        Published::of("reads a second, 64 in flight", "about 10x in all").ratio(10.0),
        Published::of("reads a second, polling*", "710,000"),
    ],
    awaits: &[],
    parameters: &[
        Parameter { what: "requests", value: "4 KiB random reads", source: "Li 2020, Fig. 5.4" },
        Parameter { what: "in flight", value: "1, 32, 64; judged at 64", source: "Li 2020, 5.3.3" },
        Parameter { what: "delays", value: "none: flash, link and firmware take no time", source: "Li 2020, Fig. 5.4" },
        Parameter {
            what: "doorbell per command",
            value: "each write of a doorbell is a message (serve --doorbells trapped)",
            source: "Li 2020, 5.3.2",
        },
        Parameter {
            what: "shadow doorbell",
            value: "Doorbell Buffer Config; the drive looks at the buffers when a message, which the event index asks for, \
                    says so (--doorbells shadow)",
            source: "Li 2020, 5.3.3, +dbbuf",
        },
        Parameter {
            what: "polling",
            value: "the drive looks at a page of doorbells that the client maps (--doorbells mapped)",
            source: "FEMU 3.1; Li 2020, 5.3.3, +poll",
        },
    ],
    choices: &[
        Choice {
            open: "the client",
            taken: "one thread with a queue pair of its own over vfio-user, which polls for completions; a drive and reactor \
                    for each kind of doorbell, in turn",
            why: "the paper's guest has a thread of fio for each read in flight; without a guest, only the doorbells differ",
        },
        Choice {
            open: "cost of a trap",
            taken: "a message that is not answered, on a unix socket, and the side thread that passes it on",
            why: "QEMU sends this message for a write to a PCI function over vfio-user; the paper's trap leaves the guest, and \
                  QEMU's own event loop takes it",
        },
        Choice {
            open: "the memory that is polled",
            taken: "judged: the page of doorbells; shown in addition: shadow buffers that are polled (--doorbells buffered)",
            why: "FEMU's guest writes no doorbells and its thread polls the queue in memory; Li polls the shadow buffers. \
                  Both are polling",
        },
        Choice {
            open: "heap storage",
            taken: "in all of them data is in memory",
            why: "there is no other storage path here to compare it with",
        },
    ],
    points: || in_turns(measure),
    judge,
};

/// Reads in flight.
const DEPTHS: [usize; 3] = [1, 32, 64];
/// The depth that is judged.
const JUDGED: usize = 64;
/// Reads a second that polling has to exceed there.
const BOUND: f64 = 710_000.0;
/// The kinds of doorbells that are judged in their order.
const TRAPPED: &str = "doorbell per command";
const SHADOW: &str = "shadow doorbell";
const POLLED: &str = "polling";
const BUFFERED: &str = "shadow doorbell, polled";
const KINDS: [&str; 4] = [TRAPPED, SHADOW, POLLED, BUFFERED];

fn of(what: &str, kind: &str, depth: usize) -> String {
    format!("{what}, {kind}, {depth} in flight")
}

#[cfg(not(target_os = "linux"))]
use crate::wall::cannot as measure;

#[cfg(target_os = "linux")]
fn measure(run: &nandscape_lab_ledger::experiment::Run<'_>) -> Result<nandscape_lab_ledger::figures::Figures> {
    use nandscape_sim::Span;

    use crate::wall::cores::{CLIENT, here_on};
    use crate::wall::function::{Doorbells, Served};
    use crate::wall::live::fixed_delay;
    use crate::wall::load::Seen;
    use nandscape_lab_ledger::experiment::Effort;

    let doorbells = [Doorbells::Trapped, Doorbells::Shadow, Doorbells::Mapped, Doorbells::Buffered];
    let serve = |doorbells| Served::start(fixed_delay("undelayed", Span::ZERO)?, doorbells, run.seed.value());
    let served = doorbells.into_iter().map(serve).collect::<Result<Vec<Served>>>()?;
    let mut loads = served.iter().map(|served| served.connect(JUDGED as u16, run.seed)).collect::<Result<Vec<_>>>()?;
    // For each kind, and each depth: measurements, and messages.
    let mut seen = vec![vec![(Seen::default(), 0); DEPTHS.len()]; KINDS.len()];
    let mut idle = idle::Idle::default();
    let Effort { rounds, slice, .. } = run.effort;
    for round in 0..rounds {
        (run.progress)(f64::from(round) / f64::from(rounds));
        for (load, seen) in loads.iter_mut().zip(&mut seen) {
            for (depth, (seen, messages)) in DEPTHS.iter().zip(seen) {
                let before = load.lane().messages();
                here_on(CLIENT, || load.run(*depth, slice, seen))?;
                *messages += load.lane().messages() - before;
            }
        }
        idle.run(served[0].live().handle().clock(), Span::from_us(10), slice);
    }
    let mut figures = nandscape_lab_ledger::figures::Figures::default();
    for (kind, seen) in KINDS.iter().zip(&seen) {
        for (depth, (seen, messages)) in DEPTHS.iter().zip(seen) {
            let reads = seen.latency.count() as f64;
            figures.add(of("reads", kind, *depth), reads, "");
            figures.add(of("reads a second", kind, *depth), seen.rate(), "1/s");
            figures.add(of("mean latency", kind, *depth), seen.latency.mean_ns() / 1e3, "us");
            figures.add(of("p99 latency", kind, *depth), seen.latency.quantile(0.99).as_us(), "us");
            figures.add(of("messages a read", kind, *depth), *messages as f64 / reads, "");
        }
    }
    idle.add_to(&mut figures);
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let (figures, mut judgement) = (results.of(TURNS)?, Judgement::default());
    let rate = |kind: &str| figures.number(&of("reads a second", kind, JUDGED));
    let ranking = [TRAPPED, SHADOW, POLLED].map(|kind| Ok((kind, vec![rate(kind)?])));
    let ranking = ranking.into_iter().collect::<Result<Vec<_>>>()?;
    judgement.criteria.push(order::ranked(format!("reads a second, {JUDGED} in flight"), &ranking, "1/s"));
    let polled = of("reads a second", POLLED, JUDGED);
    judgement.criteria.push(order::above(polled, rate(POLLED)?, "1/s", BOUND));
    for depth in DEPTHS {
        let mut rows = Vec::new();
        for kind in KINDS {
            let mut row = vec![kind.to_owned()];
            for what in ["reads", "reads a second", "mean latency", "p99 latency", "messages a read"] {
                row.push(short(figures.number(&of(what, kind, depth))?));
            }
            rows.push(row);
        }
        judgement.tables.push(Table {
            title: format!("{depth} in flight"),
            head: ["", "reads", "reads a second", "mean, us", "p99, us", "messages a read"].map(str::to_owned).to_vec(),
            rows,
        });
    }
    judgement.notes.push(format!(
        "from doorbells by messages to polling {:.1}x; published about 10x from stock QEMU, which includes heap storage",
        rate(POLLED)? / rate(TRAPPED)?
    ));
    idle::show(figures, &mut judgement)?;
    judgement.reason.push_str(
        ". With many in flight the drive's thread is the limit, and a message stands for many commands: shadow doorbells and \
         polling then cost nearly the same",
    );
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn each_is_faster_than_the_one_before_and_polling_exceeds_the_bound() {
        for (rates, verdict) in [
            ([1e5, 2e5, 7.2e5], Verdict::Reproduced),
            ([1e5, 2e5, 7.1e5], Verdict::Missed),
            ([2e5, 2e5, 7.2e5], Verdict::Missed),
            ([1e5, 8e5, 7.2e5], Verdict::Missed),
        ] {
            let mut figures = Figures::default();
            for (kind, rate) in KINDS.iter().zip(rates.into_iter().chain([1e6])) {
                for depth in DEPTHS {
                    figures.add(of("reads a second", kind, depth), rate, "1/s");
                    for what in ["reads", "mean latency", "p99 latency", "messages a read"] {
                        figures.add(of(what, kind, depth), 1.0, "");
                    }
                }
            }
            idle::Idle::default().add_to(&mut figures);
            let judgement = judge(&Results(vec![(TURNS.to_owned(), figures)])).unwrap();
            assert_eq!(judgement.verdict().0, verdict, "{judgement:?}");
        }
    }
}
