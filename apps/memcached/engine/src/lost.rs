//! Drives that are missing or fail: their twins, or with parity all others, serve without them.
//!
//! All other drives record a loss before the engine writes again. The lost drive lacks later writes, so a drive that returns is
//! rebuilt from the others of its group.

use std::ops::Deref;
use std::rc::Rc;

use crate::drives::Member;
use crate::engine::Engine;
use crate::error::{EngineError, Event};
use crate::log::Spot;

/// Segments that are remembered as reported. The oldest is forgotten first: it is given up first.
const MOST_REPORTED: usize = 1_024;

/// The drives of a group, as they are now.
pub(crate) struct Group {
    members: Rc<[Rc<Member>]>,
    first: usize,
    width: usize,
}

impl Deref for Group {
    type Target = [Rc<Member>];

    fn deref(&self) -> &[Rc<Member>] {
        &self.members[self.first..][..self.width]
    }
}

impl Engine {
    /// The drives, as they are now: one that was lost may be replaced.
    pub(crate) fn members(&self) -> Rc<[Rc<Member>]> {
        self.members.borrow().clone()
    }

    /// A drive.
    pub(crate) fn member(&self, drive: usize) -> Rc<Member> {
        self.members.borrow()[drive].clone()
    }

    /// Drives of a group.
    pub(crate) fn replicas(&self) -> usize {
        self.layout.width
    }

    /// The drives that have copies of a drive's items, or parity over them.
    pub fn sharers(&self, drive: usize) -> impl Iterator<Item = usize> + use<> {
        let width = self.replicas();
        let first = drive / width * width;
        (first..first + width).filter(move |other| *other != drive)
    }

    /// The drive that alone has the items of another, if there is one.
    pub(crate) fn twin(&self, drive: usize) -> Option<usize> {
        (!self.layout.has_parity()).then_some(drive ^ 1)
    }

    /// The drives of a group.
    pub(crate) fn group(&self, pair: usize) -> Group {
        let width = self.replicas();
        Group { members: self.members(), first: pair * width, width }
    }

    /// Whether a group has all of its drives, and the policy keeps reads apart: one drive alone is written and read at the same time.
    pub(crate) fn keeps_apart(&self, pair: usize) -> bool {
        let group = self.group(pair);
        self.policy.keeps_reads_apart() && group.len() > 1 && !group.iter().any(|one| one.is_incomplete())
    }

    /// What has happened since the last call.
    pub fn take_events(&self) -> Vec<Event> {
        self.events.take()
    }

    pub(crate) fn event(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }

    /// No drive of a group has returned what is at a place, and its items are dropped. The operator hears of the first time in each segment.
    pub(crate) fn unreadable(&self, pair: usize, spot: Spot, dropped: u64) {
        let mut reported = self.reported.borrow_mut();
        if dropped == 0 || !reported.insert((spot.segment, pair)) {
            return;
        }
        if reported.len() > MOST_REPORTED {
            reported.pop_first();
        }
        let drives = self.group(pair).iter().map(|member| member.number()).collect();
        self.event(Event::Unreadable { drives, at: self.place(spot).0, dropped });
        self.changed.notify();
    }

    /// A drive has failed: the others of its group serve without it.
    ///
    /// # Errors
    /// The failure, if there is no twin.
    pub(crate) async fn lose(&self, error: EngineError) -> Result<(), EngineError> {
        let mut error = error;
        loop {
            let drive = error.drive();
            let (pair, replica) = (drive / self.replicas(), drive % self.replicas());
            let lost =
                self.group(pair).iter().filter(|member| member.is_incomplete() && member.number() != drive).count();
            if lost >= self.layout.spares() {
                return Err(error);
            }
            let member = self.member(drive);
            if member.is_gone() {
                return Ok(());
            }
            member.lose();
            self.end_rebuild(drive);
            // The others know of it before any of them has what this one lacks, and before anyone hears that a change is done.
            let recorded = self.record_losses().await;
            self.state.borrow_mut().lose(pair, replica);
            self.event(Event::Failed { error, twin: self.twin(drive) });
            self.changed.notify();
            match recorded {
                Ok(()) => return Ok(()),
                Err(another) => error = another,
            }
        }
    }

    /// Has all drives in use record which are lost.
    ///
    /// # Errors
    /// The failure of one of them.
    pub(crate) async fn record_losses(&self) -> Result<(), EngineError> {
        let members = self.members();
        let lost = members.iter().filter(|member| member.is_incomplete());
        self.begin_round(lost.fold(0, |lost, one| lost | 1 << one.number()));
        for member in members.iter().filter(|member| !member.is_incomplete()) {
            self.record(member).await?;
        }
        Ok(())
    }
}
