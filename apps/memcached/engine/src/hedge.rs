//! A read at a drive that has fallen silent: the others are asked before its connection counts as broken.
//!
//! A read may take several times as long as the longest of the drive's last reads, and a part of the drive's patience at most. Then the drive is
//! silent: the others of its group are asked, and further reads go to them at once where none of them has a token, until the silent drive ends a
//! read. The late read continues: drives do not forget commands.
//!
//! A late read counts as its bound. So one silence does not keep the next from being noticed, and a drive that has become slow gets more time with each
//! late read.

use std::cell::{Cell, RefCell};
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_sim::Span;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::vendor::Attributes;

use crate::drives::Member;
use crate::engine::Engine;
use crate::error::EngineError;

/// A read is late after this many times the longest of the last ones, and not before the least time. A drive collects garbage that long.
const TIMES: u64 = 4;
const LEAST: Span = Span::from_ms(50);
/// It is late after this part of the patience in any case. Half of the patience breaks the connection.
const MOST: u64 = 4;
/// The longest read is forgotten by this part with each read: 64 is a 64th.
const FORGOTTEN: u64 = 64;

/// How fast a drive is, and whether it answers.
#[derive(Default)]
pub(crate) struct Pace {
    longest_ns: Cell<u64>,
    is_silent: Cell<bool>,
}

impl Pace {
    /// A read has ended after a time. `bound` was its bound.
    pub(crate) fn ended(&self, after: Span, bound: Span) {
        let longest = self.longest_ns.get();
        self.longest_ns.set(after.min(bound).ns().max(longest - longest / FORGOTTEN));
        self.is_silent.set(false);
    }

    /// Whether it has not answered a read in time, and none since.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent.get()
    }

    /// How long a read may take.
    pub(crate) fn bound(&self, patience: Span) -> Span {
        Span::from_ns(TIMES * self.longest_ns.get()).min(patience / MOST).max(LEAST)
    }
}

impl Engine {
    /// Reads bytes at a drive without which the group could return them; `None` if the drive is silent.
    pub(crate) async fn read_in_time(
        &self,
        member: &Rc<Member>,
        place: (u64, usize),
        apart: bool,
        attributes: Attributes,
    ) -> Option<Result<Vec<u8>, EngineError>> {
        if !self.config.hedges_reads {
            return Some(member.read(place, apart, attributes, Span::ZERO).await);
        }
        let sim = self.host.sim();
        let bound = member.pace.bound(member.patience);
        // Before another task runs, which could take a token.
        if let Err(error) = member.begin_read(apart) {
            return Some(Err(error));
        }
        let (ended, read) = (Rc::new(Signal::new(sim)), Rc::<RefCell<Option<_>>>::default());
        let (told, put, reader) = (ended.clone(), read.clone(), member.clone());
        sim.spawn(async move {
            let bytes = reader.read_begun(place, attributes, Span::ZERO).await;
            put.replace(Some(bytes));
            told.notify();
        });
        let mut late = pin!(sim.sleep(bound));
        while read.borrow().is_none() {
            let mut changed = pin!(ended.changed());
            let is_late = poll_fn(|context| match changed.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(false),
                Poll::Pending => late.as_mut().poll(context).map(|()| true),
            });
            if is_late.await {
                member.pace.is_silent.set(true);
                self.state.borrow_mut().stats.hedged += 1;
                return None;
            }
        }
        read.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Span = Span::from_s(10);

    #[test]
    fn a_silence_changes_the_bound_little_and_slow_reads_raise_it_to_a_part_of_the_patience() {
        let pace = Pace::default();
        assert_eq!(pace.bound(PATIENCE), LEAST);
        pace.ended(Span::from_s(4), pace.bound(PATIENCE));
        assert_eq!(pace.bound(PATIENCE), LEAST * TIMES);
        for _ in 0..9 {
            pace.ended(Span::from_s(4), pace.bound(PATIENCE));
        }
        assert_eq!(pace.bound(PATIENCE), PATIENCE / MOST);
        assert_eq!(pace.bound(Span::from_ms(100)), LEAST);
        for _ in 0..400 {
            pace.ended(Span::from_us(100), pace.bound(PATIENCE));
        }
        assert_eq!(pace.bound(PATIENCE), LEAST);
    }
}
