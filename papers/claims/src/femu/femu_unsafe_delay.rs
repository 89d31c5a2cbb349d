//! Four methods of delaying a completion, and a fifth that delays the thread that accepts requests, compared under the
//! same load. The methods are small programs in [`crate::wall::release`]; no drive takes part.

use anyhow::Result;
use nandscape_sim::Histogram;
use nandscape_transport_reactor::WallClock;

use crate::wall::release::{DELAY, Method, run as release};
use crate::wall::{TURNS, idle, in_turns};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "femu-unsafe-delay",
        source: &[(Paper::Li, "5.2.5, 5.4.1, Fig. 5.5a")],
        says: "put-back, busy loop and timer release 20-30 us late, the end-io queue does not; a 50 us busy loop in a single \
               entry path gives 5 ms at 16 threads",
        show: Some("the four release methods side by side, wall clock"),
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Wall,
    runs: 1,
    published: &[
        Published::of("median lateness*", "others 20 to 30 late"),
        Published::of("mean latency*, 16 in flight", "5000").amount(5000.0),
    ],
    awaits: &[],
    parameters: &[
        Parameter { what: "delay", value: "50 us", source: "Li 2020, 5.4.1" },
        Parameter {
            what: "put-back, busy loop, timer",
            value: "in the threads of a pool behind an event loop",
            source: "Li 2020, 5.4.1",
        },
        Parameter {
            what: "end-io queue",
            value: "sorted by completion time, a separate spinning thread",
            source: "Li 2020, 5.4.1",
        },
        Parameter {
            what: "busy loop in the entry path",
            value: "one thread for all requests",
            source: "Li 2020, 5.2.5",
        },
    ],
    choices: &[
        Choice {
            open: "requests in flight for the four",
            taken: "1, 2, 4, 8, 16; the end-io queue must be earliest at each",
            why: "Fig. 5.5a does not say; 16 threads is what 5.2.5 gives for the entry path",
        },
        Choice {
            open: "the criterion for the entry path",
            taken: "a mean latency of at least in-flight x 50 us, less a tenth for the shorter queue at both ends of a \
                slice",
            why: "in-flight x delay is 0.8 ms at 16; the rest of the published 5 ms is the emulator's IDE path, which takes \
                  583 us at 4 threads without any delay and is not rebuilt here",
        },
    ],
    points: || in_turns(measure),
    judge,
};

/// Requests in flight.
const DEPTHS: [usize; 5] = [1, 2, 4, 8, 16];
/// The method that must be the earliest comes first, the one that is judged alone last.
const METHODS: [Method; 5] = [Method::EndIo, Method::PutBack, Method::BusyLoop, Method::Timer, Method::EntryLoop];

fn measure(run: &Run<'_>) -> Result<Figures> {
    let clock = WallClock::start();
    let mut latencies = vec![Histogram::new(); METHODS.len() * DEPTHS.len()];
    let mut idle = idle::Idle::default();
    for round in 0..run.effort.rounds {
        (run.progress)(f64::from(round) / f64::from(run.effort.rounds));
        let points = DEPTHS.iter().flat_map(|depth| METHODS.iter().map(move |method| (*method, *depth)));
        for ((method, depth), latency) in points.zip(&mut latencies) {
            release(method, depth, clock, run.effort.slice, latency)?;
        }
        idle.run(clock, DELAY, run.effort.slice);
    }
    let mut figures = Figures::default();
    for (depth, latencies) in DEPTHS.iter().zip(latencies.chunks(METHODS.len())) {
        for (method, latency) in METHODS.iter().zip(latencies) {
            let of = |what: &str| format!("{what} of {}, {depth} in flight", method.name());
            figures.add(of("requests"), latency.count() as f64, "");
            figures.add(of("median lateness"), latency.quantile(0.5).as_us() - DELAY.as_us(), "us");
            figures.add(of("mean latency"), latency.mean_ns() / 1e3, "us");
            figures.add(of("p99 latency"), latency.quantile(0.99).as_us(), "us");
        }
    }
    idle.add_to(&mut figures);
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let (figures, mut judgement) = (results.of(TURNS)?, Judgement::default());
    let mut rows = Vec::new();
    for depth in DEPTHS {
        let of =
            |what: &str, method: Method| figures.number(&format!("{what} of {}, {depth} in flight", method.name()));
        let [end_io, others @ .., entry] = METHODS;
        let late: Result<Vec<f64>> = others.iter().map(|method| of("median lateness", *method)).collect();
        let earliest = late?.into_iter().fold(f64::INFINITY, f64::min);
        judgement.criteria.push(order::ranked(
            format!("median lateness, {depth} in flight"),
            &[(end_io.name(), vec![of("median lateness", end_io)?]), ("the earliest other", vec![earliest])],
            "us",
        ));
        judgement.criteria.push(order::above(
            format!("mean latency with a busy loop in the entry path, {depth} in flight"),
            of("mean latency", entry)?,
            "us",
            depth as f64 * DELAY.as_us(),
        ));
        for method in METHODS {
            let mut row = vec![format!("{}, {depth} in flight", method.name())];
            for what in ["requests", "median lateness", "mean latency", "p99 latency"] {
                row.push(short(of(what, method)?));
            }
            rows.push(row);
        }
    }
    judgement.tables.push(Table {
        title: "all five".to_owned(),
        head: ["", "requests", "median lateness, us", "mean latency, us", "p99, us"].map(str::to_owned).to_vec(),
        rows,
    });
    idle::show(figures, &mut judgement)?;
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn the_end_io_queue_must_be_earliest_and_the_entry_path_slow() {
        for (end_io, entry, verdict) in
            [(1.0, 810.0, Verdict::Reproduced), (30.0, 810.0, Verdict::Missed), (1.0, 700.0, Verdict::Missed)]
        {
            let mut figures = Figures::default();
            for depth in DEPTHS {
                for method in METHODS {
                    let late = if method == Method::EndIo { end_io } else { 25.0 };
                    let of = |what: &str| format!("{what} of {}, {depth} in flight", method.name());
                    figures.add(of("requests"), 1.0, "");
                    figures.add(of("median lateness"), late, "us");
                    figures.add(of("mean latency"), entry, "us");
                    figures.add(of("p99 latency"), entry, "us");
                }
            }
            idle::Idle::default().add_to(&mut figures);
            let judgement = judge(&Results(vec![(TURNS.to_owned(), figures)])).unwrap();
            assert_eq!(judgement.verdict().0, verdict, "{judgement:?}");
        }
    }
}
