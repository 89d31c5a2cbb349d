//! Order of events and tasks, stops of a run, arrivals, and the end.

use super::*;

/// A deliberate mistake of a loop in wall time: an arrival before the last event.
#[test]
#[should_panic(expected = "an arrival at ")]
fn time_that_goes_back_is_noticed() {
    let mut executor = Executor::new();
    executor.arrive(Time::from_ns(20));
    executor.arrive(Time::from_ns(10));
}

#[test]
fn events_run_at_their_own_times_in_order() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let log = Rc::new(RefCell::new(Vec::new()));
    for (name, ns) in [("c", 30), ("a", 10), ("b", 20), ("a2", 10)] {
        let (sim, log) = (sim.clone(), log.clone());
        executor.sim().spawn(async move {
            sim.sleep(Span::from_ns(ns)).await;
            log.borrow_mut().push((sim.now().ns(), name));
        });
    }
    executor.block_on(sim.sleep(Span::from_ns(100))).unwrap();
    assert_eq!(*log.borrow(), [(10, "a"), (10, "a2"), (20, "b"), (30, "c")]);
}

#[test]
fn a_main_future_nobody_can_wake_is_reported() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let result = executor.block_on(async {
        sim.sleep(Span::from_us(1)).await;
        std::future::pending::<()>().await;
    });
    assert_eq!(result, Err(Stalled { at: Time::from_ns(1_000) }));
}

#[test]
fn a_bounded_run_ends_though_tasks_wake_each_other_for_ever_at_one_instant() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    assert_eq!(executor.block_on_within(sim.sleep(Span::from_ns(3)), 10), Ok(()));
    let stalled = Stalled { at: Time::from_ns(3) };
    assert_eq!(executor.block_on_within(std::future::pending::<()>(), 10), Err(Unended::Stalled(stalled)));
    let busy = sim.clone();
    sim.spawn(std::future::poll_fn(move |_| {
        busy.wake(busy.current_task());
        std::task::Poll::Pending
    }));
    let endless = Unended::Endless { at: Time::from_ns(3), polls: 1_000 };
    assert_eq!(executor.block_on_within(sim.sleep(Span::from_ns(1)), 1_000), Err(endless));
}

#[test]
fn task_ids_are_reused_and_tasks_may_spawn() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let count = Rc::new(Cell::new(0));
    executor
        .block_on(async {
            for _ in 0..1_000 {
                let (inner, count) = (sim.clone(), count.clone());
                sim.spawn(async move {
                    let again = count.clone();
                    inner.spawn(async move { again.set(again.get() + 1) });
                });
                sim.sleep(Span::from_ns(1)).await;
            }
        })
        .unwrap();
    assert_eq!(count.get(), 1_000);
    assert!(executor.tasks.len() <= 4);
}

#[test]
fn turns_of_any_length_run_the_same_events_at_the_same_times() {
    let run = |turns: &[u64], most: u32| {
        let mut executor = Executor::new();
        let log = Rc::new(RefCell::new(Vec::new()));
        for name in 0..5u64 {
            let (sim, log) = (executor.sim(), log.clone());
            executor.sim().spawn(async move {
                for step in 0..20 {
                    sim.sleep(Span::from_ns(name * 7 % 5 + step)).await;
                    log.borrow_mut().push((sim.now().ns(), name));
                }
            });
        }
        for turn in turns {
            while !executor.advance(Time::from_ns(*turn), most) {}
            assert!(executor.next_due().is_none_or(|due| due > Time::from_ns(*turn)));
        }
        assert_eq!(executor.next_due(), None);
        log.take()
    };
    let whole = run(&[10_000], u32::MAX);
    assert_eq!(whole.len(), 100);
    assert_eq!(run(&[0, 1, 2, 50, 50, 51, 180, 10_000], 3), whole);
}

#[test]
fn long_work_ends_an_advance_early_and_changes_nothing() {
    let run = |units: u64| {
        let mut executor = Executor::new();
        let (sim, ran) = (executor.sim(), Rc::new(Cell::new(0)));
        let count = ran.clone();
        executor.sim().spawn(async move {
            for _ in 0..100 {
                sim.sleep(Span::from_ns(1)).await;
                sim.note_work(units);
                count.set(count.get() + 1);
            }
        });
        let mut counts = Vec::new();
        while !executor.advance(Time::from_ns(1_000), 8) {
            counts.push(ran.get());
        }
        assert_eq!((ran.get(), executor.work()), (100, 100 * units));
        counts[0]
    };
    // The task is polled once to start.
    assert_eq!(run(0), 7);
    assert_eq!(run(WORK_A_POLL), 7);
    assert_eq!(run(4 * WORK_A_POLL), 2);
    assert_eq!(run(1_000 * WORK_A_POLL), 1);
}

/// Tasks that wake each other at one instant, and note in which order they run.
fn chatter(executor: &Executor) -> Rc<RefCell<Vec<(u64, u64)>>> {
    let log = Rc::new(RefCell::new(Vec::new()));
    for name in 0..3u64 {
        let (sim, log) = (executor.sim(), log.clone());
        executor.sim().spawn(async move {
            for _ in 0..4 {
                sim.sleep(Span::from_ns(10)).await;
                for _ in 0..name {
                    sim.after_what_is_due().await;
                    log.borrow_mut().push((sim.now().ns(), name));
                }
            }
        });
    }
    log
}

#[test]
fn a_run_that_stopped_within_an_instant_is_repeated_with_its_arrivals() {
    let arrive = |executor: &Executor, log: &Rc<RefCell<Vec<(u64, u64)>>>, number: u64| {
        let (sim, log) = (executor.sim(), log.clone());
        executor.sim().spawn(async move { log.borrow_mut().push((sim.now().ns(), 100 + number)) });
    };
    let mut within = 0;
    for most in 1..12 {
        let mut executor = Executor::new();
        let (log, mut stops) = (chatter(&executor), Vec::new());
        while !executor.advance(Time::from_ns(100), most) {
            let at = executor.sim().now();
            executor.arrive(at);
            arrive(&executor, &log, stops.len() as u64);
            within += u32::from(executor.next_due() == Some(at));
            stops.push((at, executor.polls_now()));
            assert!(stops.len() < 100, "arrivals end");
            if stops.len() == 5 {
                while !executor.advance(Time::from_ns(100), most) {}
                break;
            }
        }
        let mut again = Executor::new();
        let repeated = chatter(&again);
        for (number, (at, polls)) in stops.iter().enumerate() {
            assert!(again.advance_to(*at, *polls));
            again.arrive(*at);
            arrive(&again, &repeated, number as u64);
        }
        assert!(again.advance(Time::from_ns(100), u32::MAX));
        assert_eq!(repeated.take(), log.take(), "{most} polls at a time, stops {stops:?}");
    }
    assert!(within > 20, "{within} stops within an instant");
}

#[test]
fn a_run_with_less_to_do_than_the_repeated_one_is_noticed() {
    let mut executor = Executor::new();
    drop(chatter(&executor));
    assert!(executor.advance_to(Time::from_ns(10), 3));
    assert!(!executor.advance_to(Time::from_ns(10), 1_000));
}

#[test]
fn an_arrival_is_stamped_and_runs_at_the_next_turn() {
    let mut executor = Executor::new();
    let (sim, seen) = (executor.sim(), Rc::new(Cell::new(Time::ZERO)));
    executor.advance(Time::from_ns(500), 1);
    executor.arrive(Time::from_ns(500));
    let (inner, log) = (sim.clone(), seen.clone());
    sim.spawn(async move { log.set(inner.now()) });
    assert_eq!(executor.next_due(), Some(Time::from_ns(500)));
    assert_eq!(seen.get(), Time::ZERO);
    executor.advance(Time::from_ns(900), 1);
    assert_eq!(seen.get(), Time::from_ns(500));
}

#[test]
fn dropping_the_executor_drops_the_tasks() {
    let executor = Executor::new();
    let sim = executor.sim();
    let held = Rc::new(());
    let inner = (held.clone(), sim.clone());
    sim.spawn(async move {
        let (_held, sim) = inner;
        sim.sleep(Span::from_s(1)).await;
    });
    assert_eq!(Rc::strong_count(&held), 2);
    drop(executor);
    assert_eq!(Rc::strong_count(&held), 1);
    assert!(sim.is_stopped());
}
