//! LeapIO compared with other ways from a virtual machine to a drive: throughput and tail over the same drive.
//!
//! Left out: the guest; a database as the load; vhost-user-blk, which this program does not serve.

use anyhow::Result;

use crate::wall::{TURNS, idle, in_turns};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "leapio-virt",
        source: &[(Paper::Li, "4.3.1(3), Fig. 4.7")],
        says: "loses 3% to pass-through and 1.6% to virtual host; p99.99 is 26 us (1%) slower; full virtualisation is slowest",
        show: Some("vfio-user and vhost-user-blk within 10% of the ring, a trap-per-command path slowest"),
        ruling: Some("virtual host is SPDK's vhost with a polling guest; p99.99 is about 2.6 ms there, so 26 us is 1%"),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Wall,
    runs: 1,
    published: &[
        Published::of("throughput of vfio-user*", "0.97 of pass-through, 0.984 of virtual host"),
        Published::of("reads a second*", "full virtualisation slowest"),
    ],
    awaits: &[],
    parameters: &[
        Parameter { what: "requests", value: "4 KiB random reads", source: "Li 2020, 4.3.1(1)" },
        Parameter { what: "in flight", value: "1, 16, 64, 256", source: "Li 2020, 4.3.1(1): 1 to 256 threads" },
        Parameter {
            what: "the runtime",
            value: "polls the client's submission queues on a core of its own",
            source: "Li 2020, 4.2.2, 4.3",
        },
    ],
    choices: &[
        Choice {
            open: "the drive: the paper's is a 2 TB Intel P4600",
            taken: "the profile `default` with its delays, of 32 GiB, where all of its dies are; the first 64 MiB are written and \
                    read, and each read is checked for its data",
            why: "there is no profile of that drive. All ways lead to the same drive, and the claim is about their ratio",
        },
        Choice {
            open: "counterparts of pass-through, LeapIO and full virtualisation",
            taken: "a ring between two threads; vfio-user with a page of doorbells that the drive polls; vfio-user with a \
                    message for each doorbell",
            why: "the ring is the shortest way here; LeapIO polls memory, as the page is polled; a message for each doorbell wakes a thread \
                  of the host at each command, as the paper says of full virtualisation",
        },
        Choice { open: "vhost-user-blk", taken: "not measured", why: "this program has no such transport" },
        Choice {
            open: "the guest and its load",
            taken: "one client thread that polls for completions, in turn on each way",
            why: "the paper's db_bench over SPDK polls, too; without a guest the ways alone differ",
        },
    ],
    points: || in_turns(measure),
    judge,
};

/// Reads in flight.
const DEPTHS: [usize; 4] = [1, 16, 64, 256];
/// The ways.
const RING: &str = "ring";
const PAGE: &str = "vfio-user";
const TRAPPED: &str = "trap per command";
const WAYS: [&str; 3] = [RING, PAGE, TRAPPED];
/// The share of the ring's throughput that vfio-user must reach: within 10%.
const SHARE: f64 = 0.9;

fn of(what: &str, way: &str, depth: usize) -> String {
    format!("{what}, {way}, {depth} in flight")
}

#[cfg(not(target_os = "linux"))]
use crate::wall::cannot as measure;

#[cfg(target_os = "linux")]
fn measure(run: &nandscape_lab_ledger::experiment::Run<'_>) -> Result<nandscape_lab_ledger::figures::Figures> {
    use nandscape_sim::Span;

    use crate::wall::cores::{CLIENT, here_on};
    use crate::wall::function::{Doorbells, Served};
    use crate::wall::live::{Live, drive};
    use crate::wall::load::{Load, Seen};
    use nandscape_lab_ledger::experiment::Effort;

    let (spec, seed) = (drive("timed", "default", &["capacity=32GiB"])?, run.seed.value());
    let most = DEPTHS[DEPTHS.len() - 1];
    let live = Live::start(vec![spec.clone()], seed)?;
    let [page, trapped] = [Doorbells::Mapped, Doorbells::Trapped].map(|kind| Served::start(spec.clone(), kind, seed));
    let (page, trapped) = (page?, trapped?);
    let mut ring = Load::connect(live.handle(), 0, most, run.seed)?;
    let (mut page, mut trapped) = (page.connect(most as u16, run.seed)?, trapped.connect(most as u16, run.seed)?);
    let mut seen = vec![vec![Seen::default(); DEPTHS.len()]; WAYS.len()];
    let mut idle = idle::Idle::default();
    let Effort { rounds, slice, .. } = run.effort;
    for round in 0..rounds {
        (run.progress)(f64::from(round) / f64::from(rounds));
        for (number, depth) in DEPTHS.into_iter().enumerate() {
            here_on(CLIENT, || {
                ring.run(depth, slice, &mut seen[0][number])?;
                page.run(depth, slice, &mut seen[1][number])?;
                trapped.run(depth, slice, &mut seen[2][number])
            })?;
        }
        idle.run(live.handle().clock(), Span::from_us(10), slice);
    }
    let mut figures = nandscape_lab_ledger::figures::Figures::default();
    for (way, seen) in WAYS.iter().zip(&seen) {
        for (depth, seen) in DEPTHS.iter().zip(seen) {
            figures.add(of("reads", way, *depth), seen.latency.count() as f64, "");
            figures.add(of("reads a second", way, *depth), seen.rate(), "1/s");
            figures.add(of("mean latency", way, *depth), seen.latency.mean_ns() / 1e3, "us");
            figures.add(of("p99 latency", way, *depth), seen.latency.quantile(0.99).as_us(), "us");
            figures.add(of("p99.99 latency", way, *depth), seen.latency.quantile(0.9999).as_us(), "us");
        }
    }
    idle.add_to(&mut figures);
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let (figures, mut judgement) = (results.of(TURNS)?, Judgement::default());
    for depth in DEPTHS {
        let rate = |way: &str| figures.number(&of("reads a second", way, depth));
        let (ring, page, trapped) = (rate(RING)?, rate(PAGE)?, rate(TRAPPED)?);
        let what = format!("throughput of vfio-user over that of the ring, {depth} in flight");
        judgement.criteria.push(order::at_least(what, page / ring, "", SHARE));
        let ranking = [(TRAPPED, vec![trapped]), ("the slower of the others", vec![page.min(ring)])];
        judgement.criteria.push(order::ranked(format!("reads a second, {depth} in flight"), &ranking, "1/s"));
        let mut rows = Vec::new();
        for way in WAYS {
            let mut row = vec![way.to_owned()];
            for what in ["reads", "reads a second", "mean latency", "p99 latency", "p99.99 latency"] {
                row.push(short(figures.number(&of(what, way, depth))?));
            }
            rows.push(row);
        }
        judgement.tables.push(Table {
            title: format!("{depth} in flight"),
            head: ["", "reads", "reads a second", "mean, us", "p99, us", "p99.99, us"].map(str::to_owned).to_vec(),
            rows,
        });
    }
    idle::show(figures, &mut judgement)?;
    judgement.reason.push_str(
        ". With many in flight the drive's thread is the limit, and a command of vfio-user takes it longer than one of the \
         ring: doorbell, entry, data pointer and completion lie in memory that the client's core writes",
    );
    judgement.unmeasured.push("vhost-user-blk within 10% of the ring: there is no such transport here".to_owned());
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn vfio_user_is_near_the_ring_and_traps_are_slowest() {
        for (page, trapped, verdict) in [
            (90.0, 89.0, Verdict::InPart),
            (120.0, 99.0, Verdict::InPart),
            (89.0, 50.0, Verdict::Missed),
            (95.0, 95.0, Verdict::Missed),
        ] {
            let mut figures = Figures::default();
            for (way, rate) in WAYS.into_iter().zip([100.0, page, trapped]) {
                for depth in DEPTHS {
                    figures.add(of("reads a second", way, depth), rate, "1/s");
                    for what in ["reads", "mean latency", "p99 latency", "p99.99 latency"] {
                        figures.add(of(what, way, depth), 1.0, "");
                    }
                }
            }
            idle::Idle::default().add_to(&mut figures);
            let judgement = judge(&Results(vec![(TURNS.to_owned(), figures)])).unwrap();
            assert_eq!(judgement.verdict().0, verdict, "{judgement:?}");
            assert!(judgement.verdict().1.contains("vhost-user-blk"), "{judgement:?}");
        }
    }
}
