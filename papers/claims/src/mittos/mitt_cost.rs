//! The cost of MittSSD on this machine: a rejection, a prediction, and all accounting of a read, with 1 to 4,096 reads
//! outstanding.
//!
//! Left out: the system call, which the paper's 5 us include. Program and block layer are one process here.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;

use anyhow::{Context as _, Result, anyhow, ensure};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{ManagedFlash, Ssd};
use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, HostMem, Io, Issuer, QueueDrive, QueueId, Token};
use nandscape_host_block::predictor::{Flash, MittSsd, Order, Predictor};
use nandscape_host_block::{BlockLayer, Config, Request};
use nandscape_sim::{Executor, Histogram, Rng, Sim, Span};
use nandscape_transport_reactor::WallClock;
use nandscape_wire_nvme::vendor::BUSY;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::mittos::rig;
use crate::wall::cores::{DRIVE, on_core};
use crate::wall::{TURNS, idle, in_turns};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, atmost, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "mitt-cost",
        source: &[(Paper::Li, "3.1.3, 3.1.7")],
        says: "EBUSY comes back in under 5 us; the SSD predictor costs 300 ns per I/O and is O(1)",
        show: Some(
            "measured on this machine: rejection under 5 us, prediction under 300 ns and flat from 1 to 4096 I/Os pending",
        ),
        ruling: None,
        check: Check::AtMost,
        kind: Kind::Result,
    },
    clock: Clock::Wall,
    runs: 1,
    published: &[Published::of("a rejection*", "under 5"), Published::of("*under way against one", "O(1)")],
    awaits: &[],
    parameters: &[
        rig::DRIVE,
        Parameter {
            what: "reads",
            value: "of 4 KiB, at random places of the 16 MiB that hold data",
            source: "Li 2020, 3.1.7: a 4 KiB read",
        },
    ],
    choices: &[
        Choice {
            open: "a rejection",
            taken: "from the submission of a read with a deadline of 1 us to its completion, in one process",
            why: "the paper's figure includes a system call, which takes less than a microsecond; here is none",
        },
        Choice {
            open: "300 ns per I/O",
            taken: "the mean of a batch of 256, median over batches, of predictions, and of all that is done for a read that is let in: \
                    its prediction, and its account when it is let in and when it has ended",
            why: "a clock is read in some 30 ns, which a batch spreads; the paper does not say which part it means",
        },
        Choice {
            open: "\"flat\"",
            taken: "with 4,096 reads under way a prediction takes at most half as much again as with one",
            why: "one step for each would take thousands of times as long; more memory is in use, and caches are smaller than it",
        },
    ],
    points: || in_turns(measure),
    judge,
};

/// Outstanding reads.
const PENDING: [usize; 5] = [1, 16, 256, 1_024, 4_096];
/// Predictions that are timed together.
const BATCH: u32 = 256;
/// Blocks that hold data.
const FILLED: u64 = 1 << 15;
const FLAT: f64 = 1.5;
const REJECTION: &str = "a rejection";
const PARTS: [&str; 2] = ["a prediction", "the account of a read"];

/// Times in nanoseconds.
#[derive(Default)]
struct Times {
    rejection: Histogram,
    /// By outstanding reads, of each part.
    parts: [[Histogram; 2]; PENDING.len()],
}

fn measure(run: &Run<'_>) -> Result<Figures> {
    let clock = WallClock::start();
    let (mut times, mut idle) = (Times::default(), idle::Idle::default());
    for round in 0..run.effort.rounds {
        (run.progress)(f64::from(round) / f64::from(run.effort.rounds));
        let seed = run.seed.nth(round.into());
        let slice = run.effort.slice;
        on_core(DRIVE, || one_round(clock, slice, seed.rng(), &mut times))?;
        idle.run(clock, Span::from_us(50), slice);
    }
    figures(&times, &idle)
}

fn figures(times: &Times, idle: &idle::Idle) -> Result<Figures> {
    let mut figures = Figures::default();
    let mut add = |name: &str, times: &Histogram, what: &str| {
        ensure!(times.count() > 0, "{name} was not timed");
        figures.add(format!("{name}: {what}"), times.count() as f64, "");
        for (quantile, of) in [(0.5, "p50"), (0.99, "p99")] {
            figures.add(format!("{name}: {of}"), times.quantile(quantile).ns() as f64, "ns");
        }
        Ok(())
    };
    add(REJECTION, &times.rejection, "reads")?;
    for (pending, parts) in PENDING.iter().zip(&times.parts) {
        for (part, times) in PARTS.iter().zip(parts) {
            add(&named(part, *pending), times, "batches")?;
        }
    }
    idle.add_to(&mut figures);
    Ok(figures)
}

fn named(part: &str, pending: usize) -> String {
    format!("{part}, {pending} under way")
}

fn one_round(clock: WallClock, slice: Span, mut rng: Rng, times: &mut Times) -> Result<()> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor.block_on(async {
        let host = Host::new(&sim).await?;
        for (pending, parts) in PENDING.iter().zip(&mut times.parts) {
            // All of this is one instant of the model: none of them ends.
            let under_way: Vec<_> = (0..*pending).map(|_| host.read(place(&mut rng))).collect();
            host.time_predictions(clock, slice, &mut rng, parts);
            if *pending == 1_024 {
                host.time_rejections(clock, slice, &mut rng, &mut times.rejection)?;
            }
            for read in under_way {
                ensure!(read.await.status.is_success(), "a read failed");
            }
        }
        Ok(())
    })?
}

fn place(rng: &mut Rng) -> u64 {
    rng.below(FILLED / 8) * 8
}

/// A drive that holds data, and the layer over it.
struct Host {
    sim: Sim,
    drive: Rc<dyn Drive>,
    mitt: Rc<MittSsd>,
    issuer: Issuer,
}

impl Host {
    async fn new(sim: &Sim) -> Result<Host> {
        let profile = rig::drive_of(4, 512)?;
        let ssd = Rc::new(Ssd::new(sim, &profile, StoreKind::None, nandscape_sim::Seed::new(1))?);
        let map = ManagedFlash::of(&ssd).context("the drive has one FTL with a map")?;
        let flash = Flash { sheet: map.sheet(), order: Order::Fifo, map: Box::new(map) };
        let config = Config { reject: Span::ZERO, ..Config::default() };
        let mitt = MittSsd::new(sim, flash, &config);
        ensure!(ssd.media().watch(mitt.clone()), "another one is told of the flash");
        let layer = BlockLayer::new(sim, config, Some(mitt.clone()));
        let below = QueueDrive::new(sim, ssd.controller(), QueueId(1), 1_024);
        let below = below.map_err(|status| anyhow!("the queue pair: {status}"))?;
        let drive: Rc<dyn Drive> = layer.over(below);
        let issuer = Issuer::new(sim);
        for slba in (0..FILLED).step_by(256) {
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 256);
            let ended = issuer.execute(&*drive, write, HostMem::none()).await;
            ensure!(ended.status.is_success(), "a write ended with {}", ended.status);
        }
        sim.sleep(Span::from_s(1)).await;
        Ok(Host { sim: sim.clone(), drive, mitt, issuer })
    }

    fn read(&self, slba: u64) -> nandscape_drive::issuer::Execute<'_> {
        self.issuer.execute(&*self.drive, SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 8), HostMem::none())
    }

    fn time_predictions(&self, clock: WallClock, slice: Span, rng: &mut Rng, [predict, account]: &mut [Histogram; 2]) {
        let (now, end) = (self.sim.now(), clock.now() + slice);
        while clock.now() < end {
            let requests: Vec<Request> = (0..BATCH)
                .map(|_| Request::of(&SubmissionEntry::blocks(IoOpcode::READ, 1, place(rng), 8), None, now))
                .collect();
            let begun = clock.now();
            for request in &requests {
                black_box(self.mitt.predict(black_box(request), now));
            }
            let between = clock.now();
            for request in &requests {
                let prediction = self.mitt.predict(black_box(request), now);
                let ticket = self.mitt.accept(request, &prediction, now);
                self.mitt.ended(ticket, now);
            }
            let ended = clock.now();
            let each = |span: Span| Span::from_ns(span.ns() / u64::from(BATCH));
            predict.record(each(between - begun));
            account.record(each(ended - between));
        }
    }

    fn time_rejections(&self, clock: WallClock, slice: Span, rng: &mut Rng, times: &mut Histogram) -> Result<()> {
        let ends = Rc::new(Ends { clock, sim: self.sim.clone(), rejected: Cell::default() });
        let end = clock.now() + slice;
        while clock.now() < end {
            let mut command = SubmissionEntry::blocks(IoOpcode::READ, 1, place(rng), 8);
            command.cdw3 = 1.into();
            ends.rejected.set(None);
            let token = Token::new(ends.clone(), 0);
            let begun = clock.now();
            self.drive.submit(Io { command, mem: HostMem::none(), token });
            let rejected = ends.rejected.get().context("a read whose chip is busy was not rejected at once")?;
            times.record(rejected - begun);
        }
        Ok(())
    }
}

/// Notes when a read is rejected.
struct Ends {
    clock: WallClock,
    sim: Sim,
    rejected: Cell<Option<nandscape_sim::Time>>,
}

impl Sink for Ends {
    fn complete(&self, _: u64, completion: Completion) {
        self.rejected.set((completion.status.meaning() == BUSY).then(|| self.clock.now()));
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

fn judge(results: &Results) -> Result<Judgement> {
    let (figures, mut judgement) = (results.of(TURNS)?, Judgement::default());
    let p50 = |name: &str| figures.number(&format!("{name}: p50"));
    for of in ["p50", "p99"] {
        let ns = figures.number(&format!("{REJECTION}: {of}"))?;
        judgement.criteria.push(order::below(format!("{REJECTION}, {of}"), ns / 1e3, "us", 5.0));
    }
    let mut rows = vec![row(figures, REJECTION, "reads")?];
    for part in PARTS {
        for pending in PENDING {
            let name = named(part, pending);
            judgement.criteria.push(atmost::cost(format!("{name}, p50"), p50(&name)?, "ns", 300.0));
            rows.push(row(figures, &name, "batches")?);
        }
        let [first, last] = [PENDING[0], PENDING[PENDING.len() - 1]].map(|pending| p50(&named(part, pending)));
        let grows = last? / first?.max(1.0);
        judgement.criteria.push(order::at_most(format!("{part}: 4,096 under way against one"), grows, "", FLAT));
    }
    judgement.tables.push(Table {
        title: "times".to_owned(),
        head: ["", "timed", "p50, ns", "p99, ns"].map(str::to_owned).to_vec(),
        rows,
    });
    idle::show(figures, &mut judgement)?;
    Ok(judgement)
}

fn row(figures: &Figures, name: &str, what: &str) -> Result<Vec<String>> {
    let of = |what: &str| Ok::<_, anyhow::Error>(short(figures.number(&format!("{name}: {what}"))?));
    Ok(vec![name.to_owned(), of(what)?, of("p50")?, of("p99")?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(rejection: u64, first: u64, last: u64) -> Verdict {
        let mut times = Times::default();
        times.rejection.record(Span::from_ns(rejection));
        for (pending, parts) in PENDING.iter().zip(&mut times.parts) {
            parts.iter_mut().for_each(|part| part.record(Span::from_ns(if *pending == 4_096 { last } else { first })));
        }
        let mut idle = idle::Idle::default();
        for late in [&mut idle.alone, &mut idle.told] {
            late.record(Span::from_ns(100));
        }
        let figures = figures(&times, &idle).unwrap();
        judge(&Results(vec![(TURNS.to_owned(), figures)])).unwrap().verdict().0
    }

    #[test]
    fn slow_rejections_slow_predictions_and_those_that_grow_are_misses() {
        assert_eq!(verdict(900, 100, 120), Verdict::Reproduced);
        assert_eq!(verdict(6_000, 100, 120), Verdict::Missed);
        assert_eq!(verdict(900, 310, 310), Verdict::Missed);
        assert_eq!(verdict(900, 100, 200), Verdict::Missed);
    }
}
