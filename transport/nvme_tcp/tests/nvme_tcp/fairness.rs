//! Long commands of one host beside those of another: memory and turns are shared.

use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use nandscape_drive::testing::INFO;
use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_sim::Sim;
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::host::{Host, Pdu};
use crate::null::NullExport;
use crate::server::Server;

/// Sends reads of `len` bytes at once.
fn burst(queue: &mut Host, reads: u16, len: u32) {
    let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, len / 512).with_sgl(SglDescriptor::transport(len));
    let capsules = (0..reads).map(|cid| queue.capsule(SubmissionEntry { cid: cid.into(), ..entry }, &[]));
    let bytes = capsules.collect::<Vec<_>>().concat();
    queue.stream.write_all(&bytes).unwrap();
}

/// The drive of these tests takes 2 MiB at once, more than a client of other transports is guaranteed.
#[test]
fn a_host_that_reads_nothing_leaves_memory_for_the_longest_command_of_others() {
    let server = Server::with(None, 4 << 20);
    let (_greedy_admin, mut greedy) = Host::with_queue(&server);
    let (_admin, mut queue) = Host::with_queue(&server);
    burst(&mut greedy, 64, 2 << 20);
    for _ in 0..20 {
        let (status, data) = queue.read(0, 4_096);
        assert_eq!((status, data.len()), (Status::SUCCESS, 2 << 20));
        assert_eq!(queue.write(0, &vec![7; 2 << 20], 128 << 10), Status::SUCCESS);
    }
}

/// Bytes of data that the drive was given at each time, in ns: commands of a turn come at the same time.
type Given = Arc<Mutex<BTreeMap<u64, usize>>>;

/// A drive that notes when commands come.
struct Notes(Sim, Given);

impl Drive for Notes {
    fn info(&self) -> DriveInfo {
        DriveInfo { max_blocks: 4_096, ..INFO }
    }

    fn submit(&self, io: Io) {
        let bytes = (io.command.cdw12.get() as u16 as usize + 1) * 512;
        *self.1.lock().unwrap().entry(self.0.now().ns()).or_default() += bytes;
        io.token.complete(Completion::of(Status::SUCCESS));
    }
}

fn begun_together(reads: u16, len: u32) -> (usize, usize) {
    let given = Given::default();
    let notes = given.clone();
    let server = Server::of(None, 1 << 30, move |sim| {
        let drive = Notes(sim.clone(), notes);
        NullExport::of(sim, Rc::new(drive))
    });
    let admin = Host::admin(&server, Digests::default());
    let mut queue = admin.queue(&server, 1, Digests::default());
    burst(&mut queue, reads, len);
    let mut ended = 0;
    while ended < reads {
        if let Pdu::Response(entry) = queue.receive() {
            assert_eq!(entry.status(), Status::SUCCESS);
            ended += 1;
        }
    }
    let given = given.lock().unwrap();
    (given.values().copied().max().unwrap(), given.values().sum())
}

#[test]
fn few_bytes_of_a_burst_begin_in_one_turn() {
    assert_eq!(begun_together(30, 2 << 20), (2 << 20, 60 << 20));
    let (most, all) = begun_together(100, 96 << 10);
    assert!(most <= 3 * (96 << 10) && all == 9_600 << 10, "{most} bytes of {all} began in one turn");
}

/// A burst of commands that change 32 MiB each and bring no data is spread over turns, in each of which others are served.
#[test]
fn long_commands_without_data_take_a_bounded_part_of_each_turn() {
    const COMMANDS: u16 = 6;
    let server = Server::start();
    let (_admin, mut queue) = Host::with_queue(&server);
    for opcode in [IoOpcode::WRITE_UNCORRECTABLE, IoOpcode::VERIFY] {
        let before = server.handle.figures().unwrap().timing.turns;
        let mut entry = SubmissionEntry::blocks(opcode, 1, 0, 1 << 16);
        entry.flags |= 0x40;
        let capsules = (0..COMMANDS).map(|cid| queue.capsule(SubmissionEntry { cid: cid.into(), ..entry }, &[]));
        let bytes = capsules.collect::<Vec<_>>().concat();
        queue.stream.write_all(&bytes).unwrap();
        for _ in 0..COMMANDS {
            let ended = queue.response().status().meaning();
            assert!([Status::SUCCESS, Status::UNRECOVERED_READ_ERROR].contains(&ended), "{ended}");
        }
        let turns = server.handle.figures().unwrap().timing.turns - before;
        // Of each command 16 KiB count in a turn.
        let least = u64::from(COMMANDS - 1) * ((32 << 20) / (16 << 10));
        assert!(turns >= least, "{opcode:?}: {turns} turns, and {least} at least");
    }
}

/// The socket of a host that receives nothing takes a few MiB at most, and twice as much is read for it.
#[test]
fn few_reads_are_begun_for_a_host_that_receives_nothing_and_all_when_it_does() {
    const READS: u16 = 64;
    let given = Given::default();
    let notes = given.clone();
    let server = Server::of(None, 1 << 30, move |sim| {
        let drive = Notes(sim.clone(), notes);
        NullExport::of(sim, Rc::new(drive))
    });
    let admin = Host::admin(&server, Digests::default());
    let (mut deaf, mut other) =
        (admin.queue(&server, 1, Digests::default()), admin.queue(&server, 2, Digests::default()));
    burst(&mut deaf, READS, 2 << 20);
    let mut read = 0;
    for _ in 0..200 {
        assert_eq!(other.read(0, 8).0, Status::SUCCESS);
        read += 4_096;
    }
    let begun = given.lock().unwrap().values().sum::<usize>() - read;
    assert!(begun <= 32 << 20, "{begun} bytes were read for it");
    let mut ended = 0;
    while ended < READS {
        ended += u16::from(matches!(deaf.receive(), Pdu::Response(_)));
    }
    assert_eq!(given.lock().unwrap().values().sum::<usize>() - read, usize::from(READS) * (2 << 20));
}
