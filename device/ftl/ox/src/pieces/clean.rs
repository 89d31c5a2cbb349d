//! Frames that are emptied: the parts of pieces in them move to a separate pack.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{Ftl, Milestone};

use super::state::Move;
use super::{PieceError, Turn};

impl<F: Ftl> Turn<'_, F> {
    /// Moves parts of pieces, so that frames become free. Unreadable frames are unchanged.
    pub(super) async fn clean(
        &mut self,
        moves: Vec<Move>,
        victims: &[u32],
        watch: Option<Milestone>,
    ) -> Result<(), PieceError> {
        let store = self.store;
        let places = moves.iter().flat_map(|each| &each.from).copied();
        let reads: Vec<(Extent, usize, usize)> = places
            .map(|place| {
                let (extent, skip) = store.area.cover(place);
                (extent, skip, place.bytes as usize)
            })
            .collect();
        let read = all(reads.iter().map(|(extent, ..)| store.read(*extent))).await;
        let mut data = Vec::new();
        for ((_, skip, bytes), found) in reads.into_iter().zip(read) {
            match found {
                Ok(found) => data.extend_from_slice(&found[skip..skip + bytes]),
                Err(PieceError::Read(_)) => {
                    store.with(|state| victims.iter().for_each(|frame| state.frames.is_stuck(*frame)));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        let bytes = data.len() as u64;
        let entries = moves.into_iter().map(|each| each.entry).collect();
        let pack = store.with(|state| state.plan(entries)).ok_or(PieceError::Full)?;
        self.is_writing = true;
        store.write(&pack.stream.extents(&store.area), [pack.encode(), data].concat(), watch).await?;
        self.is_writing = false;
        store.count(|counts| counts.moved_bytes += bytes);
        self.apply(&pack)
    }
}

/// Awaits futures concurrently. Returns their results, in order.
async fn all<T>(work: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut work: Vec<Pin<Box<_>>> = work.map(Box::pin).collect();
    let mut results: Vec<Option<T>> = work.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (part, result) in work.iter_mut().zip(&mut results).filter(|(_, result)| result.is_none()) {
            if let Poll::Ready(ended) = part.as_mut().poll(context) {
                *result = Some(ended);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
