//! Random hosts and loads: stages sum to the latency, nothing remains of what is dropped, and the account holds.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::{CommandRef, Completion, Drive, HostMem, Io, Token};
use nandscape_host_machine::{Kind, ThreadSpec};
use nandscape_host_path::{Config, Threads, Waiting};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span, Time};
use nandscape_wire_nvme::Status;

use crate::announcing::Lead;
use crate::rig::{BEGINNING, DRIVE_US, Rig, config, read, rig_on, rig_with, stages, write};

pub(crate) fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

/// Any host with few processors.
pub(crate) fn any_host(rng: &mut Rng) -> Config {
    let one_of = |rng: &mut Rng, all: &[&str]| all[rng.below(all.len() as u64) as usize].to_owned();
    let cores = 1 + rng.below(3) as usize;
    let changes = [
        format!("host.completion={}", one_of(rng, &["interrupt", "poll", "hybrid", "adaptive", "precompletion"])),
        one_of(rng, &["host.patience=0", "host.patience=5us", "host.patience=200us"]),
        one_of(rng, &["host.path=nvme", "host.path=scsi"]),
        one_of(rng, &["host.queues=0", "host.queues=1"]),
        one_of(rng, &["host.completion_queues=0", "host.completion_queues=1"]),
        one_of(rng, &["host.affinity=auto", "host.affinity=0"]),
        one_of(rng, &["host.coalesce=1", "host.coalesce=3"]),
        one_of(rng, &["host.sched=cfs", "host.sched=eevdf"]),
        one_of(rng, &["host.load=0", "host.load=2"]),
        one_of(rng, &["host.poll_sleep=50%", "host.poll_sleep=90%"]),
        one_of(rng, &["host.threads=1", "host.threads=2"]),
        one_of(rng, &["host.copy=0", "host.copy=2us"]),
        one_of(rng, &["host.lock=0", "host.lock=1us"]),
        one_of(rng, &["host.lock_transfer=0", "host.lock_transfer=7us"]),
        "host.slice=200us".to_owned(),
    ];
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    config(cores, &changes)
}

/// A drive that announces rightly, wrongly or not at all.
fn any_lead(rng: &mut Rng) -> Lead {
    let us = |us| Span::from_us(us);
    let before = rng.chance(0.8).then(|| us(rng.below(DRIVE_US)));
    let predicts = if rng.chance(0.5) { before.unwrap_or(us(9)) } else { us(rng.below(2 * DRIVE_US)) };
    Lead { before, predicts, free: rng.below(4) as u32 }
}

/// Any host with a strategy or the path of SCSI, and its queues: number, tags, chunk.
fn any_strategy(rng: &mut Rng) -> (Config, (usize, usize, Option<u64>)) {
    let mut config = any_host(rng);
    let one_of = |rng: &mut Rng, all: &[&str]| all[rng.below(all.len() as u64) as usize].to_owned();
    let path = one_of(rng, &["scsi", "non_blocking", "lazy", "cooperative", "cooperative"]);
    let mut changes = vec![format!("host.path={path}"), "host.queues=0".to_owned()];
    changes.push(one_of(rng, &["host.completion_queues=0", "host.completion_queues=1"]));
    if path != "scsi" {
        let poll = one_of(rng, &["off", "off", "0", "16us", "100us"]);
        changes.extend(["host.completion=interrupt".to_owned(), "host.coalesce=1".to_owned()]);
        changes.push(format!("host.poll_thread={poll}"));
    }
    changes.push(one_of(rng, &["host.midlayer=0", "host.midlayer=3us"]));
    changes.push(one_of(rng, &["host.cold_core=0", "host.cold_core=2us"]));
    changes.iter().for_each(|change| config.set(change).unwrap());
    let queues = any_queues(rng, &config);
    (config, queues)
}

/// Any queues of a host: number, tags, chunk.
pub(crate) fn any_queues(rng: &mut Rng, config: &Config) -> (usize, usize, Option<u64>) {
    let tags = [1, 2, 5, usize::MAX][rng.below(4) as usize];
    let is_stripe = rng.below(2) == 0;
    let count = if is_stripe { 1 + rng.below(3) as usize } else { config.queue_pairs(64) };
    (count, tags, is_stripe.then_some(8))
}

/// As many queues as a host uses, which take any number of commands.
fn plain(config: Config) -> (Config, (usize, usize, Option<u64>)) {
    let count = config.queue_pairs(64);
    (config, (count, usize::MAX, None))
}

/// A closed loop: each completion is followed by the next command.
pub(crate) struct Loop {
    sim: Sim,
    drive: RefCell<Option<Rc<dyn Drive>>>,
    left: Cell<u32>,
    begun: RefCell<Vec<Time>>,
    pub(crate) ended: Cell<u32>,
    pub(crate) status: Cell<Status>,
}

impl Loop {
    pub(crate) fn issue(self: &Rc<Loop>) {
        let Some(left) = self.left.get().checked_sub(1) else { return };
        self.left.set(left);
        let tag = self.begun.borrow().len() as u64;
        self.begun.borrow_mut().push(self.sim.now());
        let token = Token::new(Rc::new(Again(self.clone())), tag);
        let drive = self.drive.borrow().clone().expect("a drive");
        drive.submit(Io { command: if left % 3 == 0 { write() } else { read() }, mem: HostMem::none(), token });
    }
}

struct Again(Rc<Loop>);

impl Sink for Again {
    fn complete(&self, tag: u64, completion: Completion) {
        let Again(of) = self;
        let latency = of.sim.now() - of.begun.borrow()[tag as usize];
        let in_host = completion.breakdown.total();
        assert_eq!(latency, in_host + Span::from_us(DRIVE_US), "seed {}: {:?}", seed(), stages(&completion.breakdown));
        of.ended.set(of.ended.get() + 1);
        of.status.set(completion.status);
        of.issue();
    }

    fn is_stopped(&self) -> bool {
        self.0.sim.is_stopped()
    }
}

fn looped(rig: &Rig, threads: u32, commands: u32) -> Rc<Loop> {
    let drive = Threads::new(&rig.path, rig.path.info(), (threads, threads), ThreadSpec::default()).unwrap();
    looped_on(rig, drive, commands)
}

pub(crate) fn looped_on(rig: &Rig, drive: Rc<dyn Drive>, commands: u32) -> Rc<Loop> {
    Rc::new(Loop {
        sim: rig.sim.clone(),
        drive: RefCell::new(Some(drive)),
        left: Cell::new(commands),
        begun: RefCell::default(),
        ended: Cell::new(0),
        status: Cell::new(Status::SUCCESS),
    })
}

#[test]
fn stages_sum_to_the_latency_on_any_host() {
    let mut rng = Seed::new(seed()).child("hosts").rng();
    for host in 0..120 {
        let (config, queues) = if host % 2 == 0 { plain(any_host(&mut rng)) } else { any_strategy(&mut rng) };
        let mut rig = rig_on(config.clone(), Executor::with_spurious_polls(), queues);
        rig.lead.set(any_lead(&mut rng));
        let (threads, depth) = (1 + rng.below(5) as u32, 1 + rng.below(7) as u32);
        let of = looped(&rig, threads, 60);
        (0..depth).for_each(|_| of.issue());
        rig.executor.block_on(rig.sim.sleep(Span::from_ms(900))).unwrap();
        assert_eq!(
            (of.ended.get(), of.status.get()),
            (60, Status::SUCCESS),
            "seed {}, host {host}: {config:?}",
            seed()
        );
        assert_eq!(rig.path.waiting(), Waiting::default(), "host {host}");
        let machine = rig.path.machine();
        let elapsed = rig.sim.now().since(BEGINNING);
        (0..machine.cpus()).for_each(|cpu| assert_eq!(machine.usage(cpu).total(), elapsed));
    }
}

#[test]
fn the_same_host_does_the_same_again() {
    let run = || {
        let mut rng = Seed::new(seed()).child("again").rng();
        let mut rig = rig_with(any_host(&mut rng), Executor::new());
        let of = looped(&rig, 4, 200);
        (0..6).for_each(|_| of.issue());
        rig.executor.block_on(rig.sim.sleep(Span::from_ms(100))).unwrap();
        (of.begun.take(), rig.path.machine().total(), rig.path.interrupts())
    };
    assert_eq!(run(), run());
}

#[test]
fn an_io_that_is_dropped_at_any_instant_leaves_nothing_behind() {
    let mut rng = Seed::new(seed()).child("drops").rng();
    for host in 0..80 {
        let (config, queues) = if host % 2 == 0 { plain(any_host(&mut rng)) } else { any_strategy(&mut rng) };
        let without_load = Config { load: 0, ..config.clone() };
        let mut rig = rig_on(without_load, Executor::with_spurious_polls(), queues);
        rig.lead.set(any_lead(&mut rng));
        let before = rig.path.machine().contexts();
        for _ in 0..12 {
            let dropped_at = Span::from_us(rng.below(260));
            let (path, sim) = (rig.path.clone(), rig.sim.clone());
            let thread = path.machine().thread(ThreadSpec::default()).unwrap();
            let run = async {
                let mut reading = std::pin::pin!(Rig::read(&path, &sim, &thread));
                let mut timer = std::pin::pin!(sim.sleep(dropped_at));
                std::future::poll_fn(|context| {
                    if reading.as_mut().poll(context).is_ready() || timer.as_mut().poll(context).is_ready() {
                        return std::task::Poll::Ready(());
                    }
                    std::task::Poll::Pending
                })
                .await;
            };
            rig.executor.block_on(run).unwrap();
            drop(thread);
        }
        rig.executor.block_on(rig.sim.sleep(Span::from_ms(5))).unwrap();
        let waiting = rig.path.waiting();
        assert_eq!(waiting, Waiting::default(), "seed {}, host {host}: {config:?}", seed());
        assert_eq!(rig.path.machine().contexts(), before, "seed {}, host {host}: {config:?}", seed());
        // The host still works.
        let of = looped(&rig, 2, 10);
        of.issue();
        rig.executor.block_on(rig.sim.sleep(Span::from_ms(50))).unwrap();
        assert_eq!(of.ended.get(), 10, "seed {}, host {host}", seed());
    }
}

/// What a command ended with.
struct Ended(Sim, Cell<Option<Status>>);

impl Sink for Ended {
    fn complete(&self, _: u64, completion: Completion) {
        self.1.set(Some(completion.status));
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

#[test]
fn what_waits_for_a_thread_can_be_cancelled_and_what_has_one_cannot() {
    let mut rig = rig_with(config(1, &[]), Executor::new());
    let drive = Threads::new(&rig.path, rig.path.info(), (1, 1), ThreadSpec::default()).unwrap();
    let ended: Vec<Rc<Ended>> = (0..2).map(|_| Rc::new(Ended(rig.sim.clone(), Cell::new(None)))).collect();
    for of in &ended {
        drive.submit(Io { command: read(), mem: HostMem::none(), token: Token::new(of.clone(), 7) });
    }
    rig.executor.block_on(rig.sim.sleep(Span::from_us(50))).unwrap();
    let cancelled = ended.iter().cloned().map(|of| drive.cancel(CommandRef::new(&(of as Rc<dyn Sink>), 7)));
    assert_eq!(cancelled.collect::<Vec<bool>>(), [false, true]);
    assert_eq!(ended[1].1.get(), Some(Status::ABORT_REQUESTED));
    rig.executor.block_on(rig.sim.sleep(Span::from_ms(5))).unwrap();
    assert_eq!((ended[0].1.get(), drive.waiting()), (Some(Status::SUCCESS), 0));
}

#[test]
fn a_load_takes_the_processor_from_threads_that_poll() {
    let latency = |changes: &[&str]| {
        let mut rig = rig_with(config(1, changes), Executor::new());
        let of = looped(&rig, 1, 50);
        of.issue();
        let run = async {
            while of.ended.get() < 50 {
                rig.sim.sleep(Span::from_us(50)).await;
            }
        };
        rig.executor.block_on(run).unwrap();
        let load: Span = rig.path.load_times().iter().map(|times| times.by(Kind::User)).sum();
        let elapsed = rig.sim.now().since(BEGINNING).as_us();
        (elapsed, load.as_us() / elapsed)
    };
    let (alone, none) = latency(&["host.completion=poll"]);
    let (busy, share) = latency(&["host.completion=poll", "host.load=1"]);
    assert_eq!(none, 0.0);
    assert!(busy > alone * 1.7 && (0.35..0.6).contains(&share), "{alone} {busy} {share}");
}
