//! Commands that end early: queues are deleted and the controller is reset under load, and commands are aborted. Stopped
//! commands touch neither data nor memory afterwards.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::{Drive, PROGRAM, config, host, read, with, write};
use nandscape_device_controller::{BufferMode, ControllerConfig, LinkConfig};
use nandscape_drive::{Controller, HostIdentity, HostMem, Issuer, QueueDrive, QueueId, Subsystem, TransportModel};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::register::{
    AQA, CAP, CC, CC_EN, CSTS, CSTS_CFS, CSTS_RDY, CSTS_SHUT_DOWN, CSTS_SHUTTING_DOWN, VERSION_2_1, VS,
};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, feature};

/// Longer than any command here takes.
const LONG: Span = Span::from_ms(200);

/// Writes of a MiB, four times what the write buffer takes at once.
const LARGE: u32 = 2_048;

fn large() -> ControllerConfig {
    ControllerConfig { max_transfer: 1 << 20, ..config() }
}

/// A user of one queue pair, and a flag for its deletion.
fn leaving(sim: &Sim, drive: &Drive, id: u16) -> (Rc<QueueDrive>, Rc<Cell<bool>>) {
    struct Told(Rc<Cell<bool>>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let (queue, deleted) = (QueueDrive::new(sim, drive.clone(), QueueId(id), 32).unwrap(), Rc::new(Cell::new(false)));
    queue.keep_until_deleted(Box::new(Told(deleted.clone())));
    (queue, deleted)
}

async fn until(sim: &Sim, done: impl Fn() -> bool) {
    let begun = sim.now();
    while !done() {
        assert!(sim.now() - begun < LONG, "nothing happens");
        sim.sleep(Span::from_us(1)).await;
    }
}

/// A client dies in the middle of a write of many parts. Another one writes the last blocks as soon as the pair is deleted.
#[test]
fn no_later_part_of_a_write_overwrites_others_after_its_queue_was_deleted() {
    let packets = LinkConfig { packet: Some(128), ..config().link };
    for config in [large(), ControllerConfig { link: packets, ..large() }] {
        for wait in [2, 20, 100, 300, 900] {
            with(config.clone(), async |sim, drive| {
                let (dying, deleted) = leaving(sim, drive, 1);
                let issuer = Issuer::new(sim);
                let (entry, mem) = write(0, LARGE);
                let dead = issuer.execute(&*dying, entry, mem);
                sim.sleep(Span::from_us(wait)).await;
                drop(dying);
                until(sim, || deleted.get()).await;
                let ended = dead.await.status.meaning();
                assert!([Status::SUCCESS, Status::ABORTED_SQ_DELETION].contains(&ended), "{wait} us: {ended}");
                let other = host(sim, drive, QueueId(2));
                let last = SubmissionEntry::blocks(IoOpcode::WRITE, 1, u64::from(LARGE - 8), 8);
                let written = other.execute(last, HostMem::from_bytes(&[9; 4_096])).await.unwrap();
                assert!(written.status.is_success());
                sim.sleep(LONG).await;
                let mem = HostMem::zeroed(4_096);
                other.execute(read(u64::from(LARGE - 8), 8), mem.clone()).await.unwrap();
                assert!(mem.to_vec() == [9; 4_096], "{wait} us: what was acknowledged is there no more");
            });
        }
    }
}

#[test]
fn a_read_copies_nothing_into_memory_after_its_queue_was_deleted() {
    with(large(), async |sim, drive| {
        let other = host(sim, drive, QueueId(2));
        let (entry, mem) = write(0, LARGE);
        assert!(other.execute(entry, mem).await.unwrap().status.is_success());
        sim.sleep(LONG).await;
        for wait in [0, 3, 30, 60, 200] {
            let (dying, deleted) = leaving(sim, drive, 1);
            let (issuer, mem) = (Issuer::new(sim), HostMem::zeroed(LARGE as usize * 512));
            let dead = issuer.execute(&*dying, read(0, LARGE), mem.clone());
            sim.sleep(Span::from_us(wait)).await;
            drop(dying);
            until(sim, || deleted.get()).await;
            let then = mem.to_vec();
            sim.sleep(LONG).await;
            assert!(mem.to_vec() == then, "{wait} us: memory of a queue that is gone was written");
            drop(dead);
        }
    });
}

#[test]
fn a_queue_that_is_being_deleted_takes_no_command_and_keeps_its_number() {
    with(config(), async |sim, drive| {
        let pair = crate::common::Pair::new(sim, drive, 1, 8);
        pair.put(read(0, 8), HostMem::none());
        pair.ring();
        pair.put(read(8, 8), HostMem::none());
        drive.delete_queue_pair(pair.id).unwrap();
        pair.ring();
        let again = || QueueDrive::new(sim, drive.clone(), pair.id, 8).err().map(Status::meaning);
        assert_eq!(again(), Some(Status::INVALID_QUEUE_ID), "its command is in work");
        assert_eq!(drive.delete_queue_pair(pair.id).map_err(Status::meaning), Err(Status::INVALID_QUEUE_ID));
        sim.sleep(LONG).await;
        let posted = pair.reap().expect("a command that was fetched is told of");
        assert_eq!(posted.entry.status().meaning(), Status::ABORTED_SQ_DELETION);
        assert!(pair.reap().is_none(), "the second was never fetched");
        assert_eq!(again(), None);
    });
}

fn csts(drive: &Drive) -> u32 {
    drive.register(CSTS)
}

#[test]
fn a_reset_stops_all_commands_deletes_all_queues_and_forgets_what_was_set() {
    with(ControllerConfig { buffer: BufferMode::Through, ..large() }, async |sim, drive| {
        assert_eq!((drive.register(VS), csts(drive)), (VERSION_2_1, CSTS_RDY));
        assert_eq!(drive.register(CAP) & 0xffff, crate::common::ENTRIES - 1);
        let enabled = drive.register(CC);
        let (admin, queue) = (host(sim, drive, QueueId::ADMIN), QueueDrive::new(sim, drive.clone(), QueueId(1), 32));
        let set = SubmissionEntry::set_features(feature::ARBITRATION, 7);
        assert!(admin.execute(set, HostMem::none()).await.unwrap().status.is_success());
        let (queue, issuer) = (queue.unwrap(), Issuer::new(sim));
        let commands: Vec<_> = (0..8)
            .map(|number| {
                let (entry, mem) = write(number * 256, 256);
                issuer.execute(&*queue, entry, mem)
            })
            .collect();
        sim.sleep(Span::from_us(50)).await;
        drive.set_register(CC, enabled & !CC_EN);
        assert_eq!(csts(drive), CSTS_RDY, "commands are in work");
        until(sim, || csts(drive) == 0).await;
        for command in commands {
            assert_eq!(command.await.status.meaning(), Status::ABORTED_SQ_DELETION);
        }
        let (entry, mem) = write(0, 8);
        assert_eq!(issuer.execute(&*queue, entry, mem).await.status, Status::ABORTED_SQ_DELETION, "its queue is gone");
        drive.set_register(AQA, 0x001f_001f);
        drive.set_register(CC, enabled);
        assert_eq!((csts(drive), drive.register(AQA)), (CSTS_RDY, 0x001f_001f));
        let admin = host(sim, drive, QueueId::ADMIN);
        let get = SubmissionEntry::get_features(feature::ARBITRATION);
        assert_eq!(admin.execute(get, HostMem::none()).await.unwrap().dw0, 3, "the default");
        let again = host(sim, drive, QueueId(1));
        let (entry, mem) = write(0, 8);
        assert!(again.execute(entry, mem).await.unwrap().status.is_success());
    });
}

#[test]
fn what_cannot_be_enabled_is_a_fatal_status_until_the_next_reset() {
    with(config(), async |_, drive| {
        let enabled = drive.register(CC);
        // A command set that is not supported, pages of 8 KiB, vendor specific arbitration.
        for wrong in [1 << 4, 1 << 7, 7 << 11] {
            drive.set_register(CC, enabled & !CC_EN);
            drive.set_register(CC, enabled | wrong);
            assert_eq!(csts(drive), CSTS_CFS, "{wrong:x}h");
        }
        drive.set_register(CC, enabled & !CC_EN);
        assert_eq!(csts(drive), 0);
        drive.set_register(CC, enabled);
        assert_eq!(csts(drive), CSTS_RDY);
    });
}

#[test]
fn a_normal_shutdown_flushes_the_buffer_and_an_abrupt_one_does_not() {
    for (notification, flushes) in [(1, true), (2, false)] {
        with(ControllerConfig { buffer: BufferMode::Volatile, ..config() }, async |sim, drive| {
            let host = host(sim, drive, QueueId(1));
            let (entry, mem) = write(0, 8);
            assert!(host.execute(entry, mem).await.unwrap().status.is_success());
            drive.set_register(CC, drive.register(CC) | notification << 14);
            assert_eq!(csts(drive), CSTS_RDY | CSTS_SHUTTING_DOWN);
            let begun = sim.now();
            until(sim, || csts(drive) == CSTS_RDY | CSTS_SHUT_DOWN).await;
            assert_eq!(sim.now() - begun > PROGRAM, flushes, "SHN {notification}");
        });
    }
}

/// Base 3.6.1: the shutdown state holds whatever CC.EN is, until the controller is enabled without a notification, or reset.
#[test]
fn a_controller_that_is_not_enabled_is_shut_down_too() {
    const NORMAL: u32 = 0b01 << 14;
    with(ControllerConfig { buffer: BufferMode::Volatile, ..config() }, async |sim, drive| {
        let enabled = drive.register(CC);
        let disabled = enabled & !CC_EN;
        drive.set_register(CC, disabled);
        assert_eq!(csts(drive), 0);
        drive.set_register(CC, disabled | NORMAL);
        assert_eq!(csts(drive), CSTS_SHUTTING_DOWN);
        until(sim, || csts(drive) == CSTS_SHUT_DOWN).await;
        drive.set_register(CC, disabled);
        assert_eq!(csts(drive), CSTS_SHUT_DOWN, "00b has no effect");
        drive.set_register(CC, enabled);
        assert_eq!(csts(drive), CSTS_RDY);
        // The reset has not ended when the shutdown begins.
        let queue = host(sim, drive, QueueId(1));
        let (entry, mem) = write(0, 8);
        queue.submit(entry, mem);
        sim.sleep(Span::from_us(2)).await;
        drive.set_register(CC, disabled | NORMAL);
        assert_eq!(csts(drive), CSTS_RDY | CSTS_SHUTTING_DOWN);
        until(sim, || csts(drive) == CSTS_SHUT_DOWN).await;
        drive.set_register(CC, enabled | NORMAL);
        assert_eq!(csts(drive), CSTS_RDY | CSTS_SHUT_DOWN, "the notification was not cleared");
        drive.set_register(CC, disabled | NORMAL);
        assert_eq!(csts(drive), 0, "it was reset");
    });
}

fn abort(queue: QueueId, cid: u16) -> SubmissionEntry {
    let entry = SubmissionEntry::admin(AdminOpcode::ABORT);
    SubmissionEntry { cdw10: (u32::from(queue.0) | u32::from(cid) << 16).into(), ..entry }
}

/// A write waits for its program, an event request for an event.
#[test]
fn abort_ends_what_waits_and_says_so() {
    with(ControllerConfig { buffer: BufferMode::Through, ..config() }, async |sim, drive| {
        let (admin, pair) = (crate::common::Pair::new(sim, drive, 0, 8), crate::common::Pair::new(sim, drive, 1, 8));
        let aborted = async |queue, cid| {
            admin.put(abort(queue, cid), HostMem::none());
            admin.ring();
            sim.sleep(Span::from_us(10)).await;
            let statuses: Vec<_> = std::iter::from_fn(|| admin.reap()).collect();
            admin.release();
            statuses.last().unwrap().entry.dw0.get() == 0
        };
        let (entry, mem) = write(0, 8);
        let waiting = pair.put(entry, mem);
        pair.ring();
        let event = admin.put(SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST), HostMem::none());
        admin.ring();
        sim.sleep(Span::from_us(100)).await;
        assert!(!aborted(pair.id, 99).await && !aborted(QueueId(3), 0).await, "there is no such command");
        assert!(aborted(pair.id, waiting).await && aborted(QueueId::ADMIN, event).await);
        assert!(!aborted(pair.id, waiting).await && !aborted(QueueId::ADMIN, event).await, "they have ended");
        let posted = pair.reap().expect("it has ended");
        assert_eq!((posted.entry.cid.get(), posted.entry.status().meaning()), (waiting, Status::ABORT_REQUESTED));
    });
}

/// A read of the flash is not aborted.
#[test]
fn a_command_that_uses_the_flash_goes_on() {
    with(config(), async |sim, drive| {
        let (admin, pair) = (host(sim, drive, QueueId::ADMIN), crate::common::Pair::new(sim, drive, 1, 8));
        let writer = host(sim, drive, QueueId(2));
        let (entry, mem) = write(0, 32);
        assert!(writer.execute(entry, mem).await.unwrap().status.is_success());
        sim.sleep(LONG).await;
        let cid = pair.put(read(0, 32), HostMem::none());
        pair.ring();
        sim.sleep(Span::from_us(20)).await;
        assert_eq!(admin.execute(abort(pair.id, cid), HostMem::none()).await.unwrap().dw0, 1);
        sim.sleep(LONG).await;
        assert_eq!(pair.reap().unwrap().entry.status(), Status::SUCCESS);
    });
}

/// With one slot, commands behind another are not fetched. Aborted, they never begin.
#[test]
fn a_command_that_was_not_fetched_is_aborted_without_being_served() {
    with(ControllerConfig { command_slots: 1, ..config() }, async |sim, drive| {
        let pair = crate::common::Pair::new(sim, drive, 1, 8);
        let admin = crate::common::Pair::new(sim, drive, 0, 8);
        let busy = pair.put(read(0, 8), HostMem::none());
        let (entry, mem) = write(0, 8);
        let second = pair.put(entry, mem);
        admin.put(abort(pair.id, second), HostMem::none());
        admin.ring();
        pair.ring();
        sim.sleep(LONG).await;
        assert_eq!(admin.reap().unwrap().entry.dw0.get(), 0, "aborted");
        let statuses: Vec<_> = std::iter::from_fn(|| pair.reap())
            .map(|posted| (posted.entry.cid.get(), posted.entry.status().meaning()))
            .collect();
        assert_eq!(statuses, [(busy, Status::SUCCESS), (second, Status::ABORT_REQUESTED)]);
        pair.release();
        let mem = HostMem::from_bytes(&[1; 4_096]);
        pair.put(read(0, 8), mem.clone());
        pair.ring();
        sim.sleep(LONG).await;
        assert_eq!(mem.to_vec(), vec![0; 4_096], "the aborted write wrote nothing");
    });
}

/// A search of a long queue takes time; Identify limits the concurrent Aborts.
#[test]
fn aborts_search_a_long_queue_in_steps_and_a_few_at_a_time() {
    with(ControllerConfig { command_slots: 64, max_queue_entries: 4_096, ..config() }, async |sim, drive| {
        let pair = crate::common::Pair::new(sim, drive, 1, 1_024);
        let admin = crate::common::Pair::new(sim, drive, 0, 64);
        let cids: Vec<u16> = (0..1_000).map(|_| pair.put(read(0, 8), HostMem::none())).collect();
        pair.ring();
        let aborts: Vec<u16> = [cids[999], 2_000, 2_001, 2_002, 2_003, 2_004]
            .map(|cid| admin.put(abort(pair.id, cid), HostMem::none()))
            .to_vec();
        admin.ring();
        sim.sleep(LONG).await;
        let mut ended: Vec<_> = std::iter::from_fn(|| admin.reap())
            .map(|posted| (posted.entry.cid.get(), posted.entry.status().meaning(), posted.entry.dw0.get()))
            .collect();
        ended.sort_unstable_by_key(|(cid, ..)| *cid);
        let expected: Vec<_> = aborts
            .iter()
            .enumerate()
            .map(|(number, cid)| match number {
                0 => (*cid, Status::SUCCESS, 0),
                1..=3 => (*cid, Status::SUCCESS, 1),
                _ => (*cid, Status::ABORT_LIMIT_EXCEEDED, 0),
            })
            .collect();
        assert_eq!(ended, expected);
        let statuses: Vec<_> =
            std::iter::from_fn(|| pair.reap()).map(|posted| posted.entry.status().meaning()).collect();
        assert_eq!(statuses.iter().filter(|status| **status == Status::ABORT_REQUESTED).count(), 1);
        assert_eq!(statuses.len(), 1_000);
    });
}

/// A function level reset clears everything that the host wrote, whether the controller was enabled or only shut down.
#[test]
fn a_reset_of_the_function_clears_all_properties() {
    with(config(), async |sim, drive| {
        let controller = drive.subsystem().new_controller(HostIdentity::default(), TransportModel::Message).unwrap();
        let shut_down = 0b01 << 14;
        for cc in [0, shut_down, 6 << 16 | 4 << 20 | CC_EN, shut_down | CC_EN] {
            controller.set_register(AQA, 0x001f_001f);
            controller.set_register(CC, cc);
            until(sim, || controller.register(CSTS) & CSTS_SHUTTING_DOWN == 0).await;
            let right =
                if cc & shut_down != 0 { CSTS_SHUT_DOWN } else { 0 } | if cc & CC_EN != 0 { CSTS_RDY } else { 0 };
            assert_eq!((controller.register(CSTS), controller.register(AQA)), (right, 0x001f_001f), "{cc:x}");
            controller.reset_function();
            until(sim, || controller.register(CSTS) & CSTS_RDY == 0).await;
            assert_eq!([CC, CSTS, AQA].map(|offset| controller.register(offset)), [0; 3], "{cc:x}");
        }
        // A reset that ends a shutdown in progress leaves no shutdown state.
        controller.set_register(CC, shut_down);
        controller.reset_function();
        sim.sleep(LONG).await;
        assert_eq!(controller.register(CSTS), 0);
    });
}
