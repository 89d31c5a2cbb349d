//! Awaiting one command: submits it to a drive and wakes the task when it completes.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use nandscape_sim::Sim;
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};
use nandscape_wire_nvme::SubmissionEntry;

use crate::drive::Drive;
use crate::io::{CommandRef, Completion, Io, Sink, Token};
use crate::mem::HostMem;

/// Issues commands on behalf of tasks.
pub struct Issuer {
    pending: Rc<Pending>,
}

struct Pending {
    sim: Sim,
    slots: RefCell<Slots<Slot>>,
}

/// The task that waits, or the completion. Dropping the future removes its slot, and the completion is discarded.
enum Slot {
    Waiting(TaskId),
    Done(Completion),
}

impl Issuer {
    /// An issuer for any number of commands.
    pub fn new(sim: &Sim) -> Issuer {
        Issuer { pending: Rc::new(Pending { sim: sim.clone(), slots: RefCell::default() }) }
    }

    /// Submits a command at once and waits for it when awaited.
    pub fn execute(&self, drive: &dyn Drive, command: SubmissionEntry, mem: HostMem) -> Execute<'_> {
        let slot = Slot::Waiting(self.pending.sim.current_task());
        let key = self.pending.slots.borrow_mut().insert(slot);
        drive.submit(Io { command, mem, token: Token::new(self.pending.clone(), key.to_bits()) });
        Execute { issuer: self, key }
    }
}

impl Sink for Pending {
    fn complete(&self, tag: u64, completion: Completion) {
        let mut slots = self.slots.borrow_mut();
        if let Some(slot) = slots.get_mut(Key::from_bits(tag))
            && let Slot::Waiting(task) = std::mem::replace(slot, Slot::Done(completion))
        {
            self.sim.wake(task);
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

/// See [`Issuer::execute`].
#[must_use = "the completion is lost unless it is awaited"]
pub struct Execute<'a> {
    issuer: &'a Issuer,
    key: Key,
}

impl Execute<'_> {
    /// Cancels the command on the drive that it was submitted to, if it waits there; see [`Drive::cancel`]. It is awaited
    /// as before.
    pub fn cancel(&self, drive: &dyn Drive) -> bool {
        let sink: Rc<dyn Sink> = self.issuer.pending.clone();
        drive.cancel(CommandRef::new(&sink, self.key.to_bits()))
    }
}

impl Future for Execute<'_> {
    type Output = Completion;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Completion> {
        let Pending { sim, slots } = &*self.issuer.pending;
        let mut slots = slots.borrow_mut();
        match slots.get_mut(self.key).expect("the slot of a live future") {
            Slot::Waiting(task) => {
                *task = sim.current_task();
                Poll::Pending
            }
            Slot::Done(_) => match slots.remove(self.key) {
                Some(Slot::Done(completion)) => Poll::Ready(completion),
                _ => unreachable!("just seen"),
            },
        }
    }
}

impl Drop for Execute<'_> {
    fn drop(&mut self) {
        self.issuer.pending.slots.borrow_mut().remove(self.key);
    }
}
