//! The drive's own notices of chunks (OC 3.2.2): data that could not be read, chunks out of use, and wear that has left
//! the average.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::OpenChannel;

/// Notices that are kept.
pub const KEPT: usize = 255;

/// The event.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Units could not be read, from an address on.
    Unreadable {
        /// The first.
        address: u64,
        /// Their number.
        blocks: u32,
    },
    /// A chunk is out of use.
    Offline(u32),
    /// A chunk's wear has left the average by more than the threshold.
    Wear(u32),
}

/// The latest notices.
pub(super) struct Notices {
    /// The latest first.
    latest: RefCell<VecDeque<Notice>>,
    count: Cell<u64>,
    changed: RefCell<Box<dyn Fn()>>,
}

impl Default for Notices {
    fn default() -> Notices {
        Notices { latest: RefCell::default(), count: Cell::new(0), changed: RefCell::new(Box::new(|| ())) }
    }
}

impl OpenChannel {
    /// Calls `changed` after each notice.
    pub fn on_notice(&self, changed: Box<dyn Fn()>) {
        *self.notices.changed.borrow_mut() = changed;
    }

    /// The latest notices with their numbers, counted from 1, the latest first.
    pub fn notices(&self) -> Vec<(u64, Notice)> {
        let count = self.notices.count.get();
        (0..).zip(&*self.notices.latest.borrow()).map(|(age, notice)| (count - age, *notice)).collect()
    }

    pub(super) fn tell(&self, notice: Notice) {
        let mut latest = self.notices.latest.borrow_mut();
        latest.truncate(KEPT - 1);
        latest.push_front(notice);
        drop(latest);
        self.notices.count.set(self.notices.count.get() + 1);
        (self.notices.changed.borrow())();
    }

    /// Wear of a chunk, from 0 (new) to 255 (as often erased as the flash is rated for).
    pub fn wear_index(&self, erases: u32) -> u8 {
        (u64::from(erases) * 255 / u64::from(self.config.rated_erases.max(1))).min(255) as u8
    }

    /// A chunk was erased.
    pub(super) fn check_wear(&self, chunk: u32) {
        let (erases, sum) = (self.chunk(chunk).erases, self.erased.get() + 1);
        self.erased.set(sum);
        let average = self.wear_index((sum / u64::from(self.layout.all_chunks())) as u32);
        let delta = |erases| self.wear_index(erases).abs_diff(average);
        let threshold = self.config.wear_threshold;
        if threshold > 0 && delta(erases) > threshold && delta(erases - 1) <= threshold {
            self.tell(Notice::Wear(chunk));
        }
    }
}
