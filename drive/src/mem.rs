//! Host memory that a command's data lies in. The host owns it in both directions, as in NVMe: a drive reads it for
//! a write and writes it for a read.
//!
//! Left out: the memory of a guest, which is reached through PRPs.

use std::cell::RefCell;
use std::rc::Rc;

/// A piece of host memory, shared by whoever works on it.
pub type Buffer = Rc<RefCell<Vec<u8>>>;

/// The data of one command: nothing (drives that keep no data need none), or slices of buffers in order.
#[derive(Clone, Default, Debug)]
pub struct HostMem(Slices);

/// One slice is the ordinary case, and costs nothing to pass on.
#[derive(Clone, Default, Debug)]
enum Slices {
    #[default]
    None,
    One(Slice),
    Many(Rc<[Slice]>),
}

/// A part of one buffer.
#[derive(Clone, Debug)]
struct Slice {
    buffer: Buffer,
    start: usize,
    len: usize,
}

impl HostMem {
    /// No data.
    pub fn none() -> HostMem {
        HostMem::default()
    }

    /// The whole of a buffer.
    pub fn whole(buffer: &Buffer) -> HostMem {
        let len = buffer.borrow().len();
        HostMem(Slices::One(Slice { buffer: buffer.clone(), start: 0, len }))
    }

    fn of(mut slices: Vec<Slice>) -> HostMem {
        match slices.len() {
            0 => HostMem::none(),
            1 => HostMem(Slices::One(slices.remove(0))),
            _ => HostMem(Slices::Many(slices.into())),
        }
    }

    fn slices(&self) -> &[Slice] {
        match &self.0 {
            Slices::None => &[],
            Slices::One(slice) => std::slice::from_ref(slice),
            Slices::Many(slices) => slices,
        }
    }

    /// A new buffer that holds `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> HostMem {
        HostMem::whole(&Rc::new(RefCell::new(bytes.to_vec())))
    }

    /// A new buffer of `len` zeros.
    pub fn zeroed(len: usize) -> HostMem {
        HostMem::whole(&Rc::new(RefCell::new(vec![0; len])))
    }

    /// Whether there is no data.
    pub fn is_none(&self) -> bool {
        matches!(self.0, Slices::None)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.slices().iter().map(|slice| slice.len).sum()
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part of `len` bytes from `start` on, sharing the same memory. What has no data has none in any part.
    ///
    /// # Panics
    /// When the part is not inside.
    pub fn part(&self, start: usize, len: usize) -> HostMem {
        let mut part = Vec::new();
        self.pieces(start, len, |slice, at, piece| {
            part.push(Slice { buffer: slice.buffer.clone(), start: at, len: piece });
        });
        HostMem::of(part)
    }

    /// Copies into host memory, from `start` on. Without data, nothing happens.
    ///
    /// # Panics
    /// When there is data and `bytes` does not fit.
    pub fn write(&self, start: usize, bytes: &[u8]) {
        let mut rest = bytes;
        self.pieces(start, bytes.len(), |slice, at, piece| {
            let (now, later) = rest.split_at(piece);
            slice.buffer.borrow_mut()[at..at + piece].copy_from_slice(now);
            rest = later;
        });
    }

    /// Fills `len` bytes from `start` on with zeros. Without data, nothing happens.
    ///
    /// # Panics
    /// When there is data and the range is not inside.
    pub fn clear(&self, start: usize, len: usize) {
        self.pieces(start, len, |slice, at, piece| slice.buffer.borrow_mut()[at..at + piece].fill(0));
    }

    /// Copies out of host memory, from `start` on. Without data, `bytes` is left as it is.
    ///
    /// # Panics
    /// When there is data and the range is not inside.
    pub fn read(&self, start: usize, bytes: &mut [u8]) {
        let mut done = 0;
        self.pieces(start, bytes.len(), |slice, at, piece| {
            bytes[done..done + piece].copy_from_slice(&slice.buffer.borrow()[at..at + piece]);
            done += piece;
        });
    }

    /// All of it as one vector.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.read(0, &mut bytes);
        bytes
    }

    /// Calls `each(slice, offset in its buffer, length)` for the pieces of a range.
    fn pieces<'a>(&'a self, start: usize, len: usize, mut each: impl FnMut(&'a Slice, usize, usize)) {
        if self.is_none() {
            return;
        }
        let (mut skip, mut rest) = (start, len);
        for slice in self.slices() {
            if rest == 0 {
                return;
            }
            if skip >= slice.len {
                skip -= slice.len;
                continue;
            }
            let piece = rest.min(slice.len - skip);
            each(slice, slice.start + skip, piece);
            (skip, rest) = (0, rest - piece);
        }
        assert_eq!(rest, 0, "{len} bytes at {start} are beyond the {} bytes of host memory", self.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_of_parts_are_views_of_the_same_bytes(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 1..5),
            a in 0usize..40, b in 0usize..40, value in any::<u8>(),
        ) {
            let slices = pieces.iter().flat_map(|piece| HostMem::from_bytes(piece).slices().to_vec());
            let mem = HostMem::of(slices.collect());
            let mut flat = pieces.concat();
            prop_assert_eq!(mem.to_vec(), flat.clone());
            let (start, end) = (a.min(b).min(flat.len()), a.max(b).min(flat.len()));
            let part = mem.part(start, end - start);
            prop_assert_eq!(part.to_vec(), flat[start..end].to_vec());
            part.write(0, &vec![value; end - start]);
            flat[start..end].fill(value);
            prop_assert_eq!(mem.to_vec(), flat);
        }
    }

    #[test]
    fn no_memory_takes_and_gives_nothing() {
        let none = HostMem::none();
        none.write(0, &[1, 2, 3]);
        let mut bytes = [7; 2];
        none.read(100, &mut bytes);
        assert_eq!((bytes, none.part(5, 5).is_none()), ([7; 2], true));
    }
}
