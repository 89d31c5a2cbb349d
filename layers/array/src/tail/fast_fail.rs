//! Tea1 (Li 3.2.1): reads fail fast where background work delays them, and busy chunks are reconstructed. Where too
//! many members are busy to reconstruct, it is unknown which chunk will be free first: reads chosen at random are
//! resubmitted, without the bit.

use std::cell::RefCell;

use nandscape_sim::{Rng, Seed, Time};
use nandscape_wire_nvme::vendor::FAST_FAIL;

use super::{Sends, TailPolicy, View};

/// See the file.
#[derive(Debug)]
pub struct FastFail {
    rng: RefCell<Rng>,
}

impl FastFail {
    /// Choices by chance follow from the seed.
    pub fn new(seed: Seed) -> FastFail {
        FastFail { rng: RefCell::new(seed.child("tea1").rng()) }
    }
}

impl TailPolicy for FastFail {
    fn asks_first(&self) -> Option<u32> {
        Some(FAST_FAIL)
    }

    fn next(&self, view: &View<'_>, sends: &mut Sends) -> Option<Time> {
        view.ask_wanted(FAST_FAIL, sends);
        let mut busy: Vec<usize> = view.busy().into_iter().map(|(member, _)| member).collect();
        if !busy.is_empty() {
            if busy.len() > 1 {
                self.rng.borrow_mut().shuffle(&mut busy);
            }
            view.evade(&busy, FAST_FAIL, 0, sends);
        }
        None
    }

    fn abandons(&self) -> bool {
        true
    }
}
