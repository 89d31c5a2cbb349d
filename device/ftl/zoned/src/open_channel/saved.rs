//! The state of an open-channel drive at rest, saved and restored to a new one over the same flash: the state and the write
//! pointer of each chunk.
//!
//! A drive is at rest when all accepted data is on flash, and no reset is under way.
//!
//! Left out: counters, which begin at zero, and notices that the host has not fetched.

use nandscape_device_ftl_core::SavedFtl;
use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_sim::table::Table;

use super::OpenChannel;
use super::table::{Chunk, ChunkState};

/// Bytes of a chunk.
const CHUNK: usize = 10;

impl OpenChannel {
    /// Brings the drive to rest. It must not be used meanwhile, nor afterwards except for [`OpenChannel::take_saved`].
    pub async fn come_to_rest(&self) {
        if let Some(settling) = self.flush_landings() {
            // Lost data has closed its chunk, which is the state of the chunk then.
            let _ = settling.settled().await;
        }
        while self.media.is_powered() && !self.is_at_rest() {
            self.progress.changed().await;
        }
    }

    fn is_at_rest(&self) -> bool {
        self.chunks.borrow().iter().all(|chunk| !chunk.is_erasing && chunk.written == chunk.programmed)
    }

    /// Takes the state of a drive at rest.
    ///
    /// # Errors
    /// Why it cannot be taken.
    pub fn take_saved(&self) -> Result<SavedFtl, String> {
        if !self.is_at_rest() {
            return Err("its flash is not powered, and writes or resets of chunks are left".to_owned());
        }
        let mut to = Writer::default();
        let chunks = self.chunks.borrow();
        to.count(chunks.len());
        for chunk in &*chunks {
            to.byte(number_of(chunk.state));
            to.word(chunk.written);
            to.word(chunk.erases);
            to.byte(u8::from(chunk.is_broken));
        }
        let map = Table::new(0).map_err(|error| error.to_string())?;
        Ok(SavedFtl { map, tables: to.finish() })
    }

    /// Restores the state of another drive to this new drive over the same flash.
    ///
    /// # Errors
    /// If the state is not of such a drive.
    pub fn put_saved(&self, saved: SavedFtl) -> Result<(), String> {
        let mut from = Reader::new(&saved.tables);
        let chunks = self.restore(&mut from).and_then(|chunks| from.finish().map(|()| chunks));
        let chunks = chunks.map_err(|problem: Malformed| format!("chunks: {problem}"))?;
        self.erased.set(chunks.iter().map(|chunk| u64::from(chunk.erases)).sum());
        self.chunks.replace(chunks);
        self.check_all()
    }

    fn restore(&self, from: &mut Reader<'_>) -> Result<Vec<Chunk>, Malformed> {
        let (count, expected) = (from.count(CHUNK)?, self.layout.all_chunks());
        if count != expected as usize {
            return Err(from.malformed(format!("it has {count} chunks, and the drive has {expected}")));
        }
        let mut chunk = || {
            let (state, written, erases, is_broken) = (from.byte()?, from.word()?, from.word()?, from.byte()? != 0);
            let state = state_of(state).ok_or_else(|| from.malformed(format!("{state} is no state of a chunk")))?;
            let (accepted, programmed) = (written, written);
            Ok(Chunk { state, written, accepted, programmed, erases, is_broken, ..Chunk::new(false) })
        };
        (0..count).map(|_| chunk()).collect()
    }
}

const STATES: [ChunkState; 4] = [ChunkState::Free, ChunkState::Open, ChunkState::Closed, ChunkState::Offline];

fn number_of(state: ChunkState) -> u8 {
    STATES.iter().zip(0..).find(|(each, _)| **each == state).map_or(0, |(_, number)| number)
}

fn state_of(number: u8) -> Option<ChunkState> {
    STATES.get(usize::from(number)).copied()
}
