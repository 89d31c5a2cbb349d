//! A crash behind each record of a log: of each key there is a state that it had since the changes before were packed. What a log without one of the
//! rules loses, or brings back, is noticed.

use std::rc::Rc;

use nandscape_lab_crash::each;
use nandscape_sim::{Rng, Seed, Time};

use super::bucket::{self, items};
use super::{Known, Small, TOGETHER, bits};
use crate::item::{Marks, New};
use crate::log::{Log, Segment, Spot};
use crate::pack::Form;
use crate::placement::{Layout, Placement};
use crate::record::{Header, Kind, Record, records};
use crate::replay::Replay;
use crate::slots::Slots;
use crate::state::State;

/// A segment has few records: a log without room for another ends between two of a change.
const FORM: Form = Form { segment: 768, block: 64, id: 1, slots: Slots::plain(768) };
const SLOTS: u32 = 16;
const KEYS: u64 = 3;
/// The most bytes of small items.
const LIMIT: usize = 100;
const NOW: (Time, u64) = (Time::ZERO, 0);

/// A rule that a log does not keep.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Mistake {
    /// A bucket is packed behind the record that the item's own ones are void.
    MaskFirst,
    /// There is no such record.
    NoMask,
    /// A bucket that an item has left is packed before the item's own record.
    BucketFirst,
    /// Of an item and a newer bucket, the item counts.
    NoDoubt,
    /// Items of a bucket stay in it that have newer records.
    NoStale,
}

/// A record and its place.
type Written = (Spot, Vec<u8>);

/// The versions of items by key; 0 is none.
type Versions = [u64; KEYS as usize];

struct Rig {
    state: State,
    written: Vec<Written>,
    /// The next slot that was not in use.
    slot: u32,
    mistake: Option<Mistake>,
}

fn key(number: u64) -> Rc<[u8]> {
    Rc::from(&number.to_le_bytes()[..])
}

fn kind((_, bytes): &Written) -> Kind {
    Record::get(bytes).expect("a record").kind
}

/// A state with one bucket, which no record is of.
fn empty() -> State {
    let mut state = State::new(vec![Log::new(SLOTS, Layout::new(Placement::Copies, 1, 1))], 64 << 20, true);
    state.small = Small::new(1, LIMIT);
    state
}

impl Rig {
    fn new(mistake: Option<Mistake>) -> Rig {
        Rig { state: empty(), written: Vec::new(), slot: 0, mistake }
    }

    /// The bytes of the bucket.
    fn bucket(&self) -> Option<Rc<[u8]>> {
        if let Some(loaded) = self.state.small.loaded.get(&0) {
            return Some(loaded.bytes.clone());
        }
        let spot = self.state.small.spot(0, &self.state.logs[0])?;
        let (_, bytes) = self.written.iter().find(|(other, _)| *other == spot).expect("a bucket where it is");
        Record::get(bytes).map(|record| Rc::from(record.value))
    }

    /// The version of a key's item, which the index gets a copy of.
    fn recall(&mut self, number: u64) -> u64 {
        let key = key(number);
        if let Some(entry) = self.state.index.get(&key) {
            return entry.version;
        }
        if self.state.small.has_changed(&key) || !self.state.small.may_have(&key) {
            return 0;
        }
        let bytes = self.bucket().expect("a bucket");
        let Some(item) = items(&bytes).find(|item| *item.key == *key) else { return 0 };
        self.state.enter(key.clone(), crate::entry::Entry::of_small(&item, 0));
        item.version
    }

    fn versions(&mut self) -> Versions {
        [0, 1, 2].map(|number| self.recall(number))
    }

    fn change(&mut self, rng: &mut Rng) {
        let number = rng.below(KEYS);
        let name = key(number);
        let mut put = |bytes: u64| {
            let new = New { flags: 0, expiry: 0, value: vec![7; bytes as usize].into() };
            self.state.put(name.clone(), new, Marks::default(), NOW);
        };
        match rng.below(12) {
            0..3 => put(40 + rng.below(40)),
            3..5 => put(200 + rng.below(200)),
            5..7 => {
                self.recall(number);
                self.state.delete(&name, Time::ZERO);
            }
            7 => {
                if self.recall(number) > 0 {
                    self.state.touched(&name, Time::ZERO);
                }
            }
            8 => {
                // Its copy leaves memory.
                if self.state.index.get(&name).is_some_and(|entry| entry.is_small && !entry.is_unpacked) {
                    self.state.remove(&name);
                }
            }
            9 => {
                // It is written again.
                if let Some(entry) = self.state.index.get(&name).filter(|entry| entry.spot.is_some()) {
                    let value = entry.value.clone().expect("a value");
                    self.state.move_item(&name, &value);
                }
            }
            10 => self.give_up_bucket(),
            _ => {
                if let Some(bytes) = self.bucket().filter(|_| self.state.has_bucket(0)) {
                    self.state.move_bucket(0, 0, &bytes);
                }
            }
        }
    }

    /// The bucket's segment is given up. Unless the bucket is kept, drives have only the records outside of it, and memory no copies.
    fn give_up_bucket(&mut self) {
        let Some(spot) = self.state.small.spot(0, &self.state.logs[0]) else { return };
        let (_, bytes) = self.written.iter().find(|(other, _)| *other == spot).expect("a bucket where it is");
        let record = Record::get(bytes).expect("a record");
        if self.state.give_up_bucket(0, &record, (|_| true, |_| false), 0) {
            return;
        }
        self.written.retain(|written| kind(written) != Kind::Bucket);
        for key in (0..KEYS).map(key) {
            if self.state.index.get(&key).is_some_and(|entry| entry.is_small && !entry.is_unpacked) {
                self.state.remove(&key);
            }
        }
    }

    /// Packs what waits, as far as a number of segments has room.
    fn pack(&mut self, segments: u32) {
        self.pack_in(self.state.logs[0].reserve() as u32 + segments);
    }

    /// The same with a number of free slots.
    fn pack_in(&mut self, count: u32) {
        let before = self.written.len();
        let log = &mut self.state.logs[0];
        log.free = (self.slot..self.slot + count).collect();
        self.slot += count;
        self.state.pack(0, FORM, 0);
        let chunks = std::mem::take(&mut self.state.logs[0].queues[0]);
        for chunk in chunks {
            let image = chunk.image(0);
            let header = Header::get(image).expect("a chunk");
            let slot = self.state.logs[0].segments[&header.segment].slot;
            for (place, record) in records(image, Header { offset: 0, ..header }) {
                let (offset, len) = (header.offset + place, record.len() as u32);
                let spot = Spot::new((header.segment, slot), offset, len, 0);
                self.written.push((spot, image[place as usize..][..record.len()].to_vec()));
            }
        }
        let new = &mut self.written[before..];
        let swaps = |pair: [Kind; 2], new: &mut [Written]| {
            for at in 1..new.len() {
                if [kind(&new[at - 1]), kind(&new[at])] == pair {
                    new.swap(at - 1, at);
                }
            }
        };
        match self.mistake {
            Some(Mistake::MaskFirst) => swaps([Kind::Bucket, Kind::Delete], new),
            Some(Mistake::BucketFirst) => swaps([Kind::Put, Kind::Bucket], new),
            Some(Mistake::NoMask) => {
                let is_first = |at: usize| at == 0 || kind(&self.written[at - 1]) != Kind::Bucket;
                let kept: Vec<usize> = (before..self.written.len())
                    .filter(|at| kind(&self.written[*at]) != Kind::Delete || is_first(*at))
                    .collect();
                let kept: Vec<Written> = kept.into_iter().map(|at| self.written[at].clone()).collect();
                self.written.truncate(before);
                self.written.extend(kept);
            }
            _ => {}
        }
    }

    /// The oldest segment is given up. Its own items are wanted or not, its bucket is not. What is moved is packed in a number of free slots. Once nothing of it waits, drives
    /// have its records no longer.
    fn give_up_oldest(&mut self, is_wanted: bool, slots: u32) {
        let Some(oldest) = self.written.iter().map(|(spot, _)| spot.segment).min() else { return };
        let of_oldest: Vec<Written> = self.written.iter().filter(|(spot, _)| spot.segment == oldest).cloned().collect();
        for (place, bytes) in of_oldest {
            let record = Record::get(&bytes).expect("a record");
            let is_at = |spot: Spot| spot == place;
            match record.kind {
                Kind::Put => _ = self.state.give_up_item(0, &record, (is_at, |_| is_wanted), 0),
                Kind::Bucket => _ = self.state.give_up_bucket(0, &record, (is_at, |_| false), 0),
                Kind::Delete => self.state.keep_void(0, &record),
                Kind::Touch | Kind::Clear => {}
            }
        }
        self.pack_in(slots);
        if self.state.logs[0].moves.is_empty() {
            self.written.retain(|(spot, _)| spot.segment != oldest);
        }
    }

    fn put(&mut self, number: u64, bytes: usize) {
        let new = New { flags: 0, expiry: 0, value: vec![7; bytes].into() };
        self.state.put(key(number), new, Marks::default(), NOW);
    }

    fn kinds(&self) -> Vec<Kind> {
        self.written.iter().map(kind).collect()
    }

    /// What is found after a crash behind a number of records.
    fn after(&self, count: usize) -> Rig {
        let written = self.written[..count].to_vec();
        let (mut state, mut replay) = (empty(), Replay::default());
        state.version = self.state.version;
        for (Spot { segment, slot, .. }, _) in &written {
            let known = Segment { slot: *slot, used: 0, chunks: 1, live: 0, replaced: 0, pending: 0, before: 0 };
            state.logs[0].segments.insert(*segment, known);
        }
        state.logs[0].next = self.state.logs[0].next;
        for (spot, bytes) in written.iter().rev() {
            let record = Record::get(bytes).expect("a record");
            match record.kind {
                Kind::Bucket if self.mistake == Some(Mistake::NoStale) && !state.has_bucket(0) => {
                    state.found_bucket(0, &record, *spot);
                }
                _ => replay.take(&mut state, 0, (&record, *spot), NOW),
            }
        }
        let doubts = std::mem::take(&mut replay.doubts);
        let mut rig = Rig { state, written, slot: self.slot, mistake: self.mistake };
        if let Some(bytes) = rig.bucket() {
            for doubt in doubts.into_iter().filter(|_| self.mistake != Some(Mistake::NoDoubt)) {
                rig.state.settle_doubt(0, doubt, &bytes, Time::ZERO);
            }
            rig.state.small.load(0, bytes, false, 0);
        }
        // Values of items are not read here, but moved.
        for number in 0..KEYS {
            let found = rig.state.index.get(&key(number)).and_then(|entry| entry.spot);
            let value = found.and_then(|spot| {
                let (_, bytes) = rig.written.iter().find(|(other, _)| *other == spot)?;
                Record::get(bytes).map(|record| (record.version, Rc::from(record.value)))
            });
            if let Some((version, value)) = value {
                rig.state.keep(&key(number), version, &value);
            }
        }
        rig
    }
}

/// Changes, some of which are packed at a time and some of these wait, and crashes. What is wrong.
fn live(seed: Seed, mistake: Option<Mistake>) -> Result<(), String> {
    let (mut rng, mut rig) = (seed.rng(), Rig::new(mistake));
    // Of each key, since the last that is certain.
    let mut states = [const { Vec::new() }; KEYS as usize].map(|_: Vec<u64>| vec![0]);
    for step in 0..12 {
        for _ in 0..=rng.below(4) {
            rig.change(&mut rng);
            states.iter_mut().zip(rig.versions()).for_each(|(states, version)| states.push(version));
        }
        let (before, first) = (rig.versions(), rig.written.len());
        rig.pack([0, 1, 2, 100][rng.below(4) as usize]);
        if rig.versions() != before {
            return Err(format!("step {step}: {before:?} are {:?} once packed", rig.versions()));
        }
        let all = states.clone();
        if rig.state.logs[0].changes.is_empty() {
            let Small { changed, masks, outside, .. } = &rig.state.small;
            if !changed.is_empty() || !masks.is_empty() || !outside.is_empty() {
                return Err(format!("step {step}: nothing waits, but {changed:?}, {masks:?} and {outside:?} do"));
            }
            states = before.map(|version| vec![version]);
        }
        let end = rig.written.len();
        let mut found = [0; KEYS as usize];
        for count in first..=end {
            found = rig.after(count).versions();
            let may = if count == end { &states } else { &all };
            let was = |number: usize| may[number].contains(&found[number]);
            if !(0..KEYS as usize).all(was) {
                let kinds: Vec<Kind> = rig.written[first..count].iter().map(kind).collect();
                return Err(format!("step {step}: {found:?} behind {kinds:?}, and it was {may:?}"));
            }
        }
        for (states, found) in states.iter_mut().zip(found) {
            let certain = states.iter().position(|state| *state == found).unwrap_or(0);
            states.drain(..certain);
        }
        if rng.chance(0.3) {
            rig = rig.after(first + rng.below((end - first) as u64 + 1) as usize);
            states = rig.versions().map(|version| vec![version]);
        }
    }
    Ok(())
}

#[test]
fn a_crash_behind_any_record_leaves_a_state_that_was() {
    each(200, |seed| live(seed, None).unwrap_or_else(|problem| panic!("{problem}")));
}

/// An item has grown, its bucket without it finds no room, and then its own record is given up: the bucket's older item stays void, whether the
/// item was to be kept or not.
#[test]
fn a_move_without_room_brings_no_older_item_back() {
    [false, true].into_iter().for_each(give_up_grown);
}

fn give_up_grown(is_wanted: bool) {
    let mut rig = Rig::new(None);
    (0..6).for_each(|number| rig.put(number, 85));
    rig.pack(1);
    rig.state.logs[0].is_open = false;
    rig.put(0, 650);
    rig.pack(1);
    assert_eq!(rig.kinds(), [Kind::Bucket, Kind::Put], "the bucket waits");
    let version = rig.recall(0);
    // The bucket is needed, and moved as it is.
    rig.state.logs[0].is_open = false;
    rig.give_up_oldest(false, 1);
    assert_eq!(rig.kinds(), [Kind::Put, Kind::Bucket]);
    let own = rig.written[0].0.segment;
    rig.give_up_oldest(is_wanted, 0);
    assert_eq!((rig.kinds(), rig.state.logs[0].moves.len()), (vec![Kind::Put, Kind::Bucket], 1));
    assert_eq!(rig.after(2).versions()[0], version);
    rig.pack_in(1);
    rig.written.retain(|(spot, _)| spot.segment != own);
    assert_eq!(rig.kinds(), [Kind::Bucket, Kind::Delete, Kind::Delete, Kind::Bucket], "of the move, and of the change");
    assert!(rig.state.small.changed.is_empty() && rig.state.logs[0].moves.is_empty());
    for count in 2..=4 {
        assert_eq!(rig.after(count).versions()[0], 0, "behind {count} records");
    }
}

/// A full bucket finds no room: its item leaves after the record that its own older one is void.
#[test]
fn a_bucket_without_room_leaves_no_older_item() {
    let mut rig = Rig::new(None);
    for (number, bytes) in [(7, 200), (0, 650)] {
        rig.put(number, bytes);
        rig.pack(1);
        rig.state.logs[0].is_open = false;
    }
    (0..6).for_each(|number| rig.put(number, 92));
    rig.pack(1);
    assert_eq!(rig.kinds(), [Kind::Put, Kind::Put, Kind::Bucket], "the mask waits");
    rig.state.logs[0].is_open = false;
    // Another item takes the room.
    rig.state.move_item(&key(7), &[7; 200]);
    rig.give_up_bucket();
    rig.pack_in(1);
    assert_eq!(rig.kinds(), [Kind::Put, Kind::Put, Kind::Bucket, Kind::Put, Kind::Delete]);
    assert_eq!(rig.state.stats.evictions, 6);
    rig.written.retain(|written| kind(written) != Kind::Bucket);
    let count = rig.written.len();
    assert_eq!(rig.after(count).versions()[0], 0);
}

#[test]
fn mistakes_are_noticed() {
    for mistake in [Mistake::MaskFirst, Mistake::NoMask, Mistake::BucketFirst, Mistake::NoDoubt, Mistake::NoStale] {
        let noticed = (1..=400).map(Seed::new).find_map(|seed| live(seed, Some(mistake)).err());
        assert!(noticed.is_some(), "{mistake:?} is not noticed");
    }
}

/// All items of a full bucket were asked for: the oldest one leaves for a new one.
#[test]
fn a_new_item_stays_in_a_full_bucket() {
    let mut state = empty();
    let mut fold = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            let new = New { flags: 0, expiry: 0, value: vec![7; 80].into() };
            state.put(key(number), new, Marks::default(), NOW);
        }
        let folded = state.fold(0, 0).expect("a bucket in memory");
        let spot = Spot::new((0, 0), 0, folded.bytes.len() as u32, 0);
        let all: Vec<Rc<[u8]>> = items(&folded.bytes).map(|item| item.key.into()).collect();
        state.folded(0, 0, folded, spot);
        state.small.table[0].asked = u16::MAX;
        all
    };
    let full = fold(0..60);
    let (first, count) = (60 - full.len() as u64, full.len());
    assert_eq!(full, (first..60).map(key).collect::<Vec<_>>());
    let next = fold(60..61);
    assert_eq!((next.len(), &next[0], &next[count - 1]), (count, &key(first + 1), &key(60)));
}

#[test]
fn memory_has_thirty_two_bytes_of_a_bucket() {
    assert_eq!(size_of::<Known>(), 32);
}

/// 16 keys in 128 bits, 4 bits a key: the filter also has some 2% of other keys.
#[test]
fn a_filter_has_each_of_its_keys_and_few_others() {
    let spot = Spot::new((3, 4), 5, 600, 2);
    let key = |number: u32| number.to_le_bytes();
    let keys: Vec<[u8; 4]> = (0..16).map(key).collect();
    let marks = crate::item::Marks::default();
    let all: Vec<bucket::Packed<'_>> = keys
        .iter()
        .map(|key| bucket::Packed { key, value: b"", flags: 0, expiry: 0, version: 1, marks, is_fetched: false })
        .collect();
    let known = Known::at(spot, &bucket::bytes(&all));
    let has = |key: &[u8]| {
        let [low, high] = bits(key);
        known.filter[0] & low == low && known.filter[1] & high == high
    };
    assert_eq!(known.count(), 16);
    assert!((0..16).all(|number| has(&key(number))));
    let wrong = (16..10_016).filter(|number| has(&key(*number))).count();
    assert!((100..500).contains(&wrong), "{wrong} of 10,000");
}

/// Buckets are forgotten at once; what memory has of others of their part of the table is forgotten with the next that is written.
#[test]
fn a_removal_of_all_items_forgets_all_buckets() {
    let total = 2 * TOGETHER as u32 + 1;
    let (mut small, known) = (Small::new(total, 100), Known { place: 3, len: 9, asked: 1, ..Known::default() });
    let all = [0, 5, TOGETHER as u32, total - 1];
    all.iter().for_each(|number| small.set(*number, known));
    assert_eq!((small.items(), small.buckets()), (12, 4));
    drop(small.clear());
    let found = |small: &Small| all.map(|number| small.known(number).is_some());
    assert_eq!((found(&small), small.items(), small.buckets()), ([false; 4], 0, 0));
    small.ask(total - 1, 2);
    assert!(!small.is_hot(total - 1));
    small.set(5, Known { asked: 0, ..known });
    assert_eq!((found(&small), small.items(), small.buckets()), ([false, true, false, false], 3, 1));
    small.set(0, known);
    assert_eq!((found(&small), small.items(), small.is_hot(5)), ([true, true, false, false], 6, false));
}
