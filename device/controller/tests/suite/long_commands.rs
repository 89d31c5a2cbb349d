//! Commands that change or read much and move no data go step by step, so that other commands, and other drives of the same
//! server, are served in between.

use nandscape_device_controller::{ControllerConfig, LinkConfig};
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::units::Rate;
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::common::{BLOCKS, DEALLOCATE_UNIT, config, drive, host, read, timed, with, write};

/// Mapping units of the drive.
const UNITS: u64 = BLOCKS / 8;

/// All blocks of the drive.
fn whole(opcode: IoOpcode) -> SubmissionEntry {
    SubmissionEntry::blocks(opcode, 1, 0, BLOCKS as u32)
}

/// Neither firmware nor the link takes time.
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
        let spoil = std::rc::Rc::new(std::cell::Cell::new(None));
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

#[test]
fn without_delays_time_passes_between_the_parts_of_a_long_command() {
    with(without_delays(), async |sim, drive| {
        let io = host(sim, drive, QueueId(1));
        let (_, short) = timed(sim, &io, SubmissionEntry::blocks(IoOpcode::VERIFY, 1, 0, 256), HostMem::none()).await;
        assert_eq!(short, Span::ZERO);
        let parts = BLOCKS / 256;
        let (ended, took) = timed(sim, &io, whole(IoOpcode::VERIFY), HostMem::none()).await;
        assert_eq!((ended.status, took), (Status::SUCCESS, Span::from_us(1) * (parts - 1)));
        let (ended, took) = timed(sim, &io, whole(IoOpcode::WRITE_ZEROES), HostMem::none()).await;
        assert_eq!(ended.status, Status::SUCCESS);
        assert!(took >= Span::from_us(1) * (UNITS / 64 - 1), "{took:?}");
    });
}
