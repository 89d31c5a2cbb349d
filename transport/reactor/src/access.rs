//! A controller's accesses to its host's memory. The host may write, map and unmap it at any time, so the outcome of each
//! access is recorded. A replay takes the outcomes from the recording, so the model sees the same memory again.
//!
//! Left out: the memory.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::mem::{Access, Dma, DmaFault};

use crate::port::ConnectionId;
use crate::recording::Recorder;

/// Where arrivals and accesses are recorded, if they are.
pub(crate) type Tape = Rc<RefCell<Option<Recorder>>>;

/// The outcome of one access: the data read, nothing for a write that succeeded, or `None` for a failure.
pub(crate) type Outcome = Option<Vec<u8>>;

/// A host's memory, with a record of all accesses.
pub(crate) struct Recorded {
    pub(crate) dma: Rc<dyn Dma>,
    pub(crate) connection: ConnectionId,
    pub(crate) tape: Tape,
}

impl Recorded {
    fn note(&self, result: Result<(), DmaFault>, data: &[u8]) -> Result<(), DmaFault> {
        if let Some(recorder) = &mut *self.tape.borrow_mut() {
            recorder.access(self.connection, result.is_ok().then_some(data));
        }
        result
    }
}

impl Dma for Recorded {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        self.note(self.dma.read(address, bytes), bytes)
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
}

/// Outcomes from a recording, in order.
#[derive(Default)]
pub(crate) struct Outcomes {
    queue: RefCell<VecDeque<(ConnectionId, Outcome)>>,
    differs: Cell<bool>,
}

impl Outcomes {
    pub(crate) fn push(&self, connection: ConnectionId, outcome: Outcome) {
        self.queue.borrow_mut().push_back((connection, outcome));
    }

    /// Whether the model made an access that the recording does not have.
    pub(crate) fn differ(&self) -> bool {
        self.differs.get()
    }

    /// The outcome of the next access, which is one of `connection` and has `len` bytes unless it failed.
    fn next(&self, connection: ConnectionId, address: u64, len: usize) -> Result<Vec<u8>, DmaFault> {
        match self.queue.borrow_mut().pop_front() {
            Some((of, None)) if of == connection => return Err(DmaFault { address }),
            Some((of, Some(data))) if of == connection && data.len() == len => return Ok(data),
            _ => {}
        }
        self.differs.set(true);
        Err(DmaFault { address })
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
        for (number, outcome) in [(1, Some(vec![1, 2])), (2, None), (1, Some(Vec::new())), (1, Some(vec![3]))] {
            outcomes.push(ConnectionId(number), outcome);
        }
        let mut bytes = [0; 2];
        assert!(first.read(0, &mut bytes).is_ok() && bytes == [1, 2]);
        assert_eq!(second.check(7, 1, Access::Read), Err(DmaFault { address: 7 }), "it failed then");
        assert!(first.write(0, &[5; 9]).is_ok() && !outcomes.differ());
        assert!(first.read(0, &mut bytes).is_err() && outcomes.differ(), "of another length");
        outcomes.differs.set(false);
        assert!(first.store(0, 1).is_err() && outcomes.differ(), "none is left");
    }
}
