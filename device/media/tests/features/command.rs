//! Command and address cycles, and double registers without cache commands.

use nandscape_device_media::{Cell, Features, Registers};
use nandscape_drive::Stage;
use nandscape_drive::breakdown::cause::GC;
use nandscape_sim::Executor;

use crate::rig::{Flash, Op, READ, Step, WRITE, us};

fn flash(executor: &Executor) -> Flash {
    Flash::new(executor, Cell::Slc, Registers::Single, Features { command: us(1), ..Features::default() })
}

/// Each takes the channel for its command: 1 us before the array, 1 us with the data.
#[test]
fn every_operation_has_its_command_cycles() {
    for (op, end, transfer) in
        [(Op::Read, 62, 22), (Op::ReadHalf, 52, 12), (Op::Program(0), 821, 21), (Op::Erase, 2_001, 1)]
    {
        let mut executor = Executor::new();
        let flash = flash(&executor);
        flash.at(0, "it", 0, op, WRITE);
        assert_eq!(flash.run(&mut executor), [(end, "it")]);
        assert_eq!(flash.spent("it", Stage::Transfer), transfer);
    }
}

/// Two planes behind one channel: commands at 0 and 1, sensed at 41 and 42, sent 41 to 62 and 62 to 83. An erase that
/// is requested at 63 finds the channel busy: its command is sent from 83 to 84.
#[test]
fn commands_wait_for_the_channel() {
    let mut executor = Executor::new();
    let flash = flash(&executor);
    flash.at(0, "a", 0, Op::Read, READ);
    flash.at(0, "b", 1, Op::Read, READ);
    flash.at(63, "erase", 0, Op::Erase, GC);
    assert_eq!(flash.run(&mut executor), [(62, "a"), (83, "b"), (2_084, "erase")]);
    assert_eq!(flash.waited("b", Stage::ChannelWait, READ), 1 + 20);
    assert_eq!(flash.waited("erase", Stage::ChannelWait, READ), 20);
}

/// A copy has two commands without data, a move four with data in two of them, an erase one.
#[test]
fn collections_have_them_too() {
    let run = |steps| {
        let mut executor = Executor::new();
        let flash = flash(&executor);
        flash.collect_at(0, "it", 0, false, steps);
        flash.run(&mut executor)[0].0
    };
    assert_eq!(run(vec![Step::Copy { check: false }]), 1 + 40 + 1 + 800);
    assert_eq!(run(vec![Step::Move]), 1 + 40 + 21 + 21 + 800);
    assert_eq!(run(vec![Step::Erase]), 2_001);
    assert_eq!(run(vec![Step::Copy { check: false }, Step::Move, Step::Erase]), 842 + 883 + 2_001);
}

/// The two registers overlap only in the direction for which there is a cache command.
#[test]
fn without_cache_commands_registers_do_not_overlap() {
    let run = |cache_read, cache_program| {
        let mut executor = Executor::new();
        let features = Features { cache_read, cache_program, ..Features::default() };
        let flash = Flash::new(&executor, Cell::Slc, Registers::Double, features);
        for name in ["a", "b"] {
            flash.at(0, name, 0, Op::Read, READ);
        }
        for (page, name) in (0..).zip(["c", "d"]) {
            flash.at(0, name, 2, Op::Program(page), WRITE);
        }
        flash.run(&mut executor)
    };
    assert_eq!(run(true, true), [(60, "a"), (100, "b"), (820, "c"), (1_620, "d")]);
    assert_eq!(run(false, true), [(60, "a"), (120, "b"), (820, "c"), (1_620, "d")]);
    assert_eq!(run(true, false), [(60, "a"), (100, "b"), (820, "c"), (1_640, "d")]);
    assert_eq!(run(false, false), [(60, "a"), (120, "b"), (820, "c"), (1_640, "d")]);
}
