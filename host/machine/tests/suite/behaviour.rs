//! What happens when, on small hosts with round costs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_host_machine::scheduler::{Nice, SchedulerKind};
use nandscape_host_machine::{
    Affinity, Config, Context, Event, Holder, Kind, Lock, LockKind, Machine, Mode, Policy, Role, ThreadSpec,
};
use nandscape_sim::{Executor, Sim, Span};

const US: fn(u64) -> Span = Span::from_us;

struct Host {
    executor: Executor,
    sim: Sim,
    machine: Machine,
}

fn host(config: Config) -> Host {
    let executor = Executor::with_spurious_polls();
    let sim = executor.sim();
    let machine = Machine::new(&sim, config).unwrap();
    Host { executor, sim, machine }
}

impl Host {
    fn now(&self) -> u64 {
        self.sim.now().ns() / 1_000
    }

    fn thread(&self) -> Rc<Context> {
        Rc::new(self.machine.thread(ThreadSpec::default()).unwrap())
    }

    fn pinned(&self, cpu: usize) -> Rc<Context> {
        Rc::new(self.machine.thread(ThreadSpec { affinity: Affinity::one(cpu), ..ThreadSpec::default() }).unwrap())
    }

    /// A thread that works for so long, and the time at which it is done.
    fn works(&self, thread: &Rc<Context>, us: u64) -> Rc<Cell<u64>> {
        let (sim, thread, done) = (self.sim.clone(), thread.clone(), Rc::new(Cell::new(0)));
        let told = done.clone();
        self.sim.spawn(async move {
            thread.work(US(us), Mode::User).await;
            told.set(sim.now().ns() / 1_000);
        });
        done
    }

    fn run(&mut self, us: u64) {
        self.executor.block_on(self.sim.sleep(US(us))).unwrap();
    }

    fn us(&self, cpu: usize, kind: Kind) -> u64 {
        self.machine.usage(cpu).by(kind).ns() / 1_000
    }
}

#[test]
fn an_interrupt_takes_the_processor_at_once_and_work_keeps_its_rest() {
    let mut host = host(Config { interrupt: US(2), softirq: US(1), switch: US(3), ..Config::free(1) });
    let thread = host.thread();
    let done = host.works(&thread, 100);
    host.run(10);
    let machine = host.machine.clone();
    let irq = machine.interrupt(0).unwrap();
    let sim = host.sim.clone();
    let handled = async {
        irq.work(US(5), Mode::Kernel).await;
        let softirq = machine.softirq(0).unwrap();
        drop(irq);
        softirq.work(US(10), Mode::Kernel).await;
        sim.now().ns() / 1_000
    };
    assert_eq!(host.executor.block_on(handled).unwrap(), 10 + 2 + 5 + 1 + 10);
    host.run(200);
    assert_eq!(done.get(), 3 + 100 + 18);
    let of = |kind| host.us(0, kind);
    assert_eq!(Kind::ALL.map(|(_, kind)| of(kind)), [100, 0, 7, 11, 3, 0, 0, 228 - 121]);
    assert_eq!((thread.times().by(Kind::User), thread.times().by(Kind::Switch)), (US(100), US(3)));
}

#[test]
fn hard_interrupts_interrupt_softirqs_and_wait_for_each_other() {
    let mut host = host(Config::free(2));
    let log = Rc::new(RefCell::new(Vec::new()));
    for (name, is_hard, at, work) in [("soft", false, 0, 30), ("hard", true, 10, 10), ("late", true, 15, 10)] {
        let (sim, machine, log) = (host.sim.clone(), host.machine.clone(), log.clone());
        host.sim.spawn(async move {
            sim.sleep(US(at)).await;
            let irq = if is_hard { machine.interrupt(1) } else { machine.softirq(1) }.unwrap();
            irq.work(US(work), Mode::Kernel).await;
            log.borrow_mut().push((name, sim.now().ns() / 1_000));
        });
    }
    host.run(100);
    assert_eq!(*log.borrow(), [("hard", 20), ("late", 30), ("soft", 50)]);
    assert_eq!((host.us(1, Kind::Interrupt), host.us(1, Kind::Softirq), host.us(0, Kind::Idle)), (20, 30, 100));
}

#[test]
fn a_sleep_ends_with_a_timer_and_a_switch() {
    let mut host = host(Config { timer: US(1), switch: US(2), idle_exit: US(4), ..Config::free(1) });
    let (thread, sim) = (host.thread(), host.sim.clone());
    let slept = async {
        thread.work(US(10), Mode::User).await;
        thread.sleep(US(50)).await;
        sim.now().ns() / 1_000
    };
    assert_eq!(host.executor.block_on(slept).unwrap(), 6 + 10 + 50 + 1 + 6);
    assert_eq!((host.us(0, Kind::Interrupt), host.us(0, Kind::Switch), host.us(0, Kind::Idle)), (1, 12, 50));
    assert_eq!(thread.counts().switches, 2);
}

#[test]
fn a_thread_that_is_woken_from_another_processor_costs_that_an_interrupt() {
    let mut host = host(Config { ipi: US(3), cold_core: US(7), ..Config::free(2) });
    let (event, there, done) = (Rc::new(Event::new(&host.machine)), host.pinned(1), Rc::new(Cell::new(0)));
    let (waits, told, sim) = (event.clone(), done.clone(), host.sim.clone());
    host.sim.spawn(async move {
        waits.wait(&there).await;
        there.work(US(10), Mode::User).warm_on(0).await;
        told.set(sim.now().ns() / 1_000);
    });
    let here = host.pinned(0);
    host.executor.block_on(here.work(US(20), Mode::User)).unwrap();
    assert!(event.notify_from(&here) && !event.notify());
    host.run(100);
    assert_eq!(done.get(), 20 + 3 + 7 + 10);
    assert_eq!((host.us(1, Kind::Interrupt), host.us(1, Kind::Cold)), (3, 7));
}

#[test]
fn others_that_ran_meanwhile_leave_the_caches_cold() {
    let mut host = host(Config { cold_cache: US(8), cold_core: US(20), ..Config::free(2) });
    let (one, other) = (host.pinned(0), host.pinned(0));
    let cold = |thread: &Context| thread.times().by(Kind::Cold).ns() / 1_000;
    for (work, sum) in [(3, 3), (100, 11), (0, 11)] {
        host.executor.block_on(one.work(US(10), Mode::User)).unwrap();
        host.run(1);
        if work > 0 {
            host.executor.block_on(other.work(US(work), Mode::User)).unwrap();
            host.run(1);
        }
        host.executor.block_on(one.work(US(10), Mode::User)).unwrap();
        host.run(1);
        assert_eq!(cold(&one), sum);
    }
    one.set_affinity(Affinity::one(1)).unwrap();
    host.executor.block_on(one.work(US(10), Mode::User)).unwrap();
    assert_eq!((cold(&one), one.cpu(), one.counts().migrations), (31, 1, 1));
}

#[test]
fn a_thread_loses_a_processor_that_it_may_not_use_any_more() {
    let mut host = host(Config::free(2));
    let (one, other) = (host.pinned(0), host.pinned(0));
    let done = [host.works(&one, 100), host.works(&other, 100)];
    host.run(50);
    one.set_affinity(Affinity::one(1)).unwrap();
    host.run(150);
    assert_eq!(done.map(|done| done.get()), [100, 150]);
    for (affinity, problem) in [
        (Affinity::one(2), "processor 2 does not exist; valid are 0 to 1"),
        (Affinity::one(2_000), "no processor is left"),
    ] {
        let spec = ThreadSpec { affinity, ..ThreadSpec::default() };
        assert!(host.machine.thread(spec).err().unwrap().to_string().contains(problem));
        assert!(one.set_affinity(affinity).unwrap_err().to_string().contains(problem));
    }
    assert!(host.machine.interrupt(2).err().unwrap().to_string().contains("0 to 1"));
}

#[test]
fn a_busy_sibling_slows_a_hardware_thread() {
    let mut host = host(Config { threads: 2, share: 0.5, ..Config::free(1) });
    let (one, other) = (host.pinned(0), host.pinned(1));
    let done = [host.works(&one, 100), host.works(&other, 20)];
    host.run(300);
    // Both at half speed for 40 us; then one has 80 us left.
    assert_eq!(done.map(|done| done.get()), [120, 40]);
    let mut fast = self::host(Config { speed: 2.0, ..Config::free(1) });
    let done = fast.works(&fast.thread(), 100);
    fast.run(100);
    assert_eq!(done.get(), 50);
}

#[test]
fn a_realtime_thread_goes_before_others_and_the_highest_priority_first() {
    for sched in [SchedulerKind::Cfs, SchedulerKind::Eevdf] {
        let mut host = host(Config { sched, ..Config::free(1) });
        let realtime = |host: &Host, priority| {
            let spec = ThreadSpec { policy: Policy::Realtime(priority), ..ThreadSpec::default() };
            Rc::new(host.machine.thread(spec).unwrap())
        };
        let threads = [host.thread(), realtime(&host, 1), realtime(&host, 1), realtime(&host, 2)];
        let mut done = Vec::new();
        for thread in &threads {
            done.push(host.works(thread, 10));
            host.run(2);
        }
        host.run(100);
        let done: Vec<u64> = done.iter().map(|done| done.get()).collect();
        assert_eq!(done, [40, 22, 32, 16]);
        assert_eq!((threads[0].counts().preempted, threads[0].counts().delay), (1, US(30)));
    }
}

#[test]
fn a_thread_that_wakes_takes_the_processor_as_its_scheduler_allows() {
    // One has slept for long. CFS gives it credit and the processor; EEVDF has it wait for the end of the slice.
    for (sched, done_at) in [(SchedulerKind::Cfs, 10_010), (SchedulerKind::Eevdf, 10_515)] {
        let config = Config { sched, slice: US(3_000), latency: US(24_000), wakeup: US(4_000), ..Config::free(1) };
        let mut host = host(config);
        let (busy, sleeper) = (host.thread(), host.thread());
        host.works(&sleeper, 5);
        host.run(5);
        host.works(&busy, 1_000_000);
        host.run(9_995);
        let done = host.works(&sleeper, 10);
        host.run(10_000);
        assert!(done.get().abs_diff(done_at) <= 5, "{sched:?}: {}", done.get());
    }
}

#[test]
fn slices_are_checked_at_ticks_where_there_are_ticks() {
    let mut host = host(Config { tick: US(100), timer: US(1), slice: US(150), ..Config::free(1) });
    let (one, other) = (host.thread(), host.thread());
    let done = [host.works(&one, 300), host.works(&other, 300)];
    host.run(1_000);
    assert_eq!(host.us(0, Kind::Interrupt), 6, "an idle processor has no ticks");
    assert!(done.iter().all(|done| done.get() > 500 && done.get() < 610));
    assert!(one.counts().preempted >= 1);
}

#[test]
fn a_yield_gives_the_processor_to_another() {
    for sched in [SchedulerKind::Cfs, SchedulerKind::Eevdf] {
        let mut host = host(Config { sched, ..Config::free(1) });
        let log = Rc::new(RefCell::new(Vec::new()));
        for name in ["a", "b"] {
            let (thread, log) = (host.thread(), log.clone());
            host.sim.spawn(async move {
                for _ in 0..3 {
                    thread.work(US(10), Mode::User).await;
                    log.borrow_mut().push(name);
                    thread.yield_now().await;
                }
            });
        }
        host.run(100);
        assert_eq!(log.borrow().concat().len(), 6);
        assert!(log.borrow().windows(3).all(|three| three.iter().any(|name| *name != three[0])), "{:?}", log.borrow());
    }
}

#[test]
fn a_thread_that_awaits_anything_else_leaves_its_processor() {
    let mut host = host(Config { switch: US(1), ..Config::free(1) });
    let (one, other) = (host.thread(), host.thread());
    let (sim, log) = (host.sim.clone(), Rc::new(RefCell::new(Vec::new())));
    let told = log.clone();
    host.sim.spawn(async move {
        one.work(US(10), Mode::User).await;
        sim.sleep(US(20)).await;
        told.borrow_mut().push(sim.now().ns() / 1_000);
        one.work(US(10), Mode::User).await;
        told.borrow_mut().push(sim.now().ns() / 1_000);
        let output = one.blocked(async { sim.sleep(US(20)).await }).await;
        told.borrow_mut().push(sim.now().ns() / 1_000);
        output
    });
    host.run(3);
    let done = host.works(&other, 5);
    host.run(200);
    assert_eq!((done.get(), &*log.borrow()), (11 + 1 + 5, &vec![31, 42, 63]));
}

#[test]
fn a_spinning_thread_keeps_its_processor_busy() {
    let mut host = host(Config::free(1));
    let (one, sim) = (host.thread(), host.sim.clone());
    let spun = async {
        one.work(US(5), Mode::User).await;
        let answer = one
            .spin_until(async {
                sim.sleep(US(30)).await;
                7
            })
            .await;
        (answer, sim.now().ns() / 1_000, one.spin_until(std::future::ready(8)).await)
    };
    assert_eq!(host.executor.block_on(spun).unwrap(), (7, 35, 8));
    assert_eq!((host.us(0, Kind::Spin), host.us(0, Kind::User)), (30, 5));
    // One that shares its processor notices when it has that again.
    let other = host.thread();
    let done = host.works(&other, 10_000);
    let (one, sim) = (host.thread(), host.sim.clone());
    host.executor.block_on(one.spin_until(sim.sleep(US(1_000)))).unwrap();
    host.run(20_000);
    assert!(done.get() > 10_035 && one.times().by(Kind::Spin) > Span::ZERO, "{}", host.now());
}

#[test]
fn work_that_is_dropped_leaves_the_processor_to_others() {
    let mut host = host(Config::free(1));
    let (one, other) = (host.thread(), host.thread());
    let done = host.works(&other, 10);
    let sim = host.sim.clone();
    host.executor
        .block_on(async {
            let mut work = Box::pin(one.work(US(100), Mode::User));
            std::future::poll_fn(|context| {
                assert!(work.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            sim.sleep(US(4)).await;
            drop(work);
            sim.sleep(US(20)).await;
        })
        .unwrap();
    assert!(done.get() <= 14 && one.times().total() <= US(4), "{}", done.get());
    assert_eq!(host.us(0, Kind::User) + host.us(0, Kind::Idle), 24);
}

#[test]
fn each_processor_is_a_line_of_the_event_trace() {
    let mut host = host(Config { switch: US(1), interrupt: US(1), ..Config::free(1) });
    host.sim.trace().switch_on();
    host.machine.show("processor");
    let thread = host.thread();
    host.works(&thread, 10);
    host.run(5);
    let irq = host.machine.interrupt(0).unwrap();
    host.executor.block_on(irq.work(US(2), Mode::Kernel)).unwrap();
    drop(irq);
    host.run(100);
    host.machine.end_timelines();
    let json = host.sim.trace().to_chrome_json();
    let seen: Vec<&str> = json.lines().filter(|line| line.contains(r#""ph":"X""#)).collect();
    let expected = [
        ("switch", "0.000", "1.000"),
        ("user", "1.000", "4.000"),
        ("interrupt", "5.000", "3.000"),
        ("user", "8.000", "6.000"),
    ];
    assert_eq!(seen.len(), expected.len(), "{json}");
    for (line, (name, start, length)) in seen.iter().zip(expected) {
        assert!(line.contains(&format!(r#""name":"{name}","ts":{start},"dur":{length}"#)), "{line}");
    }
    assert!(json.contains(r#""name":"processor 0""#));
}

#[test]
fn a_light_thread_has_the_lesser_share() {
    let mut host = host(Config::free(1));
    let spec = |nice| ThreadSpec { policy: Policy::Fair(Nice::new(nice).unwrap()), ..ThreadSpec::default() };
    let threads = [0, 19].map(|nice| Rc::new(host.machine.thread(spec(nice)).unwrap()));
    threads.iter().for_each(|thread| drop(host.works(thread, 10_000_000)));
    host.run(2_000_000);
    let light = threads[1].times().total().as_s() / 2.0;
    assert!((light - 15.0 / 1_039.0).abs() < 0.003, "{light}");
}

#[test]
fn a_ready_thread_waits_behind_those_that_have_its_processor() {
    let mut host = host(Config::free(1));
    let load = ThreadSpec { policy: Policy::Realtime(1), role: Role::Load, ..ThreadSpec::default() };
    let load = Rc::new(host.machine.thread(load).unwrap());
    host.works(&load, 30);
    host.run(5);
    let thread = host.thread();
    let done = host.works(&thread, 10);
    for (at, work, is_hard) in [(12, 4, true), (20, 3, false), (40, 2, true)] {
        let (sim, machine) = (host.sim.clone(), host.machine.clone());
        host.sim.spawn(async move {
            sim.sleep(US(at - 5)).await;
            let irq = if is_hard { machine.interrupt(0) } else { machine.softirq(0) }.unwrap();
            irq.work(US(work), Mode::Kernel).await;
        });
    }
    let waits = |thread: &Context| Holder::ALL.map(|(_, holder)| thread.waits().by(holder).ns() / 1_000);
    host.run(10);
    // Up to now, while it waits.
    assert_eq!(waits(&thread), [3, 0, 0, 0, 7, 0]);
    host.run(100);
    assert_eq!((done.get(), waits(&thread)), (30 + 7 + 10 + 2, [4 + 2, 3, 0, 0, 25, 0]));
    assert_eq!(waits(&load), [4, 3, 0, 0, 0, 0], "it had its processor but for interrupts");
}

/// Ends of a thread with 100 us of work and of softirqs of 60 us and 10 us, which are raised at 10 us and 40 us.
fn softirqs_next_to_a_thread(config: Config) -> [u64; 3] {
    let mut host = host(config);
    let thread = host.thread();
    let done = host.works(&thread, 100);
    let ended = Rc::new(RefCell::new(Vec::new()));
    for (at, work) in [(10, 60), (40, 10)] {
        let (sim, machine, ended) = (host.sim.clone(), host.machine.clone(), ended.clone());
        host.sim.spawn(async move {
            sim.sleep(US(at)).await;
            machine.softirq(0).unwrap().work(US(work), Mode::Kernel).await;
            ended.borrow_mut().push(sim.now().ns() / 1_000);
        });
    }
    host.run(300);
    let busy = [host.us(0, Kind::User), host.us(0, Kind::Softirq), host.us(0, Kind::Idle)];
    assert_eq!(busy, [100, 70, 130]);
    [ended.borrow()[0], ended.borrow()[1], done.get()]
}

#[test]
fn softirqs_that_run_for_long_share_the_processor() {
    for sched in [SchedulerKind::Cfs, SchedulerKind::Eevdf] {
        let slice = US(2);
        let config = Config { sched, slice, latency: slice, wakeup: Span::ZERO, ..Config::free(1) };
        assert_eq!(softirqs_next_to_a_thread(config.clone()), [70, 80, 170]);
        // From 30 us on the softirqs have half of the processor, for 40 us and 10 us of work; then the thread is alone.
        let [first, second, thread] = softirqs_next_to_a_thread(Config { ksoftirqd: US(20), ..config });
        assert!(first.abs_diff(30 + 80) <= 4 && second.abs_diff(30 + 100) <= 4, "{sched:?}: {first}, {second}");
        assert_eq!(thread, 170);
    }
}

#[test]
fn data_and_locks_of_another_node_take_longer() {
    let costs = Config { cold_core: US(10), lock_transfer: US(4), nodes: 2, distance: 2.5, ..Config::free(4) };
    for (cpu, cold, lock) in [(0, 0, 0), (1, 10, 4), (2, 25, 10)] {
        let mut host = host(costs.clone());
        let (first, thread) = (host.pinned(0), host.pinned(cpu));
        let taken = Rc::new(Lock::new(&host.machine, LockKind::Spin));
        let (near, sim) = (taken.clone(), host.sim.clone());
        let locked = async move {
            drop(near.acquire(&first).await);
            let begun = sim.now();
            drop(near.acquire(&thread).await);
            let locked = sim.now() - begun;
            thread.work(US(1), Mode::User).warm_on(0).await;
            (locked, thread.times().by(Kind::Cold))
        };
        assert_eq!(host.executor.block_on(locked).unwrap(), (US(lock), US(cold)), "processor {cpu}");
    }
    // Of free processors, one of the node where the thread was last is taken.
    let mut host = host(Config { cores: 4, ..costs });
    let (thread, blocker) = (host.thread(), host.pinned(3));
    thread.set_affinity(Affinity::one(3)).unwrap();
    host.executor.block_on(thread.work(US(1), Mode::User)).unwrap();
    thread.set_affinity(Affinity::ALL).unwrap();
    host.run(1);
    host.works(&blocker, 50);
    host.run(1);
    host.executor.block_on(thread.work(US(1), Mode::User)).unwrap();
    assert_eq!(thread.cpu(), 2);
}
