//! Means of queues whose closed forms are known.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_host_machine::scheduler::{Nice, SchedulerKind};
use nandscape_host_machine::{Config, Machine, Mode, Policy, ThreadSpec};
use nandscape_sim::{Executor, Rng, Seed, Span};

use crate::seed;

/// Jobs arrive at random, each a new thread. Returns the length of each and the time from its arrival to its end, in us.
fn jobs(config: Config, policy: Policy, gap_us: f64, count: u32, length: impl Fn(&mut Rng) -> f64) -> Vec<(f64, f64)> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let machine = Machine::new(&sim, config).unwrap();
    let mut rng = Seed::new(seed()).child("jobs").rng();
    let log = Rc::new(RefCell::new(Vec::new()));
    let arrivals = async {
        for _ in 0..count {
            sim.sleep(rng.exponential(gap_us * 1e3)).await;
            let us = length(&mut rng);
            let thread = machine.thread(ThreadSpec { policy, ..ThreadSpec::default() }).unwrap();
            let (sim, log) = (sim.clone(), log.clone());
            sim.clone().spawn(async move {
                let begun = sim.now();
                thread.work(Span::from_ns((us * 1e3) as u64), Mode::User).await;
                log.borrow_mut().push((us, (sim.now() - begun).as_us()));
            });
        }
        sim.sleep(Span::from_ms(100)).await;
    };
    executor.block_on(arrivals).unwrap();
    assert_eq!((log.borrow().len(), machine.contexts()), (count as usize, 0));
    log.take()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    sum / count
}

/// 2 us, and 18 us for each fourth job.
fn two_lengths(rng: &mut Rng) -> f64 {
    if rng.chance(0.25) { 18.0 } else { 2.0 }
}

fn near(is: f64, expected: f64, within: f64, what: &str) {
    assert!((is / expected - 1.0).abs() < within, "seed {}, {what}: {is} is not {expected}", seed());
}

#[test]
fn the_first_come_are_served_first_where_nothing_preempts() {
    let log = jobs(Config::free(1), Policy::Realtime(1), 10.0, 60_000, two_lengths);
    // Pollaczek and Khinchine: the rate times the mean square, by twice the idle part.
    let expected = 0.1 * (0.75 * 4.0 + 0.25 * 324.0) / (2.0 * (1.0 - 0.6));
    near(mean(log.iter().map(|(length, time)| time - length)), expected, 0.06, "M/G/1");
}

#[test]
fn two_cores_serve_one_queue_of_realtime_threads() {
    let log = jobs(Config::free(2), Policy::Realtime(1), 10.0, 60_000, |rng| rng.exponential(10e3).as_us());
    // Erlang: a job waits with the probability 2 u^2 / (1 + u) at a utilisation u, and then for 1 / (2 mu - lambda).
    let (load, free) = (0.5, 0.2 - 0.1);
    let expected = 2.0 * load * load / (1.0 + load) / free;
    near(mean(log.iter().map(|(length, time)| time - length)), expected, 0.08, "M/M/2");
}

#[test]
fn short_slices_share_the_processor() {
    for sched in [SchedulerKind::Cfs, SchedulerKind::Eevdf] {
        let slice = Span::from_ns(100);
        let config = Config { sched, slice, latency: slice, wakeup: Span::ZERO, ..Config::free(1) };
        let log = jobs(config, Policy::Fair(Nice::default()), 10.0, 30_000, two_lengths);
        // Processor sharing: each job takes its length by the idle part, whatever the others are.
        for length in [2.0, 18.0] {
            let times = log.iter().filter(|(is, _)| *is == length).map(|(_, time)| *time);
            near(mean(times), length / (1.0 - 0.6), 0.07, &format!("{sched:?}, {length} us"));
        }
    }
}

#[test]
fn busy_threads_have_their_shares_by_weight() {
    for sched in [SchedulerKind::Cfs, SchedulerKind::Eevdf] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let machine = Machine::new(&sim, Config { sched, ..Config::free(1) }).unwrap();
        let nices = [-10, -5, 0, 0, 5, 10].map(|nice| Nice::new(nice).unwrap());
        let threads = nices.map(|nice| {
            let spec = ThreadSpec { policy: Policy::Fair(nice), ..ThreadSpec::default() };
            Rc::new(machine.thread(spec).unwrap())
        });
        for thread in &threads {
            let thread = thread.clone();
            // Work in pieces that are no part of a slice.
            sim.spawn(async move {
                loop {
                    thread.work(Span::from_us(777), Mode::User).await;
                }
            });
        }
        executor.block_on(sim.sleep(Span::from_s(20))).unwrap();
        let all: f64 = nices.iter().map(|nice| f64::from(nice.weight())).sum();
        for (nice, thread) in nices.iter().zip(&threads) {
            let share = thread.times().total().as_s() / 20.0;
            near(share, f64::from(nice.weight()) / all, 0.03, &format!("{sched:?}, {nice:?}"));
        }
    }
}
