//! OX's NVMe over Fabrics by sockets: throughput and processor time of the controller by number of queues.
//!
//! Left out: the network. Host and controller are one machine, and share its cores.

use anyhow::Result;

use crate::wall::{TURNS, in_turns};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ox-fabric",
        source: &[(Paper::Ox, "Fig. 3.5")],
        says: "NVMe over TCP sockets: throughput of 64 KiB and IOPS of 4 KiB by number of queues, with CPU use; reads \
               slower than writes; gains flatten above 4 cores",
        show: Some("controller CPU non-decreasing with queues; gain per added queue shrinks once the cores are used"),
        ruling: Some(
            "slope over rounds rather than whole percents, or simulated with the controller's processors; \
                      that our reads are faster than writes where the paper's are slower is part of the verdict",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Wall,
    runs: 1,
    published: &[
        Published::of("controller CPU*", "rises with queues"),
        Published::of("gain *", "flattens above 4 cores"),
    ],
    awaits: &[
        "the slope of the processor time over rounds, or a simulation with the controller's processors; that reads \
         are faster than writes here, and slower in the paper, belongs to the verdict",
    ],
    parameters: &[
        Parameter { what: "transfers", value: "reads and writes of 64 KiB and of 4 KiB", source: "OX 3.5.1, Fig. 3.5" },
        Parameter { what: "queues", value: "1 to 8", source: "OX 3.5.1, Fig. 3.5" },
        Parameter {
            what: "at the controller",
            value: "data of writes is discarded, data of reads is generated (zeros)",
            source: "OX 3.5.1",
        },
        Parameter { what: "transport", value: "NVMe/TCP without digests, a connection a queue", source: "OX 3.5.1" },
    ],
    choices: &[
        Choice {
            open: "the network",
            taken: "loopback; hosts and targets share the cores of this machine",
            why: "there is no second machine. A queue then needs two cores, one at each end: the cores are used from half as \
                  many queues on",
        },
        Choice {
            open: "cores of the controller",
            taken: "a drive for each queue, spread over as many reactors as there are queues, and one for each core at most",
            why: "the thesis has a core for each queue, and nothing behind it that queues would share",
        },
        Choice { open: "commands in flight", taken: "32 a queue, sequential", why: "the thesis does not say" },
        Choice {
            open: "the drive behind the transport",
            taken: "the whole drive without delays and without a store",
            why: "a target of NVMe has a controller; it costs the same with any number of queues",
        },
        Choice {
            open: "controller CPU",
            taken: "processor time of the reactors over the time measured, in whole percent of the machine's cores",
            why: "the thesis' figure is in percent of its 8 cores",
        },
    ],
    points: || in_turns(measure),
    judge,
};

/// Queues at most.
const QUEUES: usize = 8;
/// The loads: name, whether they write, bytes.
const LOADS: [(&str, bool, u32); 4] = [
    ("64 KiB reads", false, 65_536),
    ("64 KiB writes", true, 65_536),
    ("4 KiB reads", false, 4_096),
    ("4 KiB writes", true, 4_096),
];

fn of(what: &str, load: &str, queues: usize) -> String {
    format!("{what}, {load}, queues: {queues}")
}

#[cfg(not(target_os = "linux"))]
use crate::wall::cannot as measure;

#[cfg(target_os = "linux")]
fn measure(run: &nandscape_lab_ledger::experiment::Run<'_>) -> Result<Figures> {
    use crate::wall::fabric::{Done, Fabric, Transfers};
    use nandscape_lab_ledger::experiment::Effort;
    use nandscape_lab_ledger::machine::cores;

    let fabric = Fabric::new(QUEUES, run.seed.value())?;
    let mut done = vec![vec![Done::default(); QUEUES]; LOADS.len()];
    let Effort { rounds, slice, .. } = run.effort;
    for round in 0..rounds {
        (run.progress)(f64::from(round) / f64::from(rounds));
        for ((_, writes, bytes), done) in LOADS.into_iter().zip(&mut done) {
            for (queues, done) in (1..).zip(done) {
                fabric.run(queues, Transfers { writes, bytes }, slice, done)?;
            }
        }
    }
    let mut figures = Figures::default();
    figures.add("cores", cores() as f64, "");
    for ((load, _, bytes), done) in LOADS.into_iter().zip(&done) {
        for (queues, done) in (1..).zip(done) {
            figures.add(of("transfers", load, queues), done.commands as f64, "");
            figures.add(of("transfers a second", load, queues), done.rate(queues), "1/s");
            figures.add(of("throughput", load, queues), done.rate(queues) * f64::from(bytes) / 1e6, "MB/s");
            figures.add(of("controller CPU", load, queues), done.cores(queues) * 100.0 / cores() as f64, "%");
        }
    }
    Ok(figures)
}

/// The fewest queues that use all cores: each queue has a thread at both ends.
fn that_use_all(cores: f64) -> usize {
    ((cores / 2.0) as usize).clamp(1, QUEUES)
}

fn judge(results: &Results) -> Result<Judgement> {
    let (figures, mut judgement) = (results.of(TURNS)?, Judgement::default());
    let full = that_use_all(figures.number("cores")?);
    for (load, _, bytes) in LOADS {
        let all =
            |what: &str| (1..=QUEUES).map(|queues| figures.number(&of(what, load, queues))).collect::<Result<Vec<_>>>();
        let cpu: Vec<f64> = all("controller CPU")?.into_iter().map(f64::round).collect();
        let names: Vec<String> = (1..=QUEUES).map(|queues| queues.to_string()).collect();
        let ranking: Vec<(&str, Vec<f64>)> =
            names.iter().map(String::as_str).zip(cpu.iter().map(|cpu| vec![*cpu])).collect();
        judgement.criteria.push(order::never_falls(format!("controller CPU by queues, {load}"), &ranking, "%"));
        let (what, unit) = if bytes == 4_096 { ("transfers a second", "1/s") } else { ("throughput", "MB/s") };
        let rates = all(what)?;
        if full < QUEUES {
            let before = rates[full - 1] / full as f64;
            let after = (rates[QUEUES - 1] - rates[full - 1]) / (QUEUES - full) as f64;
            let name = format!("gain of a queue beyond {full}, {load}");
            judgement.criteria.push(order::below(name, after, unit, before));
        }
        let row = |queues: usize| {
            let number = |what: &str| figures.number(&of(what, load, queues)).map(short);
            Ok(vec![queues.to_string(), number("transfers")?, short(rates[queues - 1]), number("controller CPU")?])
        };
        let rate = format!("{what}, {unit}");
        judgement.tables.push(Table {
            title: load.to_owned(),
            head: ["queues", "transfers", &rate, "controller CPU, %"].map(str::to_owned).to_vec(),
            rows: (1..=QUEUES).map(row).collect::<Result<_>>()?,
        });
    }
    if full >= QUEUES {
        judgement.notes.push(format!("{QUEUES} queues do not use all cores of this machine: no gain is judged"));
    }
    judgement.reason =
        "Hosts and targets share the cores of one machine: each lacks the time that the other uses".to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    /// Figures of a machine with two cores; `rate` and `cpu` by the number of queues.
    fn verdict(rate: impl Fn(usize) -> f64, cpu: impl Fn(usize) -> f64) -> Verdict {
        let mut figures = Figures::default();
        figures.add("cores", 2.0, "");
        for (load, ..) in LOADS {
            for queues in 1..=QUEUES {
                figures.add(of("transfers", load, queues), 1.0, "");
                figures.add(of("transfers a second", load, queues), rate(queues), "1/s");
                figures.add(of("throughput", load, queues), rate(queues), "MB/s");
                figures.add(of("controller CPU", load, queues), cpu(queues), "%");
            }
        }
        judge(&Results(vec![(TURNS.to_owned(), figures)])).unwrap().verdict().0
    }

    #[test]
    fn the_controller_never_rests_and_the_gain_shrinks() {
        let flat = |queues: usize| 100.0 + queues as f64;
        assert_eq!(verdict(flat, |_| 50.0), Verdict::Reproduced);
        assert_eq!(verdict(flat, |queues| 50.4 - queues as f64 / 100.0), Verdict::Reproduced, "the same whole percent");
        assert_eq!(verdict(flat, |queues| 50.0 - queues as f64), Verdict::Missed);
        assert_eq!(verdict(|queues| queues as f64 * 10.0, |_| 50.0), Verdict::Missed, "the gain stays");
        assert_eq!([1.0, 2.0, 3.0, 4.0, 64.0].map(that_use_all), [1, 1, 1, 2, 8]);
    }
}
