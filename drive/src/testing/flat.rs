//! Contiguous host memory, for tests of accesses by address. Its first page is not mapped.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::mem::{Access, Dma, DmaFault};

/// Bytes of the first page.
const UNMAPPED: u64 = 4_096;

/// See the file.
pub struct FlatMemory {
    /// All of it.
    pub bytes: RefCell<Vec<u8>>,
    /// Accesses so far.
    pub accesses: Cell<u64>,
}

impl FlatMemory {
    /// Memory that holds `bytes`.
    pub fn new(bytes: Vec<u8>) -> Rc<FlatMemory> {
        Rc::new(FlatMemory { bytes: RefCell::new(bytes), accesses: Cell::new(0) })
    }

    fn range(&self, address: u64, len: usize) -> Result<Range<usize>, DmaFault> {
        self.accesses.set(self.accesses.get() + 1);
        let all = self.bytes.borrow().len() as u64;
        let end = address.checked_add(len as u64).filter(|end| *end <= all && address >= UNMAPPED);
        end.map(|end| address as usize..end as usize).ok_or(DmaFault::at(address))
    }
}

impl Dma for FlatMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        bytes.copy_from_slice(&self.bytes.borrow()[self.range(address, bytes.len())?]);
        Ok(())
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        let range = self.range(address, bytes.len())?;
        self.bytes.borrow_mut()[range].copy_from_slice(bytes);
        Ok(())
    }

    fn store(&self, address: u64, value: u32) -> Result<(), DmaFault> {
        self.write(address, &value.to_le_bytes())
    }

    fn check(&self, address: u64, len: usize, _: Access) -> Result<(), DmaFault> {
        self.range(address, len).map(drop)
    }
}
