//! Queues in a guest's memory: raw entries, doorbells and phase tags, data by PRPs; memory that is unmapped and mapped again.
#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::guest_queues::{GuestCompletions, GuestSubmissions};
use nandscape_drive::mem::mapping::memory_file;
use nandscape_drive::mem::{Dma, GuestMemory, Mapping};
use nandscape_drive::{Controller, QueueId};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::register::{CC, CC_EN, CSTS, CSTS_CFS, CSTS_RDY};
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::common::{Drive, config, read, with};

const PAGE: u64 = 4_096;
const ENTRIES: u16 = 8;
/// Where the queues lie, and data from `DATA` on.
const SQ: u64 = PAGE;
const CQ: u64 = 2 * PAGE;
const DATA: u64 = 16 * PAGE;
/// Longer than any command here takes.
const LONG: Span = Span::from_ms(5);

/// A host with one queue pair in its memory.
struct Guest {
    memory: Rc<GuestMemory>,
    drive: Drive,
    id: QueueId,
    tail: Cell<u16>,
    head: Cell<u16>,
    phase: Cell<bool>,
    interrupts: Rc<Cell<u32>>,
}

fn mapping(pages: u64) -> Mapping {
    Mapping::new(&memory_file(pages * PAGE).unwrap(), 0, (pages * PAGE) as usize, true).unwrap()
}

impl Guest {
    fn new(sim: &Sim, drive: &Drive, id: u16) -> Guest {
        let (memory, interrupts) = (Rc::new(GuestMemory::new()), Rc::new(Cell::new(0)));
        memory.map(PAGE, mapping(8)).unwrap();
        memory.map(DATA, mapping(32)).unwrap();
        let (id, dma): (QueueId, Rc<dyn Dma>) = (QueueId(id), memory.clone());
        let count = interrupts.clone();
        let notify = Rc::new(move || count.set(count.get() + 1));
        let submissions = GuestSubmissions::new(sim, &dma, id, SQ, ENTRIES.into(), PAGE as u32);
        let completions = GuestCompletions::new(&dma, CQ, ENTRIES.into(), Some(notify));
        drive.create_queue_pair(id, Rc::new(submissions), Rc::new(completions)).unwrap();
        let (tail, head, phase) = (Cell::new(0), Cell::new(0), Cell::new(true));
        Guest { memory, drive: drive.clone(), id, tail, head, phase, interrupts }
    }

    /// Puts a command and rings the doorbell.
    fn submit(&self, mut entry: SubmissionEntry, cid: u16, prp1: u64, prp2: u64) {
        (entry.cid, entry.prp1, entry.prp2) = (cid.into(), prp1.into(), prp2.into());
        self.memory.write(SQ + u64::from(self.tail.get()) * 64, entry.as_bytes()).unwrap();
        self.tail.set((self.tail.get() + 1) % ENTRIES);
        self.drive.ring_submission(self.id, self.tail.get());
    }

    /// Takes the next completion, if its phase tag is new, and rings the doorbell.
    fn reap(&self) -> Option<(u16, Status)> {
        let mut entry = CompletionEntry::default();
        self.memory.read(CQ + u64::from(self.head.get()) * 16, entry.as_mut_bytes()).unwrap();
        if entry.phase() != self.phase.get() {
            return None;
        }
        self.head.set((self.head.get() + 1) % ENTRIES);
        self.phase.set(self.phase.get() ^ (self.head.get() == 0));
        self.drive.ring_completion(self.id, self.head.get());
        assert_eq!(entry.sq_id.get(), self.id.0);
        Some((entry.cid.get(), entry.status()))
    }

    fn bytes(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.memory.read(at, &mut bytes).unwrap();
        bytes
    }
}

fn write(slba: u64, blocks: u32) -> SubmissionEntry {
    SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, blocks)
}

/// Several wraps of the queue, with several commands at once.
#[test]
fn commands_and_data_go_through_the_guests_memory() {
    with(config(), async |sim, drive| {
        let guest = Guest::new(sim, drive, 1);
        for round in 0..30u8 {
            let (first, second) = (vec![round; 4_096], vec![!round; 4_096]);
            guest.memory.write(DATA + 1_024, &first).unwrap();
            guest.memory.write(DATA + 8 * PAGE, &second).unwrap();
            guest.submit(write(8, 8), 100, DATA + 1_024, DATA + PAGE);
            guest.submit(write(64, 8), 101, DATA + 8 * PAGE, 0);
            sim.sleep(LONG).await;
            assert_eq!([guest.reap(), guest.reap(), guest.reap()].iter().flatten().count(), 2);
            guest.submit(read(8, 8), 7, DATA + 12 * PAGE + 4, DATA + 14 * PAGE);
            sim.sleep(LONG).await;
            assert_eq!((guest.reap(), guest.reap()), (Some((7, Status::SUCCESS)), None));
            let back = [guest.bytes(DATA + 12 * PAGE + 4, 4_092), guest.bytes(DATA + 14 * PAGE, 4)].concat();
            assert_eq!(back, first);
            guest.submit(SubmissionEntry::blocks(IoOpcode::COMPARE, 1, 64, 8), 8, DATA + 8 * PAGE, 0);
            guest.submit(SubmissionEntry::io(IoOpcode::FLUSH, 1), 9, 1, 2);
            sim.sleep(LONG).await;
            let ended: Vec<_> = std::iter::from_fn(|| guest.reap()).collect();
            assert_eq!(ended.iter().map(|(_, status)| *status).collect::<Vec<_>>(), [Status::SUCCESS; 2]);
        }
        assert_eq!(guest.interrupts.get(), 150);
    });
}

/// Time in the queue counts from the doorbell, wherever the entry lies: the stages sum, which the controller checks.
#[test]
fn queued_commands_count_from_their_doorbell() {
    with(nandscape_device_controller::ControllerConfig { command_slots: 1, ..config() }, async |sim, drive| {
        let guest = Guest::new(sim, drive, 2);
        for round in 0..10u16 {
            for cid in 0..5 {
                guest.submit(write(u64::from(round * 5 + cid) * 8, 8), cid, DATA, 0);
                sim.sleep(Span::from_ns(300)).await;
            }
            sim.sleep(LONG).await;
            assert_eq!(std::iter::from_fn(|| guest.reap()).count(), 5);
        }
    });
}

/// As a guest's firmware does at boot: all memory is unmapped and mapped again while the controller is enabled and idle.
#[test]
fn queues_whose_memory_goes_and_comes_back_meanwhile_are_served() {
    with(config(), async |sim, drive| {
        let guest = Guest::new(sim, drive, 1);
        guest.submit(write(0, 8), 1, DATA, 0);
        sim.sleep(LONG).await;
        assert_eq!(guest.reap(), Some((1, Status::SUCCESS)));
        let (file, bytes) = (memory_file(8 * PAGE).unwrap(), guest.bytes(PAGE, 8 * PAGE as usize));
        guest.memory.unmap(PAGE, 8 * PAGE).unwrap();
        sim.sleep(LONG).await;
        guest.memory.map(PAGE, Mapping::new(&file, 0, 8 * PAGE as usize, true).unwrap()).unwrap();
        guest.memory.write(PAGE, &bytes).unwrap();
        guest.submit(read(0, 8), 4, DATA, 0);
        sim.sleep(LONG).await;
        assert_eq!(guest.reap(), Some((4, Status::SUCCESS)));
        assert_eq!(drive.register(CSTS), CSTS_RDY);
    });
}

/// The next doorbell of any queue is ignored, until a reset.
async fn is_fatal_until_a_reset(sim: &Sim, drive: &Drive, other: &Guest) {
    assert_eq!(drive.register(CSTS), CSTS_RDY | CSTS_CFS);
    other.submit(read(0, 8), 3, DATA, 0);
    sim.sleep(LONG).await;
    assert_eq!(other.reap(), None, "nothing is fetched");
    let enabled = drive.register(CC);
    drive.set_register(CC, enabled & !CC_EN);
    sim.sleep(LONG).await;
    assert_eq!(drive.register(CSTS), 0);
    drive.set_register(CC, enabled);
    assert_eq!(drive.register(CSTS), CSTS_RDY);
    let again = Guest::new(sim, drive, 1);
    again.submit(read(0, 8), 1, DATA, 0);
    sim.sleep(LONG).await;
    assert_eq!(again.reap(), Some((1, Status::SUCCESS)));
}

#[test]
fn an_entry_that_cannot_be_fetched_is_fatal() {
    for id in [0, 1] {
        with(config(), async |sim, drive| {
            let [guest, other] = [id, 2].map(|id| Guest::new(sim, drive, id));
            guest.memory.unmap(PAGE, 8 * PAGE).unwrap();
            drive.ring_submission(guest.id, 2);
            sim.sleep(LONG).await;
            is_fatal_until_a_reset(sim, drive, &other).await;
        });
    }
}

/// At the first completion, or when the full queue has room again.
#[test]
fn a_completion_that_cannot_be_posted_is_fatal() {
    for (id, overflows) in [(0, false), (1, false), (1, true)] {
        with(config(), async |sim, drive| {
            let [guest, other] = [id, 2].map(|id| Guest::new(sim, drive, id));
            let commands = if overflows { ENTRIES + 1 } else { 1 };
            for cid in 0..commands {
                guest.submit(SubmissionEntry::io(IoOpcode::FLUSH, 1), cid, 0, 0);
                if cid + 1 < commands {
                    sim.sleep(LONG).await;
                }
            }
            if overflows {
                sim.sleep(LONG).await;
                assert_eq!(drive.register(CSTS), CSTS_RDY, "it is full");
            }
            guest.memory.unmap(PAGE, 8 * PAGE).unwrap();
            if overflows {
                drive.ring_completion(guest.id, 1);
            }
            sim.sleep(LONG).await;
            is_fatal_until_a_reset(sim, drive, &other).await;
        });
    }
}

/// SGLs are for I/O commands; in an admin command they are an invalid field.
#[test]
fn admin_commands_take_no_sgl() {
    with(config(), async |sim, drive| {
        let guest = Guest::new(sim, drive, 0);
        let mut identify = SubmissionEntry::identify(1, 0);
        guest.submit(identify, 1, DATA, 0);
        sim.sleep(LONG).await;
        assert_eq!(guest.reap(), Some((1, Status::SUCCESS)));
        assert_eq!(guest.bytes(DATA + 4, 8), b"SERIAL-1");
        identify.flags = 1 << 6;
        guest.submit(identify, 2, DATA, 4_096);
        sim.sleep(LONG).await;
        assert_eq!(guest.reap(), Some((2, Status::INVALID_FIELD.final_().with_more())));
        guest.submit(SubmissionEntry::identify(1, 0), 3, DATA + 2, 0);
        sim.sleep(LONG).await;
        assert_eq!(guest.reap(), Some((3, Status::PRP_OFFSET_INVALID.final_().with_more())));
    });
}
