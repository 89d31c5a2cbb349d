//! One buffer at a time: from the wait for its turn to its end.

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Ftl, Milestone};
use nandscape_sim::Wait;

use super::pack::{self, Entry, Kind, Pack};
use super::state::Step;
use super::{Change, Limits, PieceError, PieceStore};

/// The turn of a buffer, until it is dropped. If it is dropped while the outcome of a write is unknown, the store becomes
/// stale.
pub struct Turn<'a, F: Ftl> {
    pub(super) store: &'a PieceStore<F>,
    /// The buffer's pack, whose frames are taken.
    planned: Option<Pack>,
    /// Whether a write is under way.
    pub(super) is_writing: bool,
}

impl<F: Ftl> Drop for Turn<'_, F> {
    fn drop(&mut self) {
        if self.is_writing {
            self.store.is_broken.set(true);
        }
        if let Some(pack) = self.planned.take().filter(|_| !self.is_writing) {
            self.store.with(|state| state.abandon(&pack));
        }
        self.store.turns.give(1);
    }
}

impl<F: Ftl> PieceStore<F> {
    /// Waits for the turn of a buffer, and until the tables are read.
    ///
    /// # Errors
    /// If the store is stale, or why the tables cannot be read.
    pub async fn turn(&self) -> Result<Turn<'_, F>, PieceError> {
        self.turns.take(1, &mut Wait::default()).await;
        let turn = Turn { store: self, planned: None, is_writing: false };
        if self.is_stale() {
            return Err(PieceError::Stale);
        }
        if self.state.borrow().is_none() {
            let state = self.open().await?;
            self.state.replace(Some(state));
        }
        Ok(turn)
    }
}

impl<F: Ftl> Turn<'_, F> {
    /// Checks the changes of a buffer.
    ///
    /// # Errors
    /// Why it cannot be flushed.
    pub fn admit(&self, changes: &[Change], limits: &Limits) -> Result<(), PieceError> {
        let admitted = self
            .store
            .with(|state| state.table.admit(changes, limits.lpids).map(|growth| (growth, state.frames.live())));
        let (growth, live) = admitted.map_err(PieceError::Misfit)?;
        let data: u64 = changes.iter().map(|change| u64::from(change.bytes)).sum();
        let size = self.store.area.frame_bytes();
        if pack::frames_for(changes.len(), data, size) > limits.frames {
            return Err(PieceError::TooLarge);
        }
        let is_full = growth > 0 && live.saturating_add_signed(growth) > limits.capacity;
        if is_full { Err(PieceError::Full) } else { Ok(()) }
    }

    /// Makes room for a buffer: a checkpoint and cleaning, if due. Writes wait until they have reached `watch`.
    ///
    /// # Errors
    /// If there is no room, or why a step failed.
    pub async fn make_room(&mut self, changes: &[Change], watch: Option<Milestone>) -> Result<(), PieceError> {
        if self.store.is_new.get() {
            self.begin(watch).await?;
        }
        let data = changes.iter().map(|change| u64::from(change.bytes)).sum();
        for rounds in 0..self.store.area.frames() {
            match self.store.with(|state| state.step(changes.len(), data, rounds)) {
                Step::Ready => return Ok(()),
                Step::Save => self.save(watch).await?,
                Step::Clean(moves, victims) => self.clean(moves, &victims, watch).await?,
                Step::Full => break,
            }
        }
        Err(PieceError::Full)
    }

    /// Takes frames for a buffer: the sectors to which it is written. Released when the turn ends before
    /// [`Turn::data`].
    ///
    /// # Errors
    /// If there is no room.
    pub fn plan(&mut self, changes: &[Change]) -> Result<Vec<Extent>, PieceError> {
        let entry = |change: &Change| Entry {
            lpid: change.lpid,
            kind: if change.is_delta { Kind::Delta } else { Kind::Base },
            bytes: change.bytes,
        };
        let pack = self.store.with(|state| state.plan(changes.iter().map(entry).collect())).ok_or(PieceError::Full)?;
        let extents = pack.stream.extents(&self.store.area);
        self.planned = Some(pack);
        Ok(extents)
    }

    /// The data of the planned buffer, all of its frames: the head, and the pieces, which `put` writes one after the
    /// other. It must be handed to the FTL at once: from now on the outcome of the write is unknown.
    ///
    /// # Errors
    /// If the store is stale.
    pub fn data(&mut self, put: impl FnOnce(&mut [u8])) -> Result<Vec<u8>, PieceError> {
        let pack = self.planned.as_ref().expect("it was planned");
        if self.store.is_stale() {
            return Err(PieceError::Stale);
        }
        let mut bytes = pack.encode();
        let head = bytes.len();
        bytes.resize(pack.stream.frames().count() * self.store.area.frame_bytes() as usize, 0);
        put(&mut bytes[head..]);
        self.is_writing = true;
        Ok(bytes)
    }

    /// The buffer is durable.
    ///
    /// # Errors
    /// If the store is stale: the whole buffer is present, or a power cut lost all of it.
    pub fn end(mut self) -> Result<(), PieceError> {
        if self.store.is_stale() {
            return Err(PieceError::Stale);
        }
        if let Some(pack) = self.planned.take() {
            self.is_writing = false;
            self.apply(&pack)?;
        }
        Ok(())
    }

    /// A pack is durable.
    pub(super) fn apply(&mut self, pack: &Pack) -> Result<(), PieceError> {
        let fits = self.store.with(|state| state.apply(pack));
        debug_assert!(fits, "a pack that was admitted fits");
        if fits {
            Ok(())
        } else {
            self.store.is_broken.set(true);
            Err(PieceError::Corrupt)
        }
    }
}
