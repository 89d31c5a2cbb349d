//! FEMU's scalability: many reads in flight do not add to each other's latency when the drive itself takes no time.
//!
//! Left out: the guest. The rival emulators' figures are not measured again either; they are among the published figures.

use anyhow::Result;

use crate::wall::{TURNS, idle, in_turns};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "femu-scalability",
        source: &[(Paper::Femu, "Fig. 2a"), (Paper::Li, "5.3.4")],
        says: "4 KiB random reads, no NAND delay: mean latency under 52 us from 1 to 32 I/O threads, under 90 us at 64; \
               stock QEMU NVMe is at 106 us with 8 threads, virtio 185 us and virtio-dataplane 126 us at 32",
        show: Some(
            "wall clock, shared-memory queue pairs: mean latency stays under those two figures at 1..64 in flight",
        ),
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Wall,
    runs: 1,
    published: &[
        Published::of("mean latency, 64 in flight", "under 90"),
        Published::of("mean latency, *", "under 52; stock QEMU 106 at 8, virtio 185 at 32"),
    ],
    awaits: &[],
    parameters: &[
        Parameter { what: "requests", value: "4 KiB random reads", source: "FEMU, Fig. 2a" },
        Parameter { what: "in flight", value: "1, 2, 4, 8, 16, 32, 64", source: "FEMU, Fig. 2a" },
        Parameter { what: "delays", value: "none: flash, link and firmware take no time", source: "FEMU, Fig. 2a" },
    ],
    choices: &[
        Choice {
            open: "the client that keeps the reads in flight",
            taken: "one thread on a shared-memory queue pair, the drive on another core",
            why: "the paper's guest has a thread of fio for each; without guest, kernel and thread switches the latencies are \
                  the emulator's and its client's own. The bounds are kept as published",
        },
        Choice {
            open: "size of the drive",
            taken: "64 MiB, all of it written; each read is checked for its data",
            why: "it holds data in memory, as the paper's does; its size affects only the hit rate of the processor's \
                caches",
        },
    ],
    points: || in_turns(measure),
    judge,
};

/// Reads in flight.
const DEPTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

#[cfg(not(target_os = "linux"))]
use crate::wall::cannot as measure;

#[cfg(target_os = "linux")]
fn measure(run: &nandscape_lab_ledger::experiment::Run<'_>) -> Result<nandscape_lab_ledger::figures::Figures> {
    use nandscape_sim::Span;

    use crate::wall::cores::{CLIENT, on_core};
    use crate::wall::live::{Live, fixed_delay};
    use crate::wall::load::{Load, Seen};
    use nandscape_lab_ledger::experiment::Effort;

    let live = Live::start(vec![fixed_delay("undelayed", Span::ZERO)?], run.seed.value())?;
    let mut load = Load::connect(live.handle(), 0, 64, run.seed)?;
    let (mut seen, mut idle) = (vec![Seen::default(); DEPTHS.len()], idle::Idle::default());
    let Effort { rounds, slice, .. } = run.effort;
    for round in 0..rounds {
        (run.progress)(f64::from(round) / f64::from(rounds));
        for (depth, seen) in DEPTHS.iter().zip(&mut seen) {
            on_core(CLIENT, || load.run(*depth, slice, seen))?;
        }
        idle.run(live.handle().clock(), Span::from_us(10), slice);
    }
    let mut figures = nandscape_lab_ledger::figures::Figures::default();
    for (depth, seen) in DEPTHS.iter().zip(&seen) {
        let of = |what: &str| format!("{what}, {depth} in flight");
        figures.add(of("reads"), seen.latency.count() as f64, "");
        figures.add(of("mean latency"), seen.latency.mean_ns() / 1e3, "us");
        figures.add(of("p50 latency"), seen.latency.quantile(0.5).as_us(), "us");
        figures.add(of("p99 latency"), seen.latency.quantile(0.99).as_us(), "us");
        figures.add(of("reads a second"), seen.rate(), "1/s");
    }
    idle.add_to(&mut figures);
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let (figures, mut judgement) = (results.of(TURNS)?, Judgement::default());
    let mut rows = Vec::new();
    for depth in DEPTHS {
        let bound = if depth <= 32 { 52.0 } else { 90.0 };
        let name = format!("mean latency, {depth} in flight");
        judgement.criteria.push(order::below(name.clone(), figures.number(&name)?, "us", bound));
        let mut row = vec![depth.to_string()];
        for what in ["reads", "p50 latency", "p99 latency", "reads a second"] {
            row.push(short(figures.number(&format!("{what}, {depth} in flight"))?));
        }
        rows.push(row);
    }
    judgement.tables.push(Table {
        title: "also measured".to_owned(),
        head: ["in flight", "reads", "p50, us", "p99, us", "reads a second"].map(str::to_owned).to_vec(),
        rows,
    });
    idle::show(figures, &mut judgement)?;
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn each_depth_has_its_bound() {
        for (at_32, at_64, verdict) in
            [(51.9, 89.9, Verdict::Reproduced), (52.0, 89.9, Verdict::Missed), (51.9, 90.0, Verdict::Missed)]
        {
            let mut figures = Figures::default();
            for depth in DEPTHS {
                for what in ["reads", "p50 latency", "p99 latency", "reads a second"] {
                    figures.add(format!("{what}, {depth} in flight"), 1.0, "");
                }
                let mean = if depth == 64 { at_64 } else { at_32 };
                figures.add(format!("mean latency, {depth} in flight"), mean, "us");
            }
            idle::Idle::default().add_to(&mut figures);
            let judgement = judge(&Results(vec![(TURNS.to_owned(), figures)])).unwrap();
            assert_eq!(judgement.verdict().0, verdict, "{judgement:?}");
        }
    }
}
