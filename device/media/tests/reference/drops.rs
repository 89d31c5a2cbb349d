//! Polls without cause, and operations dropped at any of their awaits, with every option of the page off or on.

use nandscape_drive::breakdown::cause;
use nandscape_sim::{Executor, Seed};

use crate::compare::{Case, seeds};
use crate::drive::{Page, Scheme};
use crate::model;
use crate::outcome::Served;
use crate::script::{Op, Part, Script, Work};
use crate::simulator;

#[test]
fn a_run_cannot_tell_spurious_polls() {
    for seed in seeds(150) {
        let case = Case::draw(seed);
        let spurious = model::run(Executor::with_spurious_polls(), &case.drive, &case.script).0;
        assert_eq!(spurious, case.measured(), "seed {seed}: {:?}", case.drive);
    }
}

/// Reads and programs are dropped at any moment, while they work or wait. No other operation is blocked, and in the end
/// nothing is held: a read of any plane takes its own time, as the simulator predicts.
#[test]
fn an_operation_that_is_given_up_gives_back_what_it_has() {
    for seed in seeds(300) {
        let Case { drive, script } = Case::draw(seed);
        let mut rng = Seed::new(seed).child("patience").rng();
        let patience: Vec<Option<u64>> = (0..97).map(|_| (rng.below(3) == 0).then(|| rng.below(9_000))).collect();
        // A dropped erase or collection would leave a block in another state than the script expects. So would a
        // program that is dropped at the gate: its page is not used up.
        let patient = |op: &Op| match op.work {
            Work::Read { .. } => false,
            Work::Program { .. } => drive.gc_scheme == Scheme::Controller,
            _ => true,
        };
        let of = |customer: usize, at: usize| {
            let patience = patience[(31 * customer + at) % patience.len()];
            script[customer].get(at).filter(|op| !patient(op)).and(patience)
        };
        let reads = one_after_the_other(drive.total_planes(), &script);
        let expected = simulator::run(&drive, &reads, &model::retries(&drive), None).served;
        let executor = if seed % 2 == 0 { Executor::new() } else { Executor::with_spurious_polls() };
        let left = model::run_after(executor, &drive, &script, &of, &reads);
        let times = |served: &[Vec<Served>]| -> Vec<_> {
            served.iter().flatten().map(|served| (served.ended - served.asked, served.stages)).collect()
        };
        assert_eq!(times(&left), times(&expected), "seed {seed}: {drive:?}");
    }
}

/// One customer reads a page of each plane.
fn one_after_the_other(planes: u32, script: &Script) -> Script {
    let read = |plane| {
        let erased = |other: &Work| matches!(other, Work::Erase { plane: p, block: 0 } if *p == plane);
        let collected = |part: &Part| matches!(part, Part::Erase { plane: p, block: 0 } if *p == plane);
        let erases = |op: &Op| match &op.work {
            Work::Collect { parts, .. } => parts.iter().filter(|part| collected(part)).count(),
            work => usize::from(erased(work)),
        };
        let erases = script.iter().flatten().map(erases).sum::<usize>() as u32;
        let page = Page { plane, block: 0, number: 0 };
        Op { think: 0, cause: cause::HOST_READ, work: Work::Read { page, bytes: 4_096, erases } }
    };
    vec![(0..planes).map(read).collect()]
}
