//! Single operations against timelines worked out by hand: the steps of FEMU Fig. 3 and Li 5.4.2, priorities, and
//! operations that a collection blocks (Li 2.3).
//!
//! The flash here is SLC: 40 us to sense, 800 us to program, 2 ms to erase, 10 us for a unit and 20 us for a page of two
//! units on the channel. Two channels with three planes each: planes 0 to 2 share a channel, 3 to 5 the other.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

use nandscape_device_media::{BlockId, Holding, Media, PageId, PlaneId, Priority, Registers};
use nandscape_device_rig::{TestFlash, image};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Cause, Executor, Sim, Span, Time};

const BLOCKS: u32 = 8;
const PAGES: u32 = 16;

#[derive(Clone)]
struct Flash {
    sim: Sim,
    media: Rc<Media>,
    priority: Priority,
    /// What ended when, in microseconds, with its waits for die and channel.
    log: Rc<RefCell<Vec<(u64, &'static str)>>>,
    breakdowns: Rc<RefCell<Vec<(&'static str, Breakdown)>>>,
}

fn flash(executor: &Executor, registers: Registers, priority: Priority) -> Flash {
    let sim = executor.sim();
    let media = TestFlash {
        channels: 2,
        planes: 3,
        blocks: BLOCKS,
        pages: PAGES,
        units_per_page: 2,
        read: vec![Span::from_us(40)],
        program: vec![Span::from_us(800)],
        registers,
        ..TestFlash::default()
    };
    let media = media.media(&sim);
    (0..6).for_each(|plane| media.plant_program(programmed_page(plane), []));
    Flash { sim, media, priority, log: Rc::default(), breakdowns: Rc::default() }
}

#[derive(Copy, Clone)]
enum Op {
    Read,
    /// One unit of two.
    ReadHalf,
    /// The next page of the plane's first block, by the number of pages programmed before.
    Program(u32),
    Erase,
}

impl Flash {
    /// Does an operation on a plane at a time, in microseconds.
    fn at(&self, us: u64, name: &'static str, plane: u32, op: Op, cause: Cause) {
        let flash = self.clone();
        self.sim.spawn(async move {
            let Flash { sim, media, priority, log, breakdowns } = flash;
            sim.sleep_until(Time::from_ns(us * 1_000)).await;
            let (who, block) = (priority.who(cause), BlockId(plane * BLOCKS));
            let page = |number| PageId(block.0 * PAGES + number);
            let mut breakdown = Breakdown::new();
            match op {
                Op::Read => media.read(programmed_page(plane), 8_192, who, &mut breakdown).await.unwrap(),
                Op::ReadHalf => media.read(programmed_page(plane), 4_096, who, &mut breakdown).await.unwrap(),
                Op::Program(number) => media.program(page(number), image(2), who, &mut breakdown).await.unwrap(),
                Op::Erase => media.erase(BlockId(block.0 + 1), who, &mut breakdown).await.unwrap(),
            }
            assert_eq!(breakdown.total(), sim.now() - Time::from_ns(us * 1_000), "{name}");
            log.borrow_mut().push((sim.now().ns() / 1_000, name));
            breakdowns.borrow_mut().push((name, breakdown));
        });
    }

    /// A collection that takes the resources of `holding`, erases, and releases them.
    fn collect_at(&self, us: u64, name: &'static str, plane: u32, holding: Holding) {
        let flash = self.clone();
        self.sim.spawn(async move {
            let Flash { sim, media, priority, log, .. } = flash;
            sim.sleep_until(Time::from_ns(us * 1_000)).await;
            let mut seized = media.seize(PlaneId(plane), holding, priority.who(cause::GC)).await;
            seized.erase(BlockId(plane * BLOCKS + 1)).await.unwrap();
            log.borrow_mut().push((sim.now().ns() / 1_000, name));
        });
    }

    fn run(&self, executor: &mut Executor) -> Vec<(u64, &'static str)> {
        executor.block_on(self.sim.sleep(Span::from_s(1))).unwrap();
        self.log.take()
    }

    fn waited(&self, name: &str, stage: Stage, cause: Cause) -> u64 {
        let breakdowns = self.breakdowns.borrow();
        let breakdown = &breakdowns.iter().find(|(other, _)| *other == name).expect("it has ended").1;
        breakdown.waited(stage, cause).ns() / 1_000
    }
}

/// The first page of the last block of a plane.
fn programmed_page(plane: u32) -> PageId {
    PageId((plane * BLOCKS + BLOCKS - 1) * PAGES)
}

const READ: Cause = cause::HOST_READ;
const WRITE: Cause = cause::HOST_WRITE;

#[test]
fn a_partial_read_takes_the_channel_for_its_part() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Registers::Single, Priority::Fifo);
    flash.at(0, "half", 0, Op::ReadHalf, READ);
    flash.at(0, "whole", 3, Op::Read, READ);
    assert_eq!(flash.run(&mut executor), [(50, "half"), (60, "whole")]);
}

/// Planes of one channel sense at the same time and are emptied in turn; the other channel continues independently.
#[test]
fn planes_share_their_channel() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Registers::Single, Priority::Fifo);
    for (name, plane) in [("a", 0), ("b", 1), ("c", 3)] {
        flash.at(0, name, plane, Op::Read, READ);
    }
    assert_eq!(flash.run(&mut executor), [(60, "a"), (60, "c"), (80, "b")]);
    assert_eq!(flash.waited("b", Stage::ChannelWait, READ), 20);
}

/// A read behind a program waits for its end; behind an erase likewise.
#[test]
fn a_read_waits_for_what_the_array_does() {
    for registers in [Registers::Single, Registers::Double] {
        let mut executor = Executor::new();
        let flash = flash(&executor, registers, Priority::Fifo);
        flash.at(0, "program", 0, Op::Program(0), WRITE);
        flash.at(1, "read", 0, Op::Read, READ);
        flash.at(0, "erase", 3, Op::Erase, cause::GC);
        flash.at(1, "other", 3, Op::Read, READ);
        assert_eq!(flash.run(&mut executor), [(820, "program"), (880, "read"), (2_000, "erase"), (2_060, "other")]);
        assert_eq!(flash.waited("read", Stage::DieWait, WRITE), 819);
        assert_eq!(flash.waited("other", Stage::DieWait, cause::GC), 1_999);
    }
}

/// With two registers a page is loaded while the array erases or programs, and an erase begins while a page is sent.
#[test]
fn the_second_register_overlaps_transfer_and_array() {
    let run = |registers| {
        let mut executor = Executor::new();
        let flash = flash(&executor, registers, Priority::Fifo);
        flash.at(0, "erase", 0, Op::Erase, cause::GC);
        flash.at(1, "program", 0, Op::Program(0), WRITE);
        flash.at(0, "read", 3, Op::Read, READ);
        flash.at(1, "erase after", 3, Op::Erase, cause::GC);
        flash.run(&mut executor)
    };
    let single = [(60, "read"), (2_000, "erase"), (2_060, "erase after"), (2_820, "program")];
    let double = [(60, "read"), (2_000, "erase"), (2_040, "erase after"), (2_800, "program")];
    assert_eq!(run(Registers::Single), single);
    assert_eq!(run(Registers::Double), double);
}

/// A program is not loaded over a page that was sensed and must still leave through the cache register. A page is not
/// sensed behind one that must still enter the array.
#[test]
fn pages_going_opposite_ways_do_not_meet() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Registers::Double, Priority::Fifo);
    flash.at(0, "read", 0, Op::Read, READ);
    flash.at(1, "program", 0, Op::Program(0), WRITE);
    flash.at(2, "read after", 0, Op::Read, READ);
    // Loaded from 60 to 80, programmed to 880, sensed from then on.
    assert_eq!(flash.run(&mut executor), [(60, "read"), (880, "program"), (940, "read after")]);
}

#[test]
fn reads_first_passes_over_those_in_line_and_nothing_that_has_begun() {
    let run = |priority| {
        let mut executor = Executor::new();
        let flash = flash(&executor, Registers::Single, priority);
        flash.at(0, "program", 0, Op::Program(0), WRITE);
        flash.at(1, "next program", 0, Op::Program(1), WRITE);
        flash.at(2, "read", 0, Op::Read, READ);
        flash.at(3, "metadata", 0, Op::Read, cause::METADATA);
        flash.run(&mut executor)
    };
    let fifo = [(820, "program"), (1_640, "next program"), (1_700, "read"), (1_760, "metadata")];
    let reads_first = [(820, "program"), (880, "read"), (1_700, "next program"), (1_760, "metadata")];
    assert_eq!(run(Priority::Fifo), fifo);
    assert_eq!(run(Priority::ReadsFirst), reads_first);
}

/// The urgent read is sensed while the previous page is sent, although a program is in line for that page's register.
#[test]
fn an_urgent_read_overlaps_the_transfer_before_it() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Registers::Double, Priority::ReadsFirst);
    flash.at(0, "read", 0, Op::Read, READ);
    flash.at(1, "program", 0, Op::Program(0), WRITE);
    flash.at(41, "urgent", 0, Op::Read, READ);
    assert_eq!(flash.run(&mut executor), [(60, "read"), (101, "urgent"), (921, "program")]);
}

/// The channel is busy from 40 to 60 us. A program requests the channel at 41, another read at 50.
#[test]
fn channels_know_priorities_too() {
    let run = |priority| {
        let mut executor = Executor::new();
        let flash = flash(&executor, Registers::Single, priority);
        flash.at(0, "read", 0, Op::Read, READ);
        flash.at(10, "urgent", 1, Op::Read, READ);
        flash.at(41, "program", 2, Op::Program(0), WRITE);
        flash.run(&mut executor)
    };
    let program_asked_later = [(60, "read"), (80, "urgent"), (900, "program")];
    assert_eq!(run(Priority::ReadsFirst), program_asked_later);
    let program_asked_first = [(60, "read"), (100, "urgent"), (880, "program")];
    assert_eq!(run(Priority::Fifo), program_asked_first);
}

/// What reads see of a collection of plane 0 that erases from 10 to 2010 us: of plane 0, of its channel, of another
/// channel.
#[test]
fn a_collection_keeps_out_what_it_reaches() {
    let run = |scheme| {
        let mut executor = Executor::new();
        let flash = flash(&executor, Registers::Double, Priority::Fifo);
        flash.collect_at(10, "collection", 0, scheme);
        for (name, plane) in [("plane", 0), ("channel", 1), ("elsewhere", 3)] {
            flash.at(20, name, plane, Op::Read, READ);
        }
        flash.at(20, "metadata", 4, Op::Read, cause::METADATA);
        let mut ends = flash.run(&mut executor);
        ends.sort_by_key(|(_, name)| *name);
        let waits: Vec<u64> = [("plane", Stage::DieWait), ("channel", Stage::ChannelWait), ("elsewhere", Stage::Queue)]
            .map(|(name, stage)| flash.waited(name, stage, cause::GC))
            .into();
        (ends.into_iter().map(|(us, _)| us).collect::<Vec<_>>(), waits)
    };
    // In the order of the alphabet: channel, collection, elsewhere, metadata, plane. Planes 0 and 1 share a channel.
    assert_eq!(run(Holding::Nothing), (vec![100, 10, 80, 100, 80], vec![0, 0, 0]));
    assert_eq!(run(Holding::Plane), (vec![80, 2_010, 80, 100, 2_070], vec![1_990, 0, 0]));
    // Sensed at 60, sent when the channel is given back; the plane is sensed from then on.
    assert_eq!(run(Holding::Channel), (vec![2_030, 2_010, 80, 100, 2_070], vec![1_990, 1_950, 0]));
}

#[test]
fn a_collection_waits_for_what_has_begun() {
    let mut executor = Executor::new();
    let flash = flash(&executor, Registers::Double, Priority::Fifo);
    flash.at(0, "program", 0, Op::Program(0), WRITE);
    flash.collect_at(10, "behind the program", 0, Holding::Channel);
    flash.collect_at(30, "plane only", 4, Holding::Plane);
    let ends = [(820, "program"), (2_030, "plane only"), (2_820, "behind the program")];
    assert_eq!(flash.run(&mut executor), ends);
}

/// A collector that is dropped, while it waits or while it holds everything, leaves the drive as it was.
#[test]
fn a_dropped_collection_gives_everything_back() {
    for holding in [Holding::Plane, Holding::Channel] {
        // The plane is free for it at 820 us.
        for drop_at in [15, 500, 819, 821, 1_500] {
            let mut executor = Executor::new();
            let flash = flash(&executor, Registers::Double, Priority::Fifo);
            flash.at(0, "program", 0, Op::Program(0), WRITE);
            let collector = flash.clone();
            executor
                .block_on(async {
                    let mut collection = Box::pin(async {
                        collector.sim.sleep(Span::from_us(10)).await;
                        let mut seized =
                            collector.media.seize(PlaneId(0), holding, Priority::Fifo.who(cause::GC)).await;
                        seized.erase(BlockId(1)).await.unwrap();
                    });
                    let mut patience = pin!(collector.sim.sleep(Span::from_us(drop_at)));
                    poll_fn(|context| {
                        assert!(collection.as_mut().poll(context).is_pending());
                        patience.as_mut().poll(context)
                    })
                    .await;
                })
                .unwrap();
            flash.at(3_000, "after", 0, Op::Read, READ);
            let ends = flash.run(&mut executor);
            assert_eq!(ends, [(820, "program"), (3_060, "after")], "{holding:?} dropped at {drop_at} us");
        }
    }
}
