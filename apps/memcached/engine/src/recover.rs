//! Finding the items of a store again.
//!
//! The segments of a group are read from the newest to the oldest, and each from its end to its beginning: the first record of a key that
//! is found counts. A chunk counts if it is whole on a replica, and the others get a copy before anything is served. What is older than the
//! tail that a newer chunk names was given up and does not count.
//!
//! With parity, a row counts if all drives but one have their chunks of it. A row on fewer drives was never acknowledged. It stays in
//! place; its versions distinguish it from rows that are written there later.
//!
//! A chunk that is missing although a newer one exists is damaged on all replicas: each chunk names how many the segment before had, and
//! segments are numbered without gaps. Any key could have had a newer version in it. So of what is older nothing counts.

use std::collections::BTreeSet;

use crate::drives::Member;
use crate::engine::Engine;
use crate::error::{EngineError, Event, OpenError};
use crate::log::{Segment, Spot};
use crate::membership::Part;
use crate::placement::rows;
use crate::record::{CHUNK_HEADER, Header, pieces, records};
use crate::replay::Replay;

/// More versions than a store gives.
const MOST_VERSION: u64 = 1 << 62;
/// Slots whose first blocks are read at once.
const AT_ONCE: usize = 64;

/// A segment as its slot has it on all replicas together.
pub(crate) struct Found {
    pub(crate) number: u64,
    pub(crate) slot: u32,
    /// Of each drive of the group.
    pub(crate) images: Vec<Vec<u8>>,
    /// Its chunks from the first on, as far as none is missing.
    pub(crate) whole: Vec<Header>,
    /// Chunks behind one that is missing.
    pub(crate) behind: Vec<Header>,
    /// The place of the first chunk that is missing, if one is.
    gap: Option<u32>,
    /// Chunks that each replica lacks: its drive, and the headers.
    pub(crate) lacking: Vec<(usize, Vec<Header>)>,
}

/// A segment that some drives lack chunks of: its number, its slot, and how many chunks the next one counts in it.
pub(crate) type Unequal = ((u64, u32), Option<u32>);

impl Found {
    /// Bytes up to the end of its last chunk.
    pub(crate) fn used(&self, block: usize) -> usize {
        let last = self.behind.last().or(self.whole.last());
        last.map_or(0, |last| (last.offset as usize + last.len as usize).next_multiple_of(block))
    }
}

impl Engine {
    /// Reads the index of a group, and makes its drives equal.
    pub(crate) async fn recover(&self, pair: usize, parts: &[Part]) -> Result<(), OpenError> {
        let seen = self.segments(pair, parts).await?;
        let (mut replay, mut unequal) = (Replay::default(), Vec::new());
        // A number may be in several slots: of all but one of them no chunk is whole.
        for (number, slot) in seen.into_iter().rev() {
            if number < replay.tail {
                break;
            }
            if replay.taken.contains(&slot) {
                continue;
            }
            let before = replay.last.filter(|(last, _)| *last == number + 1).map(|(_, before)| before);
            let found = self.find(pair, parts, (number, slot), before).await?;
            let Some(last) = found.behind.last().or(found.whole.last()) else { continue };
            if number < last.tail {
                continue;
            }
            replay.taken.insert(slot);
            match self.is_zoned() {
                // Zones are written in order: from the oldest segment to the newest.
                true if found.lacking.iter().any(|(_, lacking)| !lacking.is_empty()) => {
                    unequal.push(((number, slot), before));
                }
                true => {}
                false => self.equalize(&found).await?,
            }
            self.host.bytes(self.segment as usize * self.layout.columns()).await;
            self.replay(pair, &found, &mut replay);
            self.host.tick().await;
        }
        self.equalize_in_order(pair, parts, unequal).await?;
        let doubts = std::mem::take(&mut replay.doubts);
        self.finish_recovery(pair, replay, parts);
        self.wipe(pair, parts).await?;
        self.settle_in_order(pair, parts).await?;
        let whole: Vec<usize> = self.parts(pair, parts, Part::Whole).map(|drive| drive % self.replicas()).collect();
        Ok(self.settle_doubts(pair, doubts, &whole).await?)
    }

    /// The drives of a group of which something is believed, or that are rebuilt.
    pub(crate) fn parts<'a>(
        &self,
        pair: usize,
        parts: &'a [Part],
        wanted: Part,
    ) -> impl Iterator<Item = usize> + use<'a> {
        let first = pair * self.replicas();
        parts.iter().enumerate().filter(move |(_, part)| **part == wanted).map(move |(replica, _)| first + replica)
    }

    /// The segments of a group and their slots, as the first blocks of the slots say; all of a slot if its first block is damaged.
    async fn segments(&self, pair: usize, parts: &[Part]) -> Result<BTreeSet<(u64, u32)>, OpenError> {
        let slots = self.state.borrow().logs[pair].slots;
        let mut seen = BTreeSet::new();
        for drive in self.parts(pair, parts, Part::Whole) {
            let member = self.member(drive);
            for first in (0..slots).step_by(AT_ONCE) {
                let some: Vec<u32> = (first..slots.min(first + AT_ONCE as u32)).collect();
                let starts: Vec<u64> = some.iter().map(|slot| self.start_of(*slot)).collect();
                let heads = member.read_all(&starts, CHUNK_HEADER).await?;
                for (slot, bytes) in some.into_iter().zip(heads) {
                    let header = bytes.as_deref().and_then(Header::peek).filter(|header| header.id == self.id);
                    if let Some(header) = header {
                        seen.insert((header.segment, slot));
                        self.have_seen(header.version);
                    }
                    let is_empty = bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0));
                    if header.is_none() && !is_empty {
                        let (start, len) = (self.start_of(slot), self.segment as usize);
                        let image = member.read_what_is_left(start, len, self.block).await?;
                        seen.extend(pieces(&image, self.id, self.block).iter().map(|header| (header.segment, slot)));
                    }
                }
                self.host.tick().await;
            }
        }
        Ok(seen)
    }

    /// Notes a version of a row, so that it is not used again: versions distinguish rows at the same place. Damaged headers do not count.
    fn have_seen(&self, version: u64) {
        if self.layout.has_parity() && version < MOST_VERSION {
            let mut state = self.state.borrow_mut();
            state.version = state.version.max(version);
        }
    }

    /// What the replicas have of a segment. `before` is how many chunks the next one counts in it.
    pub(crate) async fn find(
        &self,
        pair: usize,
        parts: &[Part],
        (number, slot): (u64, u32),
        before: Option<u32>,
    ) -> Result<Found, OpenError> {
        let mut images = vec![None; self.layout.width];
        let drives: Vec<usize> = self.parts(pair, parts, Part::Whole).collect();
        for drive in &drives {
            let (start, len) = (self.start_of(slot), self.segment as usize);
            let read = self.member(*drive).read_what_is_left(start, len, self.block).await?;
            images[drive % self.layout.width] = Some(read);
        }
        let mut found = rows(self.layout, &mut images, number, (self.id, self.block));
        let have = |drive: usize| found.values().filter(move |row| row.have.contains(&drive)).map(|row| row.header);
        let have: Vec<(usize, Vec<Header>)> =
            drives.iter().map(|drive| (*drive, have(drive % self.layout.width).collect())).collect();
        let mut next = |number: u32| found.remove(&number).map(|row| row.header);
        let (mut whole, mut end): (Vec<Header>, u32) = (Vec::new(), 0);
        while let Some(header) = next(whole.len() as u32).filter(|header| header.offset == end) {
            end = (header.offset + header.len).next_multiple_of(self.block as u32);
            whole.push(header);
        }
        // Where the next segment knows how many there are, others are left over from a history that did not continue.
        let before = before.filter(|before| *before > 0);
        if let Some(before) = before {
            whole.truncate(before as usize);
        }
        let counts = |header: &Header| before.is_none_or(|before| header.number < before);
        let behind: Vec<Header> = found.into_values().map(|row| row.header).filter(counts).collect();
        let is_short = before.is_some_and(|before| whole.len() < before as usize);
        let gap = (is_short || !behind.is_empty()).then_some(end);
        let lacks = |(drive, has): (usize, Vec<Header>)| {
            (drive, whole.iter().chain(&behind).filter(|header| !has.contains(header)).copied().collect())
        };
        let lacking = have.into_iter().map(lacks).collect();
        let images = images.into_iter().map(|image| image.unwrap_or_else(|| vec![0; self.segment as usize])).collect();
        Ok(Found { number, slot, images, whole, behind, gap, lacking })
    }

    /// Writes what replicas lack of a segment.
    async fn equalize(&self, found: &Found) -> Result<(), OpenError> {
        let start = self.start_of(found.slot);
        for (drive, lacking) in &found.lacking {
            for header in lacking {
                let (at, len) = (header.offset as usize, (header.len as usize).next_multiple_of(self.block));
                let image = &found.images[drive % self.layout.width][at..at + len];
                self.member(*drive).write_by(start + at as u64, image, self.policy.handle()).await?;
            }
        }
        Ok(())
    }

    /// Clears the slots of a rebuilt drive that hold no segment of the others.
    async fn wipe(&self, pair: usize, parts: &[Part]) -> Result<(), OpenError> {
        let (slots, taken) = {
            let state = self.state.borrow();
            let log = &state.logs[pair];
            (log.slots, log.segments.values().map(|segment| segment.slot).collect::<BTreeSet<u32>>())
        };
        for drive in self.parts(pair, parts, Part::Rebuilt) {
            if self.is_zoned() {
                self.member(drive).reset_all().await?;
                continue;
            }
            self.wipe_slots(&self.member(drive), (0..slots).filter(|slot| !taken.contains(slot))).await?;
        }
        Ok(())
    }

    /// Clears slots of a drive that have chunks.
    pub(crate) async fn wipe_slots(
        &self,
        member: &Member,
        slots: impl Iterator<Item = u32>,
    ) -> Result<(), EngineError> {
        for start in slots.map(|slot| self.start_of(slot)) {
            let head = member.read_what_is_left(start, CHUNK_HEADER, self.block).await?;
            if head.iter().any(|byte| *byte != 0) {
                member.write(start, &vec![0; self.segment as usize]).await?;
            }
        }
        Ok(())
    }

    /// What the records of a segment say, from its end to its beginning.
    fn replay(&self, pair: usize, found: &Found, replay: &mut Replay) {
        let Found { number, slot, whole, behind, .. } = found;
        let chunks = whole.len() + behind.len();
        let is_newest = replay.last.is_none();
        let skipped = replay.last.is_some_and(|(last, _)| last != number + 1);
        if skipped && replay.damage.is_none() {
            // The segment between is on no replica.
            replay.damage = Some(self.start_of(*slot));
        }
        if let Some(first) = whole.first().or(behind.first()) {
            replay.last = Some((*number, first.before));
        }
        if is_newest {
            let last = behind.last().or(whole.last()).map_or(0, |last| last.number + 1);
            let mut state = self.state.borrow_mut();
            (state.logs[pair].next, state.logs[pair].newest_chunks) = (number + 1, last);
        }
        if replay.damage.is_none() && found.gap.is_none() {
            let used = found.used(self.block) as u32;
            let segment =
                Segment { slot: *slot, used, chunks: chunks as u32, live: 0, replaced: 0, pending: 0, before: 0 };
            self.state.borrow_mut().logs[pair].segments.insert(*number, segment);
        }
        for header in behind.iter().rev() {
            self.replay_chunk(pair, found, *header, replay);
        }
        if let Some(gap) = found.gap.filter(|_| replay.damage.is_none()) {
            replay.damage = Some(self.start_of(*slot) + u64::from(gap));
            replay.cut = Some((*number, *slot));
        }
        for header in whole.iter().rev() {
            self.replay_chunk(pair, found, *header, replay);
        }
    }

    /// The same of a chunk.
    fn replay_chunk(&self, pair: usize, found: &Found, header: Header, replay: &mut Replay) {
        let now = (self.host.sim().now(), self.now_s());
        let mut state = self.state.borrow_mut();
        replay.tail = replay.tail.max(header.tail);
        state.version = state.version.max(header.version);
        replay.is_older |= replay.damage.is_some();
        let of = |drive: usize| {
            records(&found.images[drive], header)
                .into_iter()
                .map(move |(offset, record)| (drive as u32, offset, record))
        };
        let all: Vec<_> = self.layout.data(found.number, header.number).flat_map(of).collect();
        for (drive, offset, record) in all.into_iter().rev() {
            if replay.is_cleared {
                return;
            }
            let spot = Spot::new((found.number, found.slot), offset, record.len() as u32, drive);
            match replay.damage {
                Some(_) => replay.drop_record(&record, &state),
                None => replay.take(&mut state, pair, (&record, spot), now),
            }
        }
    }

    /// The log continues behind its newest segment.
    fn finish_recovery(&self, pair: usize, replay: Replay, parts: &[Part]) {
        let mut state = self.state.borrow_mut();
        let log = &mut state.logs[pair];
        let newest = log.segments.last_key_value().map(|(_, segment)| segment.slot);
        let first = newest.or(replay.cut.map(|(_, slot)| slot)).map_or(0, |slot| slot + 1);
        let cut = replay.cut.map(|(_, slot)| slot);
        let kept: BTreeSet<u32> = log.segments.values().map(|segment| segment.slot).chain(cut).collect();
        log.find_free(first, &kept, |slot| self.is_writable(pair, parts, slot));
        log.durable_tail = replay.tail;
        if let Some((number, slot)) = replay.cut {
            log.retire(number, slot);
        }
        if let Some(at) = replay.damage.filter(|_| replay.is_older) {
            state.stats.dropped += replay.dropped;
            let drives = self.group(pair).iter().map(|member| member.number()).collect();
            self.event(Event::Damaged { drives, at, dropped: replay.dropped });
        }
    }
}
