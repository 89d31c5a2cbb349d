//! A driver of a guest: it shares memory, enables the controller, creates queues, and checks all data that it reads.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nandscape_drive::mem::Mapping;
use nandscape_drive::mem::mapping::memory_file;
use nandscape_wire_nvme::identify::Controller;
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::{AdminOpcode, CompletionEntry, IoOpcode, Status, SubmissionEntry, register};
use nandscape_wire_vfio_user::access::DmaMap;
use nandscape_wire_vfio_user::device::{InterruptSet, RegionInfo, SparseMap};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::client::{Client, Served};

pub(crate) const PAGE: u64 = 4_096;
/// Pages of memory, and the device's address of them.
const PAGES: u64 = 256;
pub(crate) const BASE: u64 = 0x4000_0000;
/// The second half begins here.
pub(crate) const HALF: u64 = BASE + PAGES / 2 * PAGE;
/// Entries of each queue.
const ENTRIES: u16 = 32;
pub(crate) const BAR0: u32 = 0;
pub(crate) const CONFIG: u32 = 7;
/// How often a register is read that will change.
const LOOKS: u32 = 1_000_000;
/// How long a message is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const READ_WRITE: u32 = DmaMap::READ | DmaMap::WRITE;

/// Pages by use.
const IDENTIFY: u64 = 8;
const SHADOW: u64 = 9;
const EVENTS: u64 = 10;
const LISTS: u64 = 16;
/// Data of command number n is at page `DATA + n * 4`, in the second half.
const DATA: u64 = PAGES / 2;
const PAGES_A_COMMAND: u64 = 4;

/// How data is described.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Pointer {
    Prp,
    Sgl,
}

/// A queue pair.
#[derive(Clone, Default)]
struct Pair {
    tail: u16,
    head: u16,
    /// Passes of the completion queue.
    passes: u16,
}

/// See the module.
pub(crate) struct Host {
    pub(crate) client: Client,
    pub(crate) file: File,
    pub(crate) memory: Mapping,
    /// The doorbells, if they can be mapped.
    doorbells: Option<Mapping>,
    /// Event descriptors of vectors 0, 1 and 2.
    pub(crate) events: Vec<OwnedFd>,
    pairs: Vec<Pair>,
    /// Whether I/O doorbells are in buffers.
    pub(crate) buffers: bool,
    /// Doorbells that were written to registers.
    pub(crate) rung: u32,
}

impl Host {
    /// Connects, shares memory in two maps, becomes a bus master, enables the controller, and creates two pairs.
    pub(crate) fn start(path: &Path) -> Host {
        let mut host = Host::connect(Client::agree(path));
        host.map();
        host.enable();
        host
    }

    pub(crate) fn connect(mut client: Client) -> Host {
        let file = memory_file(PAGES * PAGE).unwrap();
        let memory = Mapping::new(&file, 0, (PAGES * PAGE) as usize, true).unwrap();
        let doorbells = map_doorbells(&mut client);
        let events = (0..3).map(|_| eventfd(0, EventfdFlags::NONBLOCK).unwrap()).collect();
        let pairs = vec![Pair::default(); 3];
        Host { client, file, memory, doorbells, events, pairs, buffers: false, rung: 0 }
    }

    pub(crate) fn map(&mut self) {
        let half = PAGES / 2 * PAGE;
        for (address, offset) in [(BASE, 0), (HALF, half)] {
            self.client.map(READ_WRITE, address, half, Some((self.file.as_fd(), offset))).unwrap();
        }
    }

    /// Maps the memory without descriptors, as far as `remote` marks each half: it is reached by messages.
    pub(crate) fn map_remote(&mut self, remote: [bool; 2], count_bytes: usize) {
        let half = PAGES / 2 * PAGE;
        let memory = Mapping::new(&self.file, 0, (PAGES * PAGE) as usize, true).unwrap();
        self.client.served = Some(Served { base: BASE, memory, count_bytes, asked: 0 });
        for ((address, offset), is_remote) in [(BASE, 0), (HALF, half)].into_iter().zip(remote) {
            let file = (!is_remote).then(|| (self.file.as_fd(), offset));
            self.client.map(READ_WRITE, address, half, file).unwrap();
        }
    }

    pub(crate) fn register(&mut self, offset: u32) -> u32 {
        self.client.read32(BAR0, offset.into())
    }

    pub(crate) fn set_register(&mut self, offset: u32, value: u32) {
        self.client.write(BAR0, offset.into(), &value.to_le_bytes()).unwrap();
    }

    /// Waits until Controller Status shows it.
    pub(crate) fn wait_ready(&mut self, ready: bool) {
        let is_there = (0..LOOKS).any(|_| (self.register(register::CSTS) & register::CSTS_RDY != 0) == ready);
        assert!(is_there, "the controller's readiness is not {ready} after {LOOKS} looks");
    }

    /// Resets the controller.
    pub(crate) fn disable(&mut self) {
        self.set_register(register::CC, 0);
        self.wait_ready(false);
    }

    /// Enables it, with a vector and event for each of three pairs.
    pub(crate) fn enable(&mut self) {
        self.client.write(CONFIG, 4, &[6, 0]).unwrap();
        let events: Vec<BorrowedFd<'_>> = self.events.iter().map(|event| event.as_fd()).collect();
        let flags = InterruptSet::DATA_EVENTFD | InterruptSet::ACTION_TRIGGER;
        self.client.interrupts(flags, 0, 3, &events).unwrap();
        self.buffers = false;
        self.pairs.iter_mut().for_each(|pair| *pair = Pair::default());
        self.memory.write(0, &vec![0; (8 * PAGE) as usize]).unwrap();
        let sizes = u32::from(ENTRIES - 1) << 16 | u32::from(ENTRIES - 1);
        self.set_register(register::AQA, sizes);
        for (at, address) in [(register::ASQ, BASE), (register::ACQ, BASE + PAGE)] {
            self.client.write(BAR0, at.into(), &address.to_le_bytes()).unwrap();
        }
        self.set_register(register::CC, register::CC_EN | 6 << 16 | 4 << 20);
        self.wait_ready(true);
        (1..3).for_each(|id| self.create(id));
    }

    pub(crate) fn create(&mut self, id: u16) {
        let (submissions, completions) = (BASE + u64::from(id) * 2 * PAGE, BASE + (u64::from(id) * 2 + 1) * PAGE);
        self.pairs[usize::from(id)] = Pair::default();
        self.memory.write((completions - BASE) as usize, &[0; PAGE as usize]).unwrap();
        let completion = SubmissionEntry::create_completion_queue(id, ENTRIES.into(), completions, Some(id));
        assert_eq!(self.admin(completion), Status::SUCCESS);
        let submission = SubmissionEntry::create_submission_queue(id, ENTRIES.into(), submissions, id);
        assert_eq!(self.admin(submission), Status::SUCCESS);
    }

    pub(crate) fn delete(&mut self, id: u16) {
        assert_eq!(self.admin(SubmissionEntry::delete_submission_queue(id)), Status::SUCCESS);
        assert_eq!(self.admin(SubmissionEntry::delete_completion_queue(id)), Status::SUCCESS);
    }

    /// Sets up doorbell buffers.
    pub(crate) fn use_buffers(&mut self) {
        self.memory.write((SHADOW * PAGE) as usize, &[0; 2 * PAGE as usize]).unwrap();
        let entry = SubmissionEntry {
            prp1: (BASE + SHADOW * PAGE).into(),
            prp2: (BASE + EVENTS * PAGE).into(),
            ..SubmissionEntry::admin(AdminOpcode::DOORBELL_BUFFER_CONFIG)
        };
        assert_eq!(self.admin(entry), Status::SUCCESS);
        self.buffers = true;
    }

    /// Writes something else into the pages of the doorbell buffers, which it returns.
    pub(crate) fn reuse_buffers(&mut self) -> Vec<u8> {
        self.memory.write((SHADOW * PAGE) as usize, &[0xa5; 2 * PAGE as usize]).unwrap();
        self.buffer_pages()
    }

    /// The content of the pages of the doorbell buffers.
    pub(crate) fn buffer_pages(&self) -> Vec<u8> {
        let mut pages = vec![0; 2 * PAGE as usize];
        self.memory.read((SHADOW * PAGE) as usize, &mut pages).unwrap();
        pages
    }

    /// Identify Controller.
    pub(crate) fn identify(&mut self) -> Controller {
        let identify = SubmissionEntry { prp1: (BASE + IDENTIFY * PAGE).into(), ..SubmissionEntry::identify(1, 0) };
        assert_eq!(self.admin(identify), Status::SUCCESS);
        let mut data = [0; PAGE as usize];
        self.memory.read((IDENTIFY * PAGE) as usize, &mut data).unwrap();
        Controller::read_from_bytes(&data).unwrap()
    }

    /// Its model.
    pub(crate) fn model(&mut self) -> String {
        String::from_utf8(self.identify().mn.to_vec()).unwrap().trim_end().to_owned()
    }

    pub(crate) fn admin(&mut self, entry: SubmissionEntry) -> Status {
        self.put(0, 77, entry);
        self.ring(0);
        self.wait(0).status()
    }

    /// Puts an entry into a submission queue.
    pub(crate) fn put(&mut self, id: u16, cid: u16, mut entry: SubmissionEntry) {
        entry.cid = cid.into();
        let pair = &mut self.pairs[usize::from(id)];
        let at = u64::from(id) * 2 * PAGE + u64::from(pair.tail) * 64;
        self.memory.write(at as usize, entry.as_bytes()).unwrap();
        pair.tail = (pair.tail + 1) % ENTRIES;
    }

    /// Rings the tail doorbell.
    pub(crate) fn ring(&mut self, id: u16) {
        let tail = self.pairs[usize::from(id)].tail;
        self.doorbell(u64::from(id) * 8, tail);
    }

    fn doorbell(&mut self, offset: u64, value: u16) {
        if self.buffers && offset >= 8 && !self.buffer(offset, value) {
            return;
        }
        self.rung += 1;
        match &self.doorbells {
            Some(page) => page.store(offset as usize, value.into()).unwrap(),
            None => drop(self.client.write(BAR0, 0x1000 + offset, &u32::from(value).to_le_bytes()).unwrap()),
        }
    }

    /// Puts a doorbell into the buffer; whether its register has to be written too (Base B.5).
    fn buffer(&self, offset: u64, value: u16) -> bool {
        let (shadow, event) = ((SHADOW * PAGE + offset) as usize, (EVENTS * PAGE + offset) as usize);
        let before = self.memory.load(shadow).unwrap() as u16;
        self.memory.store(shadow, value.into()).unwrap();
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let event = self.memory.load(event).unwrap() as u16;
        value.wrapping_sub(event).wrapping_sub(1) < value.wrapping_sub(before)
    }

    /// The next completion of a queue, if one is present.
    pub(crate) fn reap(&mut self, id: u16) -> Option<CompletionEntry> {
        let pair = &mut self.pairs[usize::from(id)];
        let at = ((u64::from(id) * 2 + 1) * PAGE + u64::from(pair.head) * 16) as usize;
        let phase = self.memory.load(at + 12).unwrap() >> 16 & 1 != 0;
        if phase == (pair.passes % 2 == 1) {
            return None;
        }
        let mut entry = CompletionEntry::default();
        self.memory.read(at, entry.as_mut_bytes()).unwrap();
        pair.head = (pair.head + 1) % ENTRIES;
        pair.passes += u16::from(pair.head == 0);
        let head = pair.head;
        self.doorbell(u64::from(id) * 8 + 4, head);
        Some(entry)
    }

    /// Waits for an interrupt until the next completion is present.
    pub(crate) fn wait(&mut self, id: u16) -> CompletionEntry {
        for _ in 0..LOOKS {
            if let Some(entry) = self.reap(id) {
                return entry;
            }
            match self.client.served.is_some() {
                true => self.client.serve_next(),
                false => self.wait_interrupt(id),
            }
        }
        panic!("no completion in queue {id} after {LOOKS} looks");
    }

    /// Waits for an interrupt of a vector.
    pub(crate) fn wait_interrupt(&self, vector: u16) {
        let event = &self.events[usize::from(vector)];
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&patience)).unwrap();
        assert_eq!(ready, 1, "no interrupt of vector {vector} within a minute");
        self.take_interrupts(vector);
    }

    /// Interrupts of a vector since the last call.
    pub(crate) fn take_interrupts(&self, vector: u16) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(&self.events[usize::from(vector)], &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }

    pub(crate) fn forget_interrupts(&self) {
        for vector in 0..3 {
            self.take_interrupts(vector);
        }
    }

    /// An entry that moves `blocks` blocks of 512 bytes between `slba` and the pages of command `number`.
    pub(crate) fn entry(
        &self,
        opcode: IoOpcode,
        number: u64,
        slba: u64,
        blocks: u32,
        pointer: Pointer,
    ) -> SubmissionEntry {
        let entry = SubmissionEntry::blocks(opcode, 1, slba, blocks);
        let data = BASE + (DATA + number * PAGES_A_COMMAND) * PAGE;
        let list = BASE + (LISTS + number) * PAGE;
        if pointer == Pointer::Sgl {
            let half = blocks * 256;
            let parts = [(data, half), (data + u64::from(half), half)];
            for (part, at) in parts.into_iter().zip(0..) {
                let descriptor = SglDescriptor::new(SglType::DATA_BLOCK, part.0, part.1);
                self.memory.write((list - BASE) as usize + at * 16, descriptor.as_bytes()).unwrap();
            }
            return entry.with_sgl(SglDescriptor::new(SglType::LAST_SEGMENT, list, 32));
        }
        for page in 1..PAGES_A_COMMAND {
            let at = (list - BASE + (page - 1) * 8) as usize;
            self.memory.write(at, &(data + page * PAGE).to_le_bytes()).unwrap();
        }
        let second = if blocks <= 16 { data + PAGE } else { list };
        SubmissionEntry { prp1: data.into(), prp2: second.into(), ..entry }
    }

    /// The data of a command in memory.
    fn data(&self, number: u64, blocks: u32) -> Vec<u8> {
        let mut data = vec![0; blocks as usize * 512];
        self.memory.read(((DATA + number * PAGES_A_COMMAND) * PAGE) as usize, &mut data).unwrap();
        data
    }

    /// Writes `count` ranges at once, of which each begins at a multiple of 32 blocks from `first` on, and reads them back,
    /// on pair `id`. Every byte is checked.
    pub(crate) fn work(&mut self, id: u16, first: u64, count: u64, blocks: u32, pointer: Pointer) {
        let pattern = |number: u64| -> Vec<u8> {
            let seed = first * 31 + number;
            (0..u64::from(blocks) * 512).map(|at| (seed.wrapping_mul(2_654_435_761) >> (at % 23) ^ at) as u8).collect()
        };
        for opcode in [IoOpcode::WRITE, IoOpcode::READ] {
            for number in 0..count {
                let data = if opcode == IoOpcode::WRITE { pattern(number) } else { vec![0; blocks as usize * 512] };
                self.memory.write(((DATA + number * PAGES_A_COMMAND) * PAGE) as usize, &data).unwrap();
                let entry = self.entry(opcode, number, first + number * 32, blocks, pointer);
                self.put(id, number as u16, entry);
            }
            self.ring(id);
            let mut ended = BTreeMap::new();
            while (ended.len() as u64) < count {
                let entry = self.wait(id);
                assert_eq!(ended.insert(entry.cid.get(), entry.status()), None, "completed twice");
            }
            assert!(ended.values().all(|status| *status == Status::SUCCESS), "{opcode:?}: {ended:?}");
        }
        for number in 0..count {
            assert!(self.data(number, blocks) == pattern(number), "range {number} from {first} on has other data");
        }
    }
}

/// Maps the doorbells if the server offers that.
fn map_doorbells(client: &mut Client) -> Option<Mapping> {
    use nandscape_wire_vfio_user::Command;
    let ask = |client: &mut Client, argsz: u32| {
        let info = RegionInfo { argsz: argsz.into(), ..RegionInfo::default() };
        client.call(Command::DEVICE_GET_REGION_INFO, info.as_bytes()).unwrap()
    };
    let short = RegionInfo::read_from_bytes(&ask(client, 32)).unwrap();
    if short.flags.get() & RegionInfo::MMAP == 0 {
        assert!(client.received.is_empty());
        return None;
    }
    assert_eq!((short.argsz.get(), short.cap_offset.get()), (64, 32));
    let reply = ask(client, short.argsz.get());
    let (info, rest) = RegionInfo::read_from_prefix(&reply).unwrap();
    let area = SparseMap::read_from_bytes(rest).unwrap();
    assert_eq!((info.cap_offset.get(), area.areas.get()), (32, 1));
    let file = File::from(client.received.pop().unwrap());
    Some(Mapping::new(&file, info.offset.get() + area.offset.get(), area.size.get() as usize, true).unwrap())
}
