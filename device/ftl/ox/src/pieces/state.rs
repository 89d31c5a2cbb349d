//! The state of a store: its table and its frames, and where its log continues. Its changes are synchronous.

use std::collections::BTreeSet;

use super::area::{Area, Place, Stream};
use super::checkpoint::{self, LINK, ROOT, Root};
use super::frames::Frames;
use super::pack::{self, Entry, Kind, Pack};
use super::table::{Table, cut};

/// The most frames that one step of cleaning empties.
const VICTIMS: usize = 64;
/// The most frames of a pack of cleaning.
const MOVED_FRAMES: u32 = 32;
/// Places of a piece from which on cleaning moves the whole piece, so that it is in one place again.
const SCATTERED: usize = 4;
/// Steps of cleaning before a buffer that already has room.
const AHEAD: u32 = 4;

/// See the module.
pub(super) struct State {
    pub(super) area: Area,
    pub(super) frames: Frames,
    pub(super) table: Table,
    /// The number of the next pack, and the frame in which it begins.
    pub(super) sequence: u64,
    pub(super) next: u32,
    /// The heads of packs since the checkpoint.
    heads: Vec<Place>,
    pub(super) packs: u32,
    /// The frames of the checkpoint.
    checkpoint: Vec<u32>,
    pub(super) checkpoint_bytes: u64,
}

/// The step that must precede a buffer's room.
pub(super) enum Step {
    /// Nothing.
    Ready,
    /// A checkpoint.
    Save,
    /// These parts of pieces are moved, and these frames emptied.
    Clean(Vec<Move>, Vec<u32>),
    /// No room.
    Full,
}

/// A part of a piece that is moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Move {
    pub(super) entry: Entry,
    pub(super) from: Vec<Place>,
}

impl State {
    /// The state of a never written namespace.
    pub(super) fn new(area: &Area) -> State {
        let mut frames = Frames::new(area.frames(), area.frame_bytes());
        frames.hold(frames.whole(ROOT));
        State {
            area: area.clone(),
            frames,
            table: Table::default(),
            sequence: Root::NEW.sequence,
            next: Root::NEW.next,
            heads: Vec::new(),
            packs: 0,
            checkpoint: Vec::new(),
            checkpoint_bytes: 0,
        }
    }

    /// The frames of the checkpoint, and where the log continues after it.
    pub(super) fn begin_at(&mut self, root: &Root, checkpoint: Vec<u32>) {
        (self.sequence, self.next, self.checkpoint_bytes) = (root.sequence, root.next, root.bytes);
        checkpoint.iter().for_each(|frame| self.frames.hold(self.frames.whole(*frame)));
        self.frames.hold(self.frames.whole(root.next));
        self.checkpoint = checkpoint;
    }

    /// A pack with these entries, whose frames are taken; `None` without room for it.
    pub(super) fn plan(&mut self, entries: Vec<Entry>) -> Option<Pack> {
        let data = entries.iter().map(|entry| u64::from(entry.bytes)).sum();
        let count = pack::frames_for(entries.len(), data, self.frames.size);
        let mut taken = self.frames.take(count)?;
        let next = taken.pop()?;
        taken.insert(0, self.next);
        Some(Pack { sequence: self.sequence, next, stream: Stream::of(&taken, &self.area), entries })
    }

    /// A planned pack will not be written.
    pub(super) fn abandon(&mut self, pack: &Pack) {
        for frame in pack.stream.frames().skip(1).chain([pack.next]) {
            self.frames.release(self.frames.whole(frame));
        }
    }

    /// A pack is durable: its contents count from now on. Returns whether it fits the state.
    pub(super) fn apply(&mut self, pack: &Pack) -> bool {
        let size = self.frames.size;
        for head in pack.head_places(size) {
            self.frames.hold(head);
            self.heads.push(head);
        }
        let fits = pack.places(size).all(|(entry, places)| self.table.apply(entry, places, &mut self.frames));
        pack.stream.frames().for_each(|frame| self.frames.release(self.frames.whole(frame)));
        (self.sequence, self.next, self.packs) = (pack.sequence + 1, pack.next, self.packs + 1);
        fits
    }

    /// Replays a pack, whose frames are not taken yet. Returns whether it fits the state.
    pub(super) fn replay(&mut self, pack: &Pack) -> bool {
        let mut all: BTreeSet<u32> = pack.stream.frames().skip(1).collect();
        let count = pack.stream.frames().count();
        let is_new = all.insert(pack.next) && all.len() == count && !all.contains(&self.next);
        if !is_new || all.iter().any(|frame| *frame == ROOT || *frame >= self.area.frames()) {
            return false;
        }
        all.iter().for_each(|frame| self.frames.hold(self.frames.whole(*frame)));
        self.apply(pack)
    }

    /// The approximate number of frames of a checkpoint made now.
    fn checkpoint_frames(&self) -> u32 {
        let bytes = self.table.memory() as u64;
        bytes.div_ceil(u64::from(self.frames.size)) as u32 + 1
    }

    /// The next step towards room for a buffer of `entries` entries and `data` bytes, after `rounds` steps.
    pub(super) fn step(&self, entries: usize, data: u64, rounds: u32) -> Step {
        let (all, free) = (self.frames.count(), self.frames.free());
        if self.packs >= (all / 32).max(8) {
            return Step::Save;
        }
        let need = pack::frames_for(entries, data, self.frames.size);
        let is_short = free < need + self.checkpoint_frames() + self.moved_frames() + 2;
        // Emptier frames cost the FTL below more than cleaning costs. In use may be an eighth of the frames beyond what
        // the pieces need, or five eighths of all.
        let full = self.frames.live().div_ceil(u64::from(self.frames.size)) as u32;
        let is_crowded = all - free > (all / 8 * 5).max(full + full / 8 + all / 16);
        if !is_short && (!is_crowded || rounds >= AHEAD) {
            return Step::Ready;
        }
        match self.clean() {
            Some((moves, victims)) => Step::Clean(moves, victims),
            None if !is_short => Step::Ready,
            None if self.packs > 0 => Step::Save,
            None if free > need + self.checkpoint_frames() => Step::Ready,
            None => Step::Full,
        }
    }

    fn moved_frames(&self) -> u32 {
        MOVED_FRAMES.min(self.frames.count() / 16)
    }

    /// The moves that gain a frame or more; `None` if no moves gain one.
    fn clean(&self) -> Option<(Vec<Move>, Vec<u32>)> {
        let bytes = (self.moved_frames() - 1) * self.frames.size;
        let victims = self.frames.victims(VICTIMS, bytes);
        let gains = |moves: &Vec<Move>| {
            let data: u64 = moves.iter().map(|each| u64::from(each.entry.bytes)).sum();
            let frames = pack::frames_for(moves.len(), data, self.frames.size);
            frames < victims.len() as u32 && frames <= self.moved_frames() && frames <= self.frames.free()
        };
        let moves = Some(self.moves(&victims, true)).filter(gains);
        let moves = moves.or_else(|| Some(self.moves(&victims, false)).filter(gains))?;
        Some((moves, victims))
    }

    /// The parts of pieces in frames; with `gathers`, all of a piece that is scattered.
    fn moves(&self, victims: &[u32], gathers: bool) -> Vec<Move> {
        let victims: BTreeSet<u32> = victims.iter().copied().collect();
        let lpids: BTreeSet<u64> = victims.iter().flat_map(|frame| self.frames.holders(*frame)).collect();
        let mut moves = Vec::new();
        for lpid in lpids {
            for (piece, ordinal) in self.table.page(lpid).iter().zip(0..) {
                let mut ranges = ranges_in(&piece.places, &victims, self.frames.size);
                if gathers && !ranges.is_empty() && piece.places.len() >= SCATTERED {
                    ranges = vec![(0, piece.bytes)];
                }
                moves.extend(ranges.into_iter().map(|(at, bytes)| Move {
                    entry: Entry { lpid, kind: Kind::Moved { ordinal, at }, bytes },
                    from: cut(&piece.places, at, bytes, self.frames.size),
                }));
            }
        }
        moves
    }

    /// A checkpoint of the present table: its frames, which are taken, and their data; `None` without room.
    pub(super) fn plan_checkpoint(&mut self) -> Option<(Root, Vec<u32>, Vec<Vec<u8>>)> {
        let bytes = checkpoint::encode(&self.table);
        let sum = crc32fast::hash(&bytes);
        let chunks: Vec<&[u8]> = bytes.chunks(self.frames.size as usize - LINK).collect();
        let frames = self.frames.take(chunks.len() as u32)?;
        let next = frames.iter().skip(1).copied().chain([ROOT]);
        let data = chunks.iter().zip(next).map(|(chunk, next)| [&next.to_le_bytes()[..], chunk].concat());
        let root = Root {
            next: self.next,
            sequence: self.sequence,
            first: frames.first().copied().unwrap_or(ROOT),
            sum,
            bytes: bytes.len() as u64,
        };
        Some((root, frames.clone(), data.collect()))
    }

    /// A checkpoint is durable: the previous one and the heads are not needed any more.
    pub(super) fn checkpointed(&mut self, root: &Root, frames: Vec<u32>) {
        std::mem::take(&mut self.heads).into_iter().for_each(|head| self.frames.release(head));
        for frame in std::mem::replace(&mut self.checkpoint, frames) {
            self.frames.release(self.frames.whole(frame));
        }
        (self.packs, self.checkpoint_bytes) = (0, root.bytes);
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> u64 {
        (self.table.memory() + self.frames.memory() + self.heads.len() * size_of::<Place>()) as u64
    }

    /// Checks frames and table against each other.
    ///
    /// # Errors
    /// The fault.
    pub(super) fn check(&self) -> Result<(), String> {
        let (count, size) = (self.frames.count() as usize, self.frames.size);
        let (mut live, mut held) = (vec![0u32; count], vec![0u32; count]);
        let add = |sums: &mut Vec<u32>, place: Place| {
            place.frames(size).for_each(|(frame, bytes)| sums[frame as usize] += bytes);
        };
        self.table
            .pages()
            .flat_map(|(_, pieces)| pieces)
            .flat_map(|piece| &piece.places)
            .for_each(|place| add(&mut live, *place));
        self.heads.iter().for_each(|head| add(&mut held, *head));
        self.checkpoint.iter().chain([&ROOT, &self.next]).for_each(|frame| add(&mut held, self.frames.whole(*frame)));
        for (frame, (is_live, is_held, is_free)) in self.frames.sums().enumerate() {
            if (is_live, is_held) != (live[frame], held[frame]) || live[frame] + held[frame] > size {
                return Err(format!(
                    "frame {frame} of a store of pieces has {} bytes of pieces and {} of its own; {is_live} and {is_held} are recorded",
                    live[frame], held[frame]
                ));
            }
            if is_free && (is_live > 0 || is_held > 0) {
                return Err(format!("frame {frame} of a store of pieces is free and in use"));
            }
        }
        Ok(())
    }
}

/// The ranges of a piece that lie in some frames.
fn ranges_in(places: &[Place], frames: &BTreeSet<u32>, size: u32) -> Vec<(u32, u32)> {
    let (mut ranges, mut at): (Vec<(u32, u32)>, u32) = (Vec::new(), 0);
    for (frame, bytes) in places.iter().flat_map(|place| place.frames(size)) {
        if frames.contains(&frame) {
            match ranges.last_mut() {
                Some((start, len)) if *start + *len == at => *len += bytes,
                _ => ranges.push((at, bytes)),
            }
        }
        at += bytes;
    }
    ranges
}
