//! Staged data of a command, for memory that only the host itself can reach. Data to be read is requested from the
//! host before the command begins, and written data is sent before it completes. Until then it is kept here.
//!
//! Left out: the time of the requests, which the controller decides: see [`Memory::settle`](super::Memory::settle).

use std::collections::BTreeMap;

use super::dma::Ask;

/// The longest transfer in one request to a host, in bytes. Every host accepts this length.
pub const LONGEST_ASK: usize = 64 << 10;

/// What a command still needs from its host.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Memory to be read. The command failed for lack of it, has done nothing, and may be retried.
    Fetch,
    /// Memory to be written before the command completes.
    Send,
}

/// See the file.
#[derive(Default)]
pub(super) struct Stage {
    /// Pieces that were read, by address.
    fetched: BTreeMap<u64, Vec<u8>>,
    /// Pieces to be read: their lengths by address.
    wanted: BTreeMap<u64, usize>,
    /// Pieces to be written, in order.
    unsent: Vec<(u64, Vec<u8>)>,
    /// The command may stage data here: see [`Stage::admit`].
    is_admitted: bool,
    waits_for_admission: bool,
    /// The host has refused to read something: the command fails for good.
    is_refused: bool,
}

impl Stage {
    /// What is needed from the host.
    pub(super) fn need(&self) -> Need {
        match () {
            () if !self.wanted.is_empty() || self.waits_for_admission => Need::Fetch,
            () if !self.unsent.is_empty() => Need::Send,
            () => Need::Nothing,
        }
    }

    /// Copies data that was read; returns whether all of it was present.
    pub(super) fn copy(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.pieces(address, bytes.len(), |done, piece| bytes[done..done + piece.len()].copy_from_slice(piece))
    }

    /// Calls `each(bytes before, bytes)` for the pieces of a range; returns whether all of it was present.
    fn pieces(&self, address: u64, len: usize, mut each: impl FnMut(usize, &[u8])) -> bool {
        let mut done = 0;
        while done < len {
            let at = address.wrapping_add(done as u64);
            let holds = |(start, piece): &(&u64, &Vec<u8>)| at - *start < piece.len() as u64;
            let Some((start, piece)) = self.fetched.range(..=at).rev().find(holds) else { return false };
            let from = (at - start) as usize;
            let now = (piece.len() - from).min(len - done);
            each(done, &piece[from..from + now]);
            done += now;
        }
        true
    }

    /// Whether the command may use a range now. Otherwise the range will be requested, unless the host has refused
    /// a request.
    pub(super) fn has(&mut self, address: u64, len: usize, reads: bool) -> bool {
        if !self.is_admitted {
            self.waits_for_admission = true;
        }
        if reads && !self.is_refused && !self.pieces(address, len, |_, _| ()) {
            for done in (0..len).step_by(LONGEST_ASK) {
                let piece = LONGEST_ASK.min(len - done);
                let wanted = self.wanted.entry(address.wrapping_add(done as u64)).or_default();
                *wanted = piece.max(*wanted);
            }
        }
        !self.is_refused && self.need() != Need::Fetch
    }

    /// Stages data to be written. Data that follows the previous piece is appended to it.
    pub(super) fn put(&mut self, address: u64, bytes: &[u8]) {
        for (number, piece) in bytes.chunks(LONGEST_ASK).enumerate() {
            let at = address.wrapping_add((number * LONGEST_ASK) as u64);
            match self.unsent.last_mut() {
                Some((start, before))
                    if start.wrapping_add(before.len() as u64) == at && before.len() + piece.len() <= LONGEST_ASK =>
                {
                    before.extend_from_slice(piece);
                }
                _ => self.unsent.push((at, piece.to_vec())),
            }
        }
    }

    /// The command may stage its data from now on.
    pub(super) fn admit(&mut self) {
        self.is_admitted = true;
        self.waits_for_admission = false;
    }

    /// The next transfer to request from the host.
    pub(super) fn next(&mut self) -> Option<Ask> {
        if let Some((address, len)) = self.wanted.pop_first() {
            return Some(Ask::Read { address, len });
        }
        if self.unsent.is_empty() {
            return None;
        }
        let (address, bytes) = self.unsent.remove(0);
        Some(Ask::Write { address, bytes })
    }

    /// The host has answered a read; `None` when it refuses.
    pub(super) fn was_read(&mut self, address: u64, data: Option<Vec<u8>>) {
        match data {
            Some(data) => _ = self.fetched.insert(address, data),
            None => self.is_refused = true,
        }
    }

    /// No more requests are sent.
    pub(super) fn give_up(&mut self) {
        self.wanted.clear();
        self.unsent.clear();
        self.waits_for_admission = false;
        self.is_refused = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_asked_for_once_and_then_there() {
        let mut stage = Stage::default();
        assert!(!stage.has(100, 8, true), "nothing is kept before it is admitted");
        stage.admit();
        assert_eq!(stage.need(), Need::Fetch);
        assert!(!stage.has(100, 8, true) && !stage.has(104, 70_000, true));
        let mut asked = Vec::new();
        while let Some(Ask::Read { address, len }) = stage.next() {
            asked.push((address, len));
            stage.was_read(address, Some((0..len).map(|at| (address as usize + at) as u8).collect()));
        }
        assert_eq!(asked, [(100, 8), (104, LONGEST_ASK), (104 + LONGEST_ASK as u64, 70_000 - LONGEST_ASK)]);
        assert!(stage.has(100, 70_004, true) && stage.need() == Need::Nothing);
        let mut bytes = [0; 8];
        assert!(stage.copy(101, &mut bytes) && bytes[..3] == [101, 102, 103]);
        assert!(!stage.copy(99, &mut bytes) && !stage.copy(70_100, &mut bytes));
    }

    #[test]
    fn a_refusal_ends_the_asking() {
        let mut stage = Stage::default();
        stage.admit();
        assert!(!stage.has(0, 4, true));
        assert!(stage.next().is_some());
        stage.was_read(0, None);
        assert!(!stage.has(0, 4, true) && stage.need() == Need::Nothing);
    }

    #[test]
    fn what_is_written_goes_out_in_order_and_in_pieces() {
        let mut stage = Stage::default();
        stage.admit();
        stage.put(0, &[1; 4]);
        stage.put(4, &[2; 4]);
        stage.put(100, &vec![3; LONGEST_ASK + 1]);
        assert_eq!(stage.need(), Need::Send);
        let mut sent = Vec::new();
        while let Some(Ask::Write { address, bytes }) = stage.next() {
            sent.push((address, bytes.len(), bytes[0]));
        }
        assert_eq!(sent, [(0, 8, 1), (100, LONGEST_ASK, 3), (100 + LONGEST_ASK as u64, 1, 3)]);
    }
}
