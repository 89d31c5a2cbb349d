//! Recovery at the start: the root, its checkpoint, and the heads since.

use nandscape_device_ftl_core::ftl::Ftl;

use super::checkpoint::{self, LINK, ROOT, Root};
use super::pack::{Pack, u32_at};
use super::state::State;
use super::{PieceError, PieceStore};

impl<F: Ftl> PieceStore<F> {
    /// The state in the flash.
    pub(super) async fn open(&self) -> Result<State, PieceError> {
        let first = self.read_frame(ROOT).await?;
        if Root::is_new(&first) {
            self.is_new.set(true);
            let mut state = State::new(&self.area);
            state.begin_at(&Root::NEW, Vec::new());
            return Ok(state);
        }
        let root = Root::decode(&first, &self.area).ok_or(PieceError::Corrupt)?;
        let (frames, bytes) = self.read_checkpoint(&root).await?;
        let mut state = State::new(&self.area);
        state.begin_at(&root, frames);
        checkpoint::decode(&bytes, &mut state).ok_or(PieceError::Corrupt)?;
        while let Some(pack) = self.read_pack(&state).await? {
            if !state.replay(&pack) {
                return Err(PieceError::Corrupt);
            }
        }
        state.check().map_err(|_| PieceError::Corrupt)?;
        Ok(state)
    }

    /// Reads a frame after pending writes to it are visible: an earlier store may have stopped in the middle of a write.
    async fn read_frame(&self, frame: u32) -> Result<Vec<u8>, PieceError> {
        let extent = self.area.extent(frame, 1);
        self.transactions().settle(extent).await;
        self.read(extent).await
    }

    /// The frames of a checkpoint, and its bytes.
    async fn read_checkpoint(&self, root: &Root) -> Result<(Vec<u32>, Vec<u8>), PieceError> {
        let (mut frames, mut bytes, mut next) = (Vec::new(), Vec::new(), root.first);
        while (bytes.len() as u64) < root.bytes {
            if next == ROOT || next >= self.area.frames() || frames.len() as u32 == self.area.frames() {
                return Err(PieceError::Corrupt);
            }
            let frame = self.read_frame(next).await?;
            frames.push(next);
            next = u32_at(&frame, 0).unwrap_or(ROOT);
            bytes.extend_from_slice(&frame[LINK..]);
        }
        bytes.truncate(root.bytes as usize);
        let is_right = root.bytes == 0 || crc32fast::hash(&bytes) == root.sum;
        if is_right { Ok((frames, bytes)) } else { Err(PieceError::Corrupt) }
    }

    /// The next pack, if it exists.
    async fn read_pack(&self, state: &State) -> Result<Option<Pack>, PieceError> {
        let first = self.read_frame(state.next).await?;
        let Some((stream, len)) = Pack::begin(&first, state.sequence, state.next, &self.area) else { return Ok(None) };
        let size = self.area.frame_bytes();
        let mut head = Vec::with_capacity(len);
        for place in stream.places(0, len as u32, size) {
            let (extent, skip) = self.area.cover(place);
            let found = self.read(extent).await?;
            head.extend_from_slice(&found[skip..skip + place.bytes as usize]);
        }
        Pack::decode(&head, stream, size).map(Some).ok_or(PieceError::Corrupt)
    }
}
