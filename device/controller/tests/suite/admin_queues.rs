//! Queues in a host's own memory, created and deleted by admin commands: each bad field has its status, several submission
//! queues post to one completion queue, and detaching ends all.
#![cfg(target_os = "linux")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::conformance::Host;
use nandscape_drive::guest_queues::{GuestCompletions, GuestSubmissions};
use nandscape_drive::mem::mapping::memory_file;
use nandscape_drive::mem::{Dma, GuestMemory, Mapping};
use nandscape_drive::ring::Posted;
use nandscape_drive::{CompletionMemory, Controller, HostMem, HostMemory, QueueId, SubmissionMemory};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::log::{self, ErrorInformation};
use nandscape_wire_nvme::register::{CC, CC_EN};
use nandscape_wire_nvme::{AdminOpcode, CompletionEntry, Parameter, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::common::{Drive, PAIRS, config, host, read, with};

const PAGE: u64 = 4_096;
const LONG: Span = Span::from_ms(5);

/// A host of one address space.
struct Machine {
    sim: Sim,
    dma: Rc<dyn Dma>,
    interrupts: Rc<RefCell<Vec<u16>>>,
    /// Completion queues that were deleted.
    released: Rc<Cell<u32>>,
}

impl HostMemory for Machine {
    fn page(&self) -> u32 {
        PAGE as u32
    }

    fn vectors(&self) -> u16 {
        4
    }

    fn submissions(&self, id: QueueId, base: u64, entries: u32) -> Rc<dyn SubmissionMemory> {
        Rc::new(GuestSubmissions::new(&self.sim, &self.dma, id, base, entries, self.page()))
    }

    fn completions(&self, _: QueueId, base: u64, entries: u32, vector: Option<u16>) -> Rc<dyn CompletionMemory> {
        let interrupts = self.interrupts.clone();
        let notify = vector.map(|vector| Rc::new(move || interrupts.borrow_mut().push(vector)) as Rc<dyn Fn()>);
        let (memory, released) = (GuestCompletions::new(&self.dma, base, entries, notify), self.released.clone());
        Rc::new(Completions { memory, released })
    }
}

/// A completion queue that counts its deletion.
struct Completions {
    memory: GuestCompletions,
    released: Rc<Cell<u32>>,
}

impl CompletionMemory for Completions {
    fn entries(&self) -> u32 {
        self.memory.entries()
    }

    fn is_reachable(&self, tail: u16) -> bool {
        self.memory.is_reachable(tail)
    }

    fn post(&self, tail: u16, posted: Posted) {
        self.memory.post(tail, posted);
    }

    fn notify(&self) {
        self.memory.notify();
    }

    fn released(&self) {
        self.released.set(self.released.get() + 1);
    }
}

/// Attaches the drive to a machine with 64 pages.
fn machine(sim: &Sim, drive: &Drive) -> (Rc<GuestMemory>, Rc<Machine>) {
    let memory = Rc::new(GuestMemory::new());
    memory.map(0, Mapping::new(&memory_file(64 * PAGE).unwrap(), 0, 64 * PAGE as usize, true).unwrap()).unwrap();
    let machine =
        Rc::new(Machine { sim: sim.clone(), dma: memory.clone(), interrupts: Rc::default(), released: Rc::default() });
    drive.attach(machine.clone()).unwrap();
    (memory, machine)
}

/// Puts a read of one block at entry `index` of the queue at `base`.
fn put(memory: &GuestMemory, base: u64, index: u64, cid: u16) {
    let mut entry = read(0, 1);
    (entry.cid, entry.prp1) = (cid.into(), (40 * PAGE).into());
    memory.write(base + index * 64, entry.as_bytes()).unwrap();
}

/// The completions in the first `count` entries of the queue at `base`: submission queue and command identifier.
fn completions(memory: &GuestMemory, base: u64, count: u64) -> Vec<(u16, u16)> {
    let entry = |index| {
        let mut entry = CompletionEntry::default();
        memory.read(base + index * 16, entry.as_mut_bytes()).unwrap();
        entry
    };
    let found = (0..count).map(entry).filter(CompletionEntry::phase);
    found.map(|entry| (entry.sq_id.get(), entry.cid.get())).collect()
}

/// The field that the error log names for its newest entry.
async fn newest_parameter(admin: &Host) -> u16 {
    let page = HostMem::zeroed(size_of::<ErrorInformation>());
    let log = SubmissionEntry::get_log_page(log::ERROR_INFORMATION, 0, page.len() as u32);
    assert!(admin.execute(log, page.clone()).await.unwrap().status.is_success());
    ErrorInformation::read_from_bytes(&page.to_vec()).unwrap().parameter.get()
}

/// The field at fault when a command that creates or deletes a queue ends with a status.
fn location(entry: &SubmissionEntry, status: Status) -> Parameter {
    let completions = (entry.cdw11.get() >> 16) as u16;
    match status {
        Status::INVALID_QUEUE_ID
            if entry.opcode == AdminOpcode::CREATE_IO_SQ.0 && !(1..=PAIRS).contains(&completions) =>
        {
            Parameter::at(11, 16)
        }
        Status::INVALID_QUEUE_ID | Status::INVALID_QUEUE_DELETION => Parameter::at(10, 0),
        Status::INVALID_QUEUE_SIZE => Parameter::at(10, 16),
        Status::PRP_OFFSET_INVALID => Parameter::DPTR,
        Status::INVALID_INTERRUPT_VECTOR | Status::COMPLETION_QUEUE_INVALID => Parameter::at(11, 16),
        _ => Parameter::at(11, 0),
    }
}

#[test]
fn each_bad_field_has_its_status() {
    with(config(), async |sim, drive| {
        let (_, machine) = machine(sim, drive);
        let admin = host(sim, drive, QueueId::ADMIN);
        let status = async |entry| admin.execute(entry, HostMem::none()).await.unwrap().status;
        let (cq, sq) = (SubmissionEntry::create_completion_queue, SubmissionEntry::create_submission_queue);
        let scattered = |entry: SubmissionEntry| SubmissionEntry { cdw11: (entry.cdw11.get() & !1).into(), ..entry };
        let (delete_sq, delete_cq) =
            (SubmissionEntry::delete_submission_queue, SubmissionEntry::delete_completion_queue);
        let cases = [
            (cq(0, 8, PAGE, None), Status::INVALID_QUEUE_ID),
            (cq(PAIRS + 1, 8, PAGE, None), Status::INVALID_QUEUE_ID),
            (cq(1, 1, PAGE, None), Status::INVALID_QUEUE_SIZE),
            (cq(1, 1 << 16, PAGE, None), Status::INVALID_QUEUE_SIZE),
            (cq(1, 8, PAGE + 64, None), Status::PRP_OFFSET_INVALID),
            (cq(1, 8, PAGE, Some(4)), Status::INVALID_INTERRUPT_VECTOR),
            (scattered(cq(1, 8, PAGE, None)), Status::INVALID_FIELD),
            (cq(1, 8, PAGE, Some(3)), Status::SUCCESS),
            (cq(1, 8, PAGE, None), Status::INVALID_QUEUE_ID),
            (sq(1, 8, 2 * PAGE, 2), Status::COMPLETION_QUEUE_INVALID),
            (sq(1, 8, 2 * PAGE, 0), Status::INVALID_QUEUE_ID),
            (sq(1, 8, 2 * PAGE, u16::MAX), Status::INVALID_QUEUE_ID),
            (sq(0, 8, 2 * PAGE, 1), Status::INVALID_QUEUE_ID),
            (sq(PAIRS + 1, 8, 2 * PAGE, 1), Status::INVALID_QUEUE_ID),
            (sq(2, 1, 2 * PAGE, 1), Status::INVALID_QUEUE_SIZE),
            (sq(2, 8, 2 * PAGE + 4, 1), Status::PRP_OFFSET_INVALID),
            (scattered(sq(2, 8, 2 * PAGE, 1)), Status::INVALID_FIELD),
            (sq(2, 8, 2 * PAGE, 1), Status::SUCCESS),
            (sq(2, 8, 2 * PAGE, 1), Status::INVALID_QUEUE_ID),
            (delete_cq(1), Status::INVALID_QUEUE_DELETION),
            (delete_cq(0), Status::INVALID_QUEUE_ID),
            (delete_cq(2), Status::INVALID_QUEUE_ID),
            (delete_sq(0), Status::INVALID_QUEUE_ID),
            (delete_sq(1), Status::INVALID_QUEUE_ID),
            (delete_sq(u16::MAX), Status::INVALID_QUEUE_ID),
            (delete_sq(2), Status::SUCCESS),
            (delete_sq(2), Status::INVALID_QUEUE_ID),
            (delete_cq(1), Status::SUCCESS),
            (delete_cq(1), Status::INVALID_QUEUE_ID),
        ];
        for (number, (entry, right)) in cases.into_iter().enumerate() {
            let whole = if right == Status::SUCCESS { right } else { right.final_().with_more() };
            assert_eq!(status(entry).await, whole, "case {number}: {entry:?}");
            if right != Status::SUCCESS {
                assert_eq!(newest_parameter(&admin).await, location(&entry, right).bits(), "case {number}: {entry:?}");
            }
        }
        assert!(machine.interrupts.borrow().is_empty());
        assert_eq!(machine.released.get(), 1, "one was deleted");
    });
}

/// The host sets the sizes of entries before it creates an I/O queue (Base 3.1.4.5).
#[test]
fn queues_of_unknown_entries_are_refused() {
    with(config(), async |sim, drive| {
        let _machine = machine(sim, drive);
        let admin = host(sim, drive, QueueId::ADMIN);
        let status = async |entry| admin.execute(entry, HostMem::none()).await.unwrap().status;
        let sized = drive.register(CC);
        let completions = SubmissionEntry::create_completion_queue(1, 8, PAGE, None);
        let submissions = SubmissionEntry::create_submission_queue(1, 8, 2 * PAGE, 1);
        // IOCQES and IOSQES: none, one of them, one too large.
        for sizes in [0, 4 << 20, 6 << 16, 4 << 20 | 7 << 16] {
            drive.set_register(CC, CC_EN | sizes);
            for entry in [completions, submissions] {
                let right = Status::INVALID_QUEUE_SIZE.final_().with_more();
                assert_eq!(status(entry).await, right, "CC {sizes:x}h: {entry:?}");
                assert_eq!(newest_parameter(&admin).await, Parameter::at(10, 16).bits());
            }
        }
        drive.set_register(CC, sized);
        assert_eq!((status(completions).await, status(submissions).await), (Status::SUCCESS, Status::SUCCESS));
    });
}

#[test]
fn submission_queues_share_a_completion_queue() {
    with(config(), async |sim, drive| {
        let (memory, machine) = machine(sim, drive);
        let admin = host(sim, drive, QueueId::ADMIN);
        let execute = async |entry| assert!(admin.execute(entry, HostMem::none()).await.unwrap().status.is_success());
        execute(SubmissionEntry::create_completion_queue(2, 8, PAGE, Some(1))).await;
        for id in 1..=3u16 {
            execute(SubmissionEntry::create_submission_queue(id, 8, u64::from(10 + id) * PAGE, 2)).await;
        }
        for id in 1..=3u16 {
            put(&memory, u64::from(10 + id) * PAGE, 0, 100 + id);
            drive.ring_submission(QueueId(id), 1);
        }
        sim.sleep(LONG).await;
        assert_eq!(completions(&memory, PAGE, 8), [(1, 101), (2, 102), (3, 103)]);
        assert_eq!(*machine.interrupts.borrow(), [1, 1, 1]);
        // One is deleted, the others stay; its identifier can be reused.
        execute(SubmissionEntry::delete_submission_queue(2)).await;
        drive.ring_submission(QueueId(2), 2);
        put(&memory, 13 * PAGE, 1, 7);
        drive.ring_submission(QueueId(3), 2);
        sim.sleep(LONG).await;
        assert_eq!(completions(&memory, PAGE, 8)[3..], [(3, 7)]);
        // The queue takes seven completions; the eighth waits, and no queue that posts here is fetched from.
        (2..6).for_each(|index| put(&memory, 13 * PAGE, index, 10 + index as u16));
        drive.ring_submission(QueueId(3), 6);
        sim.sleep(LONG).await;
        put(&memory, 11 * PAGE, 1, 8);
        drive.ring_submission(QueueId(1), 2);
        sim.sleep(LONG).await;
        assert_eq!(completions(&memory, PAGE, 8).len(), 7);
        drive.ring_completion(QueueId(2), 7);
        sim.sleep(LONG).await;
        let mut last = CompletionEntry::default();
        memory.read(PAGE, last.as_mut_bytes()).unwrap();
        assert_eq!(
            (last.sq_id.get(), last.cid.get(), last.phase()),
            (1, 8, false),
            "round again, after the one of queue 3"
        );
    });
}

#[test]
fn detaching_ends_every_queue() {
    with(config(), async |sim, drive| {
        let (memory, machine) = machine(sim, drive);
        assert_eq!(drive.attach(machine.clone()), Ok(()), "there is no queue yet");
        for _ in 0..3 {
            drive
                .create_queue_pair(
                    QueueId(0),
                    machine.submissions(QueueId(0), PAGE, 8),
                    machine.completions(QueueId(1), 2 * PAGE, 8, None),
                )
                .unwrap();
            assert_eq!(drive.attach(machine.clone()).map_err(Status::meaning), Err(Status::COMMAND_SEQUENCE_ERROR));
            let done = Cell::new(0u64);
            let admin = |mut entry: SubmissionEntry| {
                entry.cid = (done.get() as u16).into();
                memory.write(PAGE + done.get() * 64, entry.as_bytes()).unwrap();
                done.set(done.get() + 1);
                drive.ring_submission(QueueId(0), done.get() as u16);
            };
            memory.write(2 * PAGE, &[0; 4_096]).unwrap();
            admin(SubmissionEntry::create_completion_queue(1, 4, 3 * PAGE, None));
            sim.sleep(LONG).await;
            admin(SubmissionEntry::create_submission_queue(1, 4, 4 * PAGE, 1));
            admin(SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST));
            sim.sleep(LONG).await;
            assert_eq!(completions(&memory, 2 * PAGE, 8), [(0, 0), (0, 1)]);
            put(&memory, 4 * PAGE, 0, 1);
            drive.ring_submission(QueueId(1), 1);
            memory.write(3 * PAGE, &[0; 4_096]).unwrap();
            // In the middle of the command.
            sim.sleep(Span::from_us(2)).await;
            drive.detach();
            sim.sleep(LONG).await;
            assert_eq!(completions(&memory, 3 * PAGE, 4), [], "nothing is posted any more");
            drive.attach(machine.clone()).unwrap();
        }
        // A host in this process has no memory to name, and no SGLs.
        let sgls = async |admin: &Host| {
            let mem = HostMem::zeroed(4_096);
            assert!(admin.execute(SubmissionEntry::identify(1, 0), mem.clone()).await.unwrap().status.is_success());
            mem.to_vec()[536..540].to_vec()
        };
        assert_eq!(sgls(&host(sim, drive, QueueId::ADMIN)).await, [1, 0, 0b1101, 0]);
        drive.detach();
        let admin = host(sim, drive, QueueId::ADMIN);
        assert_eq!(sgls(&admin).await, [0; 4]);
        let create = SubmissionEntry::create_completion_queue(1, 8, PAGE, None);
        let status = admin.execute(create, HostMem::none()).await.unwrap().status;
        assert_eq!(status.meaning(), Status::INVALID_OPCODE);
    });
}
