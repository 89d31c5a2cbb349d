//! Pages of any length, as chains of pieces, over an FTL with transactions: the second and third form of logical pages (OX 7.2.1).
//!
//! The FTL below is unchanged. This component packs the pieces of a buffer densely into frames of a namespace, which
//! are mapping units of the FTL, and writes them as one transaction, a pack. As the FTL's map is for units, so the
//! table here is for pieces: it maps a page to pieces, and a piece to frame, offset and bytes, the "extended physical
//! address" of OX 7.2.1. The FTL still moves, wears and recovers units. This component tracks a frame's bytes that
//! count, and writes emptied frames again.
//!
//! **Durability.** The head of a pack lists its pieces: heads are the redo log of the table, and commit with their
//! data. Each names the frame where the next one begins. A checkpoint of the table is written to free frames, and then
//! the root, the first frame, changes to name it. All of this relies on the order of the FTL's transactions: if a pack
//! is present after a power cut, so are all before it. Opening reads the root, the checkpoint and the heads since. The
//! first buffer after a format writes a root before it: a format interrupted by a power cut may have left heads.
//!
//! | file | what |
//! |---|---|
//! | `area` | frames among the sectors of the FTL, places of bytes in them |
//! | `frames` | what each frame holds |
//! | `table` | the pieces of each page |
//! | `pack` | the pieces of one transaction, and their head |
//! | `checkpoint` | table and root as bytes |
//! | `state` | the above together, synchronous |
//! | `turn` | one buffer at a time: room, plan, end |
//! | `clean` | frames that are emptied |
//! | `save` | checkpoints |
//! | `open` | recovery at the start |
//! | `found` | pages that are read |
//!
//! Left out: concurrent buffers, which would have to be ordered as they are applied; cleaning and checkpoints in idle
//! time. Emptied frames are not deallocated below, but written again, the lowest first.

mod area;
mod checkpoint;
mod clean;
mod found;
mod frames;
mod open;
mod pack;
mod save;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod turn;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, UnitSize};
use nandscape_device_ftl_core::ftl::{Ftl, Inside, Milestone, ReadError, Reader, Unreadable, Unwritable};
use nandscape_device_ftl_core::offers::Transactions;
use nandscape_device_media::{Media, MediaError};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::credits::Credits;
use nandscape_sim::{Sim, Wait};

use self::state::State;

pub use area::{Area, LEAST_FRAME, Place};
pub use found::Found;
pub use pack::ENTRY_BYTES;
pub use table::{Change, Misfit, Piece};
pub use turn::Turn;

/// The most pieces of a page, its base included.
pub const MOST_PIECES: usize = 32;
/// The most bytes of a page, all pieces together.
pub const MOST_PAGE_BYTES: u32 = 64 << 10;

/// Why a store rejects a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PieceError {
    /// It is stale, and must be reopened.
    Stale,
    /// A change of a page is invalid.
    Misfit(Misfit),
    /// A buffer is larger than one transaction.
    TooLarge,
    /// There is no room for the pieces.
    Full,
    /// Its tables cannot be read.
    Read(ReadError),
    /// Its tables differ from the written ones.
    Corrupt,
    /// The FTL did not take a write.
    Refused(Unwritable),
}

/// Counts of the stores of a namespace.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Bytes of pieces that were moved to empty frames.
    pub moved_bytes: u64,
    /// Checkpoints, and their bytes.
    pub checkpoints: u64,
    /// See `checkpoints`.
    pub checkpoint_bytes: u64,
}

/// The contents of a store.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Holds {
    /// Pages.
    pub pages: u64,
    /// Bytes of pieces.
    pub bytes: u64,
    /// Bytes of memory of its tables.
    pub memory: u64,
}

/// The pages of a namespace, from a start of the drive to the next power cut. See the module.
pub struct PieceStore<F: Ftl> {
    media: Rc<Media>,
    ftl: Rc<F>,
    reader: F::Reader<Inside>,
    area: Area,
    /// Power cuts before it began.
    cuts: u32,
    /// Whether the outcome of a write is unknown.
    is_broken: Cell<bool>,
    turns: Credits,
    /// The namespace was never written since it was formatted.
    is_new: Cell<bool>,
    state: RefCell<Option<State>>,
    counts: Rc<Cell<Counts>>,
}

/// The limits of a namespace.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Page numbers are below.
    pub lpids: u64,
    /// Bytes of all pieces.
    pub capacity: u64,
    /// Bytes of the pieces of a buffer, [`ENTRY_BYTES`] for each added.
    pub buffer: u64,
    frames: u32,
}

impl Limits {
    /// The limits of a namespace over an FTL; `None` without transactions, or if the namespace is too small.
    pub fn of(area: &Area, ftl: &impl Ftl) -> Option<Limits> {
        let (size, unit): (u32, UnitSize) = (area.frame_bytes(), ftl.unit());
        let frames = ftl.offers().transactions?.most_units() / (size / unit.bytes());
        let frames = frames.min(area.frames() / 8).min(pack::MOST_FRAMES);
        let all = u64::from(area.frames()) * u64::from(size);
        let buffer = u64::from(frames) * u64::from(size - 8) - 32;
        // The rest is for frames that are not full, and for heads and checkpoints.
        (frames >= 8).then_some(Limits { lpids: all / 512, capacity: all / 4 * 3, buffer, frames })
    }
}

impl<F: Ftl> PieceStore<F> {
    /// The store of a namespace, which reads its tables when it is first used.
    pub fn new(sim: &Sim, media: &Rc<Media>, ftl: &Rc<F>, area: Area, counts: Rc<Cell<Counts>>) -> PieceStore<F> {
        PieceStore {
            media: media.clone(),
            ftl: ftl.clone(),
            reader: ftl.reader(),
            area,
            cuts: media.power_cuts(),
            is_broken: Cell::new(false),
            turns: Credits::new(sim, 1, cause::HOST_WRITE),
            is_new: Cell::new(false),
            state: RefCell::new(None),
            counts,
        }
    }

    /// A namespace has a store only if the FTL has transactions ([`Limits::of`]).
    fn transactions(&self) -> &dyn Transactions<F::RandomWrites> {
        self.ftl.offers().transactions.expect("no store is over an FTL without")
    }

    /// Where its frames lie.
    pub fn area(&self) -> &Area {
        &self.area
    }

    /// Whether it must be opened again: power was cut, or the outcome of a write is unknown.
    pub fn is_stale(&self) -> bool {
        self.is_broken.get() || self.media.power_cuts() != self.cuts
    }

    /// Its contents; `None` before it has read its tables.
    pub fn holds(&self) -> Option<Holds> {
        let state = self.state.borrow();
        let state = state.as_ref()?;
        Some(Holds { pages: state.table.len() as u64, bytes: state.frames.live(), memory: state.memory() })
    }

    /// Checks its tables against each other.
    ///
    /// # Errors
    /// The fault, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        self.state.borrow().as_ref().map_or(Ok(()), State::check)
    }

    fn count(&self, count: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        count(&mut counts);
        self.counts.set(counts);
    }

    /// Runs a function on the state, which exists while a turn lasts.
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(self.state.borrow_mut().as_mut().expect("it was opened"))
    }

    /// Reads an extent, regardless of writes in progress.
    async fn read(&self, extent: Extent) -> Result<Vec<u8>, PieceError> {
        let mem = HostMem::zeroed(extent.bytes() as usize);
        let read = self.reader.read::<()>(extent, &Inside(mem.clone()), &mut Breakdown::new()).await;
        if self.is_stale() {
            return Err(PieceError::Stale);
        }
        read.map(|()| mem.to_vec()).map_err(|error| match error.why {
            Unreadable::Media(MediaError::PowerLost) => PieceError::Stale,
            _ => PieceError::Read(error),
        })
    }

    /// Writes bytes to frames, as one transaction, and waits until it has reached `watch`.
    async fn write(&self, extents: &[Extent], mut bytes: Vec<u8>, watch: Option<Milestone>) -> Result<(), PieceError> {
        bytes.resize(extents.iter().map(|extent| extent.bytes() as usize).sum(), 0);
        let mut waited = Wait::default();
        let room = self.transactions().reserve(extents, &mut waited).await;
        // Plans from before a power cut are void.
        if self.is_stale() {
            return Err(PieceError::Stale);
        }
        if self.ftl.read_only().is_some() {
            return Err(PieceError::Refused(Unwritable::ReadOnly));
        }
        let settling = self.transactions().accept(extents, Some(&HostMem::from_bytes(&bytes)), room, watch);
        if let Some(settling) = settling {
            settling.settled().await.map_err(PieceError::Refused)?;
        }
        if self.is_stale() { Err(PieceError::Stale) } else { Ok(()) }
    }
}
