//! Pages that are read: their frames are unchanged until everything is read.

use nandscape_device_ftl_core::ftl::Ftl;

use super::table::Piece;
use super::{PieceError, PieceStore};

/// The pieces of pages as they are at one instant. Their frames are not written again while this exists.
pub struct Found<'a, F: Ftl> {
    store: &'a PieceStore<F>,
    /// The pieces of each page, the base first; none of one that is not there.
    pub pages: Vec<Vec<Piece>>,
}

impl<F: Ftl> PieceStore<F> {
    /// Looks pages up, once the tables are read.
    ///
    /// # Errors
    /// As [`PieceStore::turn`].
    pub async fn find(&self, lpids: &[u64]) -> Result<Found<'_, F>, PieceError> {
        if self.state.borrow().is_none() {
            drop(self.turn().await?);
        }
        if self.is_stale() {
            return Err(PieceError::Stale);
        }
        let pages: Vec<Vec<Piece>> =
            self.with(|state| lpids.iter().map(|lpid| state.table.page(*lpid).to_vec()).collect());
        let found = Found { store: self, pages };
        found.each(|frames, place| frames.pin(place));
        Ok(found)
    }
}

impl<F: Ftl> Found<'_, F> {
    fn each(&self, work: impl Fn(&mut super::frames::Frames, super::Place)) {
        let places = self.pages.iter().flatten().flat_map(|piece| &piece.places);
        self.store.with(|state| places.for_each(|place| work(&mut state.frames, *place)));
    }
}

impl<F: Ftl> Drop for Found<'_, F> {
    fn drop(&mut self) {
        self.each(|frames, place| frames.unpin(place));
    }
}
