//! Loading and writing fragments of the map (OX 6.1.5).

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{
    CachedMapping, ChainedLog, Entry, Eviction, FragmentMiss, Mapping, Miss, Stopped,
};
use nandscape_device_media::PageId;
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::core::Core;
use super::pages::{self, Kind};
use super::state::Mover;
use super::streams::META;
use crate::parts::numbers_of_bytes;

impl Core {
    /// Reads a fragment of the map into memory. One that cannot be read is lost, and with it all of its units.
    pub(super) async fn load(&self, miss: FragmentMiss, breakdown: &mut Breakdown) -> Result<(), Stopped> {
        if self.is_writing() {
            self.make_room(miss.index).await?;
        }
        let who = self.config.priority.who(cause::METADATA);
        let read = Box::pin(self.media.read(miss.page(), miss.bytes(), who, breakdown)).await;
        self.still_running()?;
        let mut state = self.state.borrow_mut();
        // It may have been loaded or moved meanwhile.
        if state.map.is_cached(miss.index) || state.fragment(Kind::MapLarge, miss.index) != Some(miss.page()) {
            return Ok(());
        }
        let bytes = read.ok().and_then(|()| pages::contents(&self.media, miss.page()));
        let is_right = |bytes: &[u8]| {
            let mut units = numbers_of_bytes(bytes).filter_map(|raw| Entry::from_raw(raw).unit());
            units.all(|unit| unit.0 < state.geometry.units())
        };
        let is_it = |kind, index| (kind, index) == (Kind::MapLarge, miss.index);
        match bytes.filter(|(kind, index, bytes)| is_it(*kind, *index) && is_right(bytes)) {
            Some((_, _, bytes)) => state.map.loaded(miss, &bytes),
            None => {
                state.map.lose(miss.index);
                state.counters.lost_units += u64::from(state.geometry.page_size()) / Entry::SIZE as u64;
            }
        }
        drop(state);
        self.map_changed.notify();
        Ok(())
    }

    /// Makes room in memory for a fragment.
    async fn make_room(&self, index: u32) -> Result<(), Stopped> {
        loop {
            let eviction = self.state.borrow_mut().map.evict(index);
            match eviction {
                Eviction::Room | Eviction::Stuck => return Ok(()),
                Eviction::Write(oldest) => match self.write_fragment(oldest, Mover::Host).await {
                    Ok(()) => {}
                    // Nothing can be written any more: the new fragment is added on top, and reads continue.
                    Err(Stopped) if self.is_running() => return Ok(()),
                    Err(Stopped) => return Err(Stopped),
                },
            }
        }
    }

    /// A unit's entry, loaded if needed.
    pub(super) async fn look_up(&self, lpn: Lpn) -> Result<Entry, Stopped> {
        loop {
            let found = self.state.borrow().map.lookup(lpn);
            match found {
                Ok(entry) => return Ok(entry),
                Err(miss) => self.load(miss, &mut Breakdown::new()).await?,
            }
        }
    }

    /// Loads the fragment of a unit if needed, and keeps it in memory. Returns its number, to unpin it.
    pub(super) async fn pin_fragment(&self, lpn: Lpn) -> Result<u32, Stopped> {
        self.look_up(lpn).await?;
        let mut state = self.state.borrow_mut();
        let index = state.map.fragment_of(lpn);
        state.map.pin(index);
        Ok(index)
    }

    /// Writes a fragment of the map, if it was changed since it was written.
    pub(super) async fn write_fragment(&self, index: u32, mover: Mover) -> Result<(), Stopped> {
        while self.state.borrow().map.is_writing(index) {
            self.wait(&self.map_changed).await?;
        }
        let Some(bytes) = self.state.borrow_mut().map.begin_write(index) else { return Ok(()) };
        let image = pages::image(self.media.geometry(), Kind::MapLarge, index, &bytes);
        let written = self.write_page(META, None, image, cause::METADATA).await;
        let mut state = self.state.borrow_mut();
        let Ok(page) = written else {
            state.map.write_failed(index);
            drop(state);
            self.map_changed.notify();
            return Err(Stopped);
        };
        state.count_fragment(Kind::MapLarge, mover);
        state.move_fragment(Kind::MapLarge, index, page, mover);
        state.map.end_write(index);
        let block = state.geometry.block_of(page);
        state.end_pending(block, 1);
        drop(state);
        self.map_changed.notify();
        self.log_grew();
        Ok(())
    }

    /// Writes a fragment of another table, given its bytes. `from` is its place when they were taken, for a collector:
    /// if the fragment has moved meanwhile, the copy is garbage.
    pub(super) async fn write_other(
        &self,
        kind: Kind,
        index: u32,
        bytes: &[u8],
        from: Option<PageId>,
        mover: Mover,
    ) -> Result<(), Stopped> {
        let image = pages::image(self.media.geometry(), kind, index, bytes);
        let page = self.write_page(META, None, image, cause::METADATA).await?;
        let mut state = self.state.borrow_mut();
        state.count_fragment(kind, mover);
        if from.is_none() || state.fragment(kind, index) == from {
            state.move_fragment(kind, index, page, mover);
        }
        let block = state.geometry.block_of(page);
        state.end_pending(block, 1);
        drop(state);
        self.log_grew();
        Ok(())
    }

    /// The log has new records: a page of it may be full, and a checkpoint may be due, now or later.
    pub(super) fn log_grew(&self) {
        self.kick_log();
        let is_long = {
            let state = self.state.borrow();
            state.log.pages() >= self.shared.checkpoint.get().log_pages || state.log.is_broken()
        };
        if is_long {
            self.request_checkpoint();
        }
        self.watch_age();
    }
}
