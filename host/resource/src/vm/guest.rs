//! The machine that serves requests, each of which is work of exponentially distributed length, and the prediction of
//! their time.
//!
//! A request waits until its machine has its turn, then for the jobs before it. If they do not end within the turn,
//! it waits for the turns of the others again, once for each further slice needed. The length of a job is unknown
//! beforehand, so a moving average is used.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_sim::{Rng, Seed, Span};

use super::core::Core;
use crate::resource::{Average, Forecast, Resource, Serving};

/// The work of requests.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// On average.
    pub mean: Span,
}

/// The most times the mean that a request takes.
const MOST: u64 = 10;
/// The weight of a new request in their average.
const WEIGHT: f64 = 0.05;

/// See the file.
pub struct Guest {
    core: Rc<Core>,
    vm: usize,
    work: Work,
    rng: RefCell<Rng>,
    /// Of requests that have ended.
    seen: Rc<RefCell<Average>>,
}

impl Guest {
    /// A machine of a core. Its requests are drawn from the seed.
    pub fn new(core: Rc<Core>, vm: usize, work: Work, seed: Seed) -> Rc<Guest> {
        let seen = Rc::new(RefCell::new(Average::new(work.mean, WEIGHT)));
        Rc::new(Guest { core, vm, work, rng: RefCell::new(seed.rng()), seen })
    }
}

impl Resource for Guest {
    fn forecast(&self) -> Forecast {
        let (ahead, own) = (self.core.ahead(self.vm), self.seen.borrow().get());
        let before = (own * ahead.jobs as u64).saturating_sub(ahead.begun.min(own));
        let (all, slice) = (before + own, self.core.slice());
        let further = all.saturating_sub(ahead.turn).ns().div_ceil(slice.ns());
        let wait = ahead.wait + before + ahead.between * further;
        Forecast { latency: wait + own, wait }
    }

    fn serve(&self) -> Serving {
        let mean = self.work.mean;
        let work = self.rng.borrow_mut().exponential(mean.ns() as f64).min(mean * MOST);
        let (core, vm, seen) = (self.core.clone(), self.vm, self.seen.clone());
        Box::pin(async move {
            core.run(vm, work).await;
            seen.borrow_mut().add(work);
        })
    }
}
