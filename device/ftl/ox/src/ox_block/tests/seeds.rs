//! Tests that run a number of seeds: a few always, or those of `NANDSCAPE_TEST_SEEDS=FIRST-LAST`. A failing seed runs
//! once more with its events: the last lines are printed, all of them are written to a trace, and the message has the
//! command.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use nandscape_sim::Sim;

use super::journal::Journal;
use super::kinds::Setup;
use super::replay;

/// Seeds after which a long run reports its progress.
pub(super) const EVERY: u64 = 1_000;

/// The seeds to run.
pub(super) fn seeds(always: RangeInclusive<u64>) -> RangeInclusive<u64> {
    let given = std::env::var("NANDSCAPE_TEST_SEEDS").ok();
    given.as_ref().map_or(always, |text| {
        range(text).unwrap_or_else(|| panic!("NANDSCAPE_TEST_SEEDS is {text:?}; a range such as 1-1000 is valid"))
    })
}

fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let (first, last) = text.split_once('-')?;
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// Keeps the events of a run, if it is on.
#[derive(Default)]
pub(super) struct Watch {
    is_on: bool,
    kept: RefCell<Option<(Sim, Rc<Journal>)>>,
}

impl Watch {
    /// The journal of a run that begins.
    pub(super) fn begin(&self, sim: &Sim, setup: &Setup) -> Option<Rc<Journal>> {
        let journal = self.is_on.then(|| Journal::begin(sim, setup.flash.geometry()));
        *self.kept.borrow_mut() = journal.clone().map(|journal| (sim.clone(), journal));
        journal
    }
}

/// Runs a test for each seed on drives of each kind. Returns the sum of the runs' results, for each kind. `test` is its
/// name.
///
/// # Panics
/// When a run fails, with the command that runs its seed once more.
pub(super) fn each<const N: usize>(
    test: &str,
    always: RangeInclusive<u64>,
    kinds: &[(&str, Setup); N],
    run: impl Fn(&Setup, u64, &Watch) -> Result<u32, String>,
) -> [u64; N] {
    let seeds = seeds(always);
    let (first, last) = (*seeds.start(), *seeds.end());
    let mut sums = [0; N];
    let run_once = |setup: &Setup, seed, watch: &Watch| {
        // A panic of the FTL does not name its run.
        let ended = catch_unwind(AssertUnwindSafe(|| run(setup, seed, watch)));
        ended.unwrap_or_else(|_| Err("a panic, see above".to_owned()))
    };
    for seed in seeds {
        for ((name, setup), sum) in kinds.iter().zip(&mut sums) {
            *sum += u64::from(run_once(setup, seed, &Watch::default()).unwrap_or_else(|wrong| {
                let watch = Watch { is_on: true, ..Watch::default() };
                let again = run_once(setup, seed, &watch).err();
                if let Some((sim, journal)) = watch.kept.take() {
                    replay::show(&sim, &journal);
                }
                let note = if again.as_ref() == Some(&wrong) { "" } else { "; once more, it ended in another way" };
                panic!(
                    "{name}, seed {seed}: {wrong}{note}\nto see it again: NANDSCAPE_TEST_SEEDS={seed}-{seed} \
                     cargo test -p nandscape-device-ftl-ox --lib {test} -- --nocapture"
                )
            }));
        }
        if seed == last && last - first >= EVERY || (seed + 1 - first).is_multiple_of(EVERY) {
            println!("{test}, seeds {first}-{seed}: nothing wrong, {sums:?}");
        }
    }
    sums
}
