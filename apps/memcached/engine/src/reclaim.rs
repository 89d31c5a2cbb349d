//! Reclaim: the oldest segments are released. Their current items are written again or evicted.
//!
//! With parity each drive with data of a segment is read in its own turn, so that none is while clients read it.
//!
//! An item is evicted if space or memory is short and no client has read it since its segment was written: second chance, oldest first.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::{Log, Reclaiming, Spot};
use crate::placement::{is_whole, rows};
use crate::record::{Kind, Record, pieces, records};
use crate::small::{bucket_number, items};
use crate::state::State;
use crate::waiting::Move;

/// The most segments that an epoch releases: moved items take memory.
const MOST: usize = 8;
/// The part of the slots that is kept free: 16 is a 16th.
const FREE_SHARE: usize = 16;
/// Items may fill this share of the other slots, in percent; garbage has the rest.
const FULL: u64 = 85;

/// Which items stay.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Stay {
    All,
    /// Those that were asked for, and half a segment at most.
    Asked,
    None,
}

impl Engine {
    /// Slots that are to be free.
    fn wanted_free(log: &Log) -> usize {
        // With parity a segment is given up over as many epochs as there are drives.
        let turns = if log.layout.has_parity() { log.layout.width } else { 0 };
        (log.slots as usize / FREE_SHARE).max(log.reserve() + 2 + turns)
    }

    /// The most bytes of items of a log.
    fn room(&self, log: &Log) -> u64 {
        log.bytes(u64::from(log.slots).saturating_sub(Engine::wanted_free(log) as u64), self.segment) / 100 * FULL
    }

    /// Bytes of the index that are too many.
    fn is_index_over(&self, state: &State, slack: u64) -> bool {
        state.index_bytes() > (self.config.memory - self.config.dirty).saturating_add(slack)
    }

    /// Whether a segment of a pair is to be given up.
    pub(crate) fn is_reclaim_due(&self, state: &State, pair: usize) -> bool {
        let log = &state.logs[pair];
        if log.segments.is_empty() {
            return false;
        }
        let is_short = log.coming_free() < Engine::wanted_free(log);
        is_short || self.is_index_over(state, 0)
    }

    /// Takes the oldest segment out of the log, if that is due and its items would find room.
    fn next_to_reclaim(&self, pair: usize) -> Option<Reclaiming> {
        let mut state = self.state.borrow_mut();
        let is_due = self.is_reclaim_due(&state, pair);
        let is_over = self.is_index_over(&state, 0);
        let is_far_over = self.is_index_over(&state, self.config.memory / 10);
        let room = self.room(&state.logs[pair]);
        let log = &mut state.logs[pair];
        // A segment without items needs no room elsewhere, and is free at once.
        let moves = log.is_tail_needed();
        let coming = log.coming_free() - log.free.len();
        if !is_due || moves && coming > 0 && log.free.len() <= coming {
            return None;
        }
        // The last slot is that of the chunk that names the tail.
        let is_stuck = log.coming_free() == log.free.len();
        if moves && log.layout.has_parity() && !is_stuck && log.free.len() < log.moving() + 2 {
            return None;
        }
        if is_over && log.segments.len() == 1 {
            log.is_open = false;
        }
        let is_full = log.live > room;
        let (number, segment) = log.take_tail()?;
        let stay = match (is_far_over, is_over || is_full) {
            (true, _) => Stay::None,
            (_, true) => Stay::Asked,
            _ => Stay::All,
        };
        let buckets = if is_full { Stay::Asked } else { Stay::All };
        let left = if segment.is_needed() { log.layout.data(number, 0).collect() } else { Vec::new() };
        Some(Reclaiming { number, segment, stay, buckets, left })
    }

    /// Gives up segments of a pair as far as that is due. `drives` have tokens, and are read. Whether any was.
    pub(crate) async fn reclaim(&self, pair: usize, drives: &[usize]) -> Result<bool, EngineError> {
        let mut is_any = self.read_reclaimed(pair, drives).await?;
        for _ in 0..MOST {
            let Some(next) = self.next_to_reclaim(pair) else { break };
            is_any = true;
            self.state.borrow_mut().logs[pair].reclaiming.push_back(next);
            self.read_reclaimed(pair, drives).await?;
        }
        Ok(is_any)
    }

    /// Reads the drives with tokens for the segments that are given up. Whether there was anything to read.
    async fn read_reclaimed(&self, pair: usize, drives: &[usize]) -> Result<bool, EngineError> {
        let mut is_any = false;
        let count = self.state.borrow().logs[pair].reclaiming.len();
        for at in 0..count {
            while let Some(drive) = self.next_to_read(pair, at, drives) {
                is_any = true;
                let first = if self.layout.has_parity() { drive } else { drives[0] };
                let (number, image) = self.image(pair, at, first).await?;
                self.host.bytes(image.len()).await;
                self.give_up(pair, at, number, drive, &image);
            }
        }
        let mut state = self.state.borrow_mut();
        let log = &mut state.logs[pair];
        while let Some(done) = log.reclaiming.pop_front_if(|reclaiming| reclaiming.left.is_empty()) {
            log.retire(done.number, done.segment.slot);
        }
        Ok(is_any)
    }

    /// The next drive whose chunks of a segment that is given up are read now: it has a token, or is lost.
    fn next_to_read(&self, pair: usize, at: usize, drives: &[usize]) -> Option<usize> {
        let is_now = |drive: &&usize| drives.contains(drive) || self.group(pair)[**drive].is_incomplete();
        let state = self.state.borrow();
        let left = &state.logs[pair].reclaiming.get(at)?.left;
        // Where all drives have the same, any of them is read.
        if self.layout.has_parity() { left.iter().find(is_now).copied() } else { left.first().copied() }
    }

    /// What a drive has of a segment that is given up. What it has lost the others may have.
    async fn image(&self, pair: usize, at: usize, drive: usize) -> Result<(u64, Vec<u8>), EngineError> {
        let (number, chunks, start, len) = {
            let state = self.state.borrow();
            let Reclaiming { number, segment, .. } = &state.logs[pair].reclaiming[at];
            (*number, segment.chunks, self.start_of(segment.slot), segment.used as usize)
        };
        let form = (self.id, self.block);
        let mut images = vec![None; self.layout.width];
        let others = (0..self.layout.width).filter(|other| *other != drive);
        for replica in std::iter::once(drive).chain(others) {
            let member = self.group(pair)[replica].clone();
            if member.is_incomplete() {
                continue;
            }
            match member.read_what_is_left(start, len, self.block).await {
                Ok(read) => images[replica] = Some(read),
                Err(error) => self.lose(error).await?,
            }
            let own = images[drive].as_deref();
            if own.is_some_and(|own| is_whole(own, (number, chunks), form)) {
                break;
            }
            rows(self.layout, &mut images, number, form);
        }
        Ok((number, images[drive].take().unwrap_or_default()))
    }

    /// Has the items of a segment written again or evicted that a drive has.
    fn give_up(&self, pair: usize, at: usize, number: u64, drive: usize, image: &[u8]) {
        let now_s = self.now_s();
        let (mut state, mut kept) = (self.state.borrow_mut(), 0);
        let Some(reclaiming) = state.logs[pair].reclaiming.get_mut(at) else { return };
        reclaiming.left.retain(|left| *left != drive);
        let (items, buckets) = (reclaiming.stay, reclaiming.buckets);
        let own = pieces(image, self.id, self.block).into_iter();
        for header in own.filter(|header| header.segment == number && !header.is_parity) {
            for (offset, record) in records(image, header) {
                let is_at = |spot: Spot| (spot.segment, spot.offset, spot.drive) == (number, offset, drive as u32);
                let has_room = kept + record.len() <= self.segment as usize / 2;
                let stay = if record.kind == Kind::Bucket { buckets } else { items };
                let stays = |is_hot: bool| stay == Stay::All || stay == Stay::Asked && is_hot && has_room;
                let is_kept = match record.kind {
                    Kind::Put => state.give_up_item(pair, &record, (is_at, stays), now_s),
                    Kind::Bucket => state.give_up_bucket(pair, &record, (is_at, stays), now_s),
                    Kind::Delete => {
                        state.keep_void(pair, &record);
                        false
                    }
                    Kind::Touch | Kind::Clear => false,
                };
                kept += if is_kept { record.len() } else { 0 };
            }
        }
    }
}

impl State {
    /// A record outside of buckets is given up. While its key's bucket may have an older item, that stays void.
    pub(crate) fn keep_void(&mut self, pair: usize, record: &Record<'_>) {
        if self.small.has_changed(record.key) {
            self.logs[pair].move_later(Move::Void(record.key.into(), record.version));
        }
    }

    /// Has an item of a segment that is given up written again or evicted. Whether it stays.
    pub(crate) fn give_up_item(
        &mut self,
        pair: usize,
        record: &Record<'_>,
        (is_at, stays): (impl Fn(Spot) -> bool, impl Fn(bool) -> bool),
        now_s: u64,
    ) -> bool {
        let key = record.key;
        let (is_here, is_kept) = self.look(key, now_s).map_or((false, false), |entry| {
            let is_here = entry.spot.is_some_and(is_at);
            // A newer version that no drive has yet: this one stays until it is written.
            let is_newer = entry.is_unpacked && entry.spot.is_none();
            (is_here, is_newer || is_here && stays(entry.is_hot))
        });
        if is_kept {
            self.move_item(key, record.value);
        } else if is_here {
            self.remove(key);
            self.stats.evictions += 1;
        }
        // Behind the item: a packed one hides older ones itself, and one without room is evicted.
        self.keep_void(pair, record);
        is_kept
    }

    /// The same of a bucket.
    pub(crate) fn give_up_bucket(
        &mut self,
        pair: usize,
        record: &Record<'_>,
        (is_at, stays): (impl Fn(Spot) -> bool, impl Fn(bool) -> bool),
        now_s: u64,
    ) -> bool {
        let Some(number) = bucket_number(record.key) else { return false };
        if !self.small.spot(number, &self.logs[pair]).is_some_and(is_at) {
            return false;
        }
        let alive = items(record.value).filter(|item| item.expiry == 0 || item.expiry > now_s).count() as u64;
        // An item leaves its bucket after its mask.
        let is_needed =
            self.small.is_changed(number) || items(record.value).any(|item| self.small.mask_of(item.key).is_some());
        let is_kept = is_needed || alive > 0 && stays(self.small.is_hot(number));
        if is_kept {
            self.move_bucket(pair, number, record.value);
        } else {
            self.drop_bucket(pair, number);
            self.stats.evictions += alive;
        }
        is_kept
    }
}
