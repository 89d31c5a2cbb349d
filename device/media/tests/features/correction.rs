//! Error correction, read retry, and copies that the controller checks.

use nandscape_device_media::{Cell, Ecc, Features, ReadRetry, Registers};
use nandscape_drive::Stage;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Executor, Span};

use crate::rig::{Flash, Op, READ, Step, WRITE, us};

/// 7 us for each of the four codewords of a page.
fn ecc() -> Ecc {
    Ecc { time: us(7), codeword: 2_048, engines: 0, pipelined: false }
}

fn flash(executor: &Executor, ecc: Ecc) -> Flash {
    Flash::new(executor, Cell::Slc, Registers::Single, Features { ecc, ..Features::default() })
}

#[test]
fn a_page_is_decoded_when_it_has_come() {
    for (op, pipelined, time, end) in [
        (Op::Read, false, us(7), 60 + 28),
        (Op::ReadHalf, false, us(7), 50 + 14),
        // A codeword takes 5 us on the channel: each of the other three leaves 2 us behind.
        (Op::Read, true, us(7), 60 + 13),
        (Op::Read, true, us(4), 60 + 4),
        (Op::Program(0), false, us(7), 820),
    ] {
        let mut executor = Executor::new();
        let flash = flash(&executor, Ecc { time, pipelined, ..ecc() });
        flash.at(0, "it", 0, op, WRITE);
        assert_eq!(flash.run(&mut executor), [(end, "it")]);
    }
}

/// The register is free while its page is decoded: the next page of the plane is sensed at 60.
#[test]
fn decoding_keeps_neither_plane_nor_channel() {
    let mut executor = Executor::new();
    let flash = flash(&executor, ecc());
    flash.at(0, "first", 0, Op::Read, READ);
    flash.at(0, "second", 0, Op::Read, READ);
    assert_eq!(flash.run(&mut executor), [(88, "first"), (148, "second")]);
}

/// Pages of two channels come at 60. One decoder takes them in turn, two or any number at a time.
#[test]
fn decoders_are_shared_by_channels_in_turn() {
    for (engines, second) in [(0, 88), (1, 116), (2, 88)] {
        let mut executor = Executor::new();
        let flash = flash(&executor, Ecc { engines, ..ecc() });
        flash.at(0, "first", 0, Op::Read, READ);
        flash.at(0, "second", 2, Op::Read, READ);
        assert_eq!(flash.run(&mut executor), [(88, "first"), (second, "second")], "{engines} decoders");
        assert_eq!(flash.spent("second", Stage::Ecc), second - 60);
    }
}

/// Every page needs two retries: each is the whole way again, and 5 us more.
#[test]
fn a_retry_is_the_whole_way_again() {
    let features = Features {
        ecc: ecc(),
        read_retry: ReadRetry { probability: vec![0.0, 1.0], time: us(5) },
        ..Features::default()
    };
    let mut executor = Executor::new();
    let flash = Flash::new(&executor, Cell::Slc, Registers::Single, features.clone());
    flash.at(0, "read", 0, Op::Read, READ);
    // In line behind the first attempt, ahead of the second.
    flash.at(1, "program", 0, Op::Program(0), WRITE);
    flash.collect_at(2_000, "move", 2, false, vec![Step::Move]);
    // Decoded at 88. The program has the plane from 60 to 880.
    let (second, third) = (880 + 45 + 20 + 28, 880 + 2 * (45 + 20 + 28));
    assert_eq!(second, 973);
    let moved = 2_000 + 88 + 2 * 93 + 820;
    assert_eq!(flash.run(&mut executor), [(880, "program"), (third, "read"), (moved, "move")]);
    assert_eq!(flash.spent("read", Stage::Array), 40);
    assert_eq!(flash.waited("read", Stage::DieWait, WRITE), 880 - 88);
    // Their time is a wait behind retries, for the die and for the channel.
    let retry = |stage| flash.waited("read", stage, cause::RETRY);
    assert_eq!((retry(Stage::DieWait), retry(Stage::ChannelWait)), (2 * (45 + 28), 2 * 20));
}

/// A copy inside the plane does not touch the channel; a checked one crosses it once, and is decoded.
#[test]
fn a_copy_is_checked_if_asked_for() {
    for (check, end) in [(false, 840), (true, 840 + 20 + 28)] {
        let mut executor = Executor::new();
        let flash = flash(&executor, ecc());
        flash.collect_at(0, "copy", 0, false, vec![Step::Copy { check }]);
        // Sensed at 45; the channel is taken from 40 to 60 by a checked copy.
        flash.at(5, "read", 1, Op::Read, READ);
        let read = 45 + 20 + 28 + if check { 15 } else { 0 };
        assert_eq!(flash.run(&mut executor), [(read, "read"), (end, "copy")]);
    }
}

/// ttFlash's arithmetic (Li 2.3, table 3.2): 40 us and 800 us are 840 us a copy, and 64 of them about 54 ms.
#[test]
fn a_copy_takes_what_ttflash_says() {
    let mut executor = Executor::new();
    let flash = Flash::new(&executor, Cell::Slc, Registers::Single, Features::default());
    flash.collect_at(0, "copies", 0, false, vec![Step::Copy { check: false }; 12]);
    assert_eq!(flash.run(&mut executor), [(12 * 840, "copies")]);
    assert_eq!(Span::from_us(840) * 64, us(53_760));
}
