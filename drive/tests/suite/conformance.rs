//! The conformance suite itself: it passes a right drive, and finds each of a list of faults.
//!
//! The drive is a table in memory with a delay, written without reference to the suite's own model: it answers each
//! command according to the specification. Each [`Fault`] makes it wrong in one way.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::conformance::{self, Subject};
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Stage};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::io::{Cdw12, DSM_DEALLOCATE, DsmRange};
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, Status, SubmissionEntry};
use zerocopy::IntoBytes;

/// One way to be wrong.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// A write of several blocks loses its last one.
    LosesABlock,
    /// Reads of deallocated blocks give old data and zeros in turn.
    WaversAfterDeallocation,
    /// Every comparison succeeds.
    NeverDiffers,
    /// Write Zeroes is acknowledged and forgotten.
    KeepsWhatShouldBeZeros,
    /// A refused deallocation has deallocated its first ranges.
    DeallocatesBeforeChecking,
    /// The end of an extent is computed in 64 bits and wraps.
    WrapsAtTheEnd,
    /// Transfers have no limit.
    IgnoresTheTransferLimit,
    /// Memory that is longer than the transfer is refused.
    RefusesLongerMemory,
    /// Reads fill memory that is longer than the transfer.
    FillsLongerMemory,
    /// Treats fused commands as plain ones.
    IgnoresFuse,
    /// Blocks that overlapping writes share are mixed of both.
    TearsBlocks,
    /// A command in a hundred is dropped.
    DropsCommands,
    /// A command in a hundred never ends.
    KeepsACommand,
    /// The breakdown is a nanosecond short.
    Miscounts,
    /// How long a command takes depends on how often its task was polled.
    CountsPolls,
    /// Completes outstanding commands when it is dropped, after a power cut or not.
    CompletesWhenDropped,
}

const FAULTS: [(Fault, &str); 16] = [
    (Fault::LosesABlock, "should hold"),
    (Fault::WaversAfterDeallocation, "should hold"),
    (Fault::NeverDiffers, "Compare Failure"),
    (Fault::KeepsWhatShouldBeZeros, "should hold Zeros"),
    (Fault::DeallocatesBeforeChecking, "a bad range after good ones"),
    (Fault::WrapsAtTheEnd, "instead of [LBA Out of Range"),
    (Fault::IgnoresTheTransferLimit, "instead of [Invalid Field"),
    (Fault::RefusesLongerMemory, "1 bytes more than it moves: ended with"),
    (Fault::FillsLongerMemory, "the memory is not as it should be"),
    (Fault::IgnoresFuse, "FUSE 01b"),
    (Fault::TearsBlocks, "a part of the data"),
    (Fault::DropsCommands, "Internal Error"),
    (Fault::KeepsACommand, "stalled"),
    (Fault::Miscounts, "its stages sum to"),
    (Fault::CountsPolls, "spurious_polls"),
    (Fault::CompletesWhenDropped, "power_cut"),
];

const INFO: DriveInfo = DriveInfo {
    nsid: 3,
    blocks: 6_000,
    lba_bytes: 512,
    metadata_bytes: 0,
    max_blocks: 64,
    unit_bytes: 4_096,
    volatile_cache: false,
    keeps_data: true,
};
const LBA: usize = 512;

struct Memory {
    sim: Sim,
    fault: Fault,
    bytes: RefCell<Vec<u8>>,
    commands: Cell<u64>,
    wavering: Cell<bool>,
    held: RefCell<Vec<Io>>,
    /// Deallocated blocks, for the drive that wavers.
    holes: RefCell<std::collections::BTreeSet<u64>>,
}

/// Reports the memory as the drive that the suite holds.
struct Front(Rc<Memory>);

impl Drive for Front {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn submit(&self, io: Io) {
        let memory = self.0.clone();
        let number = memory.commands.replace(memory.commands.get() + 1);
        match memory.fault {
            Fault::DropsCommands if number % 100 == 99 => return,
            Fault::KeepsACommand if number % 100 == 99 => return memory.held.borrow_mut().push(io),
            _ => {}
        }
        let held = Held { io: Some(io), eager: memory.fault == Fault::CompletesWhenDropped };
        self.0.sim.spawn(async move { memory.serve(number, held).await });
    }
}

/// A command in service; an eager one is completed when it is dropped.
struct Held {
    io: Option<Io>,
    eager: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(io) = self.io.take().filter(|_| self.eager) {
            io.token.complete(Completion::of(Status::INTERNAL_ERROR));
        }
    }
}

impl Memory {
    async fn serve(&self, number: u64, mut held: Held) {
        let mut time = Span::from_ns(1_000 + number % 7 * 100);
        let mut completion = Completion::of(Status::SUCCESS);
        self.sim.sleep(time).await;
        if self.fault == Fault::CountsPolls {
            let (polls, wait) = (Cell::new(0), self.sim.sleep(Span::from_ns(5_000)));
            let mut wait = std::pin::pin!(wait);
            std::future::poll_fn(|context| {
                polls.set(polls.get() + 1);
                wait.as_mut().poll(context)
            })
            .await;
            let more = Span::from_ns(5 * polls.get());
            self.sim.sleep(more).await;
            time = time + Span::from_ns(5_000) + more;
        }
        let Io { command, mem, token } = held.io.take().expect("taken once");
        if let Err(status) = self.execute(&command, &mem) {
            completion.status = status;
        }
        let told = if self.fault == Fault::Miscounts { time.saturating_sub(Span::from_ns(1)) } else { time };
        completion.breakdown.spend(Stage::Firmware, told);
        token.complete(completion);
    }

    fn execute(&self, command: &SubmissionEntry, mem: &HostMem) -> Result<(), Status> {
        let opcode = IoOpcode(command.opcode);
        if command.flags != 0 && self.fault != Fault::IgnoresFuse {
            return Err(Status::INVALID_FIELD);
        }
        match command.nsid.get() {
            nsid if nsid == INFO.nsid => {}
            NSID_ALL if opcode == IoOpcode::FLUSH => {}
            NSID_ALL => return Err(Status::INVALID_FIELD),
            _ => return Err(Status::INVALID_NAMESPACE),
        }
        let blocks = u64::from(Cdw12::of(command).nlb_z()) + 1;
        match opcode {
            IoOpcode::FLUSH => Ok(()),
            IoOpcode::READ => self.read(self.extent(command, blocks, Some(mem))?, mem),
            IoOpcode::WRITE => self.write(self.extent(command, blocks, Some(mem))?, mem),
            IoOpcode::COMPARE => self.compare(self.extent(command, blocks, Some(mem))?, mem),
            IoOpcode::VERIFY => self.extent(command, blocks, None).map(|_| ()),
            IoOpcode::WRITE_ZEROES => {
                let extent = self.extent(command, blocks, None)?;
                if self.fault != Fault::KeepsWhatShouldBeZeros {
                    self.bytes.borrow_mut()[extent].fill(0);
                }
                Ok(())
            }
            IoOpcode::DATASET_MANAGEMENT => self.dataset_management(command, mem),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// The bytes of an extent, whose data is in `mem` if it has any.
    fn extent(
        &self,
        command: &SubmissionEntry,
        blocks: u64,
        mem: Option<&HostMem>,
    ) -> Result<std::ops::Range<usize>, Status> {
        if let Some(mem) = mem {
            if blocks > u64::from(INFO.max_blocks) && self.fault != Fault::IgnoresTheTransferLimit {
                return Err(Status::INVALID_FIELD);
            }
            let moved = blocks * LBA as u64;
            if (mem.len() as u64) < moved || mem.len() as u64 > moved && self.fault == Fault::RefusesLongerMemory {
                return Err(Status::DATA_TRANSFER_ERROR);
            }
        }
        let end = match self.fault {
            Fault::WrapsAtTheEnd => Some(command.slba().wrapping_add(blocks)),
            _ => command.slba().checked_add(blocks),
        };
        match end {
            // A range that wraps has no bytes.
            Some(end) if end < blocks => Ok(0..0),
            Some(end) if end <= INFO.blocks => Ok(command.slba() as usize * LBA..end as usize * LBA),
            _ => Err(Status::LBA_OUT_OF_RANGE),
        }
    }

    fn read(&self, extent: std::ops::Range<usize>, mem: &HostMem) -> Result<(), Status> {
        mem.write(0, &self.bytes.borrow()[extent.clone()]);
        if self.fault == Fault::FillsLongerMemory {
            mem.clear(extent.len(), mem.len() - extent.len());
        }
        if self.fault == Fault::WaversAfterDeallocation {
            let wavers = !self.wavering.replace(!self.wavering.get());
            for lba in (extent.start / LBA) as u64..(extent.end / LBA) as u64 {
                if wavers && self.holes.borrow().contains(&lba) {
                    mem.clear(lba as usize * LBA - extent.start, LBA);
                }
            }
        }
        Ok(())
    }

    fn write(&self, extent: std::ops::Range<usize>, mem: &HostMem) -> Result<(), Status> {
        let mut data = mem.part(0, extent.len()).to_vec();
        match self.fault {
            Fault::LosesABlock if data.len() > LBA => data.truncate(data.len() - LBA),
            // The second half of its last block keeps its old data, if it had any.
            Fault::TearsBlocks if self.bytes.borrow()[extent.end - 1] != 0 && extent.end <= 40 * LBA => {
                data.truncate(data.len() - LBA / 2);
            }
            _ => {}
        }
        for lba in (extent.start / LBA) as u64..(extent.end / LBA) as u64 {
            self.holes.borrow_mut().remove(&lba);
        }
        self.bytes.borrow_mut()[extent.start..extent.start + data.len()].copy_from_slice(&data);
        Ok(())
    }

    fn compare(&self, extent: std::ops::Range<usize>, mem: &HostMem) -> Result<(), Status> {
        match self.bytes.borrow()[extent.clone()] == mem.to_vec()[..extent.len()] || self.fault == Fault::NeverDiffers {
            true => Ok(()),
            false => Err(Status::COMPARE_FAILURE),
        }
    }

    fn dataset_management(&self, command: &SubmissionEntry, mem: &HostMem) -> Result<(), Status> {
        let count = (command.cdw10.get() & 0xff) as usize + 1;
        if mem.len() < count * 16 {
            return Err(Status::DATA_SGL_LENGTH_INVALID);
        }
        if command.cdw11.get() & DSM_DEALLOCATE == 0 {
            return Ok(());
        }
        let mut ranges = Vec::new();
        for index in 0..count {
            let mut range = DsmRange::default();
            mem.read(index * 16, range.as_mut_bytes());
            let (start, blocks) = (range.slba.get(), u64::from(range.blocks.get()));
            if start.checked_add(blocks).is_none_or(|end| end > INFO.blocks) {
                return Err(Status::LBA_OUT_OF_RANGE);
            }
            let range = start..start + blocks;
            if self.fault == Fault::DeallocatesBeforeChecking {
                self.deallocate(range.clone());
            }
            ranges.push(range);
        }
        ranges.into_iter().for_each(|range| self.deallocate(range));
        Ok(())
    }

    /// Every second block reads as zeros, the others are unchanged.
    fn deallocate(&self, range: std::ops::Range<u64>) {
        for lba in range {
            if self.fault == Fault::WaversAfterDeallocation {
                self.holes.borrow_mut().insert(lba);
            } else if lba % 2 == 0 {
                self.bytes.borrow_mut()[lba as usize * LBA..][..LBA].fill(0);
            }
        }
    }
}

fn verdict(fault: Fault) -> Result<(), String> {
    let make = |sim: &Sim| {
        Subject::new(Rc::new(Front(Rc::new(Memory {
            sim: sim.clone(),
            fault,
            bytes: RefCell::new(vec![0; INFO.blocks as usize * LBA]),
            commands: Cell::new(0),
            wavering: Cell::new(false),
            held: RefCell::default(),
            holes: RefCell::default(),
        }))))
    };
    conformance::all(&make, 1)
}

#[test]
fn a_drive_that_is_right_passes() {
    verdict(Fault::None).unwrap();
}

#[test]
fn every_fault_is_found_and_named() {
    for (fault, expected) in FAULTS {
        let found = verdict(fault).expect_err(&format!("{fault:?} goes unnoticed"));
        assert!(found.contains(expected) && found.contains("seed 1"), "{fault:?}: {found}");
    }
}
