//! Reads of pages that are under way: reads of the same page wait for the same load.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::rc::Rc;

use nandscape_drive::{Completion, HostMem};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Time};

/// A read of pages.
pub(crate) struct Load {
    pub(crate) pages: RangeInclusive<u64>,
    pub(crate) mem: HostMem,
    pub(crate) began: Time,
    /// When it will have ended, as far as that is known.
    pub(crate) until: Option<Time>,
    /// Whether the drive below may reject it.
    pub(crate) has_deadline: bool,
    ended: RefCell<Option<Completion>>,
    told: Signal,
}

impl Load {
    pub(crate) fn new(
        sim: &Sim,
        pages: RangeInclusive<u64>,
        mem: HostMem,
        until: Option<Time>,
        has_deadline: bool,
    ) -> Rc<Load> {
        let began = sim.now();
        Rc::new(Load { pages, mem, began, until, has_deadline, ended: RefCell::default(), told: Signal::new(sim) })
    }

    pub(crate) fn end(&self, completion: Completion) {
        self.ended.replace(Some(completion));
        self.told.notify();
    }

    /// Waits until it has ended.
    pub(crate) async fn wait(&self) -> Completion {
        loop {
            if let Some(completion) = &*self.ended.borrow() {
                return completion.clone();
            }
            self.told.changed().await;
        }
    }
}

/// By page.
#[derive(Default)]
pub(crate) struct Loads(BTreeMap<u64, Rc<Load>>);

impl Loads {
    pub(crate) fn of(&self, page: u64) -> Option<&Rc<Load>> {
        self.0.get(&page)
    }

    pub(crate) fn begin(&mut self, load: &Rc<Load>) {
        load.pages.clone().for_each(|page| {
            self.0.insert(page, load.clone());
        });
    }

    /// It has ended. The pages that are its own still.
    pub(crate) fn end(&mut self, load: &Rc<Load>) -> Vec<u64> {
        let is_own = |page: &u64| self.0.get(page).is_some_and(|other| Rc::ptr_eq(other, load));
        let own: Vec<u64> = load.pages.clone().filter(is_own).collect();
        own.iter().for_each(|page| {
            self.0.remove(page);
        });
        own
    }

    /// Pages are written: the data of their loads is not kept, and new reads do not wait for them.
    pub(crate) fn forget(&mut self, pages: RangeInclusive<u64>) {
        let under_way: Vec<u64> = self.0.range(pages).map(|(page, _)| *page).collect();
        under_way.iter().for_each(|page| {
            self.0.remove(page);
        });
    }
}
