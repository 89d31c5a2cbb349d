//! Program and erase suspension, and collections that let reads in.

use nandscape_device_media::{Cell, Features, Registers, Suspend};
use nandscape_drive::Stage;
use nandscape_drive::breakdown::cause::{GC, METADATA};
use nandscape_sim::Executor;

use crate::rig::{Flash, Op, READ, Step, WRITE, suspendable, us};

fn run(registers: Registers, suspend: Suspend, what: impl Fn(&Flash)) -> (Vec<(u64, &'static str)>, Flash) {
    let mut executor = Executor::new();
    let flash = Flash::new(&executor, Cell::Slc, registers, Features { suspend, ..Features::default() });
    what(&flash);
    (flash.run(&mut executor), flash)
}

/// Programmed from 20 to 100; suspended to 105; the read to 165; resumed to 168, and 720 us are left.
#[test]
fn a_program_stands_aside_for_a_read() {
    for registers in [Registers::Single, Registers::Double] {
        let (ends, flash) = run(registers, suspendable(), |flash| {
            flash.at(0, "program", 0, Op::Program(0), WRITE);
            flash.at(100, "read", 0, Op::Read, READ);
        });
        assert_eq!(ends, [(165, "read"), (888, "program")]);
        assert_eq!(flash.waited("read", Stage::DieWait, WRITE), 5);
        assert_eq!(flash.spent("program", Stage::Array), 800 + 5 + 3);
        assert_eq!(flash.waited("program", Stage::DieWait, READ), 60);
        assert_eq!(flash.busy()[0], 808 + 40);
        assert_eq!(flash.suspensions(), (1, 0));
    }
}

/// Only for reads of the host; a collector's read waits for the end, and for its turn.
#[test]
fn it_does_not_for_anything_else() {
    let (ends, flash) = run(Registers::Single, suspendable(), |flash| {
        flash.at(0, "erase", 0, Op::Erase, GC);
        flash.at(10, "metadata", 0, Op::Read, METADATA);
    });
    assert_eq!(flash.suspensions(), (0, 0));
    assert_eq!(ends, [(2_000, "erase"), (2_060, "metadata")]);
    let only_erases = Suspend { program: None, ..suspendable() };
    let (ends, _) = run(Registers::Single, only_erases, |flash| {
        flash.at(0, "program", 0, Op::Program(0), WRITE);
        flash.at(100, "read", 0, Op::Read, READ);
        flash.at(0, "erase", 2, Op::Erase, GC);
        flash.at(100, "other", 2, Op::Read, READ);
    });
    assert_eq!(ends, [(165, "other"), (820, "program"), (880, "read"), (2_068, "erase")]);
}

/// All waiting reads, one after the other, each sent before the next is sensed; then the operation continues and is
/// suspended again.
#[test]
fn all_waiting_reads_go_before_it_resumes() {
    let (ends, flash) = run(Registers::Double, suspendable(), |flash| {
        flash.at(0, "erase", 0, Op::Erase, GC);
        flash.at(100, "a", 0, Op::Read, READ);
        flash.at(110, "b", 0, Op::Read, READ);
        flash.at(300, "c", 0, Op::Read, READ);
    });
    // a from 105 to 165, b to 225, resumed at 228; suspended from 300 to 305, c to 365, resumed at 368.
    // Erased for 100, 72, and 1,828 us.
    assert_eq!(ends, [(165, "a"), (225, "b"), (365, "c"), (368 + 1_828, "erase")]);
    assert_eq!(flash.waited("b", Stage::DieWait, READ), 55);
    assert_eq!(flash.suspensions(), (0, 2), "once for a and b, once for c");
}

#[test]
fn it_runs_for_a_while_before_it_is_suspended() {
    let (ends, _) = run(Registers::Single, Suspend { min_run: us(200), ..suspendable() }, |flash| {
        flash.at(0, "erase", 0, Op::Erase, GC);
        flash.at(100, "a", 0, Op::Read, READ);
        flash.at(300, "b", 0, Op::Read, READ);
    });
    // Suspended at 200, a from 205 to 265, resumed at 268; suspended at 468, b from 473 to 533, resumed at 536.
    assert_eq!(ends, [(265, "a"), (533, "b"), (536 + 1_600, "erase")]);
}

#[test]
fn it_is_suspended_so_often_and_no_more() {
    let (ends, _) = run(Registers::Single, Suspend { limit: Some(1), ..suspendable() }, |flash| {
        flash.at(0, "program", 0, Op::Program(0), WRITE);
        flash.at(100, "a", 0, Op::Read, READ);
        flash.at(300, "b", 0, Op::Read, READ);
    });
    assert_eq!(ends, [(165, "a"), (888, "program"), (948, "b")]);
}

/// With 5 us left at 815 it ends at 820; a nanosecond earlier would have been worth it.
#[test]
fn it_is_not_suspended_when_it_is_about_to_end() {
    for (at, ends) in [(815, [(820, "program"), (880, "read")]), (814, [(879, "read"), (888, "program")])] {
        let (ended, _) = run(Registers::Single, suspendable(), |flash| {
            flash.at(0, "program", 0, Op::Program(0), WRITE);
            flash.at(at, "read", 0, Op::Read, READ);
        });
        assert_eq!(ended, ends);
    }
}

/// The read is sensed into a separate register: the page loaded meanwhile stays where it is.
#[test]
fn a_loaded_page_stays_where_it_is() {
    let (ends, _) = run(Registers::Double, suspendable(), |flash| {
        flash.at(0, "program", 0, Op::Program(0), WRITE);
        flash.at(1, "next", 0, Op::Program(1), WRITE);
        flash.at(100, "read", 0, Op::Read, READ);
    });
    assert_eq!(ends, [(165, "read"), (888, "program"), (1_688, "next")]);
}

/// A collection that admits no read, one that admits reads between its steps, and one that admits them within its
/// steps.
#[test]
fn collections_let_reads_in() {
    let run = |preemptible, suspend| {
        run(Registers::Single, suspend, |flash| {
            flash.collect_at(
                0,
                "collection",
                0,
                preemptible,
                vec![Step::Move, Step::Copy { check: false }, Step::Erase],
            );
            for (at, name) in [(10, "a"), (101, "b"), (1_000, "c"), (2_000, "d")] {
                flash.at(at, name, 0, Op::Read, READ);
            }
        })
        .0
    };
    // Read to 60, programmed to 880, copied to 1,720, erased to 3,720.
    let blocked = [(3_720, "collection"), (3_780, "a"), (3_840, "b"), (3_900, "c"), (3_960, "d")];
    assert_eq!(run(false, suspendable()), blocked);
    // Sensed to 40, then a to 100. b asks when the plane is closed already: the page is sent to 120, then b
    // runs to 180, the page is loaded to 200 and programmed to 1,000. So c runs to 1,060. Copied: sensed to 1,100,
    // programmed to 1,900. Erased to 3,900.
    let between = [(100, "a"), (180, "b"), (1_060, "c"), (3_900, "collection"), (3_960, "d")];
    assert_eq!(run(true, Suspend::default()), between);
    // Within: c asks at 1,000, when the program ends. The copy continues to 1,900; the erase is suspended from 2,000 to
    // 2,005, d to 2,065, resumed at 2,068 with 1,900 us left.
    let ended = run(true, suspendable());
    assert_eq!(ended, [(100, "a"), (180, "b"), (1_060, "c"), (2_065, "d"), (3_968, "collection")]);
}

/// A program that is dropped while it is suspended leaves its guest the array (35 to 75). The next program, admitted at
/// 40 and loaded by 60, waits for the array.
#[test]
fn a_guest_outlives_what_stood_aside() {
    let mut executor = Executor::new();
    let features = Features { suspend: suspendable(), ..Features::default() };
    let flash = Flash::new(&executor, Cell::Slc, Registers::Single, features);
    flash.give_up_program(40, 0);
    flash.at(25, "next", 0, Op::Program(1), WRITE);
    flash.at(30, "read", 0, Op::Read, READ);
    assert_eq!(flash.run(&mut executor), [(95, "read"), (875, "next")]);
    assert_eq!((flash.spent("next", Stage::Array), flash.spent("next", Stage::DieWait)), (800, 30));
}
