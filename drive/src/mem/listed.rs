//! The memory of a command of this process with lists in addition to data, as in a vector command: its pointers are
//! the indices of the lists.

use nandscape_wire_nvme::Status;

use super::{HostMem, Memory};

/// See the file.
pub struct Listed {
    data: HostMem,
    lists: Vec<HostMem>,
}

impl Listed {
    /// Data, which may be none, and lists, the first of which has the number 0.
    pub fn new(data: HostMem, lists: Vec<HostMem>) -> Listed {
        Listed { data, lists }
    }
}

impl Memory for Listed {
    fn max_len(&self) -> usize {
        // Without data, no length is too short.
        if self.data.is_none() { u32::MAX as usize } else { self.data.len() }
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        self.data.read(start, bytes);
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        self.data.write(start, bytes);
    }

    fn clear(&self, start: usize, len: usize) {
        self.data.clear(start, len);
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        self.data.cover(bytes)
    }

    fn has_failed(&self) -> bool {
        self.data.has_failed()
    }

    fn list(&self, pointer: u64) -> Result<Option<HostMem>, Status> {
        let number = usize::try_from(pointer).ok();
        number.and_then(|number| self.lists.get(number)).cloned().map(Some).ok_or(Status::INVALID_FIELD.final_())
    }
}
