//! Drives with zones after a crash: a zone takes what it lacks behind what it has, and otherwise gets its contents anew.
//!
//! Segments are made equal from the oldest to the newest, so that each zone is written in order. What a power cut tore is behind the last
//! whole chunk of a segment. No chunk follows there: after a crash the log continues in the next slot whose place no drive has written, or in
//! another zone. Slots of the zone that are passed over are free when the zone is.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::error::{EngineError, OpenError};
use crate::membership::Part;
use crate::record::{CHUNK_HEADER, Header};
use crate::recover::{Found, Unequal};

impl Engine {
    /// Whether the policy writes zones in order.
    pub(crate) fn is_zoned(&self) -> bool {
        self.members().iter().any(|member| member.zoned().is_some())
    }

    /// Writes what replicas lack of segments, which are given from the newest to the oldest.
    pub(crate) async fn equalize_in_order(
        &self,
        pair: usize,
        parts: &[Part],
        unequal: Vec<Unequal>,
    ) -> Result<(), OpenError> {
        for (segment, before) in unequal.into_iter().rev() {
            let found = self.find(pair, parts, segment, before).await?;
            for (drive, lacking) in found.lacking.iter().filter(|(_, lacking)| !lacking.is_empty()) {
                self.complete_in_order(&found, *drive, lacking).await?;
            }
            self.host.tick().await;
        }
        Ok(())
    }

    /// Writes what a drive lacks of a segment.
    async fn complete_in_order(&self, found: &Found, drive: usize, lacking: &[Header]) -> Result<(), EngineError> {
        let member = self.member(drive);
        let Some(zoned) = member.zoned() else { return Ok(()) };
        let (start, used) = (self.start_of(found.slot), found.used(self.block));
        let image = &found.images[drive % self.layout.width][..used];
        let (pointer, end) = (zoned.pointer(start), start + self.segment);
        if pointer <= start {
            member.begin_zone(start).await?;
            return member.write_in_order(start, image).await;
        }
        let own = || found.whole.iter().chain(&found.behind).filter(|header| !lacking.contains(header));
        let is_first = found.slot.is_multiple_of(self.slots.together);
        if own().next().is_none() && is_first && !self.has_newer_behind(found, drive).await? {
            // What the zone has is from before, or the first chunk is torn.
            member.begin_zone(start).await?;
            return member.write_in_order(start, image).await;
        }
        let behind = own().next_back().map_or(0, |last| last.offset as usize + last.len as usize);
        let behind = behind.next_multiple_of(self.block);
        let is_rest = lacking.iter().all(|header| header.offset as usize >= behind);
        if is_rest && pointer == start + behind as u64 {
            return member.write_in_order(pointer, &image[behind..]).await;
        }
        // Behind this segment others follow, or nothing that counts.
        let kept = if pointer > end { pointer } else { start };
        member.rewrite_at(start, image, kept).await
    }

    /// Whether the zone of a segment has newer ones behind it on a drive: then it was written since the segment began.
    async fn has_newer_behind(&self, found: &Found, drive: usize) -> Result<bool, EngineError> {
        let last = (found.slot / self.slots.together + 1) * self.slots.together;
        let starts: Vec<u64> = (found.slot + 1..last).map(|slot| self.start_of(slot)).collect();
        let heads = self.member(drive).read_all(&starts, CHUNK_HEADER).await?;
        let newer = |header: Header| header.id == self.id && header.segment > found.number;
        Ok(heads.iter().flatten().filter_map(|head| Header::peek(head)).any(newer))
    }

    /// Whether no drive of a group has written at or behind the start of a slot, and none is to be rebuilt: a rebuilt drive gets old
    /// segments and new chunks at the same time, which need zones of their own.
    pub(crate) fn is_writable(&self, pair: usize, parts: &[Part], slot: u32) -> bool {
        let start = self.start_of(slot);
        let is_ahead = |drive: usize| {
            let member = self.member(drive);
            let zoned = member.zoned();
            zoned.is_none_or(|zoned| zoned.pointer(start) <= start)
        };
        let is_rebuilt = self.parts(pair, parts, Part::Rebuilt).next().is_some();
        !is_rebuilt && self.parts(pair, parts, Part::Whole).all(is_ahead)
    }

    /// Leaves no zone active but that in which the log continues.
    pub(crate) async fn settle_in_order(&self, pair: usize, parts: &[Part]) -> Result<(), OpenError> {
        let together = self.slots.together;
        let (kept, open) = {
            let state = self.state.borrow();
            let log = &state.logs[pair];
            let free: BTreeSet<u32> = log.free.iter().copied().collect();
            let is_kept = |zone: u32| (zone * together..(zone + 1) * together).any(|slot| !free.contains(&slot));
            let kept: Vec<bool> = (0..log.slots / together).map(is_kept).collect();
            let open = log.free.front().filter(|slot| !slot.is_multiple_of(together));
            (kept, open.map(|slot| self.start_of(*slot)))
        };
        for drive in self.parts(pair, parts, Part::Whole) {
            self.member(drive).settle_zones(&kept, open).await?;
        }
        Ok(())
    }
}
