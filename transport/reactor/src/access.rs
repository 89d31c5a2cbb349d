//! A controller's accesses to its host's memory. The host may write, map and unmap it at any time, so the outcome of each
//! access is recorded. Memory that only the host reaches is requested, and the host's answer is an arrival. A replay
//! takes the outcomes from the recording, so the model sees the same memory again.
//!
//! Left out: the memory.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use nandscape_drive::mem::{Access, Answered, Ask, Dma, DmaFault, Purpose};

use crate::asks::Asks;
use crate::outbox::{Outbox, ToHost, What};
use crate::port::ConnectionId;
use crate::recording::Recorder;

/// Where arrivals and accesses are recorded, if they are.
pub(crate) type Tape = Rc<RefCell<Option<Recorder>>>;

/// The outcome of one access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It succeeded: the data read, nothing for a write.
    Done(Vec<u8>),
    /// It failed.
    Failed,
    /// The host had to be asked.
    Remote,
    /// It succeeded: so many bytes were read to be stored, which the recording leaves out.
    LeftOut(u32),
}

/// A host's memory, with a record of all accesses.
pub(crate) struct Recorded {
    pub(crate) dma: Rc<dyn Dma>,
    pub(crate) connection: ConnectionId,
    pub(crate) tape: Tape,
    pub(crate) asks: Rc<Asks>,
    pub(crate) outbox: Rc<Outbox>,
}

impl Recorded {
    fn note(&self, result: Result<(), DmaFault>, data: &[u8]) -> Result<(), DmaFault> {
        self.note_for(Purpose::Other, result, data)
    }

    fn note_for(&self, purpose: Purpose, result: Result<(), DmaFault>, data: &[u8]) -> Result<(), DmaFault> {
        if let Some(recorder) = &mut *self.tape.borrow_mut() {
            recorder.access(self.connection, result.map(|()| data), purpose);
        }
        result
    }
}

impl Dma for Recorded {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        self.note(self.dma.read(address, bytes), bytes)
    }

    fn read_for(&self, purpose: Purpose, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        self.note_for(purpose, self.dma.read(address, bytes), bytes)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.note(self.dma.write(address, bytes), &[])
    }

    fn store(&self, address: u64, value: u32) -> Result<(), DmaFault> {
        self.note(self.dma.store(address, value), &[])
    }

    fn check(&self, address: u64, len: usize, access: Access) -> Result<(), DmaFault> {
        self.note(self.dma.check(address, len, access), &[])
    }

    fn ask(&self, ask: Ask, then: Answered) {
        let what = What::Ask(self.asks.begin(&ask, then), Box::new(ask));
        self.outbox.to_hosts.borrow_mut().push(ToHost { connection: self.connection, what });
    }
}

/// Outcomes from a recording, in the order of each connection: those of two timelines may repeat in another order.
#[derive(Default)]
pub(crate) struct Outcomes {
    queues: RefCell<BTreeMap<ConnectionId, VecDeque<Outcome>>>,
    differs: Cell<bool>,
}

impl Outcomes {
    pub(crate) fn push(&self, connection: ConnectionId, outcome: Outcome) {
        self.queues.borrow_mut().entry(connection).or_default().push_back(outcome);
    }

    /// Whether the model made an access that the recording does not have.
    pub(crate) fn differ(&self) -> bool {
        self.differs.get()
    }

    /// The outcome of the next access, which must be of `connection` and have `len` bytes unless it failed.
    fn next(&self, connection: ConnectionId, address: u64, len: usize) -> Result<Vec<u8>, DmaFault> {
        match self.queues.borrow_mut().get_mut(&connection).and_then(VecDeque::pop_front) {
            Some(Outcome::Failed) => return Err(DmaFault::at(address)),
            Some(Outcome::Remote) => return Err(DmaFault::remote(address)),
            Some(Outcome::Done(data)) if data.len() == len => return Ok(data),
            Some(Outcome::LeftOut(left_out)) if left_out as usize == len => return Ok(vec![0; len]),
            _ => {}
        }
        self.differs.set(true);
        Err(DmaFault::at(address))
    }
}

/// A host's memory as a recording has it.
pub(crate) struct Replayed {
    pub(crate) outcomes: Rc<Outcomes>,
    pub(crate) connection: ConnectionId,
}

impl Dma for Replayed {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        bytes.copy_from_slice(&self.outcomes.next(self.connection, address, bytes.len())?);
        Ok(())
    }

    fn write(&self, address: u64, _: &[u8]) -> Result<(), DmaFault> {
        self.outcomes.next(self.connection, address, 0).map(drop)
    }

    fn store(&self, address: u64, _: u32) -> Result<(), DmaFault> {
        self.outcomes.next(self.connection, address, 0).map(drop)
    }

    fn check(&self, address: u64, _: usize, _: Access) -> Result<(), DmaFault> {
        self.outcomes.next(self.connection, address, 0).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_come_in_order_and_what_is_not_there_is_told() {
        let outcomes = Rc::new(Outcomes::default());
        let host = |number| Replayed { outcomes: outcomes.clone(), connection: ConnectionId(number) };
        let (first, second) = (host(1), host(2));
        let done = |bytes: &[u8]| Outcome::Done(bytes.to_vec());
        let all = [(1, done(&[1, 2])), (2, Outcome::Failed), (2, Outcome::Remote), (1, done(&[])), (1, done(&[3]))];
        for (number, outcome) in all {
            outcomes.push(ConnectionId(number), outcome);
        }
        let mut bytes = [0; 2];
        assert!(first.read(0, &mut bytes).is_ok() && bytes == [1, 2]);
        assert_eq!(second.check(7, 1, Access::Read), Err(DmaFault::at(7)), "it failed then");
        assert_eq!(second.write(9, &[1]), Err(DmaFault::remote(9)), "the host was asked then");
        assert!(first.write(0, &[5; 9]).is_ok() && !outcomes.differ());
        assert!(first.read(0, &mut bytes).is_err() && outcomes.differ(), "of another length");
        outcomes.differs.set(false);
        assert!(first.store(0, 1).is_err() && outcomes.differ(), "none is left");
    }
}
