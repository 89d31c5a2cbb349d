//! Random buffers, cleaning and checkpoints of a state, with its bytes in a plain array. Pages are what a map expects,
//! and the state reconstructed from a checkpoint and the heads since is the same.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::address::{Extent, UnitSize};
use nandscape_sim::{Rng, Seed};

use super::area::{Area, Place};
use super::checkpoint::{self, Root};
use super::pack::{Entry, Kind, Pack, u32_at};
use super::state::{State, Step};

const SIZE: usize = 4_096;

/// A state, the bytes of its frames, and what its pages should be.
struct Rig {
    area: Area,
    state: State,
    flash: Vec<u8>,
    map: BTreeMap<u64, Vec<Vec<u8>>>,
    root: Root,
    cleaned: u32,
    checkpoints: u32,
}

impl Rig {
    fn new() -> Rig {
        // Frames that do not all follow each other.
        let extents = [Extent { start: 0, sectors: 8 * 100 }, Extent { start: 1_000, sectors: 8 * 156 }];
        let area = Area::new(extents, UnitSize::of_bytes(SIZE as u32));
        let mut state = State::new(&area);
        state.begin_at(&Root::NEW, Vec::new());
        let flash = vec![0; area.frames() as usize * SIZE];
        Rig { area, state, flash, map: BTreeMap::new(), root: Root::NEW, cleaned: 0, checkpoints: 0 }
    }

    fn at(place: &Place) -> std::ops::Range<usize> {
        let start = place.frame as usize * SIZE + place.offset as usize;
        start..start + place.bytes as usize
    }

    fn read(&self, places: &[Place]) -> Vec<u8> {
        places.iter().flat_map(|place| self.flash[Rig::at(place)].to_vec()).collect()
    }

    /// Writes a pack and applies it.
    fn write(&mut self, pack: &Pack, data: &[u8]) {
        let bytes = [pack.encode(), data.to_vec()].concat();
        let mut left = &bytes[..];
        for place in pack.stream.places(0, bytes.len() as u32, SIZE as u32) {
            let (now, rest) = left.split_at(place.bytes as usize);
            self.flash[Rig::at(&place)].copy_from_slice(now);
            left = rest;
        }
        assert!(self.state.apply(pack), "it fits");
    }

    /// Makes room for a buffer. Returns whether it has any.
    fn make_room(&mut self, entries: usize, data: u64) -> bool {
        for rounds in 0.. {
            match self.state.step(entries, data, rounds) {
                Step::Ready => return true,
                Step::Full => return false,
                Step::Save => self.save(),
                Step::Clean(moves, _) => {
                    let data: Vec<u8> = moves.iter().flat_map(|each| self.read(&each.from)).collect();
                    let free = self.state.frames.free();
                    let pack = self.state.plan(moves.into_iter().map(|each| each.entry).collect()).expect("room");
                    self.write(&pack, &data);
                    assert!(self.state.frames.free() > free, "cleaning gains a frame");
                    self.cleaned += 1;
                }
            }
        }
        unreachable!("the steps never end")
    }

    fn save(&mut self) {
        let (root, frames, data) = self.state.plan_checkpoint().expect("room");
        for (frame, data) in frames.iter().zip(data) {
            self.flash[*frame as usize * SIZE..][..data.len()].copy_from_slice(&data);
        }
        self.state.checkpointed(&root, frames);
        self.root = root;
        self.checkpoints += 1;
    }

    /// A buffer of random changes.
    fn flush(&mut self, rng: &mut Rng) {
        let (mut entries, mut data, mut map) = (Vec::new(), Vec::new(), self.map.clone());
        for _ in 0..1 + rng.below(30) {
            let lpid = rng.below(250);
            let chain = map.entry(lpid).or_default();
            let is_delta = !chain.is_empty() && chain.len() < 32 && rng.chance(0.5);
            let bytes = if is_delta { 1 + rng.below(400) } else { rng.below(6_000) } as usize;
            let piece: Vec<u8> = (0..bytes).map(|_| rng.below(256) as u8).collect();
            if !is_delta {
                chain.clear();
            }
            if bytes > 0 {
                chain.push(piece.clone());
            }
            entries.push(Entry { lpid, kind: if is_delta { Kind::Delta } else { Kind::Base }, bytes: bytes as u32 });
            data.extend(piece);
        }
        map.retain(|_, chain| !chain.is_empty());
        if self.make_room(entries.len(), data.len() as u64) {
            let pack = self.state.plan(entries).expect("there is room");
            self.write(&pack, &data);
            self.map = map;
        }
    }

    fn frame(&self, frame: u32) -> &[u8] {
        &self.flash[frame as usize * SIZE..][..SIZE]
    }

    /// The state that is read from the root, its checkpoint and the heads since.
    fn again(&self) -> State {
        let (mut frames, mut bytes, mut next) = (Vec::new(), Vec::new(), self.root.first);
        while (bytes.len() as u64) < self.root.bytes {
            frames.push(next);
            bytes.extend_from_slice(&self.frame(next)[checkpoint::LINK..]);
            next = u32_at(self.frame(next), 0).expect("a link");
        }
        bytes.truncate(self.root.bytes as usize);
        assert!(bytes.is_empty() || crc32fast::hash(&bytes) == self.root.sum, "the checkpoint was written over");
        let mut state = State::new(&self.area);
        state.begin_at(&self.root, frames);
        checkpoint::decode(&bytes, &mut state).expect("a checkpoint");
        while let Some((stream, len)) = Pack::begin(self.frame(state.next), state.sequence, state.next, &self.area) {
            let head = self.read(&stream.places(0, len as u32, SIZE as u32));
            let pack = Pack::decode(&head, stream, SIZE as u32).expect("a sound head");
            assert!(state.replay(&pack));
        }
        state
    }

    fn check(&self) {
        self.state.check().expect("sound");
        let found: BTreeMap<u64, Vec<Vec<u8>>> = self
            .state
            .table
            .pages()
            .map(|(lpid, pieces)| (lpid, pieces.iter().map(|piece| self.read(&piece.places)).collect()))
            .collect();
        assert!(found == self.map, "pages are not those of the map");
        let again = self.again();
        again.check().expect("sound");
        assert!(again.table.pages().eq(self.state.table.pages()), "another table is found again");
        assert!(again.frames.sums().eq(self.state.frames.sums()), "frames hold something else");
        assert_eq!((again.next, again.sequence), (self.state.next, self.state.sequence));
    }
}

#[test]
fn pages_are_those_of_a_map_and_the_state_is_found_again() {
    for seed in 1..5 {
        let (mut rig, mut rng) = (Rig::new(), Seed::new(seed).child("pieces").rng());
        for round in 0..400 {
            rig.flush(&mut rng);
            if round % 9 == 0 {
                rig.check();
            }
        }
        rig.check();
        assert!(rig.cleaned > 20 && rig.checkpoints > 3, "seed {seed}: {} {}", rig.cleaned, rig.checkpoints);
    }
}

#[test]
fn frames_that_are_read_are_not_taken() {
    let mut rig = Rig::new();
    rig.flush(&mut Seed::new(1).rng());
    let (lpid, piece) = rig.state.table.pages().map(|(lpid, pieces)| (lpid, pieces[0].clone())).next().expect("a page");
    let free = rig.state.frames.free();
    piece.places.iter().for_each(|place| rig.state.frames.pin(*place));
    for other in rig.map.keys().copied().collect::<Vec<_>>() {
        let pack = rig.state.plan(vec![Entry { lpid: other, kind: Kind::Base, bytes: 0 }]).expect("room");
        rig.write(&pack, &[]);
    }
    rig.save();
    let taken = rig.state.frames.take(rig.state.frames.free()).expect("they are free");
    let pinned: Vec<u32> =
        piece.places.iter().flat_map(|place| place.frames(SIZE as u32)).map(|(frame, _)| frame).collect();
    assert!(taken.len() as u32 > free && pinned.iter().all(|frame| !taken.contains(frame)), "page {lpid}");
    piece.places.iter().for_each(|place| rig.state.frames.unpin(*place));
    assert_eq!(rig.state.frames.free(), {
        let mut all = pinned;
        all.dedup();
        all.len() as u32
    });
}
