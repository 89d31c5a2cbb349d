//! Well-behaved clients, one for each transport, each on a thread: they write, read back, and compare, round after round.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, HostMem, Io, Token};
use nandscape_host_driver::Remote;
use nandscape_host_driver::nbd::NbdDrive;
use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_host_driver::vfio_user::{Function, QueuePair};
use nandscape_transport_reactor::WallClock;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Places;
use crate::patience;

/// Commands at a time, of 8 blocks each.
const DEPTH: u64 = 8;
const BLOCKS: u32 = 8;
const BYTES: usize = BLOCKS as usize * 512;

/// See the file.
pub(super) struct Neighbours {
    stop: Arc<AtomicBool>,
    all: Vec<Neighbour>,
}

struct Neighbour {
    name: &'static str,
    /// Rounds that it has verified.
    rounds: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Neighbours {
    /// Connects one on each transport.
    pub(super) fn start(places: &Places) -> Neighbours {
        let stop = Arc::<AtomicBool>::default();
        let (nbd, tcp, function) = (places.nbd.clone(), places.nvme_tcp.clone(), places.own_function.clone());
        let nbd = move || {
            let address = format!("nbd+unix:///small?socket={}", nbd.display()).parse().unwrap();
            OverSocket::new(NbdDrive::connect(&address, true, NbdDrive::PATIENCE).unwrap(), 0)
        };
        let tcp = move || {
            let clock = WallClock::start();
            let drive = NvmeTcp::connect(Target::new(tcp.address, tcp.nqn), Box::new(move || clock.now()));
            OverSocket::new(drive.unwrap(), 1_000)
        };
        let function = move || OverQueues::new(Function::connect(&function, 64 << 12).unwrap(), 2_000);
        let all = vec![start("nbd", &stop, nbd), start("nvme_tcp", &stop, tcp), start("vfio_user", &stop, function)];
        Neighbours { stop, all }
    }

    /// Waits until each has verified a round that began after this.
    pub(super) fn advance(&self) {
        let wanted: Vec<u64> = self.all.iter().map(|one| one.rounds.load(Ordering::SeqCst) + 2).collect();
        for (one, wanted) in self.all.iter().zip(wanted) {
            patience::until(&format!("the neighbour over {} is served", one.name), || {
                assert!(!one.thread.is_finished(), "the neighbour over {} has failed", one.name);
                one.rounds.load(Ordering::SeqCst) >= wanted
            });
        }
    }

    /// Ends all of them.
    pub(super) fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        for one in self.all {
            assert!(one.thread.join().is_ok(), "the neighbour over {} has failed", one.name);
        }
    }
}

/// A client of one transport.
trait Client {
    /// Executes a command for each place in `data`: writes its data, or fills it with the data read.
    fn execute(&mut self, opcode: IoOpcode, data: &mut [(u64, Vec<u8>)]);

    /// The first block of its part of the drive.
    fn first(&self) -> u64;
}

fn start<C: Client>(
    name: &'static str,
    stop: &Arc<AtomicBool>,
    connect: impl FnOnce() -> C + Send + 'static,
) -> Neighbour {
    let (rounds, stop) = (Arc::<AtomicU64>::default(), stop.clone());
    let counts = rounds.clone();
    let thread = std::thread::spawn(move || {
        let mut client = connect();
        while !stop.load(Ordering::SeqCst) {
            round(&mut client, counts.load(Ordering::SeqCst));
            counts.fetch_add(1, Ordering::SeqCst);
        }
    });
    Neighbour { name, rounds, thread }
}

/// Writes a pattern of this round, reads it back, and compares.
fn round(client: &mut impl Client, number: u64) {
    let first = client.first();
    let places = (0..DEPTH).map(|at| first + (number % 10 * DEPTH + at) * u64::from(BLOCKS));
    let pattern = |slba: u64| (0..BYTES).map(|at| (number * 31 + slba + (at as u64 >> 3)) as u8).collect();
    let mut written: Vec<(u64, Vec<u8>)> = places.map(|slba| (slba, pattern(slba))).collect();
    client.execute(IoOpcode::WRITE, &mut written);
    let mut read: Vec<(u64, Vec<u8>)> = written.iter().map(|(slba, _)| (*slba, vec![0; BYTES])).collect();
    client.execute(IoOpcode::READ, &mut read);
    assert!(written == read, "round {number} reads other data than it wrote");
}

/// A drive behind a socket.
struct OverSocket<D> {
    drive: D,
    ended: Rc<Ended>,
    first: u64,
}

/// Statuses of commands that have ended.
#[derive(Default)]
struct Ended(RefCell<Vec<Status>>);

impl Sink for Ended {
    fn complete(&self, _: u64, completion: Completion) {
        self.0.borrow_mut().push(completion.status);
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

impl<D: Remote> OverSocket<D> {
    fn new(drive: D, first: u64) -> OverSocket<D> {
        OverSocket { drive, ended: Rc::default(), first }
    }
}

impl<D: Remote> Client for OverSocket<D> {
    fn execute(&mut self, opcode: IoOpcode, data: &mut [(u64, Vec<u8>)]) {
        let mems: Vec<HostMem> = data.iter().map(|(_, bytes)| HostMem::from_bytes(bytes)).collect();
        for ((slba, _), mem) in data.iter().zip(&mems) {
            let command = SubmissionEntry::blocks(opcode, 1, *slba, BLOCKS);
            self.drive.submit(Io { command, mem: mem.clone(), token: Token::new(self.ended.clone(), *slba) });
        }
        patience::until("commands complete", || {
            let moved = self.drive.poll().unwrap();
            if !moved {
                let flags = if self.drive.wants_to_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                let second = Timespec { tv_sec: 1, tv_nsec: 0 };
                poll(&mut [PollFd::from_borrowed_fd(self.drive.socket(), flags)], Some(&second)).unwrap();
            }
            self.ended.0.borrow().len() == data.len()
        });
        let statuses = self.ended.0.take();
        assert!(statuses.iter().all(|status| status.is_success()), "{opcode:?}: {statuses:?}");
        data.iter_mut().zip(mems).for_each(|((_, bytes), mem)| *bytes = mem.to_vec());
    }

    fn first(&self) -> u64 {
        self.first
    }
}

/// A PCI function.
struct OverQueues {
    function: Function,
    pair: QueuePair,
    /// Where the data of each command lies.
    data: u64,
    first: u64,
}

impl OverQueues {
    fn new(mut function: Function, first: u64) -> OverQueues {
        function.use_doorbell_buffers().unwrap();
        let pair = function.create_pair(DEPTH as u16).unwrap();
        let data = function.memory().take(DEPTH * BYTES as u64).unwrap();
        OverQueues { function, pair, data, first }
    }
}

impl Client for OverQueues {
    fn execute(&mut self, opcode: IoOpcode, data: &mut [(u64, Vec<u8>)]) {
        let place = |number: usize| self.data + (number * BYTES) as u64;
        for (number, (slba, bytes)) in data.iter().enumerate() {
            self.function.memory().write(place(number), bytes).unwrap();
            let entry = SubmissionEntry::blocks(opcode, 1, *slba, BLOCKS);
            let entry = SubmissionEntry { cid: (number as u16).into(), prp1: place(number).into(), ..entry };
            self.pair.submit(&entry).unwrap();
        }
        patience::until("commands complete", || {
            while let Some(entry) = self.pair.reap().unwrap() {
                assert_eq!(entry.status(), Status::SUCCESS, "{opcode:?}");
            }
            self.pair.tell_head().unwrap();
            self.pair.outstanding() == 0
        });
        for (number, (_, bytes)) in data.iter_mut().enumerate() {
            self.function.memory().read(place(number), bytes).unwrap();
        }
    }

    fn first(&self) -> u64 {
        self.first
    }
}
