//! A buffer of this process in pieces, each allocated when it is first written. A buffer of several MiB that is allocated at
//! once is also zeroed at once, which takes hundreds of microseconds in which nothing else is served.

use std::cell::RefCell;

use nandscape_wire_nvme::Status;

use super::Memory;

/// Bytes of a piece.
const PIECE: usize = 64 << 10;

/// See the file. Pieces that were never written hold zeros.
pub(super) struct Pieces {
    len: usize,
    pieces: RefCell<Vec<Option<Box<[u8]>>>>,
}

impl Pieces {
    /// `len` zeros.
    pub(super) fn zeroed(len: usize) -> Pieces {
        Pieces { len, pieces: RefCell::new(vec![None; len.div_ceil(PIECE)]) }
    }
}

/// A range by piece: the piece's number, and the range in the piece and in the whole range.
fn steps(start: usize, len: usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let (piece, from) = ((start + done) / PIECE, (start + done) % PIECE);
        let step = (PIECE - from).min(len - done);
        let range = done..done + step;
        done += step;
        (step > 0).then_some((piece, from..from + step, range))
    })
}

impl Memory for Pieces {
    fn max_len(&self) -> usize {
        self.len
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        let pieces = self.pieces.borrow();
        for (piece, inside, range) in steps(start, bytes.len()) {
            match &pieces[piece] {
                Some(piece) => bytes[range].copy_from_slice(&piece[inside]),
                None => bytes[range].fill(0),
            }
        }
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        let mut pieces = self.pieces.borrow_mut();
        for (piece, inside, range) in steps(start, bytes.len()) {
            let piece = pieces[piece].get_or_insert_with(|| vec![0; PIECE].into_boxed_slice());
            piece[inside].copy_from_slice(&bytes[range]);
        }
    }

    fn clear(&self, start: usize, len: usize) {
        let mut pieces = self.pieces.borrow_mut();
        for (piece, inside, _) in steps(start, len) {
            if let Some(piece) = &mut pieces[piece] {
                piece[inside].fill(0);
            }
        }
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        if bytes <= self.len { Ok(()) } else { Err(Status::DATA_SGL_LENGTH_INVALID.final_()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEN: usize = 3 * PIECE - 7;

    proptest! {
        #[test]
        fn it_holds_what_one_buffer_would_hold(steps in prop::collection::vec((0..LEN, 0..2 * PIECE, 0u8..4), 1..12)) {
            let (pieces, whole) = (Pieces::zeroed(LEN), RefCell::new(vec![0; LEN]));
            for (start, len, value) in steps {
                let len = len.min(LEN - start);
                for memory in [&pieces as &dyn Memory, &whole] {
                    match value {
                        0 => memory.clear(start, len),
                        value => memory.write(start, &vec![value; len]),
                    }
                }
                let (mut read, mut expected) = (vec![9; len], vec![9; len]);
                pieces.read(start, &mut read);
                whole.read(start, &mut expected);
                prop_assert_eq!(read, expected);
            }
            let mut all = vec![9; LEN];
            pieces.read(0, &mut all);
            prop_assert_eq!(&all, &*whole.borrow());
            prop_assert!(pieces.cover(LEN).is_ok() && pieces.cover(LEN + 1).is_err());
        }
    }
}
