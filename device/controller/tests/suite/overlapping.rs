//! A deletion, a reset, a shutdown, an abort or a power cut during another of these, or during commands.

use std::rc::Rc;

use crate::common::{Drive, PROGRAM, Pair, config, host, read, with, write};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_drive::ring::Ring;
use nandscape_drive::{
    CompletionMemory, Controller, HostIdentity, HostMem, HostMemory, QueueId, SubmissionMemory, Subsystem,
    TransportModel,
};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::io::DEAC;
use nandscape_wire_nvme::register::{CC, CC_EN, CSTS, CSTS_RDY, CSTS_SHUT_DOWN};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// Longer than any command here takes.
const LONG: Span = Span::from_ms(200);

/// A host that creates queues by admin commands, in memory of this process.
struct Rings;

impl HostMemory for Rings {
    fn page(&self) -> u32 {
        4_096
    }

    fn vectors(&self) -> u16 {
        1
    }

    fn submissions(&self, _: QueueId, _: u64, entries: u32) -> Rc<dyn SubmissionMemory> {
        Rc::new(Ring::new(entries, None))
    }

    fn completions(&self, _: QueueId, _: u64, entries: u32, _: Option<u16>) -> Rc<dyn CompletionMemory> {
        Rc::new(Ring::new(entries, None))
    }
}

async fn until(sim: &Sim, done: impl Fn() -> bool) {
    let begun = sim.now();
    while !done() {
        assert!(sim.now() - begun < LONG, "nothing happens");
        sim.sleep(Span::from_us(1)).await;
    }
}

/// The status of each command of a pair, by its identifier.
fn ended(pair: &Pair) -> Vec<(u16, Status)> {
    let posted = std::iter::from_fn(|| pair.reap());
    let ended = posted.map(|posted| (posted.entry.cid.get(), posted.entry.status().meaning())).collect();
    pair.release();
    ended
}

/// Reads that use the flash end, and writes that wait for it are aborted; the deletion waits for both, and its time is
/// accounted.
#[test]
fn delete_submission_queue_waits_for_the_commands_of_the_queue() {
    for commands in [0, 1, 4] {
        with(ControllerConfig { buffer: BufferMode::Through, ..config() }, async |sim, drive| {
            drive.attach(Rc::new(Rings)).unwrap();
            let (admin, pair) = (host(sim, drive, QueueId::ADMIN), Pair::new(sim, drive, 1, 16));
            let (entry, mem) = write(0, 64);
            pair.put(entry, mem);
            pair.ring();
            sim.sleep(LONG).await;
            assert_eq!(ended(&pair), [(0, Status::SUCCESS)]);
            for number in 0..commands {
                pair.put(read(number * 8, 8), HostMem::none());
                let (entry, mem) = write(64 + number * 8, 8);
                pair.put(entry, mem);
            }
            pair.ring();
            sim.sleep(Span::from_us(20)).await;
            let begun = sim.now();
            let delete = SubmissionEntry::delete_submission_queue(1);
            assert!(admin.execute(delete, HostMem::none()).await.unwrap().status.is_success());
            assert_eq!(sim.now() - begun > Span::from_us(20), commands > 0, "it waits for the reads");
            let right = [Status::SUCCESS, Status::ABORTED_SQ_DELETION];
            let mut ended = ended(&pair);
            ended.sort_by_key(|(cid, _)| *cid);
            let expected: Vec<_> = (0..commands * 2).map(|cid| (1 + cid as u16, right[cid as usize % 2])).collect();
            assert_eq!(ended, expected);
        });
    }
}

/// The write of the edges begins after the restart has stopped waiting commands.
#[test]
fn write_zeroes_that_deallocates_ends_when_power_is_cut() {
    for buffer in [BufferMode::Capacitor, BufferMode::Volatile] {
        with(ControllerConfig { command_slots: 200, buffer, ..config() }, async |sim, drive| {
            let pair = Pair::new(sim, drive, 1, 250);
            for number in 0..180 {
                let (entry, mem) = write(number * 8, 8);
                pair.put(entry, mem);
            }
            let mut zeroes = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 16_001, 4_001);
            zeroes.cdw12 = (zeroes.cdw12.get() | DEAC).into();
            let zeroes = pair.put(zeroes, HostMem::none());
            pair.ring();
            sim.sleep(Span::from_us(100)).await;
            drive.subsystem().ftl().media().cut_power(Span::from_ms(2));
            sim.sleep(LONG).await;
            let ended = ended(&pair);
            assert_eq!(ended.len(), 181, "{buffer:?}");
            assert!(ended.contains(&(zeroes, Status::ABORTED_POWER_LOSS)), "{buffer:?}");
        });
    }
}

/// A write waits for room behind another one and is fetched, but not begun, when power is cut.
#[test]
fn a_request_to_abort_ends_with_its_command() {
    with(ControllerConfig { command_slots: 1, ..config() }, async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 4);
        pair.put(read(0, 8), HostMem::none());
        let aborted = pair.put(read(8, 8), HostMem::none());
        pair.ring();
        assert!(drive.abort(pair.id, aborted), "it was not fetched");
        // The first ends at 6 us; the second is fetched then and would begin at 11 us.
        sim.sleep(Span::from_us(8)).await;
        drive.subsystem().ftl().media().cut_power(Span::from_us(100));
        sim.sleep(LONG).await;
        assert_eq!(ended(&pair), [(0, Status::SUCCESS), (aborted, Status::ABORTED_POWER_LOSS)]);
        pair.name_next(aborted);
        pair.put(read(16, 8), HostMem::none());
        pair.ring();
        sim.sleep(LONG).await;
        assert_eq!(ended(&pair), [(aborted, Status::SUCCESS)], "nothing aborts this one");
    });
}

/// The same for half a fused operation, which is never served.
#[test]
fn a_request_to_abort_ends_with_half_a_fused_operation() {
    with(ControllerConfig { command_slots: 1, ..config() }, async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 4);
        pair.put(read(0, 8), HostMem::none());
        let half = SubmissionEntry { flags: 1, ..SubmissionEntry::blocks(IoOpcode::COMPARE, 1, 8, 8) };
        let aborted = pair.put(half, HostMem::zeroed(4_096));
        pair.ring();
        assert!(drive.abort(pair.id, aborted), "it was not fetched");
        sim.sleep(LONG).await;
        assert_eq!(ended(&pair), [(0, Status::SUCCESS), (aborted, Status::ABORT_REQUESTED)]);
        pair.name_next(aborted);
        pair.put(read(16, 8), HostMem::none());
        pair.ring();
        sim.sleep(LONG).await;
        assert_eq!(ended(&pair), [(aborted, Status::SUCCESS)], "nothing aborts this one");
    });
}

/// Writes to the buffer, and asks for a shutdown: 01b is normal, 10b abrupt.
async fn begin_shutdown(sim: &Sim, drive: &Drive, notification: u32) -> u32 {
    let enabled = drive.register(CC);
    let host = host(sim, drive, QueueId(1));
    let (entry, mem) = write(0, 8);
    assert!(host.execute(entry, mem).await.unwrap().status.is_success());
    drive.set_register(CC, enabled | notification << 14);
    enabled
}

#[test]
fn a_shutdown_before_a_reset_is_not_reported_after_it() {
    with(ControllerConfig { buffer: BufferMode::Volatile, ..config() }, async |sim, drive| {
        let enabled = begin_shutdown(sim, drive, 0b01).await;
        sim.sleep(Span::from_us(10)).await;
        drive.set_register(CC, enabled & !CC_EN);
        until(sim, || drive.register(CSTS) == 0).await;
        drive.set_register(CC, enabled);
        assert_eq!(drive.register(CSTS), CSTS_RDY);
        sim.sleep(PROGRAM + PROGRAM).await;
        assert_eq!(drive.register(CSTS), CSTS_RDY, "this controller was not asked to shut down");
    });
}

/// The first request decides the kind of shutdown; later writes do not change it.
#[test]
fn a_shutdown_is_of_the_kind_that_began_it() {
    with(ControllerConfig { buffer: BufferMode::Volatile, ..config() }, async |sim, drive| {
        let enabled = begin_shutdown(sim, drive, 0b01).await;
        drive.set_register(CC, enabled | 0b10 << 14);
        let begun = sim.now();
        until(sim, || drive.register(CSTS) == CSTS_RDY | CSTS_SHUT_DOWN).await;
        assert!(sim.now() - begun > PROGRAM, "it has flushed");
    });
}

fn creates(controller: &dyn Controller, id: QueueId) -> Result<(), Status> {
    let ring = Rc::new(Ring::new(8, None));
    controller.create_queue_pair(id, ring.clone(), ring).map_err(Status::meaning)
}

#[test]
fn no_queue_is_created_while_the_controller_is_reset_or_left() {
    let config = ControllerConfig { buffer: BufferMode::Through, ..config() };
    for detaches in [false, true] {
        with(config.clone(), async |sim, drive| {
            let pair = Pair::new(sim, drive, 1, 8);
            pair.put(read(0, 8), HostMem::none());
            pair.ring();
            sim.sleep(Span::from_us(2)).await;
            match detaches {
                true => drive.detach(),
                false => drive.set_register(CC, drive.register(CC) & !CC_EN),
            }
            for id in [QueueId::ADMIN, QueueId(2)] {
                assert_eq!(creates(&**drive, id), Err(Status::COMMAND_SEQUENCE_ERROR));
            }
            sim.sleep(LONG).await;
            assert_eq!(drive.register(CSTS), if detaches { CSTS_RDY } else { 0 }, "it has ended");
        });
    }
}

#[test]
fn a_controller_that_is_not_ready_has_an_admin_queue_only() {
    with(config(), async |_, drive| {
        let controller = drive.subsystem().new_controller(HostIdentity::default(), TransportModel::Message).unwrap();
        assert_eq!(creates(&*controller, QueueId(1)), Err(Status::COMMAND_SEQUENCE_ERROR));
        assert_eq!(creates(&*controller, QueueId::ADMIN), Ok(()));
        controller.set_register(CC, drive.register(CC));
        assert_eq!(creates(&*controller, QueueId(1)), Ok(()));
    });
}
