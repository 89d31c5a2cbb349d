//! Components other than the first of each set: power cuts at every operation of a short run, and runs as seeds draw
//! them. Components of P9 with invalid submissions.

use std::ops::ControlFlow;

use nandscape_device_ftl_core::component::{CachedWrites, Submission, WriteCaching};
use nandscape_sim::Executor;

use super::campaign::drawn;
use super::case::Case;
use super::cuts::{every_operation, seed};
use super::kinds::Setup;
use super::rig::{Rig, units};
use super::seeds::seeds;
use crate::registry::{Choice, MakeWriteCaching};

/// Kinds of drives with another component each.
const KINDS: [&str; 3] = ["channel_lines", "by_address", "flushed_first"];

#[test]
fn at_every_operation_of_a_short_run() {
    for kind in KINDS {
        assert!(every_operation(kind, "unreadable") > 100, "{kind}");
    }
}

#[test]
fn runs_with_other_components_lose_nothing() {
    for kind in KINDS {
        let mut collected = 0;
        for seed in seeds(seed()..=seed() + 59) {
            let case = Case { kind, ..drawn(seed) };
            collected += case.run().unwrap_or_else(|wrong| panic!("{wrong}")).gc_blocks;
        }
        assert!(collected > 0, "nothing was collected with {kind}");
    }
}

/// Submits the result of a function on the first slot in line.
struct Wrong(fn(nandscape_device_ftl_core::address::SlotId) -> Submission);

impl WriteCaching for Wrong {
    fn submit(&self, cache: &dyn CachedWrites) -> Submission {
        let mut submission = Submission::Wait;
        cache.visit(&mut |next| {
            submission = (self.0)(next.slot);
            ControlFlow::Break(())
        });
        submission
    }
}

/// Writes two units over a cache with a component.
fn write_with(make: MakeWriteCaching) {
    let (mut executor, mut setup) = (Executor::new(), Setup::small());
    setup.config.components.write_cache = Choice::new("of_this_test", "wrong", make);
    let rig = Rig::new(&executor.sim(), &setup, seed(), None);
    let write = rig.write(units(0, 2), &[1; 2 * 4_096], true, || ());
    let _ = executor.block_on_within(write, 100_000);
}

#[test]
#[should_panic(expected = "P9 component: SlotId")]
fn a_slot_that_is_submitted_twice_is_told() {
    write_with(|_| Box::new(Wrong(|slot| Submission::Program([slot, slot].into_iter().collect()))));
}

#[test]
#[should_panic(expected = "cannot be filled")]
fn a_whole_slot_that_is_to_be_filled_is_told() {
    write_with(|_| Box::new(Wrong(Submission::Fill)));
}
