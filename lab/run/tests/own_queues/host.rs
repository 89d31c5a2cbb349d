//! An example of a host with its own queues: a driver that speaks NVMe through memory shared with the drive's
//! process, and checks all data that it reads. Its memory is one file: doorbells, queues, data pages, addressed by
//! their offset.
//!
//! Left out: a PCIe function. Messages over a socket stand for registers and interrupts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nandscape_drive::mem::Mapping;
use nandscape_drive::mem::mapping::memory_file;
use nandscape_sim::{Rng, Seed};
use nandscape_wire_nvme::{AdminOpcode, CompletionEntry, IoOpcode, Status, SubmissionEntry, register};
use zerocopy::IntoBytes;

use crate::messages::{DONE, MEMORY, Message, NOT_READY, PAGE, READY, REFUSED};

/// Entries of the admin queues and of the others.
const ENTRIES: u16 = 16;
/// Commands of a batch: fewer than a queue takes.
const BATCH: u64 = 12;
/// The most pages of a command: more than two, so that there are lists.
const MOST_PAGES: u64 = 8;
/// Blocks that are used, of 512 bytes.
const BLOCKS: u64 = 20_000;

/// Identifiers of admin commands: of the one that is waited for, and of the event request.
const ADMIN_CID: u16 = 77;
const EVENT_CID: u16 = 5;
/// The longest wait for an answer: a hang is reported.
const PATIENCE: Duration = Duration::from_secs(60);

/// Page of the submission and of the completion queue of a pair.
fn queue_pages(id: u16) -> (u64, u64) {
    ((4 + 2 * u64::from(id)) * PAGE, (5 + 2 * u64::from(id)) * PAGE)
}

/// Where lists and data of a command lie.
const LISTS: u64 = 32 * PAGE;
pub(crate) const DATA: u64 = 64 * PAGE;

/// One queue pair.
struct Pair {
    id: u16,
    tail: u16,
    head: u16,
    phase: bool,
}

/// See the module.
pub(crate) struct Host {
    socket: UnixStream,
    /// Kept for the other process, which opens it by its number.
    _file: File,
    memory: Mapping,
    rng: Rng,
    /// Its first block on the drive.
    first: u64,
    /// What the drive must give back; `None` where a write may or may not have happened.
    model: Vec<Option<u8>>,
}

/// A command of a batch.
struct Command {
    opcode: IoOpcode,
    slba: u64,
    blocks: u32,
    /// The pages of its data.
    pages: Vec<u64>,
}

impl Host {
    /// Tells the drive's process of new memory. The host uses [`BLOCKS`] blocks from `first` on; a drive that is `fresh`
    /// was never written.
    pub(crate) fn connect(mut socket: UnixStream, seed: u64, fresh: bool, first: u64) -> Host {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let file = memory_file(MEMORY).unwrap();
        let path = format!("/proc/{}/fd/{}\n", std::process::id(), file.as_raw_fd());
        socket.write_all(path.as_bytes()).unwrap();
        let memory = Mapping::new(&file, 0, MEMORY as usize, true).unwrap();
        let rng = Seed::new(seed).child("host").nth(first).rng();
        let mut host =
            Host { socket, _file: file, memory, rng, first, model: vec![fresh.then_some(0); BLOCKS as usize] };
        host.request(Message::Map { address: 0, len: DATA });
        host.request(Message::Map { address: DATA, len: MEMORY - DATA });
        host
    }

    /// Sends a message and waits until it has had its effect.
    fn request(&mut self, message: Message) {
        self.socket.write_all(&message.to_bytes()).unwrap();
        loop {
            match self.hear() {
                DONE => return,
                REFUSED => panic!("{message:?} was refused"),
                _ => {}
            }
        }
    }

    /// Waits for an answer or an interrupt.
    fn hear(&mut self) -> u8 {
        let mut byte = [0];
        self.socket.read_exact(&mut byte).expect("an answer or an interrupt in time");
        byte[0]
    }

    /// Makes the drive's process read the doorbells, in case it sleeps.
    fn kick(&mut self) {
        self.socket.write_all(&Message::Kick.to_bytes()).unwrap();
    }

    fn pair(&self, id: u16) -> Pair {
        let (submissions, completions) = queue_pages(id);
        for page in [submissions, completions] {
            self.memory.write(page as usize, &[0; PAGE as usize]).unwrap();
        }
        Pair { id, tail: 0, head: 0, phase: true }
    }

    fn put(&self, pair: &mut Pair, cid: u16, mut entry: SubmissionEntry) {
        entry.cid = cid.into();
        let at = queue_pages(pair.id).0 as usize + usize::from(pair.tail) * 64;
        self.memory.write(at, entry.as_bytes()).unwrap();
        pair.tail = (pair.tail + 1) % ENTRIES;
        self.memory.store(usize::from(pair.id) * 8, pair.tail.into()).unwrap();
    }

    fn reap(&self, pair: &mut Pair) -> Option<CompletionEntry> {
        let at = queue_pages(pair.id).1 as usize + usize::from(pair.head) * 16;
        // The phase tag first: later reads then get the whole entry.
        let phase = self.memory.load(at + 12).unwrap() >> 16 & 1 != 0;
        if phase != pair.phase {
            return None;
        }
        let mut entry = CompletionEntry::default();
        self.memory.read(at, entry.as_mut_bytes()).unwrap();
        pair.head = (pair.head + 1) % ENTRIES;
        pair.phase ^= pair.head == 0;
        self.memory.store(usize::from(pair.id) * 8 + 4, pair.head.into()).unwrap();
        Some(entry)
    }

    /// Waits for the next completion.
    fn wait(&mut self, pair: &mut Pair) -> CompletionEntry {
        loop {
            if let Some(entry) = self.reap(pair) {
                return entry;
            }
            self.hear();
        }
    }

    /// Runs an admin command. The event request that `enable` leaves open may end meanwhile: a doorbell that is set to zero
    /// while its queue is deleted is an event.
    fn admin(&mut self, admin: &mut Pair, entry: SubmissionEntry) -> Status {
        self.put(admin, ADMIN_CID, entry);
        self.kick();
        loop {
            let completed = self.wait(admin);
            match completed.cid.get() {
                ADMIN_CID => return completed.status(),
                EVENT_CID => {}
                other => panic!("a completion of command {other}, which was not sent"),
            }
        }
    }

    /// Enables the controller, checks its identity, and creates pairs 1 and 2.
    fn enable(&mut self) -> [Pair; 3] {
        self.reset();
        let mut pairs = [0, 1, 2].map(|id| self.pair(id));
        let (submissions, completions) = queue_pages(0);
        let sizes = u32::from(ENTRIES - 1) << 16 | u32::from(ENTRIES - 1);
        // Entries of 64 and 16 bytes, pages of 4 KiB.
        let configuration = register::CC_EN | 6 << 16 | 4 << 20;
        let writes = [
            (register::AQA, sizes),
            (register::ASQ, submissions as u32),
            (register::ACQ, completions as u32),
            (register::CC, configuration),
        ];
        writes.into_iter().for_each(|(offset, value)| self.request(Message::Register { offset, value }));
        self.until(READY);
        let [admin, ..] = &mut pairs;
        let identify = SubmissionEntry { prp1: DATA.into(), ..SubmissionEntry::identify(1, 0) };
        assert_eq!(self.admin(admin, identify), Status::SUCCESS);
        let mut model = [0; 9];
        self.memory.read(DATA as usize + 24, &mut model).unwrap();
        assert_eq!(&model, b"Nandscape");
        let event = SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
        self.put(admin, EVENT_CID, event);
        for id in [1, 2] {
            self.create(admin, id);
        }
        pairs
    }

    /// Resets the controller, whatever it does, and waits until it is disabled. All doorbells are zero again.
    fn reset(&mut self) {
        self.request(Message::Register { offset: register::CC, value: 0 });
        self.until(NOT_READY);
        self.memory.write(0, &[0; PAGE as usize]).unwrap();
        self.request(Message::Look);
    }

    /// Waits until Controller Status shows `state`.
    fn until(&mut self, state: u8) {
        loop {
            self.socket.write_all(&Message::Status.to_bytes()).unwrap();
            let answer = std::iter::repeat_with(|| self.hear()).find(|byte| [READY, NOT_READY].contains(byte));
            if answer == Some(state) {
                return;
            }
        }
    }

    fn create(&mut self, admin: &mut Pair, id: u16) {
        let (submissions, completions) = queue_pages(id);
        let completion = SubmissionEntry::create_completion_queue(id, ENTRIES.into(), completions, Some(id));
        assert_eq!(self.admin(admin, completion), Status::SUCCESS);
        let submission = SubmissionEntry::create_submission_queue(id, ENTRIES.into(), submissions, id);
        assert_eq!(self.admin(admin, submission), Status::SUCCESS);
    }

    /// A random command whose data lies on pages that belong to its number in a batch. Blocks of a batch are apart. Those
    /// of commands from number `BATCH` on are not checked.
    fn random(&mut self, number: u64) -> Command {
        let blocks = 1 + self.rng.below(8 * (MOST_PAGES - 1));
        let room = BLOCKS / BATCH;
        let slba = number * room + self.rng.below(room - blocks);
        let first = DATA + number * MOST_PAGES * PAGE;
        let mut pages: Vec<u64> = (0..MOST_PAGES).map(|page| first + page * PAGE).collect();
        self.rng.shuffle_pages(&mut pages);
        let opcode = match self.rng.below(8) {
            0..4 => IoOpcode::WRITE,
            4..7 => IoOpcode::READ,
            _ => IoOpcode::FLUSH,
        };
        Command { opcode, slba, blocks: blocks as u32, pages }
    }

    /// Its entry, and its list in memory.
    fn entry(&self, number: u64, command: &Command) -> SubmissionEntry {
        let Command { opcode, slba, blocks, pages } = command;
        if *opcode == IoOpcode::FLUSH {
            return SubmissionEntry::io(IoOpcode::FLUSH, 1);
        }
        let list = LISTS + number * PAGE;
        for (page, index) in pages[1..].iter().zip(0usize..) {
            self.memory.write(list as usize + index * 8, &page.to_le_bytes()).unwrap();
        }
        let second = if *blocks <= 16 { pages[1] } else { list };
        let mut entry = SubmissionEntry::blocks(*opcode, 1, self.first + *slba, *blocks);
        (entry.prp1, entry.prp2) = (pages[0].into(), second.into());
        entry
    }

    fn each_block(command: &Command) -> impl Iterator<Item = (usize, usize)> {
        let at = |block: u32| command.pages[block as usize / 8] as usize + block as usize % 8 * 512;
        (0..command.blocks).map(move |block| (command.slba as usize + block as usize, at(block)))
    }

    /// A batch of random commands on one queue, numbered from `first`. Blocks are filled with one value each.
    fn submit(&mut self, pair: &mut Pair, first: u64) -> BTreeMap<u16, Command> {
        let count = 1 + self.rng.below(BATCH);
        let mut commands = BTreeMap::new();
        for number in first..first + count {
            let command = self.random(number);
            if command.opcode == IoOpcode::WRITE {
                let value = self.rng.below(256) as u8;
                Host::each_block(&command).for_each(|(_, at)| self.memory.write(at, &[value; 512]).unwrap());
            }
            self.put(pair, number as u16, self.entry(number, &command));
            commands.insert(number as u16, command);
        }
        self.kick();
        commands
    }

    /// Takes the completions of a batch and checks the read data. `forgiving`: the memory may have been away.
    fn finish(&mut self, pair: &mut Pair, mut commands: BTreeMap<u16, Command>, forgiving: bool) {
        while !commands.is_empty() {
            let entry = self.wait(pair);
            let command = commands.remove(&entry.cid.get()).expect("a completion of a command that is outstanding");
            let status = entry.status();
            let good = status.is_success();
            assert!(good || forgiving && status.meaning() == Status::DATA_TRANSFER_ERROR, "{status}");
            for (block, at) in Host::each_block(&command) {
                let mut bytes = [0; 512];
                self.memory.read(at, &mut bytes).unwrap();
                match command.opcode {
                    IoOpcode::WRITE => self.model[block] = good.then_some(bytes[0]),
                    IoOpcode::READ if good => {
                        assert!(self.model[block].is_none_or(|right| bytes == [right; 512]), "block {block}");
                    }
                    _ => {}
                }
            }
        }
    }

    /// Works, with everything that can come between; goes in order, or in the middle of a batch.
    pub(crate) fn work(mut self, in_order: bool) {
        for round in 0..6 {
            let [mut admin, mut first, mut second] = self.enable();
            for step in 0..12 {
                let pair = if self.rng.below(2) == 0 { &mut first } else { &mut second };
                let commands = self.submit(pair, 0);
                // Now and then the data's memory goes away while commands are in work.
                let gone = step % 5 == 4;
                if gone {
                    self.request(Message::Unmap { address: DATA, len: MEMORY - DATA });
                    self.request(Message::Map { address: DATA, len: MEMORY - DATA });
                }
                self.finish(pair, commands, gone);
            }
            assert_eq!(self.admin(&mut admin, SubmissionEntry::delete_submission_queue(2)), Status::SUCCESS);
            assert_eq!(self.admin(&mut admin, SubmissionEntry::delete_completion_queue(2)), Status::SUCCESS);
            second = self.pair(2);
            self.memory.write(16, &[0; 8]).unwrap();
            // The doorbells of the new queue begin at zero.
            self.request(Message::Look);
            self.create(&mut admin, 2);
            let commands = self.submit(&mut second, 0);
            self.finish(&mut second, commands, false);
            if round % 2 == 0 {
                // A reset with commands in work, whose data and blocks are used by no others.
                self.submit(&mut first, BATCH);
            }
            if round == 5 && !in_order {
                self.submit(&mut first, BATCH);
                return;
            }
            self.reset();
        }
    }
}

/// What the generator lacks.
trait Shuffle {
    fn shuffle_pages(&mut self, pages: &mut [u64]);
}

impl Shuffle for Rng {
    fn shuffle_pages(&mut self, pages: &mut [u64]) {
        for last in (1..pages.len()).rev() {
            pages.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
