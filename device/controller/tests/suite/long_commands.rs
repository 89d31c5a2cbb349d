//! Long commands without a data transfer work step by step, so that other commands, and other drives of the same server, are
//! served in between.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_controller::{ControllerConfig, LinkConfig};
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::units::Rate;
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::io::{CopyRange, DEAC, DsmRange};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::common::{BLOCKS, DEALLOCATE_UNIT, buffering_drive, config, drive, host, read, timed, with, write};

/// Mapping units of the drive.
const UNITS: u64 = BLOCKS / 8;

/// All blocks of the drive.
fn whole(opcode: IoOpcode) -> SubmissionEntry {
    SubmissionEntry::blocks(opcode, 1, 0, BLOCKS as u32)
}

/// Firmware and link take no time.
fn without_delays() -> ControllerConfig {
    let link = LinkConfig { bandwidth: Rate::UNLIMITED, latency: Span::ZERO, ..config().link };
    ControllerConfig { firmware_time: Span::ZERO, link, ..config() }
}

#[test]
fn write_uncorrectable_marks_step_by_step_and_takes_as_long_as_in_one() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = drive(&sim, config());
    let ended = executor.block_on(async {
        let (io, other) = (host(&sim, &drive, QueueId(1)), host(&sim, &drive, QueueId(2)));
        let (entry, mem) = write(BLOCKS - 1, 1);
        io.execute(entry, mem).await.unwrap();
        let (_, short) =
            timed(&sim, &io, SubmissionEntry::blocks(IoOpcode::WRITE_UNCORRECTABLE, 1, 0, 8), HostMem::none()).await;
        let (begun, drives) = (sim.now(), sim.clone());
        let spoil = Rc::new(Cell::new(None));
        let spoiled = spoil.clone();
        sim.spawn(async move {
            let ended = io.execute(whole(IoOpcode::WRITE_UNCORRECTABLE), HostMem::none()).await.unwrap();
            spoiled.set(Some((ended.status, drives.now() - begun)));
        });
        let mut readable = 0;
        while spoil.get().is_none() {
            let ended = other.execute(read(BLOCKS - 1, 1), HostMem::zeroed(512)).await.unwrap();
            readable += u64::from(ended.status.is_success());
            sim.sleep(DEALLOCATE_UNIT * 64).await;
        }
        let after = other.execute(read(BLOCKS - 1, 1), HostMem::zeroed(512)).await.unwrap();
        (readable, after.status.meaning(), short, spoil.get().unwrap())
    });
    let (readable, after, short, (status, took)) = ended.unwrap();
    assert_eq!((status, after), (Status::SUCCESS, Status::UNRECOVERED_READ_ERROR));
    assert_eq!(took, short + DEALLOCATE_UNIT * (UNITS - 1), "the time of all units");
    assert!(readable >= UNITS / 256 - 1, "the last block was marked after {readable} reads");
}

/// A long command of each kind that moves little or nothing, with its data.
fn commands() -> Vec<(&'static str, SubmissionEntry, HostMem)> {
    let mut deallocating = whole(IoOpcode::WRITE_ZEROES);
    deallocating.cdw12 = (deallocating.cdw12.get() | DEAC).into();
    let range = DsmRange { blocks: (BLOCKS as u32).into(), ..DsmRange::default() };
    let source = |number: u64| CopyRange { slba: (number * 64).into(), nlb_z: 63.into(), ..CopyRange::default() };
    // As many as MCL allows.
    let sources: Vec<CopyRange> = (0..32).map(source).collect();
    vec![
        ("Write Zeroes", whole(IoOpcode::WRITE_ZEROES), HostMem::none()),
        ("Copy", SubmissionEntry::copy(1, BLOCKS / 2, 32, 0), HostMem::from_bytes(sources.as_bytes())),
        ("Verify", whole(IoOpcode::VERIFY), HostMem::none()),
        ("Compare", SubmissionEntry::blocks(IoOpcode::COMPARE, 1, 0, 256), HostMem::zeroed(128 << 10)),
        ("Write Zeroes with Deallocate", deallocating, HostMem::none()),
        ("Dataset Management", SubmissionEntry::deallocate(1, 1), HostMem::from_bytes(range.as_bytes())),
        ("Write Uncorrectable", whole(IoOpcode::WRITE_UNCORRECTABLE), HostMem::none()),
        ("Flush", SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()),
    ]
}

/// The maximum of noted work at one instant, and its total, for `count` such commands at once.
fn work(config: ControllerConfig, count: u64, entry: SubmissionEntry, mem: &HostMem) -> (u64, u64) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    // The write buffer holds several parts.
    let drive = buffering_drive(&sim, config, 1_024);
    let io = host(&sim, &drive, QueueId(1));
    for _ in 0..count {
        io.submit(entry, mem.clone());
    }
    let mut most = 0;
    while io.ended() < count as usize {
        let due = executor.next_due().expect("commands are in work");
        let before = executor.work();
        while !executor.advance(due, 1) {}
        most = most.max(executor.work() - before);
    }
    io.verdict().unwrap();
    assert!(io.log().iter().all(|ended| ended.completion.status == Status::SUCCESS));
    (most, executor.work())
}

#[test]
fn long_commands_take_turns_whatever_their_number() {
    // An unmapped unit counts as a sixteenth of one that is read or written, one that is marked as a quarter.
    let noted = [UNITS, UNITS / 8, UNITS, 32, UNITS / 16, UNITS / 16, UNITS / 4, 0];
    for make in [without_delays as fn() -> ControllerConfig, config] {
        for ((name, entry, mem), noted) in commands().into_iter().zip(noted) {
            let (most, all) = work(make(), 8, entry, &mem);
            assert!(most <= 256, "{name}: {most} units of work at one instant");
            assert!(all >= 8 * noted, "{name}: {all} units of work in all, and {noted} of each command");
        }
    }
}

/// The minimum time of a unit that is read or written, and the number of units that need not wait.
const LEAST: Span = Span::from_us(1);
const SLACK: u64 = 32;

#[test]
fn without_delays_time_passes_between_the_parts_of_a_long_command() {
    with(without_delays(), async |sim, drive| {
        let io = host(sim, drive, QueueId(1));
        let (_, short) = timed(sim, &io, SubmissionEntry::blocks(IoOpcode::VERIFY, 1, 0, 256), HostMem::none()).await;
        assert_eq!(short, Span::ZERO, "one alone begins at once");
        sim.sleep(Span::from_ms(1)).await;
        // Parts are as long as a transfer: of 32 units.
        let (ended, took) = timed(sim, &io, whole(IoOpcode::VERIFY), HostMem::none()).await;
        assert_eq!((ended.status, took), (Status::SUCCESS, LEAST * (UNITS - 32 - SLACK)));
        let (ended, took) = timed(sim, &io, whole(IoOpcode::WRITE_ZEROES), HostMem::none()).await;
        assert_eq!(ended.status, Status::SUCCESS);
        assert!(took >= LEAST * (UNITS - 64 - SLACK), "{took:?}");
    });
}
