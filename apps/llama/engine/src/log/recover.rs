//! Creating a log, and opening an existing one: its mapping table is that of the last checkpoint, with the frames since
//! then applied.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_store::{Disk, Host, Range, StoreError};
use nandscape_drive::{Drive, DriveInfo};

use super::form::{self, ALIGN, Layout};
use super::state::State;
use super::{LOW, LogConfig, LogStore, MOST_PIECES};
use crate::error::OpenError;
use crate::pages::PageStats;

/// The fewest segments of a log.
const LEAST: u32 = 2 * LOW as u32 + 2;

pub(super) async fn open(host: &Host, drive: Rc<dyn Drive>, config: LogConfig) -> Result<LogStore, OpenError> {
    let disk = Disk::new(host, drive);
    if !disk.info.keeps_data {
        return Err(OpenError::NoData);
    }
    let new = layout(&config, &disk.info)?;
    let blocks = [Range { slba: 0, blocks: ALIGN / u64::from(new.lba_bytes) }];
    let first = disk.read(&blocks).await.map_err(OpenError::of_blocks)?.remove(0);
    match Layout::of(&first) {
        Some(layout) => {
            check_found(&layout, &disk.info)?;
            let store = LogStore::of(disk, config, layout);
            store.recover().await?;
            Ok(store)
        }
        None if first.iter().all(|byte| *byte == 0) => {
            let store = LogStore::of(disk, config, new);
            store.make().await?;
            Ok(store)
        }
        None => Err(OpenError::Foreign("the first block of the drive has something else".to_owned())),
    }
}

impl LogStore {
    /// Whether a drive has a log.
    ///
    /// # Errors
    /// When the drive fails, or its namespace has no blocks.
    pub async fn is_there(host: &Host, drive: Rc<dyn Drive>) -> Result<bool, OpenError> {
        let disk = Disk::new(host, drive);
        let blocks = [Range { slba: 0, blocks: ALIGN.div_ceil(disk.info.lba_bytes.into()) }];
        let first = disk.read(&blocks).await.map_err(OpenError::of_blocks)?;
        Ok(Layout::of(&first[0]).is_some())
    }

    /// Discards the content of a drive, so that it can have a log.
    ///
    /// # Errors
    /// When the drive fails.
    pub async fn clear(host: &Host, drive: Rc<dyn Drive>) -> Result<(), StoreError> {
        Disk::new(host, drive).clear(ALIGN).await
    }
}

/// The layout of a new log.
fn layout(config: &LogConfig, info: &DriveInfo) -> Result<Layout, OpenError> {
    let LogConfig { page_bytes, segment_bytes, pieces, id, space, .. } = *config;
    let all = space.unwrap_or(u64::MAX).min(info.bytes());
    let wrong = |text: String| Err(OpenError::Size(text));
    if !(1_024..=65_536).contains(&page_bytes) || !(1..=MOST_PIECES).contains(&pieces) {
        return wrong(format!(
            "pages of {page_bytes} bytes in {pieces} pieces; 1 KiB to 64 KiB and 1 to {MOST_PIECES} are valid"
        ));
    }
    if !(256 << 10..=1 << 30).contains(&segment_bytes) || !u64::from(segment_bytes).is_multiple_of(ALIGN) {
        return wrong(format!(
            "segments of {segment_bytes} bytes; 256 KiB to 1 GiB, in multiples of {ALIGN} bytes, are valid"
        ));
    }
    // More pages than fill the log when they are half full.
    let pages = all / u64::from(page_bytes) * 5 / 4;
    let checkpoint_bytes = form::checkpoint_bytes(pages).next_multiple_of(ALIGN);
    let left = all.saturating_sub(ALIGN + 2 * checkpoint_bytes);
    let segments = u32::try_from(left / u64::from(segment_bytes)).unwrap_or(u32::MAX - 1);
    if segments < LEAST || !ALIGN.is_multiple_of(info.lba_bytes.into()) {
        return wrong(format!(
            "{all} bytes in blocks of {} have {segments} segments of {segment_bytes} bytes; {LEAST} are the least, and blocks \
             have {ALIGN} bytes at the most",
            info.lba_bytes
        ));
    }
    Ok(Layout { lba_bytes: info.lba_bytes, segment_bytes, segments, checkpoint_bytes, page_bytes, id })
}

/// Checks that a log that was found can be that of this drive.
fn check_found(layout: &Layout, info: &DriveInfo) -> Result<(), OpenError> {
    if layout.lba_bytes != info.lba_bytes {
        return Err(OpenError::Foreign(format!(
            "the log there has blocks of {} bytes, and the drive blocks of {}",
            layout.lba_bytes, info.lba_bytes
        )));
    }
    let bytes = layout.segment_start(layout.segments);
    if bytes > info.bytes() {
        return Err(OpenError::Size(format!("the log there has {bytes} bytes, and the drive {}", info.bytes())));
    }
    Ok(())
}

impl LogStore {
    fn of(disk: Disk, config: LogConfig, layout: Layout) -> LogStore {
        let checked = Cell::new(disk.host.sim().now());
        let state = RefCell::new(State::new(layout.segments));
        LogStore { disk, config, layout, state, counts: RefCell::new(PageStats::default()), checked }
    }

    /// An empty log. The superblock is written last: without it no log exists.
    async fn make(&self) -> Result<(), StoreError> {
        self.state.borrow_mut().free.extend(0..self.layout.segments);
        self.checkpoint().await?;
        self.disk.write(0, &self.layout.to_block()).await
    }

    async fn recover(&self) -> Result<(), StoreError> {
        let mut state = self.last_checkpoint().await?;
        let firsts = self.first_frames(&state).await?;
        self.replay(&mut state, &firsts).await?;
        // The next frame may be torn; no frame after it was begun.
        if let Some((number, segment)) = firsts.range(state.next_frame + 1..).next() {
            return Err(StoreError::Corrupt(format!(
                "the log goes on with frame {number} in segment {segment}, and frame {} is not whole",
                state.next_frame
            )));
        }
        // A torn frame may follow the last one. It does not count in the next epoch.
        state.epoch += 1;
        state.head = None;
        self.state.replace(state);
        self.checkpoint().await?;
        let mut state = self.state.borrow_mut();
        let free: Vec<u32> = (0..self.layout.segments).filter(|segment| state.live_in(*segment) == 0).collect();
        state.free.extend(free);
        Ok(())
    }

    /// The contents of the newer of two checkpoints.
    async fn last_checkpoint(&self) -> Result<State, StoreError> {
        let (mut last, lba) = (None::<State>, u64::from(self.layout.lba_bytes));
        for which in 0..2 {
            let slba = self.layout.checkpoint_start(which) / lba;
            let head = self.disk.read(&[Range { slba, blocks: ALIGN / lba }]).await?.remove(0);
            let Some((_, bytes)) = form::checkpoint_head(&head, self.layout.id) else { continue };
            if bytes > self.layout.checkpoint_bytes {
                continue;
            }
            let all = self.disk.read(&[Range { slba, blocks: bytes.div_ceil(lba) }]).await?.remove(0);
            let Some(found) = form::restore(&all, self.layout.segments) else { continue };
            if last.as_ref().is_none_or(|last| last.next_checkpoint < found.next_checkpoint) {
                last = Some(found);
            }
        }
        last.ok_or_else(|| StoreError::Corrupt("neither checkpoint of the log is whole".to_owned()))
    }

    /// The first frames of segments since the checkpoint, by number.
    async fn first_frames(&self, state: &State) -> Result<BTreeMap<u64, u32>, StoreError> {
        let ranges: Vec<Range> = (0..self.layout.segments).map(|segment| self.range(segment, 0, ALIGN).0).collect();
        let mut firsts = BTreeMap::new();
        for (segment, bytes) in self.disk.read(&ranges).await?.iter().enumerate() {
            if let Some((frame, _)) = form::frame_head(bytes)
                && (frame.id, frame.epoch) == (self.layout.id, state.epoch)
                && frame.number >= state.next_frame
            {
                firsts.insert(frame.number, segment as u32);
            }
        }
        Ok(firsts)
    }

    /// Applies the frames since the checkpoint, up to the first that is not whole.
    async fn replay(&self, state: &mut State, firsts: &BTreeMap<u64, u32>) -> Result<(), StoreError> {
        loop {
            let next = state.next_frame;
            let mut found = None;
            if let Some((segment, used)) = state.head {
                found = self.frame_at(state, segment, used).await?;
            }
            if found.is_none()
                && let Some(segment) = firsts.get(&next)
            {
                found = self.frame_at(state, *segment, 0).await?;
            }
            let Some((entries, head)) = found else { return Ok(()) };
            self.disk.host.entries(entries.len()).await;
            for (lpid, says, place) in entries {
                if lpid >= self.layout.pages() {
                    return Err(StoreError::Corrupt(format!("frame {next} of the log names page {lpid}")));
                }
                state.add(lpid, says, place);
            }
            (state.head, state.next_frame) = (Some(head), next + 1);
        }
    }

    /// The entries of the next frame, if it is whole at this place, and its end.
    async fn frame_at(&self, state: &State, segment: u32, at: u32) -> Result<Option<Found>, StoreError> {
        let room = u64::from(self.layout.segment_bytes - at);
        if room < ALIGN {
            return Ok(None);
        }
        let head = self.disk.read(&[self.range(segment, at.into(), ALIGN).0]).await?.remove(0);
        let Some((frame, total)) = form::frame_head(&head) else { return Ok(None) };
        let is_next = (frame.id, frame.epoch, frame.number) == (self.layout.id, state.epoch, state.next_frame);
        if !is_next || total as u64 > room {
            return Ok(None);
        }
        let bytes = self.disk.read(&[self.range(segment, at.into(), total as u64).0]).await?.remove(0);
        let end = at + (total as u64).next_multiple_of(ALIGN) as u32;
        Ok(form::entries(&bytes, segment, at).map(|entries| (entries, (segment, end))))
    }
}

/// The entries of a frame, and the segment and the place behind it.
type Found = (Vec<form::Entry>, (u32, u32));
