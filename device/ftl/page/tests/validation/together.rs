//! Pages programmed with one command, counted by the time that arrays are busy: 200 us a program, however many pages.

use nandscape_device_ftl_core::{Ftl, Plant};
use nandscape_device_media::{Cell, Features, PlaneMode, ProgramUnit};
use nandscape_sim::{Seed, Span};

use super::rig::{Rig, Setup};

/// A drive of one die with two planes and plenty of room.
fn rig(cell: Cell, planes: PlaneMode, logical_units: u32) -> Rig {
    let mut setup = Setup::new((1, 1, 2), 16, 12);
    setup.cell = cell;
    let program_unit = if cell == Cell::Tlc { ProgramUnit::WordLine } else { ProgramUnit::Page };
    setup.features = Features { planes, program_unit, ..Features::default() };
    setup.buffer_units = 24;
    setup.logical_units = logical_units;
    Rig::new(&setup)
}

/// Program operations that it takes to write `units` units to flash.
fn programs(rig: &mut Rig, units: u32) -> u64 {
    let busy = |rig: &Rig| rig.media.array_usage().iter().map(|usage| usage.total()).sum::<Span>();
    let before = busy(rig);
    rig.write_units(0..units);
    rig.settle();
    rig.check();
    (busy(rig) - before).ns() / 200_000
}

#[test]
fn pages_of_both_planes_take_one_program() {
    for (cell, planes, expected) in [
        (Cell::Slc, PlaneMode::Independent, 36),
        (Cell::Slc, PlaneMode::Die, 36),
        (Cell::Slc, PlaneMode::MultiPlane, 18),
        (Cell::Tlc, PlaneMode::Independent, 12),
        (Cell::Tlc, PlaneMode::MultiPlane, 6),
    ] {
        let mut rig = rig(cell, planes, 60);
        assert_eq!(programs(&mut rig, 36), expected, "{cell:?} {planes:?}");
        assert_eq!(rig.ftl.stats().padding_units, 0);
    }
}

/// With an odd number of pages planted one plane is a page ahead. The other catches up alone, then they go together.
#[test]
fn planes_out_of_step_catch_up() {
    let mut rig = rig(Cell::Slc, PlaneMode::MultiPlane, 33);
    rig.ftl.plant(Plant::Full, Seed::new(1), &mut |_| ());
    assert_eq!(programs(&mut rig, 17), 1 + 8);
}

/// A command waits for a single unit: a page of one plane is programmed, or a whole word line with two pages of
/// padding.
#[test]
fn a_single_unit_takes_a_program_of_its_own() {
    for (cell, padding) in [(Cell::Slc, 0), (Cell::Tlc, 2)] {
        let mut rig = rig(cell, PlaneMode::MultiPlane, 60);
        assert_eq!(programs(&mut rig, 1), 1);
        assert_eq!(rig.ftl.stats().padding_units, padding);
    }
}

/// Planting works page by page, and pads the rest of a word line.
#[test]
fn planted_drives_begin_at_a_whole_word_line() {
    for plant in [Plant::Full, Plant::Steady] {
        let mut rig = rig(Cell::Tlc, PlaneMode::MultiPlane, 149);
        rig.ftl.plant(plant, Seed::new(2), &mut |_| ());
        let programmed = programs(&mut rig, 36);
        assert!(programmed >= 6, "{plant:?}");
    }
}
