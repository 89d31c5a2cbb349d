//! Long commands of one host next to those of another: memory and turns are shared.

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
use crate::long::{self, COMMANDS, Long};
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

/// Bytes of data submitted to the drive at each time, in ns: commands of a turn have the same time.
type Given = Arc<Mutex<BTreeMap<u64, usize>>>;

/// A drive that records the arrival times of commands.
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

/// Bursts of commands that occupy the drive for long are spread over turns, in each of which others are served.
#[test]
fn long_commands_take_a_bounded_part_of_each_turn() {
    let server = Server::of(None, 1 << 30, Long::new);
    let (_admin, mut queue) = Host::with_queue(&server);
    for (name, entry, data) in long::commands() {
        let before = server.handle.figures().unwrap().timing.turns;
        let entry = match data.is_empty() {
            true => SubmissionEntry { flags: entry.flags | 0x40, ..entry },
            false => entry.with_sgl(SglDescriptor::in_capsule(data.len() as u32)),
        };
        let capsules = (0..COMMANDS).map(|cid| queue.capsule(SubmissionEntry { cid: cid.into(), ..entry }, &data));
        let bytes = capsules.collect::<Vec<_>>().concat();
        queue.stream.write_all(&bytes).unwrap();
        for _ in 0..COMMANDS {
            assert_eq!(queue.response().status(), Status::SUCCESS, "{name}");
        }
        let figures = server.handle.figures().unwrap();
        long::check(name, &figures);
        // Of each command 16 KiB count in a turn.
        let cost = if IoOpcode(entry.opcode) == IoOpcode::WRITE_UNCORRECTABLE { 32 << 20 } else { 0 };
        let (turns, least) = (figures.timing.turns - before, u64::from(COMMANDS - 1) * (cost / (16 << 10)));
        assert!(turns >= least, "{name}: {turns} turns, and {least} at least");
    }
}

/// A Compare transfers the data that it compares, and works on equally many bytes.
#[test]
fn compares_take_a_bounded_part_of_each_turn() {
    const LEN: u32 = 1 << 20;
    let server = Server::of(None, 1 << 30, Long::new);
    let (_admin, mut queue) = Host::with_queue(&server);
    let entry = SubmissionEntry::blocks(IoOpcode::COMPARE, 1, 0, LEN / 512);
    for _ in 0..4 {
        queue.begin_transfer(entry, LEN);
    }
    let mut ended = 0;
    while ended < 4 {
        match queue.receive() {
            Pdu::Ready(ready) => queue.answer(&ready, &vec![0; LEN as usize], 128 << 10),
            Pdu::Response(entry) => {
                assert_eq!(entry.status(), Status::SUCCESS);
                ended += 1;
            }
            other => panic!("{other:?} was not to come"),
        }
    }
    long::check("Compare", &server.handle.figures().unwrap());
}

/// The socket of a host that receives nothing takes at most a few MiB, and twice as much is read for it.
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
