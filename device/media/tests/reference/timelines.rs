//! Timelines worked out by hand from the page, one option at a time: simulator and model must both keep to them.
//!
//! The flash here: 40 ns to sense, 800 ns to program, 2000 ns to erase, 10 ns for a unit and 20 ns for a page of two
//! units on the channel; two channels with one die of two planes each. Nothing else takes time unless a test sets it.

use nandscape_device_media::{Cell, Registers};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Cause, Executor};

use crate::drive::{Drive, Page, Planes, Scheme, UNIT};
use crate::model;
use crate::outcome::Served;
use crate::script::{Op, Part, Work};
use crate::simulator;

const READ: Cause = cause::HOST_READ;
const WRITE: Cause = cause::HOST_WRITE;
const GC: Cause = cause::GC;

fn flash() -> Drive {
    Drive {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 2,
        pages_per_block: 24,
        units_per_page: 2,
        customers: 8,
        cell: Cell::Slc,
        read: vec![40],
        program: vec![800],
        erase: 2_000,
        bus: (UNIT.into(), 10),
        registers: Registers::Single,
        partial_transfer: true,
        reads_first: true,
        command: 0,
        planes: Planes::Independent,
        cache_read: true,
        cache_program: true,
        word_lines: false,
        ecc_time: 0,
        codeword: UNIT,
        engines: 0,
        pipelined: false,
        retry_shares: vec![],
        retry_time: 0,
        suspend_program: None,
        suspend_erase: None,
        resume: 0,
        min_run: 0,
        limit: 0,
        copyback_ecc: false,
        preempt: false,
        gc_scheme: Scheme::Plane,
        seed: 0,
    }
}

fn page(plane: u32, block: u32, number: u32) -> Page {
    Page { plane, block, number }
}

fn read(plane: u32) -> Work {
    Work::Read { page: page(plane, 0, 0), bytes: 2 * UNIT, erases: 0 }
}

/// Each in its own block.
fn program(plane: u32, block: u32) -> Work {
    Work::Program { pages: vec![page(plane, block, 0)] }
}

fn erase(plane: u32) -> Work {
    Work::Erase { plane, block: 15 }
}

fn collect(plane: u32, preemptible: bool, parts: Vec<Part>) -> Work {
    Work::Collect { plane, preemptible, parts }
}

fn copy(plane: u32) -> Part {
    Part::Copy { pages: vec![(page(plane, 12, 0), page(plane, 13, 0))] }
}

/// When an operation is requested, its kind, its cause, and when it ends.
type Timed = (u64, Work, Cause, u64);

/// The breakdown of each operation, by the model.
struct Logs(Vec<Vec<Breakdown>>);

impl Logs {
    fn waited(&self, operation: usize, stage: Stage, behind: Cause) -> u64 {
        self.0[operation][0].waited(stage, behind).ns()
    }
}

/// Runs operations in this order, each requested by its own customer.
fn check(drive: &Drive, operations: &[Timed]) -> Logs {
    let op = |(at, work, cause, _): &Timed| vec![Op { think: *at, cause: *cause, work: work.clone() }];
    let script = operations.iter().map(op).collect();
    let ends = |served: &[Vec<Served>]| served.iter().map(|ops| ops[0].ended).collect::<Vec<_>>();
    let expected: Vec<u64> = operations.iter().map(|(.., end)| *end).collect();
    let simulated = simulator::run(drive, &script, &model::retries(drive), None);
    assert_eq!(ends(&simulated.served), expected, "the simulator");
    let (measured, logs) = model::run(Executor::new(), drive, &script);
    assert_eq!(ends(&measured.served), expected, "the model");
    assert_eq!(simulated, measured);
    Logs(logs)
}

#[test]
fn commands_take_the_channel() {
    let drive = Drive { command: 5, ..flash() };
    // 5 + 40 + 5 + 20; 5 + 20 + 800; 5 + 2000.
    check(&drive, &[(0, read(0), READ, 70)]);
    check(&drive, &[(0, program(0, 0), WRITE, 825)]);
    check(&drive, &[(0, erase(0), GC, 2_005)]);
    // The second command comes after the first (5), its data after the first's (45 to 70).
    check(&drive, &[(0, read(0), READ, 70), (0, read(1), READ, 95), (0, read(2), READ, 70)]);
}

#[test]
fn codewords_take_the_decoder() {
    // Two of them: one after the other; while they come, 10 ns each; slower than they come.
    for (ecc_time, pipelined, end) in [(8, false, 76), (8, true, 68), (12, true, 74)] {
        check(&Drive { ecc_time, pipelined, ..flash() }, &[(0, read(0), READ, end)]);
    }
    // A codeword of a page and a half is one.
    check(&Drive { ecc_time: 8, codeword: 3 * UNIT, ..flash() }, &[(0, read(0), READ, 68)]);
    // One decoder for both channels, or one for each.
    for (engines, end) in [(0, 76), (1, 92), (2, 76)] {
        check(&Drive { ecc_time: 8, engines, ..flash() }, &[(0, read(0), READ, 76), (0, read(2), READ, end)]);
    }
}

#[test]
fn retries_begin_again_with_other_voltages() {
    // Every page needs one: 40 + 20 + 16, then 47 + 20 + 16.
    let drive = Drive { retry_shares: vec![1.0], retry_time: 7, ecc_time: 8, ..flash() };
    check(&drive, &[(0, read(0), READ, 159)]);
    // Another read holds the plane while the first page is decoded (60 to 76) and before it is sensed again: 60 to 120,
    // 120 to 187, 187 to 254 and 16 more to decode each.
    check(&drive, &[(0, read(0), READ, 203), (10, read(0), READ, 270)]);
    // No page needs any; every page needs two.
    check(&Drive { retry_shares: vec![0.0], ..drive.clone() }, &[(0, read(0), READ, 76)]);
    check(&Drive { retry_shares: vec![0.0, 1.0], ..drive }, &[(0, read(0), READ, 242)]);
}

#[test]
fn dies_do_one_thing_at_a_time() {
    let both = |end| [(0, read(0), READ, 60), (0, read(1), READ, end)];
    // The second page waits for the channel only, or for the die.
    check(&flash(), &both(80));
    let logs = check(&Drive { planes: Planes::Die, ..flash() }, &both(120));
    assert_eq!((logs.waited(0, Stage::DieWait, READ), logs.waited(1, Stage::DieWait, READ)), (0, 60));
}

#[test]
fn planes_are_read_together() {
    let of = |plane, number| Work::Read { page: page(plane, 0, number), bytes: 2 * UNIT, erases: 0 };
    let drive = Drive { planes: Planes::MultiPlane, ..flash() };
    let double = Drive { registers: Registers::Double, ..drive.clone() };
    // Both are sensed by 40 and sent one after the other, instead of 60 and 120. Other numbers are another command.
    for drive in [&drive, &double] {
        let logs = check(drive, &[(0, of(0, 0), READ, 60), (0, of(1, 0), READ, 80)]);
        assert_eq!((logs.waited(0, Stage::ChannelWait, READ), logs.waited(1, Stage::ChannelWait, READ)), (0, 20));
    }
    check(&drive, &[(0, of(0, 0), READ, 60), (0, of(1, 1), READ, 120)]);
}

#[test]
fn planes_and_word_lines_are_programmed_together() {
    let together = |pages| [(0, Work::Program { pages }, WRITE)];
    let at = |[(begin, work, cause)]: [(u64, Work, Cause); 1], end| [(begin, work, cause, end)];
    // 2 (5 + 20) + 800; 3 (5 + 20) + 900; 6 (5 + 20) + 900.
    let planes = Drive { planes: Planes::MultiPlane, command: 5, ..flash() };
    check(&planes, &at(together(vec![page(0, 0, 0), page(1, 0, 0)]), 850));
    let lines = Drive { word_lines: true, cell: Cell::Tlc, read: vec![40; 3], program: vec![900], ..planes };
    let line = |plane| (0..3).map(move |number| page(plane, 0, number));
    check(&lines, &at(together(line(0).collect()), 975));
    check(&lines, &at(together(line(0).chain(line(1)).collect()), 1_050));
}

#[test]
fn cache_operations_can_be_missing() {
    let double = Drive { registers: Registers::Double, ..flash() };
    // Sensed while the first is sent (40 to 80), or afterwards (60 to 100).
    for (cache_read, end) in [(true, 100), (false, 120)] {
        let drive = Drive { cache_read, ..double.clone() };
        check(&drive, &[(0, read(0), READ, 60), (0, read(0), READ, end)]);
    }
    // Loaded while the first is programmed (20 to 820), or afterwards (820 to 840).
    for (cache_program, end) in [(true, 1_620), (false, 1_640)] {
        let drive = Drive { cache_program, ..double.clone() };
        check(&drive, &[(0, program(0, 0), WRITE, 820), (0, program(0, 2), WRITE, end)]);
    }
}

fn suspending() -> Drive {
    Drive { suspend_erase: Some(100), resume: 50, ..flash() }
}

/// Suspended from 500 to 600, open for one read of 60, resumed by 710 with 1500 left.
#[test]
fn an_erase_makes_way_for_a_read() {
    let logs = check(&suspending(), &[(0, erase(0), GC, 2_210), (500, read(0), READ, 660)]);
    assert_eq!((logs.waited(0, Stage::DieWait, READ), logs.waited(1, Stage::DieWait, GC)), (60, 100));
    // Two reads one after the other; one who asks while the erase is suspended.
    check(&suspending(), &[(0, erase(0), GC, 2_270), (500, read(0), READ, 660), (510, read(0), READ, 720)]);
    // Not for reads of others, and not in the order of asking.
    check(&suspending(), &[(0, erase(0), GC, 2_000), (500, read(0), GC, 2_060)]);
    check(&Drive { reads_first: false, ..suspending() }, &[(0, erase(0), GC, 2_000), (500, read(0), READ, 2_060)]);
}

/// A read that asks when the LUN has just closed has the erase suspended again: 670 comes while it is resumed until 710.
#[test]
fn an_erase_makes_way_again() {
    let reads =
        |first, second, end| [(0, erase(0), GC, end), (500, read(0), READ, first), (670, read(0), READ, second)];
    // Suspended from 710 to 810 without having run, open to 870, resumed by 920 with 1500 left.
    check(&suspending(), &reads(660, 870, 2_420));
    // First after a run of 30: from 740, with 1470 left.
    check(&Drive { min_run: 30, ..suspending() }, &reads(660, 900, 2_420));
    // Only once: the second read waits for the end at 2210.
    check(&Drive { limit: 1, ..suspending() }, &reads(660, 2_270, 2_210));
}

#[test]
fn an_erase_has_its_run_first() {
    let drive = Drive { min_run: 700, ..suspending() };
    // Suspended from 700 to 800, open to 860, resumed by 910 with 1300 left.
    check(&drive, &[(0, erase(0), GC, 2_210), (500, read(0), READ, 860)]);
}

#[test]
fn an_erase_that_is_nearly_done_ends() {
    check(&suspending(), &[(0, erase(0), GC, 2_000), (1_900, read(0), READ, 2_060)]);
    // One more to go than suspending takes: from 1899 to 1999, open to 2059, resumed by 2109.
    check(&suspending(), &[(0, erase(0), GC, 2_210), (1_899, read(0), READ, 2_059)]);
}

/// While a program is suspended the next one is loaded as if it still ran.
#[test]
fn a_suspended_program_is_in_nobody_elses_way() {
    let drive = Drive { registers: Registers::Double, suspend_program: Some(30), resume: 10, ..flash() };
    // Programming from 20; suspended from 100 to 130; sensing to 170, sent to 190; resumed by 200 with 720 left.
    // The other is loaded from 130 to 150, when the read has left the line, and programmed from 920.
    let programs = [(0, program(0, 0), WRITE, 920), (100, read(0), READ, 190), (110, program(0, 2), WRITE, 1_720)];
    let logs = check(&drive, &programs);
    assert_eq!((logs.waited(0, Stage::DieWait, READ), logs.waited(1, Stage::DieWait, WRITE)), (60, 30));
}

#[test]
fn collections_do_their_steps() {
    let all = || collect(0, false, vec![copy(0), Part::Erase { plane: 0, block: 12 }]);
    check(&flash(), &[(0, all(), GC, 2_840)]);
    // 5 + 40 + 5 + 800 and 5 + 2000; on the way 5 + 20 for the page and 16 for two codewords.
    let drive = Drive { command: 5, ecc_time: 8, ..flash() };
    check(&drive, &[(0, all(), GC, 2_855)]);
    check(&Drive { copyback_ecc: true, ..drive.clone() }, &[(0, all(), GC, 2_896)]);
    // 5 + 40 + 5 + 20 + 16 to read, with a retry 5 + 47 + 5 + 20 + 16 more; 5 + 20 + 800 to program.
    let from = Part::Read { page: page(0, 12, 0), bytes: 2 * UNIT, erases: 0 };
    let moves = || collect(0, false, vec![from.clone(), Part::Program { pages: vec![page(0, 13, 0)] }]);
    check(&drive, &[(0, moves(), GC, 911)]);
    check(&Drive { retry_shares: vec![1.0], retry_time: 7, ..drive }, &[(0, moves(), GC, 1_004)]);
}

#[test]
fn collections_hold_what_their_scheme_says() {
    let erases = || collect(0, false, vec![Part::Erase { plane: 0, block: 12 }]);
    // Reads of the plane, of the other one on the channel, of the other channel.
    let reads = |same, beside, other| {
        let at = |plane, end| (10, read(plane), READ, end);
        [(0, erases(), GC, 2_000), at(0, same), at(1, beside), at(2, other)]
    };
    check(&Drive { gc_scheme: Scheme::Plane, ..flash() }, &reads(2_060, 70, 70));
    // The concurrent read was sensed by 50 and is sent from 2000.
    check(&Drive { gc_scheme: Scheme::Channel, ..flash() }, &reads(2_060, 2_020, 70));
    // All begin at 2000; those of one channel are sent one after the other.
    let logs = check(&Drive { gc_scheme: Scheme::Controller, ..flash() }, &reads(2_060, 2_080, 2_060));
    assert_eq!(logs.waited(3, Stage::Queue, GC), 1_990);
    let nothing = [(0, erases(), GC, 0), (10, read(0), READ, 70)];
    check(&Drive { gc_scheme: Scheme::Nothing, ..flash() }, &nothing);
}

#[test]
fn preemptive_collections_let_reads_in_between_steps() {
    let drive = Drive { preempt: true, resume: 10, ..flash() };
    let copies = |preemptible| collect(0, preemptible, vec![copy(0), Part::Erase { plane: 0, block: 12 }]);
    // The read comes while the page is sensed, until 40; then the plane is its own until 100.
    let logs = check(&drive, &[(0, copies(true), GC, 2_900), (10, read(0), READ, 100)]);
    assert_eq!(logs.waited(1, Stage::DieWait, GC), 30);
    check(&drive, &[(0, copies(false), GC, 2_840), (10, read(0), READ, 2_900)]);
    // While it is programmed, from 40 to 840: before the erase, or, suspended from 200 to 230, open to 290 and resumed by
    // 300 with 640 left, within.
    check(&drive, &[(0, copies(true), GC, 2_900), (200, read(0), READ, 900)]);
    let within = Drive { suspend_program: Some(30), ..drive };
    check(&within, &[(0, copies(true), GC, 2_940), (200, read(0), READ, 290)]);
    check(&within, &[(0, copies(false), GC, 2_840), (200, read(0), READ, 2_900)]);
}
