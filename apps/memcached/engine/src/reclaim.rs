//! Reclaim: the oldest segments are released. Their current items are written again or evicted.
//!
//! An item is evicted if space or memory is short and no client has read it since its segment was written: second chance, oldest first.

use std::rc::Rc;

use crate::drives::Member;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::{Log, Segment};
use crate::record::{Kind, chunks, pieces, records};
use crate::state::State;

/// The most segments that an epoch releases: moved items take memory.
const MOST: usize = 8;
/// The part of the slots that is kept free: 16 is a 16th.
const FREE_SHARE: usize = 16;
/// Items may fill this share of the other slots, in percent; garbage has the rest.
const FULL: u64 = 85;

/// Which items stay.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Stay {
    All,
    /// Those that were asked for, and half a segment at most.
    Asked,
    None,
}

impl Engine {
    /// Slots that are to be free.
    fn wanted_free(log: &Log) -> usize {
        (log.slots as usize / FREE_SHARE).max(log.reserve() + 2)
    }

    /// The most bytes of items of a log.
    fn room(&self, log: &Log) -> u64 {
        u64::from(log.slots).saturating_sub(Engine::wanted_free(log) as u64) * self.segment / 100 * FULL
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
    fn next_to_reclaim(&self, pair: usize) -> Option<(u64, Segment, Stay)> {
        let mut state = self.state.borrow_mut();
        let is_due = self.is_reclaim_due(&state, pair);
        let is_over = self.is_index_over(&state, 0);
        let is_far_over = self.is_index_over(&state, self.config.memory / 10);
        let room = self.room(&state.logs[pair]);
        let log = &mut state.logs[pair];
        // A segment without items needs no room elsewhere, and is free at once.
        let moves = log.segments.values().next().is_some_and(|segment| segment.live > 0);
        if !is_due || moves && log.free.len() + log.free.len() <= log.coming_free() {
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
        Some((number, segment, stay))
    }

    /// Gives up segments of a pair as far as that is due. `lead` has a token, and is read. Whether any was.
    pub(crate) async fn reclaim(&self, pair: usize, lead: &Member) -> Result<bool, EngineError> {
        let mut is_any = false;
        for _ in 0..MOST {
            let Some((number, segment, stay)) = self.next_to_reclaim(pair) else { break };
            is_any = true;
            let (mut image, start) = (Vec::new(), self.start_of(segment.slot));
            if segment.live > 0 {
                let is_whole = |image: &[u8]| chunks(image, self.id, self.block).len() == segment.chunks as usize;
                let others = self.group(pair).iter().filter(|other| other.number() != lead.number());
                // What the lead has lost another replica may have.
                for member in std::iter::once(lead).chain(others.map(Rc::as_ref)).filter(|one| !one.is_lost()) {
                    match member.read_what_is_left(start, segment.used as usize, self.block).await {
                        Ok(read) if image.is_empty() => image = read,
                        Ok(read) => self.complete(&mut image, &read, number),
                        Err(error) => self.lose(error).await?,
                    }
                    if is_whole(&image) {
                        break;
                    }
                }
            }
            self.host.bytes(image.len()).await;
            self.give_up(pair, number, segment.slot, &image, stay);
        }
        Ok(is_any)
    }

    /// Puts the chunks of a segment into its image that only another replica has.
    fn complete(&self, image: &mut [u8], from: &[u8], number: u64) {
        let there = pieces(image, self.id, self.block);
        let more = pieces(from, self.id, self.block);
        for header in more.into_iter().filter(|header| header.segment == number && !there.contains(header)) {
            let (start, len) = (header.offset as usize, (header.len as usize).next_multiple_of(self.block));
            image[start..start + len].copy_from_slice(&from[start..start + len]);
        }
    }

    /// Has the items of a segment written again or evicted.
    fn give_up(&self, pair: usize, number: u64, slot: u32, image: &[u8], stay: Stay) {
        let now_s = self.now_s();
        let (mut state, mut kept) = (self.state.borrow_mut(), 0);
        for header in pieces(image, self.id, self.block).into_iter().filter(|header| header.segment == number) {
            for (offset, record) in records(image, header) {
                if record.kind != Kind::Put {
                    continue;
                }
                let Some(entry) = state.look(record.key, now_s) else { continue };
                let is_here = entry.spot.is_some_and(|spot| spot.segment == number && spot.offset == offset);
                // A newer version that no drive has yet: this one stays until it is written.
                let is_newer = entry.is_unpacked && entry.spot.is_none();
                if !is_here && !is_newer {
                    continue;
                }
                let is_kept = match stay {
                    Stay::All => true,
                    Stay::Asked => entry.is_hot && kept + record.len() <= self.segment as usize / 2,
                    Stay::None => false,
                };
                if is_kept || is_newer {
                    kept += record.len();
                    state.move_item(Rc::from(record.key), record.value);
                } else {
                    state.remove(record.key);
                    state.stats.evictions += 1;
                }
            }
        }
        state.logs[pair].retire(number, slot);
    }
}
