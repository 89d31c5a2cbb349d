//! The use of each frame: bytes of pieces, and bytes of the store itself (heads of packs, a checkpoint). A frame without
//! either is free once no reader uses it.

use std::collections::BTreeSet;

use super::area::Place;

/// See the module.
pub(super) struct Frames {
    /// Bytes of a frame.
    pub(super) size: u32,
    /// Bytes of pieces that count.
    live: Vec<u32>,
    /// Bytes of the store itself.
    held: Vec<u32>,
    /// Reads under way.
    pins: Vec<u32>,
    /// The pages with bytes in a frame, once for each place there.
    holders: Vec<Vec<u64>>,
    /// Frames whose pieces cannot be read.
    stuck: BTreeSet<u32>,
    free: BTreeSet<u32>,
    /// Bytes of pieces that count, in all frames.
    all_live: u64,
}

impl Frames {
    /// Frames, all of them free.
    pub(super) fn new(count: u32, size: u32) -> Frames {
        let zeros = || vec![0; count as usize];
        Frames {
            size,
            live: zeros(),
            held: zeros(),
            pins: zeros(),
            holders: vec![Vec::new(); count as usize],
            stuck: BTreeSet::new(),
            free: (0..count).collect(),
            all_live: 0,
        }
    }

    /// The number of frames.
    pub(super) fn count(&self) -> u32 {
        self.live.len() as u32
    }

    /// How many are free.
    pub(super) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// Bytes of pieces.
    pub(super) fn live(&self) -> u64 {
        self.all_live
    }

    /// Whether a place lies entirely in existing frames.
    pub(super) fn has(&self, place: Place) -> bool {
        let end = u64::from(place.frame) * u64::from(self.size) + u64::from(place.offset) + u64::from(place.bytes);
        place.bytes > 0 && place.offset < self.size && end <= u64::from(self.count()) * u64::from(self.size)
    }

    fn update(&mut self, frame: u32) {
        let at = frame as usize;
        match self.live[at] == 0 && self.held[at] == 0 && self.pins[at] == 0 {
            true => self.free.insert(frame),
            false => self.free.remove(&frame),
        };
        if self.live[at] == 0 {
            self.stuck.remove(&frame);
        }
    }

    /// Bytes of a page count.
    pub(super) fn add(&mut self, lpid: u64, place: Place) {
        self.all_live += u64::from(place.bytes);
        for (frame, bytes) in place.frames(self.size) {
            self.live[frame as usize] += bytes;
            self.holders[frame as usize].push(lpid);
            self.update(frame);
        }
    }

    /// Bytes of a page no longer count.
    pub(super) fn remove(&mut self, lpid: u64, place: Place) {
        self.all_live -= u64::from(place.bytes);
        for (frame, bytes) in place.frames(self.size) {
            self.live[frame as usize] -= bytes;
            let holders = &mut self.holders[frame as usize];
            if let Some(at) = holders.iter().position(|holder| *holder == lpid) {
                holders.swap_remove(at);
            }
            self.update(frame);
        }
    }

    /// Marks bytes as the store's own.
    pub(super) fn hold(&mut self, place: Place) {
        for (frame, bytes) in place.frames(self.size) {
            self.held[frame as usize] += bytes;
            self.update(frame);
        }
    }

    /// Unmarks bytes as the store's own.
    pub(super) fn release(&mut self, place: Place) {
        for (frame, bytes) in place.frames(self.size) {
            self.held[frame as usize] -= bytes;
            self.update(frame);
        }
    }

    /// Marks a whole frame as the store's own.
    pub(super) fn whole(&self, frame: u32) -> Place {
        Place { frame, offset: 0, bytes: self.size }
    }

    /// Takes the free frames with the lowest numbers as the store's own, so higher frames stay unmapped in the FTL. On
    /// `None`, takes no frames.
    pub(super) fn take(&mut self, count: u32) -> Option<Vec<u32>> {
        if self.free() < count {
            return None;
        }
        let taken: Vec<u32> = self.free.iter().take(count as usize).copied().collect();
        taken.iter().for_each(|frame| self.hold(self.whole(*frame)));
        Some(taken)
    }

    /// A read of a place begins.
    pub(super) fn pin(&mut self, place: Place) {
        for (frame, _) in place.frames(self.size) {
            self.pins[frame as usize] += 1;
            self.update(frame);
        }
    }

    /// A read of a place has ended.
    pub(super) fn unpin(&mut self, place: Place) {
        for (frame, _) in place.frames(self.size) {
            self.pins[frame as usize] -= 1;
            self.update(frame);
        }
    }

    /// Frames that are worth emptying, the emptiest first: at most `most` of them, which hold at most `bytes` bytes
    /// that count.
    pub(super) fn victims(&self, most: usize, bytes: u32) -> Vec<u32> {
        let is_worth = |frame: &u32| {
            let at = *frame as usize;
            self.live[at] > 0 && self.live[at] < self.size && self.held[at] == 0 && !self.stuck.contains(frame)
        };
        let mut found: Vec<u32> = (0..self.count()).filter(is_worth).collect();
        let key = |frame: &u32| (self.live[*frame as usize], *frame);
        if found.len() > most {
            found.select_nth_unstable_by_key(most, key);
            found.truncate(most);
        }
        found.sort_unstable_by_key(key);
        let mut sum = 0;
        let fits = |frame: &&u32| {
            sum += self.live[**frame as usize];
            sum <= bytes
        };
        let count = found.iter().take_while(fits).count();
        found.truncate(count);
        found
    }

    /// Bytes of pieces in a frame.
    #[cfg(test)]
    pub(super) fn live_in(&self, frame: u32) -> u32 {
        self.live[frame as usize]
    }

    /// The pages with bytes in a frame, each once.
    pub(super) fn holders(&self, frame: u32) -> BTreeSet<u64> {
        self.holders[frame as usize].iter().copied().collect()
    }

    /// The pieces in a frame cannot be read: it is not emptied.
    pub(super) fn is_stuck(&mut self, frame: u32) {
        self.stuck.insert(frame);
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let holders: usize = self.holders.iter().map(|holders| holders.capacity() * size_of::<u64>()).sum();
        holders + self.live.len() * (3 * size_of::<u32>() + size_of::<Vec<u64>>()) + self.free.len() * size_of::<u32>()
    }

    /// Bytes of pieces and of the store's own in each frame, for a check.
    pub(super) fn sums(&self) -> impl Iterator<Item = (u32, u32, bool)> {
        let both = self.live.iter().zip(&self.held).zip(0..);
        both.map(|((live, held), frame)| (*live, *held, self.free.contains(&frame)))
    }
}
