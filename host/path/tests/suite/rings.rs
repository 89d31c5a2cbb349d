//! Rings: what an I/O costs with each, what several share, and stages that sum to the latency.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::{CommandRef, Completion, Drive, HostMem, Io, Token};
use nandscape_host_machine::{Kind, ThreadSpec};
use nandscape_host_path::{Config, Reactor, Ring, RingKind, Waiting, stage};
use nandscape_sim::{Executor, Seed, Sim, Span, Time};
use nandscape_wire_nvme::Status;

use crate::properties::{any_host, any_queues, looped_on, seed};
use crate::rig::{DRIVE_US, Rig, config, host_us, read, rig, rig_on, stages};

const KINDS: [RingKind; 3] = [RingKind::DeferTaskrun, RingKind::Iopoll, RingKind::Sqpoll];

/// Ends of requests: latency, and the host's stages.
struct Log(Sim, RefCell<Vec<(u64, Completion)>>, RefCell<Vec<Time>>);

impl Sink for Log {
    fn complete(&self, tag: u64, completion: Completion) {
        let Log(sim, ended, begun) = self;
        let latency = (sim.now() - begun.borrow()[tag as usize]).ns() / 1_000;
        ended.borrow_mut().push((latency, completion));
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

fn ring_of(rig: &Rig, kind: RingKind) -> Rc<Ring> {
    Ring::new(&rig.path, rig.path.info(), kind, ThreadSpec::default()).unwrap()
}

/// Requests that come at once, and what each took.
fn requests(rig: &mut Rig, ring: &dyn Drive, count: usize) -> Vec<(u64, Completion)> {
    let log = Rc::new(Log(rig.sim.clone(), RefCell::default(), RefCell::default()));
    for tag in 0..count {
        log.2.borrow_mut().push(rig.sim.now());
        ring.submit(Io { command: read(), mem: HostMem::none(), token: Token::new(log.clone(), tag as u64) });
    }
    rig.executor.block_on(rig.sim.sleep(Span::from_us(900))).unwrap();
    assert_eq!((log.1.borrow().len(), rig.path.waiting()), (count, Waiting::default()));
    log.1.take()
}

fn busy(rig: &Rig) -> u64 {
    let total = rig.path.machine().total();
    (total.busy() - total.by(Kind::Spin)).ns() / 1_000
}

#[test]
fn one_io_costs_its_entries_a_system_call_and_its_completion() {
    let one = |kind| {
        let mut rig = rig(config(1, &["host.ring_entry=6us"]));
        let ring = ring_of(&rig, kind);
        rig.executor.block_on(rig.sim.sleep(Span::from_us(10))).unwrap();
        let (latency, completion) = requests(&mut rig, &*ring, 1).remove(0);
        assert_eq!(host_us(&completion.breakdown), latency - DRIVE_US);
        (latency, stages(&completion.breakdown), rig.path.interrupts())
    };
    let way_in = 16 + 3 + 10 + 3 + 5 + 3;
    let (latency, stages, interrupts) = one(RingKind::DeferTaskrun);
    assert_eq!((latency, interrupts), (way_in + DRIVE_US + (1 + 7) + 11 + 16 + 9 + 10, 1));
    for expected in
        [(stage::RING, 6), (stage::SYSCALL, 20), (stage::SWITCH, 32), (stage::INTERRUPT, 8), (stage::COMPLETE, 9)]
    {
        assert!(stages.contains(&expected), "{expected:?} of {stages:?}");
    }
    let (latency, stages, interrupts) = one(RingKind::Iopoll);
    assert_eq!((latency, interrupts), (way_in + DRIVE_US + 13 + 7 + 9 + 10, 0));
    assert!(stages.contains(&(stage::POLL, 13)) && stages.contains(&(stage::COMPLETE, 16)), "{stages:?}");
}

#[test]
fn several_ios_share_a_system_call() {
    let spent = |kind, count| {
        let mut rig = rig(config(1, &[]));
        let ring = ring_of(&rig, kind);
        requests(&mut rig, &*ring, count);
        busy(&rig)
    };
    let (one, eight) = (spent(RingKind::Iopoll, 1), spent(RingKind::Iopoll, 8));
    let each = 5 + 3 + 13 + 7 + 9;
    assert!(eight - one >= 7 * each && eight < one + 7 * each + 3 * 20, "{one}, {eight}");
    assert!(spent(RingKind::DeferTaskrun, 8) < 8 * spent(RingKind::DeferTaskrun, 1));
}

#[test]
fn the_thread_of_the_kernel_saves_the_system_call_as_long_as_it_looks() {
    let mut rig = rig(config(2, &["host.sqpoll_idle=2ms"]));
    let ring = ring_of(&rig, RingKind::Sqpoll);
    rig.executor.block_on(rig.sim.sleep(Span::from_us(10))).unwrap();
    let asleep = requests(&mut rig, &*ring, 1).remove(0);
    let awake = requests(&mut rig, &*ring, 1).remove(0);
    let syscall = |of: &Completion| {
        stages(&of.breakdown).iter().find(|(name, _)| *name == stage::SYSCALL).map_or(0, |(_, us)| *us)
    };
    // Asleep, it is woken by a system call. The way out is that of a thread that slept.
    assert_eq!((syscall(&asleep.1), syscall(&awake.1)), (20 + 11 + 10, 10));
    assert!(awake.0 + 31 <= asleep.0, "{} {}", awake.0, asleep.0);
    let spun = rig.path.machine().total().by(Kind::Spin);
    rig.executor.block_on(rig.sim.sleep(Span::from_ms(20))).unwrap();
    let more = rig.path.machine().total().by(Kind::Spin) - spun;
    assert!(more < Span::from_ms(2), "it sleeps after 2 ms: {more}");
    assert_eq!(syscall(&requests(&mut rig, &*ring, 1).remove(0).1), 20 + 11 + 10);
}

#[test]
fn stages_sum_to_the_latency_on_any_host() {
    let mut rng = Seed::new(seed()).child("rings").rng();
    for host in 0..60 {
        let mut config = any_host(&mut rng);
        config.set("host.completion=interrupt").unwrap();
        config.set("host.ring_entry=2us").unwrap();
        config.set("host.midlayer=3us").unwrap();
        let config = Config { sqpoll_idle: Span::from_us(rng.below(300)), ..config };
        let kind = KINDS[host % KINDS.len()];
        let queues = any_queues(&mut rng, &config);
        let mut rig = rig_on(config.clone(), Executor::with_spurious_polls(), queues);
        let of = looped_on(&rig, ring_of(&rig, kind), 60);
        (0..1 + rng.below(7)).for_each(|_| of.issue());
        rig.executor.block_on(rig.sim.sleep(Span::from_ms(400))).unwrap();
        let ended = (of.ended.get(), of.status.get());
        assert_eq!(ended, (60, Status::SUCCESS), "seed {}, host {host}, {kind:?}: {config:?}", seed());
        assert_eq!(rig.path.waiting(), Waiting::default(), "host {host}");
        let (machine, elapsed) = (rig.path.machine(), rig.sim.now().since(Time::ZERO));
        (0..machine.cpus()).for_each(|cpu| assert_eq!(machine.usage(cpu).total(), elapsed));
    }
}

#[test]
fn a_request_that_the_thread_has_not_taken_can_be_cancelled() {
    let mut rig = rig(config(1, &[]));
    let ring = ring_of(&rig, RingKind::DeferTaskrun);
    let log = Rc::new(Log(rig.sim.clone(), RefCell::default(), RefCell::new(vec![Time::ZERO; 2])));
    for tag in 0..2 {
        ring.submit(Io { command: read(), mem: HostMem::none(), token: Token::new(log.clone(), tag) });
    }
    assert!(ring.cancel(CommandRef::new(&(log.clone() as Rc<dyn Sink>), 1)));
    assert_eq!(log.1.borrow()[0].1.status, Status::ABORT_REQUESTED);
    rig.executor.block_on(rig.sim.sleep(Span::from_ms(1))).unwrap();
    assert_eq!(log.1.borrow().len(), 2);
    assert!(!ring.cancel(CommandRef::new(&(log.clone() as Rc<dyn Sink>), 0)));
}

#[test]
fn a_reactor_pays_for_the_driver_and_its_looks_alone() {
    let with = |count| {
        let mut rig = rig(config(2, &["host.ring_entry=6us", "host.copy=30us", "host.user=40us"]));
        let reactor = Reactor::new(&rig.path, 1).unwrap().connect(rig.path.info());
        rig.executor.block_on(rig.sim.sleep(Span::from_us(20))).unwrap();
        let ended = requests(&mut rig, &*reactor, count);
        ended.iter().for_each(|(latency, ended)| assert_eq!(host_us(&ended.breakdown), latency - DRIVE_US));
        let kinds = [Kind::Kernel, Kind::Interrupt, Kind::Softirq].map(|kind| rig.path.machine().total().by(kind));
        assert_eq!((kinds, rig.path.interrupts()), ([Span::ZERO; 3], 0), "outside the kernel");
        assert_eq!(rig.path.machine().usage(1).by(Kind::User), Span::from_us(63 * count as u64));
        assert!(rig.path.machine().usage(0).busy().is_zero() && rig.path.machine().usage(1).by(Kind::Idle).is_zero());
        ended
    };
    let (latency, completion) = with(1).remove(0);
    assert_eq!(latency, 40 + 3 + DRIVE_US + 13 + 7);
    let mut stages = stages(&completion.breakdown);
    stages.sort_unstable();
    assert_eq!(stages, [(stage::COMPLETE, 7), (stage::DRIVER, 3), (stage::POLL, 13), (stage::THREAD, 40)]);
    // The second waits for the first, and both are found as they end.
    let both: Vec<u64> = with(2).into_iter().map(|(latency, _)| latency).collect();
    assert_eq!(both, [latency, latency + 43]);
}
