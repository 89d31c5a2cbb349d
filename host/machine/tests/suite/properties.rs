//! Properties on random hosts: no thread starves, the account of time is complete, and a future that is dropped leaves nothing.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_host_machine::scheduler::{Nice, SchedulerKind};
use nandscape_host_machine::{
    Affinity, Config, Context, Event, Kind, Lock, LockKind, Machine, Mode, Policy, ThreadSpec,
};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span, Stalled};

use crate::seed;

const KINDS: [LockKind; 3] = [LockKind::Sleep, LockKind::Spin, LockKind::SpinMasked];

fn config(rng: &mut Rng) -> Config {
    let sched = if rng.chance(0.5) { SchedulerKind::Cfs } else { SchedulerKind::Eevdf };
    let us = |rng: &mut Rng, most: u64| Span::from_ns(rng.below(most * 1_000));
    Config {
        threads: 1 + rng.below(2) as usize,
        sched,
        slice: Span::from_us(25 + rng.below(30)),
        latency: Span::from_us(1 + rng.below(100)),
        wakeup: us(rng, 20),
        tick: if rng.chance(0.3) { Span::from_us(10 + rng.below(20)) } else { Span::ZERO },
        balance: rng.chance(0.5),
        switch: us(rng, 3),
        cold_cache: us(rng, 3),
        cold_core: us(rng, 3),
        interrupt: us(rng, 3),
        softirq: us(rng, 3),
        ipi: us(rng, 3),
        timer: us(rng, 3),
        lock: us(rng, 1),
        lock_transfer: us(rng, 1),
        idle_exit: us(rng, 3),
        ..Config::free(1 + rng.below(4) as usize)
    }
}

#[test]
fn no_thread_starves() {
    for number in 0..20 {
        let mut rng = Seed::new(seed()).child("starves").nth(number).rng();
        let mut executor = Executor::new();
        let sim = executor.sim();
        let machine = Machine::new(&sim, Config { tick: Span::ZERO, ..config(&mut rng) }).unwrap();
        let runs = Rc::new(Cell::new(0u32));
        let mut threads = Vec::new();
        for _ in 0..2 + rng.below(12) {
            let nice = Nice::new(rng.below(11) as i8 - 5).unwrap();
            let affinity = Affinity::one(rng.below(machine.cpus() as u64) as usize);
            let thread = Rc::new(
                machine.thread(ThreadSpec { policy: Policy::Fair(nice), affinity, ..ThreadSpec::default() }).unwrap(),
            );
            let (own, runs, work, sleep) = (thread.clone(), runs.clone(), 1 + rng.below(90), rng.below(60));
            let (sleeps, mut rng) = (rng.chance(0.4), Seed::new(rng.bits()).rng());
            sim.spawn(async move {
                loop {
                    own.work(Span::from_us(1 + rng.below(work)), Mode::User).await;
                    runs.set(runs.get() + 1);
                    if sleeps {
                        own.sleep(Span::from_us(1 + sleep)).await;
                    }
                }
            });
            threads.push(thread);
        }
        // In each part of the run each thread makes progress.
        for part in 0..10 {
            let before: Vec<Span> = threads.iter().map(|thread| thread.times().busy()).collect();
            executor.block_on(sim.sleep(Span::from_ms(10))).unwrap();
            for (thread, before) in threads.iter().zip(before) {
                assert!(
                    thread.times().busy() > before,
                    "seed {}, case {number}, part {part}: a thread starves",
                    seed()
                );
            }
        }
        assert!(runs.get() > 100);
    }
}

/// What a future gives, unless time is up before.
async fn within<F: Future>(sim: &Sim, span: Span, future: F) -> Option<F::Output> {
    let (mut future, mut timeout) = (pin!(future), pin!(sim.sleep(span)));
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timeout.as_mut().poll(context).map(|()| None),
    })
    .await
}

struct Parts {
    sim: Sim,
    machine: Machine,
    event: Event,
    locks: [Lock; 3],
}

/// One thing that a context may await, given up after a random time.
async fn act(parts: &Parts, context: &Context, is_thread: bool, rng: &mut Rng) {
    let span = |rng: &mut Rng, most| Span::from_ns(rng.below(most));
    let patience = if rng.chance(0.6) { span(rng, 20_000) } else { Span::from_ms(1) };
    let (sim, length) = (&parts.sim, span(rng, 15_000));
    match rng.below(if is_thread { 8 } else { 2 }) {
        0 => {
            within(sim, patience, context.work(length, Mode::User)).await;
        }
        1 | 2 => {
            // Interrupts take the lock that masks them, threads take all.
            let lock = &parts.locks[if is_thread { rng.below(3) as usize } else { 2 }];
            let locked = async {
                let guard = lock.acquire(context).await;
                context.work(length, Mode::Kernel).await;
                drop(guard);
            };
            within(sim, patience, locked).await;
        }
        3 => {
            within(sim, patience, context.sleep(length)).await;
        }
        4 => {
            within(sim, patience, parts.event.wait(context)).await;
        }
        5 => {
            within(sim, patience, context.yield_now()).await;
        }
        6 => {
            within(sim, patience, context.spin_until(sim.sleep(length))).await;
        }
        _ => {
            parts.event.notify_from(context);
            context.work(length, Mode::Kernel).warm_on(0).await;
        }
    }
}

/// A host on which everything is given up at random. Returns the accounts of its processors, and when the last event was.
fn give_up(number: u64, mut executor: Executor) -> (Vec<nandscape_host_machine::Times>, Stalled) {
    let mut rng = Seed::new(seed()).child("drops").nth(number).rng();
    let sim = executor.sim();
    let machine = Machine::new(&sim, config(&mut rng)).unwrap();
    let locks = KINDS.map(|kind| Lock::new(&machine, kind));
    let parts = Rc::new(Parts { sim: sim.clone(), machine: machine.clone(), event: Event::new(&machine), locks });
    for _ in 0..3 + rng.below(8) {
        let (parts, mut rng) = (parts.clone(), Seed::new(rng.bits()).rng());
        sim.spawn(async move {
            for _ in 0..30 {
                let policy = match rng.chance(0.2) {
                    true => Policy::Realtime(rng.below(3) as u8),
                    false => Policy::Fair(Nice::new(rng.below(40) as i8 - 20).unwrap()),
                };
                let thread = parts.machine.thread(ThreadSpec { policy, ..ThreadSpec::default() }).unwrap();
                for _ in 0..rng.below(6) {
                    act(&parts, &thread, true, &mut rng).await;
                }
                if rng.chance(0.2) {
                    let cpu = rng.below(parts.machine.cpus() as u64) as usize;
                    thread.set_affinity(Affinity::one(cpu)).unwrap();
                    thread.work(Span::from_us(3), Mode::User).await;
                }
            }
        });
    }
    let (devices, mut of_devices) = (parts.clone(), Seed::new(rng.bits()).rng());
    sim.spawn(async move {
        for _ in 0..100 {
            devices.sim.sleep(of_devices.exponential(5e3)).await;
            let cpu = of_devices.below(devices.machine.cpus() as u64) as usize;
            let make = [Machine::interrupt, Machine::softirq, Machine::ipi][of_devices.below(3) as usize];
            let irq = make(&devices.machine, cpu).unwrap();
            let (parts, mut rng) = (devices.clone(), Seed::new(of_devices.bits()).rng());
            devices.sim.spawn(async move {
                for _ in 0..1 + rng.below(3) {
                    act(&parts, &irq, false, &mut rng).await;
                }
                parts.event.notify();
            });
        }
    });
    // Waiters that no one notifies give up after their time, so all ends.
    let ended = executor.block_on(std::future::pending::<()>()).unwrap_err();
    assert_eq!((machine.contexts(), parts.event.waiting()), (0, 0), "seed {}, case {number}", seed());
    assert!(parts.locks.iter().all(|lock| !lock.is_held() && lock.waiting() == 0), "seed {}, case {number}", seed());
    let accounts: Vec<_> = (0..machine.cpus()).map(|cpu| machine.usage(cpu)).collect();
    // What contexts spent is what processors spent; interrupts of the machine itself belong to no context.
    let (of_contexts, of_cpus) = (machine.ended(), machine.total());
    for (_, kind) in Kind::ALL.into_iter().filter(|(_, kind)| !matches!(kind, Kind::Idle | Kind::Interrupt)) {
        assert_eq!(of_contexts.by(kind), of_cpus.by(kind), "seed {}, case {number}, {kind:?}", seed());
    }
    assert!(of_contexts.by(Kind::Interrupt) <= of_cpus.by(Kind::Interrupt));
    assert!(accounts.iter().all(|times| times.total() == ended.at - nandscape_sim::Time::ZERO));
    (accounts, ended)
}

#[test]
fn futures_that_are_dropped_at_any_await_leave_nothing_behind() {
    for number in 0..40 {
        let one = give_up(number, Executor::new());
        assert_eq!(one, give_up(number, Executor::with_spurious_polls()), "seed {}, case {number}", seed());
    }
}

#[test]
fn an_executor_that_stops_in_the_midst_drops_everything() {
    for number in 0..10 {
        let mut rng = Seed::new(seed()).child("stops").nth(number).rng();
        let mut executor = Executor::new();
        let sim = executor.sim();
        let machine = Machine::new(&sim, config(&mut rng)).unwrap();
        let locks = KINDS.map(|kind| Lock::new(&machine, kind));
        let parts = Rc::new(Parts { sim: sim.clone(), machine: machine.clone(), event: Event::new(&machine), locks });
        for _ in 0..8 {
            let (parts, mut rng) = (parts.clone(), Seed::new(rng.bits()).rng());
            sim.spawn(async move {
                let thread = parts.machine.thread(ThreadSpec::default()).unwrap();
                loop {
                    act(&parts, &thread, true, &mut rng).await;
                }
            });
        }
        executor.block_on(sim.sleep(Span::from_ns(rng.below(200_000)))).unwrap();
        drop(executor);
        assert_eq!(Rc::strong_count(&parts), 1);
    }
}
