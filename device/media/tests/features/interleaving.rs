//! Programs of a channel in rows: none is programmed a second time before all of the row have ended.

use nandscape_device_media::{Cell, Features, Interleaving, Registers};
use nandscape_drive::Stage;
use nandscape_sim::Executor;

use crate::rig::{Flash, Op, READ, WRITE};

fn flash(executor: &Executor, interleaving: Interleaving) -> Flash {
    Flash::new(executor, Cell::Slc, Registers::Single, Features { interleaving, ..Features::default() })
}

/// Planes 0 and 1 share a channel: loaded from 0 to 20 and from 20 to 40, programmed to 820 and 840. The next page of plane 0 is
/// loaded at 820, or at 840 when the row has ended. The other channel has its own row.
#[test]
fn a_plane_waits_for_the_row_of_its_channel() {
    let run = |interleaving| {
        let mut executor = Executor::new();
        let flash = flash(&executor, interleaving);
        flash.at(0, "a", 0, Op::Program(0), WRITE);
        flash.at(0, "b", 1, Op::Program(0), WRITE);
        flash.at(0, "c", 0, Op::Program(1), WRITE);
        flash.at(0, "d", 2, Op::Program(0), WRITE);
        flash.at(0, "e", 2, Op::Program(1), WRITE);
        let mut ended = flash.run(&mut executor);
        ended.sort_unstable_by_key(|(_, name)| *name);
        (ended, flash.waited("c", Stage::DieWait, WRITE))
    };
    let rest = [(820, "d"), (1_640, "e")];
    let with = |first: [(u64, &'static str); 3]| first.into_iter().chain(rest).collect::<Vec<_>>();
    assert_eq!(run(Interleaving::Free), (with([(820, "a"), (840, "b"), (1_640, "c")]), 820));
    assert_eq!(run(Interleaving::Rows), (with([(820, "a"), (840, "b"), (1_660, "c")]), 840));
}

/// Plane 1 begins at 500, while plane 0 programs: it joins the row, which ends at 1,320. Reads wait for no row.
#[test]
fn a_row_takes_in_programs_until_it_ends() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Interleaving::Rows);
    flash.at(0, "a", 0, Op::Program(0), WRITE);
    flash.at(100, "c", 0, Op::Program(1), WRITE);
    flash.at(500, "b", 1, Op::Program(0), WRITE);
    flash.at(900, "read", 0, Op::Read, READ);
    assert_eq!(flash.run(&mut executor), [(820, "a"), (960, "read"), (1_320, "b"), (2_140, "c")]);
}

/// A program that is abandoned at 100 leaves its row; otherwise the next program of the other plane would wait forever.
/// That program begins when the row's other program has ended, which was loaded second, from 20 to 40.
#[test]
fn a_program_that_is_given_up_leaves_its_row() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Interleaving::Rows);
    flash.give_up_program(100, 0);
    flash.at(10, "b", 1, Op::Program(0), WRITE);
    flash.at(20, "c", 1, Op::Program(1), WRITE);
    assert_eq!(flash.run(&mut executor), [(840, "b"), (1_660, "c")]);
}
