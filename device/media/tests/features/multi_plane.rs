//! Reads of several planes at once. 40 us to sense, 20 us for a page on the channel; planes 0 and 1 are a die.

use nandscape_device_media::{Cell, Features, PlaneMode, Registers};
use nandscape_drive::Stage;
use nandscape_sim::Executor;

use crate::rig::{Flash, Op, READ, Step, WRITE, suspendable, us};

const BOTH: [Registers; 2] = [Registers::Single, Registers::Double];

fn features() -> Features {
    Features { planes: PlaneMode::MultiPlane, ..Features::default() }
}

/// Operations by the time of their request, their names and planes: when they end, and how long the arrays are busy.
fn ends(
    registers: Registers,
    features: Features,
    ops: &[(u64, &'static str, u32, Op)],
) -> (Vec<(u64, &'static str)>, u64) {
    let mut executor = Executor::new();
    let flash = Flash::new(&executor, Cell::Slc, registers, features);
    for &(at, name, plane, op) in ops {
        flash.at(at, name, plane, op, READ);
    }
    (flash.run(&mut executor), flash.busy()[0])
}

/// 40 + 20 and 40 + 2 x 20, instead of 60 and 120.
#[test]
fn planes_are_sensed_at_once_and_sent_one_after_the_other() {
    for registers in BOTH {
        let mut executor = Executor::new();
        let flash = Flash::new(&executor, Cell::Slc, registers, features());
        flash.at(0, "a", 0, Op::Read, READ);
        flash.at(0, "b", 1, Op::Read, READ);
        assert_eq!(flash.run(&mut executor), [(60, "a"), (80, "b")]);
        assert_eq!(flash.busy(), [40, 0]);
        for name in ["a", "b"] {
            assert_eq!((flash.spent(name, Stage::Array), flash.spent(name, Stage::Transfer)), (40, 20));
        }
        assert_eq!((flash.spent("a", Stage::ChannelWait), flash.spent("b", Stage::ChannelWait)), (0, 20));
    }
    let die = Features { planes: PlaneMode::Die, ..features() };
    let reads = [(0, "a", 0, Op::Read), (0, "b", 1, Op::Read)];
    assert_eq!(ends(Registers::Single, die, &reads), (vec![(60, "a"), (120, "b")], 80));
}

/// The commands go one after the other, 5 us each, and the array begins behind the last: 10 + 40 + 25, and 25 more.
#[test]
fn the_array_waits_for_all_commands() {
    for registers in BOTH {
        let mut executor = Executor::new();
        let flash = Flash::new(&executor, Cell::Slc, registers, Features { command: us(5), ..features() });
        flash.at(0, "a", 0, Op::Read, READ);
        // While the command of the first is sent.
        flash.at(3, "b", 1, Op::Read, READ);
        assert_eq!(flash.run(&mut executor), [(75, "a"), (100, "b")]);
        assert_eq!((flash.spent("a", Stage::ChannelWait), flash.spent("b", Stage::ChannelWait)), (5, 27));
    }
}

/// A read that arrives after the array has begun is late: with a single register 65 + 5 + 40 + 25.
#[test]
fn who_is_late_is_not_of_the_group() {
    let late = [(0, "a", 0, Op::Read), (6, "b", 1, Op::Read)];
    let features = Features { command: us(5), ..features() };
    assert_eq!(ends(Registers::Single, features, &late), (vec![(70, "a"), (140, "b")], 80));
}

/// Other numbers, and the same plane, are other commands; no read is overtaken to join.
#[test]
fn pages_of_one_number_and_of_several_planes() {
    let single = |ops: &[_]| ends(Registers::Single, features(), ops).0;
    let other_number = [(0, "a", 0, Op::Read), (0, "b", 1, Op::ReadPage(1))];
    assert_eq!(single(&other_number), [(60, "a"), (120, "b")]);
    // The third could be sensed with the first, but is behind the second, and is sensed with that.
    let behind = [(0, "a", 0, Op::Read), (0, "again", 0, Op::Read), (0, "b", 1, Op::Read)];
    assert_eq!(single(&behind), [(60, "a"), (120, "again"), (140, "b")]);
}

/// Reads that wait behind a program (20 + 800) are sensed together when it has ended.
#[test]
fn reads_in_line_are_let_in_together() {
    for registers in BOTH {
        let mut executor = Executor::new();
        let flash = Flash::new(&executor, Cell::Slc, registers, features());
        flash.at(0, "program", 0, Op::Program(0), WRITE);
        flash.at(30, "a", 1, Op::ReadPage(3), READ);
        flash.at(40, "b", 0, Op::ReadPage(3), READ);
        assert_eq!(flash.run(&mut executor), [(820, "program"), (880, "a"), (900, "b")]);
        assert_eq!(flash.waited("b", Stage::DieWait, WRITE), 780);
    }
}

/// With two registers the next group is sensed while the first is sent, and moves when the last of that has gone:
/// 40, 60, 80; 80, 100, 120.
#[test]
fn groups_follow_each_other_through_two_registers() {
    let reads = [(0, "a", 0, Op::Read), (0, "b", 1, Op::Read), (0, "c", 0, Op::Read), (0, "d", 1, Op::Read)];
    let all = |ends: [u64; 4]| ends.into_iter().zip(["a", "b", "c", "d"]).collect::<Vec<_>>();
    assert_eq!(ends(Registers::Double, features(), &reads), (all([60, 80, 100, 120]), 80));
    assert_eq!(ends(Registers::Single, features(), &reads), (all([60, 80, 140, 160]), 80));
}

/// A program that was suspended lets reads in one by one: suspended from 30 to 35, open to 155, resumed by 158.
#[test]
fn guests_are_alone() {
    let mut executor = Executor::new();
    let flash = Flash::new(&executor, Cell::Slc, Registers::Single, Features { suspend: suspendable(), ..features() });
    flash.at(0, "program", 0, Op::Program(0), WRITE);
    flash.at(30, "a", 0, Op::ReadPage(3), READ);
    flash.at(30, "b", 1, Op::ReadPage(3), READ);
    assert_eq!(flash.run(&mut executor), [(95, "a"), (155, "b"), (948, "program")]);
}

/// A collector reads one page after the other, and excludes other operations.
#[test]
fn collections_are_served_alone() {
    let mut executor = Executor::new();
    let flash = Flash::new(&executor, Cell::Slc, Registers::Single, features());
    flash.collect_at(0, "collection", 0, false, vec![Step::Move]);
    flash.at(10, "b", 1, Op::Read, READ);
    assert_eq!(flash.run(&mut executor), [(880, "collection"), (940, "b")]);
}

/// A dropped read takes nothing from the others, whether it leads or not, and leaves nothing behind.
#[test]
fn a_member_that_is_given_up_leaves_the_others() {
    let run = |given_up: (u64, u32), command: u64| {
        let mut executor = Executor::new();
        let flash =
            Flash::new(&executor, Cell::Slc, Registers::Single, Features { command: us(command), ..features() });
        let (after, plane) = given_up;
        if plane == 0 {
            flash.give_up_at(0, after, plane);
        }
        flash.at(0, "other", 1 - plane, Op::Read, READ);
        if plane == 1 {
            flash.give_up_at(0, after, plane);
        }
        flash.at(11, "next", 0, Op::ReadPage(5), READ);
        (flash.run(&mut executor), flash.busy()[0])
    };
    // Dropped while they are sensed: the leader (the last) or the other. While the first is sent, that read is dropped
    // itself, or continues.
    for (given_up, other) in [((20, 1), 60), ((20, 0), 60), ((50, 0), 70), ((50, 1), 60)] {
        assert_eq!(run(given_up, 0), (vec![(other, "other"), (other + 60, "next")], 80), "{given_up:?}");
    }
    // With commands of 5 us, while the second is sent, behind which the array begins then, at 7: 7 + 40 + 25, 5 + 40 + 25.
    assert_eq!(run((7, 1), 5), (vec![(72, "other"), (142, "next")], 80));
}
