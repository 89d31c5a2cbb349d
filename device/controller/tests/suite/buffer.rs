//! When writes complete and what Flush waits for, in each mode of the write buffer. On an idle drive, the time of a command
//! is a known sum.

use crate::common::{
    BUS, DEALLOCATE_UNIT, FIRMWARE, LINK, LINK_LATENCY, PROGRAM, READ, config, host, read, timed, with, write,
};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_device_ftl_core::Ftl;
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::Span;
use nandscape_sim::units::Rate;
use nandscape_wire_nvme::io::{DEAC, FUA};
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, SubmissionEntry, feature};

/// The fixed time of every command.
const COMMAND: Span = Span::from_ns(LINK_LATENCY.ns() + FIRMWARE.ns());

fn over(rate: &str, bytes: u64) -> Span {
    rate.parse::<Rate>().unwrap().time_for(bytes)
}

fn mode(buffer: BufferMode) -> ControllerConfig {
    ControllerConfig { buffer, ..config() }
}

fn flush() -> SubmissionEntry {
    SubmissionEntry::io(IoOpcode::FLUSH, 1)
}

/// A write of one page, 16 KiB.
fn page(slba: u64) -> (SubmissionEntry, HostMem) {
    write(slba, 32)
}

#[test]
fn with_a_capacitor_writes_and_flushes_wait_for_no_flash() {
    with(mode(BufferMode::Capacitor), async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        for fua in [0, FUA] {
            let (mut entry, mem) = page(0);
            entry.cdw12 |= fua;
            let (completion, time) = timed(sim, &host, entry, mem).await;
            assert!(completion.status.is_success());
            assert_eq!(time, COMMAND + over(LINK, 16 << 10), "FUA {fua:x}h");
        }
        for nsid in [1, NSID_ALL] {
            let (completion, time) =
                timed(sim, &host, SubmissionEntry::io(IoOpcode::FLUSH, nsid), HostMem::none()).await;
            assert!(completion.status.is_success());
            assert_eq!(time, COMMAND);
        }
    });
}

#[test]
fn a_volatile_buffer_is_drained_by_flush() {
    with(mode(BufferMode::Volatile), async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        let (entry, mem) = page(0);
        assert_eq!(timed(sim, &host, entry, mem).await.1, COMMAND + over(LINK, 16 << 10));
        // The page's program began with the write: the flush waits for the rest of it.
        let program = over(BUS, 16 << 10) + PROGRAM;
        let (completion, time) = timed(sim, &host, flush(), HostMem::none()).await;
        assert!(completion.status.is_success());
        assert_eq!(time, program);
        assert_eq!(timed(sim, &host, flush(), HostMem::none()).await.1, COMMAND, "nothing is left");

        // Less than a page waits for more data, until a flush programs it.
        let (entry, mem) = write(64, 8);
        timed(sim, &host, entry, mem).await;
        sim.sleep(Span::from_s(1)).await;
        let (_, time) = timed(sim, &host, SubmissionEntry::io(IoOpcode::FLUSH, NSID_ALL), HostMem::none()).await;
        assert_eq!(time, COMMAND + program);
    });
}

#[test]
fn a_volatile_buffer_is_passed_by_with_fua_or_when_it_is_switched_off() {
    with(mode(BufferMode::Volatile), async |sim, drive| {
        let (admin, host) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        let durable = COMMAND + over(LINK, 16 << 10) + over(BUS, 16 << 10) + PROGRAM;
        let (mut entry, mem) = page(0);
        entry.cdw12 |= FUA;
        assert_eq!(timed(sim, &host, entry, mem).await.1, durable);
        let off = SubmissionEntry::set_features(feature::VOLATILE_WRITE_CACHE, 0);
        assert!(admin.execute(off, HostMem::none()).await.unwrap().status.is_success());
        let (entry, mem) = page(32);
        assert_eq!(timed(sim, &host, entry, mem).await.1, durable);
        assert_eq!(timed(sim, &host, flush(), HostMem::none()).await.1, COMMAND);
    });
}

#[test]
fn written_through_a_write_completes_when_it_is_programmed() {
    with(mode(BufferMode::Through), async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        let program = over(BUS, 16 << 10) + PROGRAM;
        let (entry, mem) = page(0);
        assert_eq!(timed(sim, &host, entry, mem).await.1, COMMAND + over(LINK, 16 << 10) + program);
        // A part of a page is programmed in a separate page.
        let (entry, mem) = write(64, 8);
        assert_eq!(timed(sim, &host, entry, mem).await.1, COMMAND + over(LINK, 4 << 10) + program);
        assert_eq!(timed(sim, &host, flush(), HostMem::none()).await.1, COMMAND);
        assert_eq!(drive.subsystem().ftl().media().counts().programs, 2);
        // A part of a unit on flash needs a read-modify-write.
        let (entry, mem) = write(64, 1);
        let fill = READ + over(BUS, 4 << 10);
        assert_eq!(timed(sim, &host, entry, mem).await.1, COMMAND + over(LINK, 512) + fill + program);
    });
}

#[test]
fn a_read_takes_the_sum_of_its_steps() {
    with(mode(BufferMode::Through), async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        let (entry, mem) = page(0);
        timed(sim, &host, entry, mem).await;
        let flash = |units: u64| READ + over(BUS, units * (4 << 10));
        for (slba, blocks, units) in [(0, 8, 1), (0, 32, 4), (3, 1, 1), (7, 2, 2)] {
            let mem = HostMem::zeroed(blocks as usize * 512);
            let time = timed(sim, &host, read(slba, blocks), mem).await.1;
            let expected = COMMAND + flash(units) + over(LINK, u64::from(blocks) * 512);
            assert_eq!(time, expected, "{blocks} blocks at {slba}");
        }
        // Unwritten units need no flash.
        let (_, time) = timed(sim, &host, read(1_000, 8), HostMem::zeroed(4_096)).await;
        assert_eq!(time, COMMAND + over(LINK, 4_096));
    });
}

#[test]
fn zeros_with_deallocation_take_no_flash() {
    with(mode(BufferMode::Through), async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        let (entry, mem) = page(0);
        timed(sim, &host, entry, mem).await;
        let mut zeroes = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 0, 32);
        zeroes.cdw12 |= DEAC;
        assert_eq!(timed(sim, &host, zeroes, HostMem::none()).await.1, COMMAND + DEALLOCATE_UNIT * 4);
        assert_eq!(timed(sim, &host, read(0, 32), HostMem::none()).await.1, COMMAND + over(LINK, 16 << 10));
    });
}

/// Zeros are written like data, but do not cross the host link.
#[test]
fn zeros_without_deallocation_are_programmed() {
    with(mode(BufferMode::Through), async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        let zeroes = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 0, 32);
        let program = over(BUS, 16 << 10) + PROGRAM;
        assert_eq!(timed(sim, &host, zeroes, HostMem::none()).await.1, COMMAND + program);
        let time = timed(sim, &host, read(0, 32), HostMem::zeroed(16 << 10)).await.1;
        assert_eq!(time, COMMAND + READ + over(BUS, 16 << 10) + over(LINK, 16 << 10));
    });
}

/// A flush covers the writes that completed before it; later writes do not delay it.
#[test]
fn a_flush_does_not_wait_for_later_writes() {
    with(mode(BufferMode::Volatile), async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        let one_unit = |number: u64| write(number * 8, 8);
        for number in 0..13 {
            let (entry, mem) = one_unit(number);
            timed(sim, &host, entry, mem).await;
        }
        let flushing = host.submit(flush(), HostMem::none());
        for number in 13..400 {
            let (entry, mem) = one_unit(number);
            host.submit(entry, mem);
        }
        let (mut before, mut flushed) = (0, false);
        while host.ended() < host.submitted() || !flushed {
            let ended = host.next().await.unwrap();
            if ended.tag == flushing {
                flushed = true;
                assert!(drive.subsystem().ftl().stats().host_units >= 13, "all that had completed is on flash");
            }
            before += u32::from(!flushed);
        }
        // The time of a few programs, for what fits the buffer meanwhile.
        assert!(flushed && before < 13 + 2 * 64, "{before} writes completed before the flush");
    });
}

/// A write completes when its page is in the register; Flush and FUA wait for the program; the next page of the die waits for
/// the previous one, and a read of the die for the program (OX 4.4.1: "reads are blocked by writes and the cost of NAND
/// writes is reflected in the latency of reads").
#[test]
fn with_the_register_a_write_completes_while_it_is_programmed() {
    with(mode(BufferMode::Register), async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        let loaded = COMMAND + over(LINK, 16 << 10) + over(BUS, 16 << 10);
        let (entry, mem) = page(0);
        assert_eq!(timed(sim, &host, entry, mem).await.1, loaded);
        assert_eq!(timed(sim, &host, flush(), HostMem::none()).await.1, PROGRAM);
        let (mut entry, mem) = page(32);
        entry.cdw12 |= FUA;
        assert_eq!(timed(sim, &host, entry, mem).await.1, loaded + PROGRAM);
        // Five pages, one more than there are dies: the fifth goes into the cache register of the first die, which is
        // empty while the array programs.
        let begun = sim.now();
        for number in 2..7 {
            let (entry, mem) = page(32 * number);
            assert_eq!(timed(sim, &host, entry, mem).await.1, loaded);
        }
        assert!(sim.now() - begun < PROGRAM);
    });
}
