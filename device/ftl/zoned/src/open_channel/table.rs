//! The state of each chunk: what the host may do with it, and its write pointer (OC 2.2). Units are counted from the start of the
//! chunk.
//!
//! A write advances the write pointer when it begins. A failed program or a power cut reverts it, together with all
//! unprogrammed writes, which then belong to an earlier generation.
//!
//! Left out: flash.

/// The state of a chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ChunkState {
    /// Nothing is written.
    Free,
    /// Partly written.
    Open,
    /// Nothing more can be written.
    Closed,
    /// Out of use.
    Offline,
}

/// Why a chunk rejects a command.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ChunkError {
    /// The write is no multiple of the minimum write size.
    Unaligned,
    /// The write does not begin at the write pointer, or the chunk takes no writes.
    OutOfOrder,
    /// A program has failed, and the chunk is closed.
    EarlyClose,
    /// The chunk is out of use.
    Offline,
    /// The state of the chunk allows no reset.
    InvalidReset,
    /// Power was cut.
    PowerLost,
}

/// A chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Its state.
    pub state: ChunkState,
    /// The write pointer.
    pub written: u32,
    /// Units whose writes have ended: they are on flash, or in registers on their way there.
    pub accepted: u32,
    /// Units that are on flash.
    pub programmed: u32,
    /// How often it was erased.
    pub erases: u32,
    /// Counts what invalidates writes that have begun.
    pub(super) generation: u32,
    /// Reads in progress.
    pub(super) pins: u32,
    /// A program in it has failed.
    pub(super) is_broken: bool,
    /// It is being erased.
    pub(super) is_erasing: bool,
}

/// Which chunks may be reset, in addition to closed ones.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Resets {
    /// Open ones.
    pub early: bool,
    /// Free ones.
    pub multiple: bool,
}

impl Chunk {
    /// A chunk that was never written.
    pub(super) fn new(is_bad: bool) -> Chunk {
        let state = if is_bad { ChunkState::Offline } else { ChunkState::Free };
        Chunk {
            state,
            written: 0,
            accepted: 0,
            programmed: 0,
            erases: 0,
            generation: 0,
            pins: 0,
            is_broken: false,
            is_erasing: false,
        }
    }

    /// Whether a write may begin.
    pub(super) fn check_write(&self, at: u32, units: u32, strip: u32) -> Result<(), ChunkError> {
        if !at.is_multiple_of(strip) || !units.is_multiple_of(strip) || units == 0 {
            return Err(ChunkError::Unaligned);
        }
        match self.state {
            ChunkState::Free | ChunkState::Open if at == self.written => Ok(()),
            _ => Err(ChunkError::OutOfOrder),
        }
    }

    /// Units are on flash.
    pub(super) fn programmed(&mut self, units: u32) {
        self.programmed += units;
        self.accepted = self.accepted.max(self.programmed);
    }

    /// A write that was checked begins.
    pub(super) fn write(&mut self, units: u32, size: u32) {
        self.written += units;
        self.state = if self.written == size { ChunkState::Closed } else { ChunkState::Open };
    }

    /// Unprogrammed data is lost: the write pointer returns to the end of programmed data.
    pub(super) fn take_back(&mut self) {
        self.generation += 1;
        (self.written, self.accepted) = (self.programmed, self.programmed);
        self.state = if self.written == 0 { ChunkState::Free } else { ChunkState::Open };
    }

    /// The same, and the chunk takes no more.
    pub(super) fn close_early(&mut self) {
        self.generation += 1;
        (self.written, self.accepted) = (self.programmed, self.programmed);
        self.state = ChunkState::Closed;
    }

    /// Whether it may be reset.
    pub(super) fn check_reset(&self, resets: Resets) -> Result<(), ChunkError> {
        match self.state {
            ChunkState::Offline => Err(ChunkError::Offline),
            // The outcome of writes under way would be unknown.
            _ if self.is_erasing || self.written > self.accepted => Err(ChunkError::InvalidReset),
            ChunkState::Free if !resets.multiple => Err(ChunkError::InvalidReset),
            ChunkState::Open if !resets.early => Err(ChunkError::InvalidReset),
            _ => Ok(()),
        }
    }

    /// A reset that was checked begins: the data is gone.
    pub(super) fn begin_reset(&mut self) {
        self.close_early();
        (self.written, self.accepted, self.programmed, self.is_erasing) = (0, 0, 0, true);
    }

    /// The chunk was erased.
    pub(super) fn erased(&mut self) {
        (self.state, self.is_erasing) = (ChunkState::Free, false);
        self.erases += 1;
    }

    /// The chunk goes out of use.
    pub(super) fn retire(&mut self) {
        self.close_early();
        (self.state, self.is_erasing) = (ChunkState::Offline, false);
        (self.written, self.accepted, self.programmed) = (0, 0, 0);
    }

    /// Units that can be read, of which the last `cached` of an open chunk cannot.
    pub(super) fn readable(&self, cached: u32) -> u32 {
        match self.state {
            ChunkState::Open => self.accepted.min(self.written.saturating_sub(cached)),
            _ => self.accepted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_takes_the_later_ones_with_it() {
        let mut chunk = Chunk::new(false);
        for at in [0, 4, 8] {
            chunk.check_write(at, 4, 4).unwrap();
            chunk.write(4, 16);
        }
        (chunk.accepted, chunk.programmed) = (4, 4);
        let before = chunk.generation;
        chunk.take_back();
        assert_eq!((chunk.written, chunk.state, chunk.generation), (4, ChunkState::Open, before + 1));
        assert_eq!(chunk.check_write(8, 4, 4), Err(ChunkError::OutOfOrder));
        chunk.close_early();
        assert_eq!(chunk.check_write(4, 4, 4), Err(ChunkError::OutOfOrder));
        assert_eq!((chunk.readable(4), chunk.state), (4, ChunkState::Closed));
    }

    #[test]
    fn what_may_be_reset_is_a_matter_of_the_drive() {
        let (free, mut open) = (Chunk::new(false), Chunk::new(false));
        open.write(4, 16);
        assert_eq!(open.check_reset(Resets { early: true, multiple: true }), Err(ChunkError::InvalidReset));
        (open.accepted, open.programmed) = (4, 4);
        for (early, multiple) in [(false, false), (false, true), (true, false), (true, true)] {
            let resets = Resets { early, multiple };
            let expected = |allowed| if allowed { Ok(()) } else { Err(ChunkError::InvalidReset) };
            assert_eq!(free.check_reset(resets), expected(multiple));
            assert_eq!(open.check_reset(resets), expected(early));
        }
        assert_eq!(Chunk::new(true).check_reset(Resets::default()), Err(ChunkError::Offline));
        assert_eq!((open.readable(0), open.readable(4), open.readable(8)), (4, 0, 0));
    }
}
