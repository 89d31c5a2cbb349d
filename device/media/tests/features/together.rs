//! Planes that share a die, and pages that are programmed together.

use nandscape_device_media::{Cell, Features, PlaneMode, ProgramUnit, Registers};
use nandscape_drive::Stage;
use nandscape_sim::Executor;

use crate::rig::{Flash, Op, READ, WRITE};

fn flash(executor: &Executor, cell: Cell, registers: Registers, planes: PlaneMode) -> Flash {
    let program_unit = if cell == Cell::Tlc { ProgramUnit::WordLine } else { ProgramUnit::Page };
    Flash::new(executor, cell, registers, Features { planes, program_unit, ..Features::default() })
}

/// Planes 0 and 1 are one die, 2 and 3 another.
#[test]
fn a_die_does_one_operation_at_a_time() {
    for (planes, ends, busy) in [
        (PlaneMode::Independent, [(60, "c"), (800 + 20, "a"), (840, "b")], vec![800, 800, 40, 0]),
        (PlaneMode::Die, [(60, "c"), (820, "a"), (1_640, "b")], vec![1_600, 40]),
    ] {
        let mut executor = Executor::new();
        let flash = flash(&executor, Cell::Slc, Registers::Single, planes);
        flash.at(0, "a", 0, Op::Program(0), WRITE);
        flash.at(0, "b", 1, Op::Program(0), WRITE);
        flash.at(0, "c", 2, Op::Read, READ);
        assert_eq!(flash.run(&mut executor), ends);
        assert_eq!(flash.busy(), busy);
    }
}

/// One after the other over the channel, then both at once: 2 x 20 + 800 us.
#[test]
fn a_multi_plane_program_is_as_long_as_one() {
    for registers in [Registers::Single, Registers::Double] {
        let mut executor = Executor::new();
        let flash = flash(&executor, Cell::Slc, registers, PlaneMode::MultiPlane);
        flash.at(0, "both", 0, Op::Together(1, 2), WRITE);
        flash.at(1, "read", 1, Op::Read, READ);
        assert_eq!(flash.run(&mut executor), [(840, "both"), (900, "read")]);
        assert_eq!((flash.spent("both", Stage::Transfer), flash.spent("both", Stage::Array)), (40, 800));
        assert_eq!(flash.waited("read", Stage::DieWait, WRITE), 839);
    }
}

/// Between the pages of one command others may use the channel. An urgent read of the other channel is not affected;
/// one of the same channel runs between the pages.
#[test]
fn the_channel_is_free_between_the_pages() {
    let mut executor = Executor::new();
    let flash = Flash::new(
        &executor,
        Cell::Slc,
        Registers::Single,
        Features { program_unit: ProgramUnit::WordLine, ..Features::default() },
    );
    flash.at(0, "read", 0, Op::Read, READ);
    flash.at(30, "pages", 1, Op::Together(3, 1), WRITE);
    // The first page is sent from 30 to 50, the read from 50 to 70, the others from 70 to 110.
    assert_eq!(flash.run(&mut executor), [(70, "read"), (910, "pages")]);
}

/// A word line of three pages in one go, and the word lines of two planes.
#[test]
fn a_word_line_is_programmed_at_once() {
    for (planes, end) in [(1, 60 + 800), (2, 120 + 800)] {
        let mut executor = Executor::new();
        let flash = flash(&executor, Cell::Tlc, Registers::Double, PlaneMode::MultiPlane);
        flash.at(0, "word line", 0, Op::Together(3, planes), WRITE);
        assert_eq!(flash.run(&mut executor), [(end, "word line")]);
        assert_eq!(flash.busy(), [800, 0]);
    }
}

/// ONFI's multi-plane erase: the planes of a die are busy once, for 2 ms.
#[test]
fn a_multi_plane_erase_is_as_long_as_one() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Cell::Slc, Registers::Single, PlaneMode::MultiPlane);
    flash.at(0, "both", 0, Op::EraseTogether(2), WRITE);
    flash.at(1, "read", 1, Op::Read, READ);
    assert_eq!(flash.run(&mut executor), [(2_000, "both"), (2_060, "read")]);
    assert_eq!((flash.spent("both", Stage::Array), flash.busy()), (2_000, vec![2_040, 0]));
}

#[test]
#[should_panic(expected = "of one LUN and of different planes")]
fn planes_that_work_on_their_own_are_not_erased_together() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Cell::Slc, Registers::Single, PlaneMode::Independent);
    flash.at(0, "both", 0, Op::EraseTogether(2), WRITE);
    flash.run(&mut executor);
}

#[test]
#[should_panic(expected = "NotTogether")]
fn planes_that_work_on_their_own_are_not_programmed_together() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Cell::Slc, Registers::Single, PlaneMode::Independent);
    flash.at(0, "both", 0, Op::Together(1, 2), WRITE);
    flash.run(&mut executor);
}

#[test]
#[should_panic(expected = "NotTogether")]
fn planes_out_of_step_are_not_programmed_together() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Cell::Slc, Registers::Single, PlaneMode::MultiPlane);
    flash.at(0, "ahead", 1, Op::Program(0), WRITE);
    flash.at(2_000, "both", 0, Op::OutOfStep, WRITE);
    flash.run(&mut executor);
}
