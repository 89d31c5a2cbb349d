//! The NBD client against a server whose behaviour each test sets.
#![cfg(unix)]

use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;
use std::thread::JoinHandle;

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, HostMem, Io, Token};
use nandscape_host_driver::Remote;
use nandscape_host_driver::nbd::{NbdAddress, NbdDrive, Place};
use nandscape_wire_nbd::{
    ExportInfo, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, Greeting, NBD_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC,
    OptionHeader, OptionReply, Request, SIMPLE_REPLY_MAGIC, SimpleReply, command, error, info, option, reply,
    transmission,
};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

/// The server's end of a connection.
struct Peer(UnixStream);

impl Peer {
    fn receive<T: FromBytes + IntoBytes>(&mut self) -> T {
        let mut value = T::new_zeroed();
        self.0.read_exact(value.as_mut_bytes()).unwrap();
        value
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    fn reply(&mut self, cookie: u64, error: u32, data: &[u8]) {
        let reply = SimpleReply { magic: SIMPLE_REPLY_MAGIC.into(), error: error.into(), cookie: cookie.into() };
        self.send(&[reply.as_bytes(), data].concat());
    }

    /// Offers 1 MiB under any name.
    fn negotiate(&mut self) {
        let flags = (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).into();
        self.send(Greeting { magic: NBD_MAGIC.into(), option_magic: OPTION_MAGIC.into(), flags }.as_bytes());
        self.bytes(4);
        let header: OptionHeader = self.receive();
        assert_eq!(header.option.get(), option::GO);
        self.bytes(header.len.get() as usize);
        let flags = transmission::HAS_FLAGS | transmission::SEND_FLUSH | transmission::SEND_TRIM;
        let size = ExportInfo { kind: info::EXPORT.into(), size: (1 << 20).into(), flags: flags.into() };
        for (kind, data) in [(reply::INFO, size.as_bytes()), (reply::ACK, &[])] {
            let (magic, option) = (OPTION_REPLY_MAGIC.into(), option::GO.into());
            let header = OptionReply { magic, option, reply: kind.into(), len: (data.len() as u32).into() };
            self.send(&[header.as_bytes(), data].concat());
        }
    }
}

/// Keeps how commands ended.
#[derive(Default)]
struct Ended(RefCell<Vec<(u64, Status)>>);

impl Sink for Ended {
    fn complete(&self, tag: u64, completion: Completion) {
        self.0.borrow_mut().push((tag, completion.status.meaning()));
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

struct Rig {
    drive: NbdDrive,
    ended: Rc<Ended>,
    server: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Rig {
    /// A drive whose server negotiates, then acts.
    fn new(act: impl FnOnce(&mut Peer) + Send + 'static) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let mut peer = Peer(listener.accept().unwrap().0);
            peer.negotiate();
            act(&mut peer);
        });
        let address = NbdAddress { place: Place::Unix(path), export: "x".to_owned() };
        let drive = NbdDrive::connect(&address, true, NbdDrive::PATIENCE).unwrap();
        Rig { drive, ended: Rc::default(), server, _folder: folder }
    }

    fn submit(&self, tag: u64, command: SubmissionEntry, mem: HostMem) {
        self.drive.submit(Io { command, mem, token: Token::new(self.ended.clone(), tag) });
    }

    /// Polls until this number of commands have ended; how.
    fn until(&self, count: usize) -> Vec<(u64, Status)> {
        while self.ended.0.borrow().len() < count && self.drive.poll().is_ok() {
            std::thread::yield_now();
        }
        self.ended.0.take()
    }
}

fn blocks(opcode: IoOpcode, first: u64, count: u32) -> SubmissionEntry {
    SubmissionEntry::blocks(opcode, 1, first, count)
}

#[test]
fn replies_come_in_any_order_and_each_read_gets_its_data() {
    let rig = Rig::new(|peer| {
        let reads: Vec<Request> = (0..3).map(|_| peer.receive()).collect();
        for read in reads.iter().rev() {
            let (offset, len) = (read.offset.get(), read.len.get() as usize);
            peer.reply(read.cookie.get(), 0, &vec![(offset / 512) as u8; len]);
        }
        let write: Request = peer.receive();
        assert_eq!((write.kind.get(), write.offset.get(), write.len.get()), (command::WRITE, 512, 1_024));
        assert_eq!(peer.bytes(1_024), vec![7; 1_024]);
        peer.reply(write.cookie.get(), 0, &[]);
        assert_eq!(peer.receive::<Request>().kind.get(), command::DISC);
    });
    assert_eq!(rig.drive.info().bytes(), 1 << 20);
    // One is longer than a single receive.
    let mems: Vec<HostMem> = [512, 600 << 10, 512].map(HostMem::zeroed).into();
    for (mem, number) in mems.iter().zip(1..) {
        let count = (mem.len() / 512) as u32;
        rig.submit(number, blocks(IoOpcode::READ, number, count), mem.clone());
    }
    assert_eq!(rig.until(3), [(3, Status::SUCCESS), (2, Status::SUCCESS), (1, Status::SUCCESS)]);
    for (mem, number) in mems.iter().zip(1u8..) {
        assert!(mem.to_vec().iter().all(|byte| *byte == number), "{number}");
    }
    rig.submit(4, blocks(IoOpcode::WRITE, 1, 2), HostMem::from_bytes(&[7; 1_024]));
    assert_eq!(rig.until(1), [(4, Status::SUCCESS)]);
    let Rig { drive, server, .. } = rig;
    drop(drive);
    server.join().unwrap();
}

#[test]
fn errors_are_statuses_and_bad_commands_are_not_sent() {
    let rig = Rig::new(|peer| {
        for code in [error::EIO, error::ENOSPC] {
            let request: Request = peer.receive();
            peer.bytes(if request.kind.get() == command::WRITE { request.len.get() as usize } else { 0 });
            peer.reply(request.cookie.get(), code, &[]);
        }
        assert_eq!(peer.receive::<Request>().kind.get(), command::DISC);
    });
    rig.submit(1, blocks(IoOpcode::READ, 0, 1), HostMem::none());
    rig.submit(2, blocks(IoOpcode::WRITE, 0, 1), HostMem::none());
    assert_eq!(rig.until(2), [(1, Status::UNRECOVERED_READ_ERROR), (2, Status::CAPACITY_EXCEEDED)]);
    rig.submit(3, blocks(IoOpcode::READ, 1 << 20, 1), HostMem::none());
    rig.submit(4, blocks(IoOpcode::COMPARE, 0, 1), HostMem::none());
    assert_eq!(rig.until(2), [(3, Status::LBA_OUT_OF_RANGE), (4, Status::INVALID_OPCODE)]);
    let Rig { drive, server, .. } = rig;
    drop(drive);
    server.join().unwrap();
}

#[test]
fn a_lost_connection_ends_every_command_and_later_ones() {
    // It hangs up in the middle of a read's data.
    let rig = Rig::new(|peer| {
        let read: Request = peer.receive();
        peer.reply(read.cookie.get(), 0, &[1; 100]);
    });
    rig.submit(1, blocks(IoOpcode::READ, 0, 1), HostMem::zeroed(512));
    rig.submit(2, SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none());
    assert_eq!(rig.until(2), [(1, Status::ABORTED_SQ_DELETION), (2, Status::ABORTED_SQ_DELETION)]);
    let lost = rig.drive.poll().unwrap_err().to_string();
    assert!(lost.contains("nbd+unix:///x?socket=") && lost.contains("is lost"), "{lost}");
    rig.submit(3, blocks(IoOpcode::READ, 0, 1), HostMem::zeroed(512));
    assert_eq!(*rig.ended.0.borrow(), [(3, Status::ABORTED_SQ_DELETION)]);
}

#[test]
fn nonsense_from_the_server_ends_the_connection() {
    for nonsense in [[0; 16], {
        let reply = SimpleReply { magic: SIMPLE_REPLY_MAGIC.into(), error: 0.into(), cookie: 99.into() };
        reply.as_bytes().try_into().unwrap()
    }] {
        let rig = Rig::new(move |peer| {
            peer.receive::<Request>();
            peer.send(&nonsense);
        });
        rig.submit(1, blocks(IoOpcode::READ, 0, 1), HostMem::zeroed(512));
        assert_eq!(rig.until(1), [(1, Status::ABORTED_SQ_DELETION)]);
        assert!(rig.drive.poll().is_err());
    }
}
