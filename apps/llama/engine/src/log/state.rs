//! The mapping table, from pages to their pieces in the log, and the segments of the log.

use std::collections::VecDeque;

use crate::pages::{Kind, Piece};

/// The location of a piece.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) segment: u32,
    /// Its beginning in its segment.
    pub(super) offset: u32,
    pub(super) bytes: u32,
    /// Its number, which it keeps when it is moved.
    pub(super) serial: u64,
}

/// The contents of an entry of a frame.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Says {
    /// The page begins anew with this piece.
    Base,
    /// The page has another piece.
    Delta,
    /// The piece with this serial number has moved here.
    Moved,
}

/// A piece on its way to the log.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) lpid: u64,
    pub(super) says: Says,
    pub(super) serial: u64,
    pub(super) bytes: Vec<u8>,
}

/// See the file.
#[derive(Debug)]
pub(super) struct State {
    map: Vec<Vec<Place>>,
    /// Bytes of current pieces in each segment.
    live: Vec<u64>,
    /// Segments that may be written.
    pub(super) free: VecDeque<u32>,
    /// Segments that may be written after the next checkpoint.
    pub(super) pending: Vec<u32>,
    /// The open segment, and its written bytes.
    pub(super) head: Option<(u32, u32)>,
    /// The number of the next frame, and of the next piece.
    pub(super) next_frame: u64,
    pub(super) next_serial: u64,
    /// How often the log was opened.
    pub(super) epoch: u64,
    /// The number of the next checkpoint.
    pub(super) next_checkpoint: u64,
}

impl State {
    pub(super) fn new(segments: u32) -> State {
        State {
            map: Vec::new(),
            live: vec![0; segments as usize],
            free: VecDeque::new(),
            pending: Vec::new(),
            head: None,
            next_frame: 1,
            next_serial: 1,
            epoch: 1,
            next_checkpoint: 1,
        }
    }

    /// A piece gets its number.
    pub(super) fn item(&mut self, piece: Piece) -> Item {
        let serial = self.next_serial;
        self.next_serial += 1;
        let says = if piece.kind == Kind::Base { Says::Base } else { Says::Delta };
        Item { lpid: piece.lpid, says, serial, bytes: piece.bytes }
    }

    /// The pieces of a page, from the base on.
    pub(super) fn chain(&self, lpid: u64) -> &[Place] {
        self.map.get(lpid as usize).map_or(&[], |chain| chain)
    }

    /// All pages that have pieces.
    pub(super) fn chains(&self) -> impl Iterator<Item = (u64, &[Place])> {
        self.map
            .iter()
            .enumerate()
            .filter(|(_, chain)| !chain.is_empty())
            .map(|(lpid, chain)| (lpid as u64, &chain[..]))
    }

    /// A piece is in the log.
    pub(super) fn add(&mut self, lpid: u64, says: Says, place: Place) {
        let at = lpid as usize;
        if self.map.len() <= at {
            self.map.resize_with(at + 1, Vec::new);
        }
        let chain = &mut self.map[at];
        match says {
            Says::Base => {
                chain.iter().for_each(|old| self.live[old.segment as usize] -= u64::from(old.bytes));
                // Memory for each page: no more than it needs.
                *chain = Vec::with_capacity(1);
                chain.push(place);
            }
            Says::Delta => {
                chain.reserve_exact(1);
                chain.push(place);
            }
            Says::Moved => {
                // A piece that was replaced meanwhile is not current here either.
                let Some(old) = chain.iter_mut().find(|old| old.serial == place.serial) else { return };
                self.live[old.segment as usize] -= u64::from(old.bytes);
                *old = place;
            }
        }
        self.live[place.segment as usize] += u64::from(place.bytes);
        self.next_serial = self.next_serial.max(place.serial + 1);
    }

    /// Bytes of all current pieces.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live.iter().sum()
    }

    /// Bytes of current pieces in a segment.
    pub(super) fn live_in(&self, segment: u32) -> u64 {
        self.live[segment as usize]
    }

    /// The full segment with the least that is current, the lowest number among equals.
    pub(super) fn victim(&self) -> Option<u32> {
        let open = self.head.map(|(segment, _)| segment);
        let is_idle = |segment: u32| self.free.contains(&segment) || self.pending.contains(&segment);
        let full = (0..self.live.len() as u32).filter(|segment| Some(*segment) != open && !is_idle(*segment));
        full.min_by_key(|segment| self.live_in(*segment))
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> u64 {
        let chains: usize = self.map.iter().map(|chain| chain.capacity() * size_of::<Place>()).sum();
        (chains + self.map.len() * size_of::<Vec<Place>>() + self.live.len() * 8) as u64
    }
}
