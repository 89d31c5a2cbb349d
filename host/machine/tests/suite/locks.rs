//! Locks: order, costs, who spins and who sleeps, and interrupts that wait.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_host_machine::{Affinity, Config, Kind, Lock, LockKind, Machine, Mode, ThreadSpec};
use nandscape_sim::{Executor, Span};

const US: fn(u64) -> Span = Span::from_us;

/// Two threads on two cores take a lock, the second 2 us after the first, and keep it for 10 us. Returns the time when each
/// has it, and the machine.
fn two(kind: LockKind) -> (Vec<u64>, Machine) {
    let mut executor = Executor::with_spurious_polls();
    let sim = executor.sim();
    let machine = Machine::new(&sim, Config { lock: US(1), lock_transfer: US(3), ..Config::free(2) }).unwrap();
    let (lock, log) = (Rc::new(Lock::new(&machine, kind)), Rc::new(RefCell::new(Vec::new())));
    for cpu in [0, 1] {
        let spec = ThreadSpec { affinity: Affinity::one(cpu), ..ThreadSpec::default() };
        let (sim, lock, log, thread) = (sim.clone(), lock.clone(), log.clone(), machine.thread(spec).unwrap());
        executor.sim().spawn(async move {
            thread.work(US(2 * cpu as u64), Mode::Kernel).await;
            let guard = lock.acquire(&thread).await;
            log.borrow_mut().push(sim.now().ns() / 1_000);
            thread.work(US(10), Mode::Kernel).await;
            drop(guard);
            thread.work(US(1), Mode::User).await;
        });
    }
    executor.block_on(sim.sleep(US(100))).unwrap();
    assert!(!lock.is_held() && lock.waiting() == 0);
    (log.take(), machine)
}

#[test]
fn waiters_sleep_or_spin_and_a_lock_moves_between_cores() {
    let (times, machine) = two(LockKind::Sleep);
    assert_eq!(times, [1, 14]);
    // An attempt, which moves the line, and moving it again after the wait; the other one keeps it for 10 us.
    assert_eq!((machine.usage(1).by(Kind::Spin), machine.usage(1).by(Kind::Kernel)), (US(0), US(2 + 4 + 3 + 10)));
    let (times, machine) = two(LockKind::Spin);
    assert_eq!(times, [1, 14]);
    assert_eq!((machine.usage(1).by(Kind::Spin), machine.usage(1).by(Kind::Kernel)), (US(8), US(2 + 4 + 10)));
}

#[test]
fn a_lock_is_given_in_the_order_of_asking_whatever_the_number_of_cores() {
    for kind in [LockKind::Sleep, LockKind::Spin] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let machine = Machine::new(&sim, Config::free(3)).unwrap();
        let (lock, log) = (Rc::new(Lock::new(&machine, kind)), Rc::new(RefCell::new(Vec::new())));
        for number in 0..9u64 {
            let (sim, lock, log) = (sim.clone(), lock.clone(), log.clone());
            let thread = machine.thread(ThreadSpec::default()).unwrap();
            executor.sim().spawn(async move {
                sim.sleep(US(number)).await;
                let guard = lock.acquire(&thread).await;
                log.borrow_mut().push(number);
                thread.work(US(50), Mode::Kernel).await;
                drop(guard);
            });
        }
        executor.block_on(sim.sleep(Span::from_ms(20))).unwrap();
        assert_eq!(*log.borrow(), [0, 1, 2, 3, 4, 5, 6, 7, 8], "{kind:?}");
    }
}

#[test]
fn the_holder_of_a_spinning_lock_keeps_its_processor() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let machine = Machine::new(&sim, Config { slice: US(10), latency: US(10), ..Config::free(1) }).unwrap();
    let (lock, log) = (Rc::new(Lock::new(&machine, LockKind::Spin)), Rc::new(RefCell::new(Vec::new())));
    for name in ["holder", "other"] {
        let (sim, lock, log) = (sim.clone(), lock.clone(), log.clone());
        let thread = machine.thread(ThreadSpec::default()).unwrap();
        executor.sim().spawn(async move {
            let guard = if name == "holder" { Some(lock.acquire(&thread).await) } else { None };
            thread.work(US(100), Mode::Kernel).await;
            drop(guard);
            log.borrow_mut().push((name, sim.now().ns() / 1_000));
        });
    }
    executor.block_on(sim.sleep(Span::from_ms(1))).unwrap();
    assert_eq!(*log.borrow(), [("holder", 100), ("other", 200)]);
}

#[test]
fn a_masked_lock_keeps_interrupts_waiting_and_another_does_not() {
    for (kind, handled_at) in [(LockKind::SpinMasked, 25), (LockKind::Spin, 15)] {
        let mut executor = Executor::with_spurious_polls();
        let sim = executor.sim();
        let machine = Machine::new(&sim, Config::free(1)).unwrap();
        let lock = Rc::new(Lock::new(&machine, kind));
        let (held, thread) = (lock.clone(), machine.thread(ThreadSpec::default()).unwrap());
        sim.spawn(async move {
            let guard = held.acquire(&thread).await;
            thread.work(US(20), Mode::Kernel).await;
            drop(guard);
            thread.work(US(20), Mode::User).await;
        });
        let handled = async {
            sim.sleep(US(10)).await;
            let irq = machine.interrupt(0).unwrap();
            if kind == LockKind::SpinMasked {
                let guard = lock.acquire(&irq).await;
                irq.work(US(5), Mode::Kernel).await;
                drop(guard);
            } else {
                irq.work(US(5), Mode::Kernel).await;
            }
            sim.now().ns() / 1_000
        };
        assert_eq!(executor.block_on(handled).unwrap(), handled_at, "{kind:?}");
        executor.block_on(sim.sleep(US(100))).unwrap();
        assert_eq!(machine.usage(0).by(Kind::User), US(20));
    }
}
