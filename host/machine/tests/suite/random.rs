//! Random hosts on the machine, step by step as on the naive simulator.

use nandscape_host_machine::{Holder, Waits};
use nandscape_sim::{Executor, Seed};

use crate::case::Case;
use crate::naive::Naive;
use crate::seed;

#[test]
fn random_hosts_run_as_on_a_simulator_that_takes_one_nanosecond_after_the_other() {
    let (mut compared, mut whole) = (0, 0);
    for number in 0..120 {
        let case = Case::random(&mut Seed::new(seed()).child("naive").nth(number).rng());
        let (ours, times, waits) = case.run(Executor::new());
        let (theirs, tie, waited) = Naive::new(&case).run();
        // What happens at the instant of two independent events depends on their order, which is the machine's own.
        let end = tie.unwrap_or(case.until);
        let until =
            |log: &[(u64, usize, usize)]| -> Vec<_> { log.iter().copied().filter(|step| step.0 < end).collect() };
        let (ours, theirs) = (until(&ours), until(&theirs));
        let differs = ours.iter().zip(&theirs).position(|(one, other)| one != other);
        let differs = differs.or((ours.len() != theirs.len()).then(|| ours.len().min(theirs.len())));
        if let Some(at) = differs {
            let near = at.saturating_sub(3)..at + 2;
            panic!(
                "seed {}, case {number}: step {at} differs: {:?} on the machine, {:?} on the other; {case:#?}",
                seed(),
                ours.get(near.start..near.end.min(ours.len())),
                theirs.get(near.start..near.end.min(theirs.len())),
            );
        }
        assert!(times.iter().all(|times| times.total().ns() == case.until));
        if tie.is_none() {
            let ns = |waits: &Waits| Holder::ALL.map(|(_, holder)| waits.by(holder).ns());
            let waits: Vec<_> = waits.iter().map(ns).collect();
            assert_eq!(waits, waited, "seed {}, case {number}: {case:#?}", seed());
        }
        compared += ours.len();
        whole += usize::from(tie.is_none());
    }
    assert!(compared > 2_000 && whole > 5, "seed {}: {compared} steps, {whole} whole runs", seed());
}

#[test]
fn spurious_polls_change_nothing() {
    for number in 0..60 {
        let case = Case::random(&mut Seed::new(seed()).child("spurious").nth(number).rng());
        let (one, other) = (case.run(Executor::new()), case.run(Executor::with_spurious_polls()));
        assert_eq!(one, other, "seed {}, case {number}: {case:#?}", seed());
        assert_eq!(one, case.run(Executor::new()), "a run is the same again");
    }
}
