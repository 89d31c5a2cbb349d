//! Deliberate mistakes in the tables of the page FTL, each of which an assertion of the product notices.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Location, Lpn, UnitSize};
use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, Mapping, Provisioning, Stream};
use nandscape_device_ftl_core::policy::Greedy;
use nandscape_device_media::{BlockId, Broken, MediaError, Misuse, PageId, PlaneId, UnitId};
use nandscape_sim::Executor;

use super::PageFtl;
use super::buffer::WriteBuffer;
use super::state::State;
use super::victim_test::drive;

fn ftl() -> Rc<PageFtl> {
    drive(&Executor::new().sim(), 1, Box::new(Greedy))
}

/// Units of a drive that are on flash, with their owners.
fn on_flash(ftl: &PageFtl) -> Vec<(Lpn, UnitId)> {
    let state = ftl.state.borrow();
    let unit = |lpn| match state.tables.location(lpn) {
        Location::Flash(unit) => Some((lpn, unit)),
        _ => None,
    };
    (0..state.tables.map.units()).map(Lpn).filter_map(unit).collect()
}

#[test]
#[should_panic(expected = "is valid, and the map says")]
fn a_collector_that_moves_a_unit_for_another_owner_is_noticed() {
    let ftl = ftl();
    let units = on_flash(&ftl);
    ftl.state.borrow_mut().relocated(units[1].0, units[0].1, UnitId(0));
}

#[test]
#[should_panic(expected = "a bug of the page FTL: PageId(7): ")]
fn a_program_out_of_order_is_noticed() {
    let broken = Broken { error: MediaError::Misuse(Misuse::OutOfOrder), page: PageId(7) };
    ftl().state.borrow_mut().take_note(broken);
}

#[test]
#[should_panic(expected = "SlotId(0) of the write buffer is free already")]
fn a_slot_that_is_freed_twice_is_noticed() {
    let mut buffer = WriteBuffer::new(2, 1, UnitSize::of_bytes(4_096), false);
    let slot = buffer.insert(Lpn(0), Location::Unmapped, None);
    buffer.remove(slot);
    buffer.remove(slot);
}

/// Takes a full block of the drive, whose mistake `spoil` makes, as one that was erased.
fn erased(spoil: impl FnOnce(&mut State, BlockId)) {
    let ftl = ftl();
    let state = &mut *ftl.state.borrow_mut();
    let mut blocks = (0..state.geometry.blocks()).map(BlockId);
    let full = blocks.find(|block| {
        let info = state.tables.blocks.get(*block);
        info.state == BlockState::Full && info.valid > 1
    });
    let block = full.expect("a drive in steady state has full blocks");
    spoil(state, block);
    state.tables.free.put(&mut state.tables.blocks, block);
}

#[test]
#[should_panic(expected = "is in use")]
fn an_erase_of_current_data_is_noticed() {
    erased(|_, _| {});
}

#[test]
#[should_panic(expected = "is erased, and has a valid unit that is not counted")]
fn a_valid_unit_that_is_not_counted_is_noticed() {
    erased(|state, block| state.tables.blocks.get_mut(block).valid = 0);
}

#[test]
#[should_panic(expected = "is free already")]
fn a_block_that_is_freed_twice_is_noticed() {
    erased(|state, block| {
        let units: Vec<UnitId> = state.tables.blocks.valid_units(block, UnitId(0)).collect();
        for unit in units {
            state.tables.blocks.invalidate(unit);
        }
        state.tables.free.put(&mut state.tables.blocks, block);
    });
}

#[test]
#[should_panic(expected = "is listed as free, and is Full")]
fn a_block_with_data_among_free_ones_is_noticed() {
    let ftl = ftl();
    let state = &mut *ftl.state.borrow_mut();
    let free: Vec<_> = (0..state.geometry.blocks()).map(BlockId).collect();
    for block in free {
        let info = state.tables.blocks.get_mut(block);
        if info.state == BlockState::Free {
            info.state = BlockState::Full;
        }
    }
    let plane = PlaneId(0);
    for stream in [Stream(0), Stream(1)] {
        while state.tables.free.get(&mut state.tables.blocks, plane, stream).is_some() {}
    }
}

#[test]
#[should_panic(expected = "pages, and")]
fn a_page_that_is_counted_twice_is_noticed() {
    let ftl = ftl();
    let state = &mut *ftl.state.borrow_mut();
    let page = state.geometry.page_at(BlockId(0), 0);
    for _ in 0..=state.geometry.pages_per_block() {
        state.tables.programmed(page);
    }
}

#[test]
fn a_state_whose_sums_differ_is_not_saved() {
    let (sound, one_less, unlisted) = (ftl(), ftl(), ftl());
    let told = |ftl: &PageFtl| ftl.state.borrow().tables.tally();
    assert_eq!(told(&sound), Ok(()));
    let unit = on_flash(&one_less)[0].1;
    one_less.state.borrow_mut().tables.blocks.invalidate(unit);
    assert!(told(&one_less).is_err_and(|told| told.contains("units are mapped to flash")));
    assert!(one_less.take_saved().is_err());
    let state = &mut *unlisted.state.borrow_mut();
    let blocks: Vec<_> = (0..state.geometry.blocks()).map(BlockId).collect();
    let free = blocks.into_iter().find(|block| state.tables.blocks.get(*block).state == BlockState::Free);
    state.tables.blocks.get_mut(free.expect("a free block")).state = BlockState::Full;
    assert!(state.tables.tally().is_err_and(|told| told.contains("are listed as free")));
}
