//! The pages of a buffer, scattered in the host's memory, as one contiguous memory.
//!
//! Left out: writing, since it is only read.

use nandscape_drive::HostMem;
use nandscape_drive::mem::{Memory, Need, Settled};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::lss::PAGE;

/// See the module.
pub(super) struct Gathered {
    buffer: HostMem,
    /// Where each page begins, all of them inside.
    offsets: Vec<usize>,
}

impl Gathered {
    pub(super) fn new(buffer: HostMem, offsets: Vec<usize>) -> Gathered {
        Gathered { buffer, offsets }
    }

    /// Calls `each` with every piece of a range: where it begins in the buffer, and which bytes of the range it is.
    fn pieces(&self, start: usize, len: usize, mut each: impl FnMut(usize, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < len {
            let (page, within) = ((start + done) / PAGE, (start + done) % PAGE);
            let now = (PAGE - within).min(len - done);
            each(self.offsets[page] + within, done..done + now);
            done += now;
        }
    }
}

impl Memory for Gathered {
    fn max_len(&self) -> usize {
        self.offsets.len() * PAGE
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        self.pieces(start, bytes.len(), |at, range| self.buffer.read(at, &mut bytes[range]));
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        self.pieces(start, bytes.len(), |at, range| self.buffer.write(at, &bytes[range]));
    }

    fn clear(&self, start: usize, len: usize) {
        self.pieces(start, len, |at, range| self.buffer.clear(at, range.len()));
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        let pages = self.offsets.iter().take(bytes.div_ceil(PAGE));
        pages.max().map_or(Ok(()), |last| self.buffer.cover(last + PAGE))
    }

    fn has_failed(&self) -> bool {
        self.buffer.has_failed()
    }

    fn is_settled(&self) -> bool {
        self.buffer.is_settled()
    }

    fn need(&self) -> Need {
        self.buffer.need()
    }

    fn settle(self: std::rc::Rc<Self>, settled: Settled) {
        self.buffer.settle(settled);
    }

    fn give_up(&self) {
        self.buffer.give_up();
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn pages_that_lie_apart_are_read_in_order() {
        let bytes: Vec<u8> = (0..5 * PAGE).map(|at| (at / 7 % 251) as u8).collect();
        let offsets = vec![3 * PAGE, 100, 100];
        let right: Vec<u8> = offsets.iter().flat_map(|at| bytes[*at..at + PAGE].to_vec()).collect();
        let mem = HostMem::over(Rc::new(Gathered::new(HostMem::from_bytes(&bytes), offsets)));
        assert_eq!(mem.to_vec(), right);
        assert_eq!(mem.part(PAGE - 5, PAGE + 10).to_vec(), right[PAGE - 5..2 * PAGE + 5]);
        assert!(mem.cover(3 * PAGE).is_ok() && mem.cover(3 * PAGE + 1).is_err());
        let short = Gathered::new(HostMem::from_bytes(&bytes[..4 * PAGE - 1]), vec![0, 3 * PAGE]);
        assert!(short.cover(PAGE).is_ok() && short.cover(PAGE + 1).is_err());
    }
}
