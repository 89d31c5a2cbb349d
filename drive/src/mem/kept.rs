//! The data pointers of the commands of one queue. The pointer of a command that has ended is reused, so the commands
//! of a guest do not allocate.
//!
//! A pointer with staged data of remote memory is not reused: the data is dropped with its command.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::HostMem;
use super::data_pointer::{DataPointer, describe, purpose};
use super::dma::Dma;

/// The most pointers that are kept. Beyond it, commands allocate their own.
const MOST: usize = 256;
/// Kept pointers that are checked for a free one. Commands end roughly in the order in which they began.
const LOOKS: usize = 4;

/// See the file.
pub struct DataPointers {
    dma: Rc<dyn Dma>,
    page: u32,
    /// Pointers that are kept at most.
    most: usize,
    kept: Rc<Kept>,
    /// The kept pointer that is checked next.
    next: Cell<usize>,
}

/// Pointers that are in use or free: a free one has no other owner.
#[derive(Default)]
pub(super) struct Kept(RefCell<Vec<Rc<DataPointer>>>);

impl Kept {
    /// Keeps a pointer no longer.
    pub(super) fn forget(&self, pointer: &DataPointer) {
        self.0.borrow_mut().retain(|kept| !std::ptr::eq(&**kept, pointer));
    }
}

impl DataPointers {
    /// Pointers into `dma` for commands of a queue of `entries` entries. `page` is the size of a memory page in bytes.
    pub fn new(dma: &Rc<dyn Dma>, page: u32, entries: usize) -> DataPointers {
        DataPointers { dma: dma.clone(), page, most: entries.min(MOST), kept: Rc::default(), next: Cell::new(0) }
    }

    /// The data of a command whose opcode determines the direction.
    ///
    /// # Errors
    /// Those of [`DataPointer::new`].
    #[inline]
    pub fn of(&self, entry: &SubmissionEntry) -> Result<HostMem, Status> {
        let (description, access) = describe(entry, self.page)?;
        let mut kept = self.kept.0.borrow_mut();
        for _ in 0..LOOKS.min(kept.len()) {
            let at = self.next.get();
            let at = if at < kept.len() { at } else { 0 };
            self.next.set(at + 1);
            if let Some(free) = Rc::get_mut(&mut kept[at]) {
                free.renew(description, access, purpose(entry));
                return Ok(HostMem::over(kept[at].clone()));
            }
        }
        drop(kept);
        Ok(self.another(DataPointer::over(&self.dma, description, access, purpose(entry))))
    }

    /// Wraps a new pointer, and keeps it below the limit.
    #[cold]
    fn another(&self, pointer: DataPointer) -> HostMem {
        let mut kept = self.kept.0.borrow_mut();
        if kept.len() == self.most {
            return HostMem::over(Rc::new(pointer));
        }
        let pointer = Rc::new(pointer.kept_in(&self.kept));
        kept.push(pointer.clone());
        HostMem::over(pointer)
    }
}

#[cfg(test)]
mod tests {
    use nandscape_wire_nvme::IoOpcode;

    use super::super::{Access, Answered, Ask, DmaFault};
    use super::*;

    /// Memory that holds the lowest bits of its addresses. From `remote` on, only its host reaches it.
    struct Host {
        remote: u64,
    }

    impl Host {
        fn allow(&self, address: u64) -> Result<(), DmaFault> {
            match address < self.remote {
                true => Ok(()),
                false => Err(DmaFault::remote(address)),
            }
        }
    }

    impl Dma for Host {
        fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
            self.allow(address)?;
            bytes.iter_mut().zip(address..).for_each(|(byte, at)| *byte = at as u8);
            Ok(())
        }

        fn write(&self, address: u64, _: &[u8]) -> Result<(), DmaFault> {
            self.allow(address)
        }

        fn store(&self, address: u64, _: u32) -> Result<(), DmaFault> {
            self.allow(address)
        }

        fn check(&self, address: u64, _: usize, _: Access) -> Result<(), DmaFault> {
            self.allow(address)
        }

        fn ask(&self, _: Ask, then: Answered) {
            drop(then);
        }
    }

    const REMOTE: u64 = 1 << 30;

    fn pointers() -> DataPointers {
        let dma: Rc<dyn Dma> = Rc::new(Host { remote: REMOTE });
        DataPointers::new(&dma, 4_096, 1_024)
    }

    /// A write of 4 KiB from an address.
    fn write_of(pointers: &DataPointers, prp1: u64) -> HostMem {
        let entry = SubmissionEntry { prp1: prp1.into(), ..SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8) };
        pointers.of(&entry).unwrap()
    }

    #[test]
    fn a_pointer_is_used_again_when_its_command_has_ended_and_not_before() {
        let pointers = pointers();
        let held: Vec<(u64, HostMem)> = (0..60).map(|at| (at * 4_100, write_of(&pointers, at * 4_100))).collect();
        for (at, mem) in &held {
            let mut bytes = [0; 4];
            mem.read(0, &mut bytes);
            assert_eq!(bytes[0], *at as u8, "the pointer of another command");
        }
        assert_eq!(pointers.kept.0.borrow().len(), 60);
        drop(held);
        for at in 0..1_000 {
            write_of(&pointers, at * 4_096);
        }
        assert_eq!(pointers.kept.0.borrow().len(), 60);
        // Beyond its limit it keeps none.
        let held: Vec<HostMem> = (0..1_000).map(|at| write_of(&pointers, at * 4_096)).collect();
        assert_eq!(pointers.kept.0.borrow().len(), MOST);
        drop(held);
    }

    #[test]
    fn what_failed_for_one_command_does_not_fail_for_the_next() {
        let pointers = pointers();
        let first = write_of(&pointers, 2);
        first.read(0, &mut [0; 4]);
        assert!(first.has_failed(), "its address is no PRP");
        drop(first);
        let second = write_of(&pointers, 8);
        let mut bytes = [0; 4];
        second.read(0, &mut bytes);
        assert_eq!((second.has_failed(), bytes, pointers.kept.0.borrow().len()), (false, [8, 9, 10, 11], 1));
    }

    #[test]
    fn a_pointer_with_data_that_the_host_was_asked_for_is_not_kept() {
        let pointers = pointers();
        let remote = write_of(&pointers, REMOTE);
        assert!(remote.cover(4_096).is_err(), "it has to be read first");
        assert_eq!(pointers.kept.0.borrow().len(), 0);
        drop(remote);
        write_of(&pointers, 0);
        assert_eq!(pointers.kept.0.borrow().len(), 1);
    }
}
