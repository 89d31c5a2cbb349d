//! Tests of the order in which changes and moves become chunks.

use std::rc::Rc;

use nandscape_sim::Time;

use crate::item::{Marks, New};
use crate::log::Log;
use crate::pack::Form;
use crate::placement::{Layout, Placement};
use crate::record::{Header, Kind, records};
use crate::slots::Slots;
use crate::state::State;
use crate::waiting::Chunk;

const REPLICAS: usize = 2;

fn put(state: &mut State, key: &[u8], value: Rc<[u8]>) {
    state.put(key.into(), New { flags: 0, expiry: 0, value }, Marks::default(), (Time::ZERO, 0));
}

/// Two items that fill a segment each are moved: the chunk of the first is not to say that the second's segment was given up.
#[test]
fn a_chunk_names_no_segment_as_given_up_whose_items_come_later() {
    let form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
    let mut state = State::new(vec![Log::new(16, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 20, true);
    let value: Rc<[u8]> = vec![7; 40 << 10].into();
    for key in [&b"one"[..], b"two"] {
        put(&mut state, key, value.clone());
    }
    let write = |state: &mut State| {
        state.pack(0, form, 0);
        let tails: Vec<u64> = state.logs[0].queues[0].iter().map(|chunk| chunk.tail).collect();
        for _ in &tails {
            let all: Vec<bool> = (0..REPLICAS).map(|replica| state.written(0, replica)).collect();
            assert_eq!(all, [false, true]);
        }
        tails
    };
    assert_eq!(write(&mut state), [0, 0]);
    state.logs[0].is_open = false;
    for key in [&b"one"[..], b"two"] {
        let (number, segment) = state.logs[0].take_tail().expect("a segment that all replicas have");
        state.move_item(key.into(), &value);
        state.logs[0].retire(number, segment.slot);
    }
    assert_eq!(state.logs[0].free.len(), 14);
    assert_eq!(write(&mut state), [1, 2]);
    assert_eq!(state.logs[0].free.len(), 14, "two slots are free, and two are taken");
}

/// An item that is put after a Clear while its former version is moved: replay from the newest record stops at the Clear.
#[test]
fn a_clear_is_packed_before_moves_of_later_items() {
    let form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
    let mut state = State::new(vec![Log::new(16, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 20, true);
    let key: Rc<[u8]> = b"one".as_slice().into();
    put(&mut state, &key, vec![7; 3_000].into());
    state.pack(0, form, 0);
    (0..REPLICAS).for_each(|replica| _ = state.written(0, replica));
    state.logs[0].is_open = false;
    let (number, segment) = state.logs[0].take_tail().expect("a segment that all replicas have");
    state.clear(Time::ZERO);
    put(&mut state, &key, vec![8; 2_000].into());
    state.move_item(key, &[7; 3_000]);
    state.logs[0].retire(number, segment.slot);
    // Only the reserve is left.
    state.logs[0].free.truncate(1);
    state.pack(0, form, 0);
    let log = &state.logs[0];
    let images: Vec<&Rc<Chunk>> = log.queues[0].iter().collect();
    let header = Header::get(images[0].image(0)).expect("a whole chunk");
    let kinds: Vec<Kind> = records(images[0].image(0), header).iter().map(|(_, record)| record.kind).collect();
    assert_eq!((images.len(), kinds), (1, vec![Kind::Clear, Kind::Put]));
    assert_eq!((log.changes.len(), log.moves.len(), log.packed), (0, 0, log.queued));
}
