//! The memory that a driver shares with its function: one file in memory, allocated in pages from the front and never
//! freed.

use std::cell::Cell;
use std::fs::File;
use std::io;

use nandscape_drive::mem::Mapping;
use nandscape_drive::mem::mapping::memory_file;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4_096;
/// The function's address of the memory.
pub(super) const BASE: u64 = 0x1_0000_0000;

/// See the module. Addresses are those of the function.
pub struct SharedMemory {
    pub(super) file: File,
    mapping: Mapping,
    taken: Cell<u64>,
}

impl SharedMemory {
    /// Memory of zeros, of `bytes` in whole pages.
    pub(super) fn new(bytes: u64) -> io::Result<SharedMemory> {
        let bytes = bytes.next_multiple_of(PAGE);
        let file = memory_file(bytes)?;
        let mapping = Mapping::new(&file, 0, bytes as usize, true)?;
        Ok(SharedMemory { file, mapping, taken: Cell::new(0) })
    }

    /// All bytes.
    pub(super) fn len(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// Takes whole pages for `bytes` bytes: the address of the first one.
    ///
    /// # Errors
    /// When fewer pages are left.
    pub fn take(&self, bytes: u64) -> io::Result<u64> {
        let begin = self.taken.get();
        let end = bytes.checked_next_multiple_of(PAGE).and_then(|bytes| begin.checked_add(bytes));
        match end.filter(|end| *end <= self.len()) {
            Some(end) => {
                self.taken.set(end);
                Ok(BASE + begin)
            }
            None => {
                let left = self.len() - begin;
                let problem = format!("{bytes} bytes are more than the {left} left of the shared memory");
                Err(io::Error::new(io::ErrorKind::OutOfMemory, problem))
            }
        }
    }

    /// Copies out.
    ///
    /// # Errors
    /// When the range is not inside.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.mapping.read(offset(address), bytes)
    }

    /// Copies in.
    ///
    /// # Errors
    /// When the range is not inside.
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.mapping.write(offset(address), bytes)
    }

    /// Reads a dword. All writes before that of the dword are visible from now on.
    pub(super) fn load(&self, address: u64) -> io::Result<u32> {
        self.mapping.load(offset(address))
    }

    /// Writes a dword after all that was written before.
    pub(super) fn store(&self, address: u64, value: u32) -> io::Result<()> {
        self.mapping.store(offset(address), value)
    }
}

/// Of an address before the memory, an offset that is not inside.
fn offset(address: u64) -> usize {
    address.checked_sub(BASE).map_or(usize::MAX, |offset| offset as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_given_out_once_and_to_the_last() {
        let memory = SharedMemory::new(3 * PAGE - 1).unwrap();
        assert_eq!([1, PAGE].map(|bytes| memory.take(bytes).unwrap()), [BASE, BASE + PAGE]);
        let error = memory.take(PAGE + 1).unwrap_err().to_string();
        assert!(error.contains("more than the 4096 left"), "{error}");
        assert!(memory.take(u64::MAX).is_err());
        let last = memory.take(PAGE).unwrap();
        memory.write(last + PAGE - 4, &[1, 2, 3, 4]).unwrap();
        assert_eq!(memory.load(last + PAGE - 4).unwrap(), 0x0403_0201);
        assert!(memory.write(last + PAGE - 3, &[0; 4]).is_err() && memory.read(0, &mut [0]).is_err());
    }
}
