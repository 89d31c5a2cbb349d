//! Tests of the order in which changes and moves become chunks.

use std::rc::Rc;

use nandscape_sim::Time;

use crate::item::{Marks, New};
use crate::log::Log;
use crate::pack::Form;
use crate::placement::{Layout, Placement};
use crate::record::{Header, Kind, record_bytes, records};
use crate::slots::Slots;
use crate::state::State;
use crate::void::{STEP, STEP_BYTES};
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
        state.move_item(key, &value);
        state.logs[0].retire(number, segment.slot);
    }
    assert_eq!(state.logs[0].free.len(), 14);
    assert_eq!(write(&mut state), [1, 2]);
    assert_eq!(state.logs[0].free.len(), 14, "two slots are free, and two are taken");
}

/// With parity a row takes all that waits, whatever the number of records for each drive.
#[test]
fn a_row_takes_all_items_that_fit_it() {
    let form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
    for (count, whole) in [(1, 8), (3, 8), (4, 12), (10, 20), (36, 52)] {
        let layout = Layout::new(Placement::Parity, 4, REPLICAS);
        let mut state = State::new(vec![Log::new(16, layout)], 1 << 20, true);
        (0..count).for_each(|number: u64| put(&mut state, &number.to_le_bytes(), vec![7; 4_050].into()));
        state.pack(0, form, 0);
        let lens: Vec<usize> = state.logs[0].queues[0].iter().map(|row| row.image(0).len() >> 10).collect();
        assert_eq!(lens, [whole], "KiB of each drive with {count} items");
    }
}

/// Where slots are short, moves have a row without changes that would make it longer: it is to take less room than it frees.
#[test]
fn a_row_of_moves_does_not_grow_for_changes_where_slots_are_short() {
    let form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
    for (free, rows) in [(12, vec![28]), (2, vec![4, 28])] {
        let layout = Layout::new(Placement::Parity, 4, REPLICAS);
        let mut state = State::new(vec![Log::new(16, layout)], 1 << 20, true);
        put(&mut state, b"one", vec![7; 4_000].into());
        state.pack(0, form, 0);
        (0..4).for_each(|replica| _ = state.written(0, replica));
        state.logs[0].is_open = false;
        let (number, segment) = state.logs[0].take_tail().expect("a segment that all drives have");
        state.move_item(b"one", &[7; 4_000]);
        state.logs[0].retire(number, segment.slot);
        state.logs[0].free.truncate(free);
        put(&mut state, b"large", vec![8; 28_000].into());
        state.pack(0, form, 0);
        let log = &state.logs[0];
        let lens: Vec<usize> = log.queues[0].iter().map(|row| row.image(0).len() >> 10).collect();
        assert_eq!((lens, log.moves.len(), log.changes.len()), (rows, 0, 0), "{free} free slots");
    }
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
    state.move_item(&key, &[7; 3_000]);
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

/// However many segments there are, a Clear voids them at once; the open one counts what comes after it.
#[test]
fn a_clear_voids_segments_and_the_open_one_counts_anew() {
    let form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
    let mut state = State::new(vec![Log::new(16, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 20, true);
    let write = |state: &mut State| {
        state.pack(0, form, 0);
        for _ in 0..state.logs[0].queues[0].len() {
            (0..REPLICAS).for_each(|replica| _ = state.written(0, replica));
        }
    };
    for key in [&b"one"[..], b"two"] {
        put(&mut state, key, vec![7; 40 << 10].into());
    }
    write(&mut state);
    put(&mut state, b"six", vec![7; 9].into());
    state.clear(Time::ZERO);
    put(&mut state, b"ten", vec![8; 1_000].into());
    state.clear(Time::ZERO);
    assert_eq!((state.items(), state.logs[0].live, state.logs[0].is_tail_needed()), ((0, 0), 0, false));
    put(&mut state, b"three", vec![9; 1_000].into());
    write(&mut state);
    let of_three = record_bytes(5, 1_000) as u64;
    let log = &mut state.logs[0];
    assert_eq!((log.live, log.packed, log.segments.len()), (of_three, log.queued, 2));
    let (number, segment) = log.take_tail().expect("a segment that all replicas have");
    assert_eq!((number, segment.is_needed(), log.live, log.is_tail_needed()), (0, false, of_three, true));
    log.is_open = false;
    let (number, segment) = log.take_tail().expect("the one that was open");
    assert_eq!((number, segment.live, log.live), (1, of_three, 0));
}

/// If no segment is open, all are void.
#[test]
fn a_clear_voids_all_segments_if_none_is_open() {
    let form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
    let mut state = State::new(vec![Log::new(16, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 20, true);
    for key in [&b"one"[..], b"two"] {
        put(&mut state, key, vec![7; 40 << 10].into());
    }
    state.pack(0, form, 0);
    for _ in 0..state.logs[0].queues[0].len() {
        (0..REPLICAS).for_each(|replica| _ = state.written(0, replica));
    }
    state.logs[0].is_open = false;
    state.clear(Time::ZERO);
    let log = &mut state.logs[0];
    for number in 0..2 {
        assert!(!log.is_tail_needed(), "segment {number}");
        let (tail, segment) = log.take_tail().expect("a segment that all replicas have");
        assert_eq!((tail, segment.is_needed(), log.live), (number, false, 0));
    }
}

/// The memory of items that are gone counts until it is free.
#[test]
fn memory_after_a_clear_is_freed_in_steps() {
    let mut state = State::new(vec![Log::new(16, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 30, true);
    let empty = state.memory_bytes();
    let count = 10 * STEP as u64;
    (0..count).for_each(|number| put(&mut state, &number.to_le_bytes(), vec![1; 100].into()));
    let full = state.memory_bytes();
    state.clear(Time::ZERO);
    let change = state.memory_bytes() - full;
    assert!(change < 100, "the places of the removal are new: {change}");
    assert_eq!((state.items().0, state.index_bytes()), (0, 0));
    let (mut steps, mut last) = (1, state.memory_bytes());
    while state.void.free_some() {
        assert!(state.memory_bytes() < last);
        (steps, last) = (steps + 1, state.memory_bytes());
    }
    // Its entry, its place in the cache's list, and its change.
    assert_eq!(steps, 3 * count / STEP as u64);
    assert!(state.memory_bytes() < empty + 100);
}

/// What a removal has left makes room for later items: these stay in memory, though no step has been taken.
#[test]
fn items_after_a_clear_of_a_full_cache_stay_in_memory() {
    let form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
    let mut state = State::new(vec![Log::new(128, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 20, true);
    let fill = |state: &mut State, count: u64, bytes: usize| {
        for number in 0..count {
            put(state, &number.to_le_bytes(), vec![7; bytes].into());
            state.pack(0, form, 0);
            for _ in 0..state.logs[0].queues[0].len() {
                (0..REPLICAS).for_each(|replica| _ = state.written(0, replica));
            }
            assert!(!state.is_over_memory());
        }
        let is_kept = |number: &u64| state.index.get(&number.to_le_bytes()).is_some_and(|entry| entry.value.is_some());
        (0..count).filter(is_kept).count()
    };
    assert_eq!(fill(&mut state, 110, 8_000), 110);
    state.clear(Time::ZERO);
    assert_eq!(fill(&mut state, 110, 8_000), 110);
    assert!(fill(&mut state, 150, 8_000) < 150, "the cache is full");
    // Each change frees a few small items, and is larger than they are: the cache makes the rest of the room.
    state.clear(Time::ZERO);
    while state.void.free_some() {}
    assert_eq!(fill(&mut state, 600, 1_000), 600);
    state.clear(Time::ZERO);
    assert_eq!(fill(&mut state, 25, 30_000), 25);
}

/// Changes that wait may take more than the memory: one of them frees a part of what a removal has left.
#[test]
fn a_change_frees_no_more_than_a_part_while_memory_is_short() {
    let mut state = State::new(vec![Log::new(16, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 20, true);
    (0..1_500_u64).for_each(|number| put(&mut state, &number.to_le_bytes(), vec![7; 8_000].into()));
    state.clear(Time::ZERO);
    let mut left = state.void.bytes();
    assert!(left > 11 << 20);
    for number in 0..4_u64 {
        put(&mut state, &number.to_le_bytes(), vec![7; 8_000].into());
        let freed = left - state.void.bytes();
        assert!((STEP_BYTES..=4 * STEP_BYTES).contains(&freed), "{freed} of {left}");
        left -= freed;
    }
}

/// Clients may remove all items faster than steps are taken.
#[test]
fn what_removals_leave_does_not_grow_while_items_are_put_and_removed() {
    let mut state = State::new(vec![Log::new(16, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 30, true);
    let empty = state.memory_bytes();
    for puts in [0, 1, 3] {
        for round in 0..1_000 {
            (0..puts).for_each(|number| put(&mut state, &[number % 2], vec![1; 1_000].into()));
            state.clear(Time::ZERO);
            assert!(state.memory_bytes() < empty + 10_000, "round {round} of {puts} puts");
        }
    }
}
