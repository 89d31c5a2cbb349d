//! A read at a drive that has fallen silent: the others are asked before its connection counts as broken.
//!
//! A read may take several times as long as the longest of the drive's last reads. Then the drive is silent: the others of its group are asked, and
//! further reads go to them at once, until the silent drive ends a read. The late read goes on: drives do not forget commands.

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
/// The longest read is forgotten by this part with each read: 64 is a 64th.
const FORGOTTEN: u64 = 64;

/// How fast a drive is, and whether it answers.
#[derive(Default)]
pub(crate) struct Pace {
    longest_ns: Cell<u64>,
    is_silent: Cell<bool>,
}

impl Pace {
    /// A read has ended after a time.
    pub(crate) fn ended(&self, after: Span) {
        let longest = self.longest_ns.get();
        self.longest_ns.set(after.ns().max(longest - longest / FORGOTTEN));
        self.is_silent.set(false);
    }

    /// Whether it has not answered a read in time, and none since.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent.get()
    }

    /// How long a read may take.
    fn bound(&self) -> Span {
        Span::from_ns(TIMES * self.longest_ns.get()).max(LEAST)
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
        let (ended, read) = (Rc::new(Signal::new(sim)), Rc::<RefCell<Option<_>>>::default());
        let (told, put, reader) = (ended.clone(), read.clone(), member.clone());
        sim.spawn(async move {
            let bytes = reader.read(place, apart, attributes, Span::ZERO).await;
            put.replace(Some(bytes));
            told.notify();
        });
        let mut late = pin!(sim.sleep(member.pace.bound()));
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
