//! With parity a slot is written again only once all drives have a chunk that names a later tail. What a log without that rule would do loses
//! an item, and is noticed.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_sim::Time;

use crate::item::{Marks, New};
use crate::log::Log;
use crate::pack::Form;
use crate::placement::{Layout, Placement, rows};
use crate::record::{Kind, records};
use crate::slots::Slots;
use crate::state::State;

const FORM: Form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
const SLOTS: u32 = 16;
const WIDTH: usize = 4;
/// The drive that is lost.
const LOST: usize = 3;

/// A log with parity, of which a drive is lost, and the bytes of its drives.
struct Rig {
    state: State,
    layout: Layout,
    drives: Vec<Vec<u8>>,
}

impl Rig {
    fn new() -> Rig {
        let layout = Layout::new(Placement::Parity, WIDTH, 2);
        let mut state = State::new(vec![Log::new(SLOTS, layout)], 8 << 20, true);
        state.lose(0, LOST);
        Rig { state, layout, drives: vec![vec![0; FORM.segment * (SLOTS as usize + 1)]; WIDTH] }
    }

    /// Puts a value that fills most of a segment's chunk, and packs it: each has a segment for itself.
    fn put(&mut self, key: &[u8], value: u8) {
        let new = New { flags: 0, expiry: 0, value: vec![value; 40 << 10].into() };
        self.state.put(key.into(), new, Marks::default(), (Time::ZERO, 0));
        self.state.pack(0, FORM, 0);
    }

    /// Writes a drive as in its epoch: all that waits for it.
    fn write(&mut self, drive: usize) {
        while let Some(chunk) = self.state.logs[0].queues[drive].front().cloned() {
            let (start, image) = (chunk.start as usize, chunk.image(drive));
            self.drives[drive][start..start + image.len()].copy_from_slice(image);
            self.state.written(0, drive);
        }
    }

    /// The versions of the items that could be found after a crash now, by key.
    fn found(&self) -> BTreeMap<Vec<u8>, u64> {
        let mut found = BTreeMap::<Vec<u8>, u64>::new();
        let slots = 1..=SLOTS as usize;
        for (start, segment) in slots.flat_map(|slot| (0..8).map(move |segment| (slot * FORM.segment, segment))) {
            let image = |drive: usize| self.drives[drive][start..start + FORM.segment].to_vec();
            let mut images: Vec<Option<Vec<u8>>> =
                (0..WIDTH).map(|drive| (drive != LOST).then(|| image(drive))).collect();
            for row in rows(self.layout, &mut images, segment, (FORM.id, FORM.block)).values() {
                let own = images.iter().flatten().flat_map(|image| records(image, row.header));
                for (_, record) in own.filter(|(_, record)| record.kind == Kind::Put) {
                    let newest = found.entry(record.key.to_vec()).or_default();
                    *newest = record.version.max(*newest);
                }
            }
        }
        found
    }

    /// The key is put, replaced by a version that one drive has, and its segment is given up. Then another key is put, and the second drive
    /// is written. `is_early` is the mistake: the slot is free at once.
    fn live(is_early: bool) -> Rig {
        let mut rig = Rig::new();
        rig.put(b"key", 1);
        (0..LOST).for_each(|drive| rig.write(drive));
        assert_eq!(rig.found()[&b"key"[..]], 1);
        rig.put(b"key", 2);
        rig.write(0);
        assert_eq!(rig.found()[&b"key"[..]], 1, "one drive is too few");
        let log = &mut rig.state.logs[0];
        let (number, segment) = log.take_tail().expect("a segment without items");
        log.retire(number, segment.slot);
        assert!(!log.free.contains(&segment.slot), "no drive has a chunk that names a later tail");
        if is_early {
            log.free.push_front(segment.slot);
        }
        rig.put(b"other", 3);
        rig.write(1);
        rig
    }
}

#[test]
fn a_slot_waits_for_a_durable_tail() {
    let mut rig = Rig::live(false);
    assert_eq!(rig.found()[&b"key"[..]], 1);
    rig.write(2);
    assert_eq!(rig.found(), BTreeMap::from([(b"key".to_vec(), 2)]));
    assert!(!rig.state.logs[0].free.contains(&0), "drive 0 has no chunk that names a later tail");
    rig.write(0);
    assert_eq!(rig.found(), BTreeMap::from([(b"key".to_vec(), 2), (b"other".to_vec(), 3)]));
    assert!(rig.state.logs[0].free.contains(&0));
}

#[test]
fn a_slot_that_is_free_at_once_loses_an_item() {
    let rig = Rig::live(true);
    assert_eq!(
        rig.found().get(&b"key"[..]),
        None,
        "the mistake is noticed: two of three drives have each of the versions"
    );
}

/// The same with copies, where the rule is not needed: a drive that writes the slot again has the newer version.
#[test]
fn with_copies_a_slot_is_free_once_its_segment_is() {
    let mut state = State::new(vec![Log::new(SLOTS, Layout::new(Placement::Copies, 2, 2))], 8 << 20, true);
    let value: Rc<[u8]> = vec![1; 40 << 10].into();
    for _ in 0..2 {
        let new = New { flags: 0, expiry: 0, value: value.clone() };
        state.put(b"key"[..].into(), new, Marks::default(), (Time::ZERO, 0));
        state.pack(0, FORM, 0);
    }
    (0..2).for_each(|_| _ = state.written(0, 0));
    state.written(0, 1);
    let (number, segment) = state.logs[0].take_tail().expect("a segment without items");
    state.logs[0].retire(number, segment.slot);
    assert!(state.logs[0].free.contains(&segment.slot));
}
