//! Drives that are missing or fail: their twins, or with parity all others, serve without them.
//!
//! All other drives record a loss before the engine writes again. The lost drive lacks later writes, so a drive that returns is
//! rebuilt from the others of its group.

use std::rc::Rc;

use crate::drives::Member;
use crate::engine::Engine;
use crate::error::{EngineError, Event};
use crate::open::Super;

impl Engine {
    /// Drives of a group.
    pub(crate) fn replicas(&self) -> usize {
        self.layout.width
    }

    /// The drive that alone has the items of another, if there is one.
    pub(crate) fn twin(&self, drive: usize) -> Option<usize> {
        (!self.layout.has_parity()).then_some(drive ^ 1)
    }

    /// The drives of a group.
    pub(crate) fn group(&self, pair: usize) -> &[Rc<Member>] {
        &self.members[pair * self.replicas()..][..self.replicas()]
    }

    /// Whether a group has all of its drives, and the policy keeps reads apart: one drive alone is written and read at the same time.
    pub(crate) fn keeps_apart(&self, pair: usize) -> bool {
        self.policy.keeps_reads_apart()
            && self.group(pair).len() > 1
            && !self.group(pair).iter().any(|one| one.is_incomplete())
    }

    /// What has happened since the last call.
    pub fn take_events(&self) -> Vec<Event> {
        self.events.take()
    }

    pub(crate) fn event(&self, event: Event) {
        self.events.borrow_mut().push(event);
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
            if self.members[drive].is_gone() {
                return Ok(());
            }
            self.members[drive].lose();
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
        let lost =
            self.members.iter().filter(|member| member.is_incomplete()).fold(0, |lost, one| lost | 1 << one.number());
        let before = self.shape.get();
        let shape = Super { generation: before.generation + 1, lost, ..before };
        self.shape.set(shape);
        for member in self.members.iter().filter(|member| !member.is_incomplete()) {
            shape.write(member).await?;
        }
        Ok(())
    }
}
