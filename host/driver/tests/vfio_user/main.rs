//! The driver of PCI functions against the vfio-user server, with doorbells of each kind.
#![cfg(target_os = "linux")]

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, HostMem, Io, Token};
use nandscape_host_driver::vfio_user::{Function, FunctionDrive, FunctionError, QueuePair};
use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

mod busy;
mod server;
mod signals;

use server::Server;

/// The longest wait for a completion: a hang is reported.
const PATIENCE: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_methods, reason = "a test that hangs is reported")]
fn now() -> Instant {
    Instant::now()
}

/// Waits until all commands of a pair have completed successfully.
fn finish(pair: &mut QueuePair) {
    let begun = now();
    while pair.outstanding() > 0 {
        while let Some(entry) = pair.reap().unwrap() {
            assert_eq!(entry.status(), Status::SUCCESS);
        }
        pair.tell_head().unwrap();
        assert!(now().duration_since(begun) < PATIENCE, "{} commands have not completed", pair.outstanding());
    }
}

/// Writes and reads back many blocks of 4 KiB on two pairs; the queues wrap around several times.
fn work(function: &mut Function) {
    assert_eq!(function.namespace(1).unwrap(), (512, (64 << 20) / 512));
    let data = function.memory().take(16 * 4_096).unwrap();
    let mut pairs = [1, 15].map(|depth| function.create_pair(depth).unwrap());
    for round in 0..20u64 {
        for pair in &mut pairs {
            for opcode in [IoOpcode::WRITE, IoOpcode::READ] {
                for slot in 0..u64::from(pair.depth()) {
                    let (at, place) = (data + slot * 4_096, round * 16 + slot);
                    let bytes = if opcode == IoOpcode::WRITE { [place as u8 | 1; 4_096] } else { [0; 4_096] };
                    function.memory().write(at, &bytes).unwrap();
                    let entry = SubmissionEntry::blocks(opcode, 1, place * 8, 8);
                    pair.submit(&SubmissionEntry { cid: (slot as u16).into(), prp1: at.into(), ..entry }).unwrap();
                }
                let full = pair.submit(&SubmissionEntry::io(IoOpcode::FLUSH, 1));
                assert!(full.is_err(), "all entries are taken");
                finish(pair);
            }
            for slot in 0..u64::from(pair.depth()) {
                let mut bytes = [0; 4_096];
                function.memory().read(data + slot * 4_096, &mut bytes).unwrap();
                assert!(bytes == [(round * 16 + slot) as u8 | 1; 4_096], "round {round}, slot {slot}");
            }
        }
    }
}

/// Commands of `work`.
const COMMANDS: u64 = 20 * 2 * 16;

#[test]
fn doorbells_of_each_kind() {
    for (mode, buffers) in [
        (DoorbellMode::Trapped, false),
        (DoorbellMode::Shadow, true),
        (DoorbellMode::Shadow, false),
        (DoorbellMode::Buffered, true),
        (DoorbellMode::Mapped, false),
    ] {
        let server = Server::start(mode);
        let mut function = Function::connect(&server.path(), 64 * 4_096).unwrap();
        assert_eq!(function.maps_doorbells(), mode == DoorbellMode::Mapped);
        if buffers {
            function.use_doorbell_buffers().unwrap();
        }
        work(&mut function);
        let messages = function.doorbell_messages();
        match (mode, buffers) {
            (DoorbellMode::Mapped, _) => assert_eq!(messages, 0),
            // One for each command, and more for heads.
            (_, false) => assert!(messages > COMMANDS, "{mode:?}: {messages}"),
            // Their number depends on timing. Without any, no command would have begun.
            (_, true) => assert!(messages > 0, "{mode:?}"),
        }
    }
}

#[test]
fn what_is_wrong_is_told() {
    let server = Server::start(DoorbellMode::Trapped);
    let nowhere = Function::connect(&server.folder.path().join("nothing"), 0);
    assert!(matches!(nowhere, Err(FunctionError::Io(_))));
    let mut function = Function::connect(&server.path(), 3 * 4_096).unwrap();
    let error = function.namespace(9).unwrap_err().to_string();
    assert!(error.contains("Identify Namespace") || error.contains("no active namespace"), "{error}");
    function.create_pair(1).unwrap();
    let error = function.create_pair(1).err().expect("the memory is full").to_string();
    assert!(error.contains("left of the shared memory"), "{error}");
}

/// Keeps how commands ended.
#[derive(Default)]
struct Endings(RefCell<Vec<(u64, Status)>>);

impl Sink for Endings {
    fn complete(&self, tag: u64, completion: Completion) {
        self.0.borrow_mut().push((tag, completion.status.meaning()));
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

impl Endings {
    fn submit(self: &Rc<Endings>, drive: &FunctionDrive, tag: u64, command: SubmissionEntry, mem: HostMem) {
        drive.submit(Io { command, mem, token: Token::new(self.clone(), tag) });
    }

    /// Polls until this number of commands have ended, or the drive is lost; returns their statuses, by tag.
    fn until(&self, drive: &FunctionDrive, count: usize) -> Vec<(u64, Status)> {
        let begun = now();
        while self.0.borrow().len() < count && drive.poll().is_ok() {
            assert!(now().duration_since(begun) < PATIENCE, "{count} commands have not ended");
        }
        let mut ended = self.0.take();
        ended.sort_unstable_by_key(|(tag, _)| *tag);
        ended
    }
}

/// Data of one page, of two, of a list of pages, with a remainder; and more commands than the queue pair takes.
#[test]
fn a_drive_moves_data_of_any_length() {
    for mode in [DoorbellMode::Buffered, DoorbellMode::Mapped] {
        let server = Server::start(mode);
        let [one, other] = &FunctionDrive::connect(&server.path(), &[(3, None), (1, None)], true).unwrap()[..] else {
            panic!()
        };
        let info = one.info();
        assert_eq!((info.nsid, info.lba_bytes, info.bytes()), (1, 512, 64 << 20));
        assert_eq!(info.max_blocks, 2_048);
        let lengths = [1u32, 8, 9, 16, 17, 100, 256, 2_048];
        let endings = Rc::new(Endings::default());
        let all_well = |ended: Vec<(u64, Status)>| {
            assert_eq!(ended.len(), lengths.len());
            assert!(ended.iter().all(|(_, status)| status.is_success()), "{ended:?}");
        };
        let data = |blocks: u32| (0..blocks * 512).map(|at| (at / 7 + blocks) as u8).collect::<Vec<u8>>();
        for (tag, blocks) in (0..).zip(lengths) {
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, tag * 2_048, blocks);
            endings.submit(one, tag, write, HostMem::from_bytes(&data(blocks)));
        }
        all_well(endings.until(one, lengths.len()));
        let mems = lengths.map(|blocks| HostMem::zeroed(blocks as usize * 512));
        for ((tag, blocks), mem) in (0..).zip(lengths).zip(&mems) {
            endings.submit(other, tag, SubmissionEntry::blocks(IoOpcode::READ, 1, tag * 2_048, blocks), mem.clone());
        }
        all_well(endings.until(other, lengths.len()));
        for (blocks, mem) in lengths.into_iter().zip(mems) {
            assert!(mem.to_vec() == data(blocks), "{blocks} blocks");
        }
    }
}

#[test]
fn commands_of_a_drive_that_cannot_be_carried_out_fail() {
    let server = Server::start(DoorbellMode::Buffered);
    let drive = FunctionDrive::connect(&server.path(), &[(2, None)], true).unwrap().remove(0);
    let endings = Rc::new(Endings::default());
    let read = |slba, blocks| SubmissionEntry::blocks(IoOpcode::READ, 1, slba, blocks);
    endings.submit(&drive, 0, read(1 << 40, 1), HostMem::none());
    endings.submit(&drive, 1, read(0, 2_049), HostMem::none());
    endings.submit(&drive, 2, read(0, 2), HostMem::zeroed(512));
    endings.submit(&drive, 3, SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none());
    let expected = [
        (0, Status::LBA_OUT_OF_RANGE),
        (1, Status::INVALID_FIELD),
        (2, Status::DATA_SGL_LENGTH_INVALID),
        (3, Status::SUCCESS),
    ];
    assert_eq!(endings.until(&drive, 4), expected);
    drop(server);
    (0..4).for_each(|tag| endings.submit(&drive, tag, read(0, 1), HostMem::none()));
    // The controller may still have executed a command; the loss is reported, and the commands fail.
    let ended = endings.until(&drive, 5);
    assert!(ended.len() == 4 && ended[3] == (3, Status::ABORTED_SQ_DELETION), "{ended:?}");
    assert!(drive.poll().unwrap_err().endpoint.ends_with("/function"));
    endings.submit(&drive, 9, read(0, 1), HostMem::none());
    assert_eq!(endings.0.take(), [(9, Status::ABORTED_SQ_DELETION)]);
}
