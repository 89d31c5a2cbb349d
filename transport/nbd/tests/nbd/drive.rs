//! A drive that serves one command at a time, in order, from memory. A command takes 5 us, or 20 ms if it begins in
//! the last quarter of the drive. Commands of a disconnected client are not begun.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use nandscape_drive::testing::{FakeDrive, INFO, Servers, Service};
use nandscape_drive::{Drive, DriveInfo, Io};
use nandscape_sim::{Sim, Span, Time};
use nandscape_transport_reactor::{Connect, Export, Pairs};
use nandscape_wire_nvme::io::{Cdw12, DsmRange};
use nandscape_wire_nvme::{IoOpcode, Status};
use zerocopy::FromBytes;

/// Bytes of a logical block.
pub(crate) const BLOCK: u64 = 512;
/// Blocks of the drive: 80 MiB.
pub(crate) const BLOCKS: u64 = 80 << 11;
/// Bytes of the drive.
pub(crate) const SIZE: u64 = BLOCK * BLOCKS;
/// Where commands begin to take long, in bytes.
pub(crate) const SLOW: u64 = SIZE / 4 * 3;
/// The largest transfer of a command, in blocks.
pub(crate) const MAX_BLOCKS: u32 = 256;
/// A block that cannot be read or written.
pub(crate) const BROKEN: u64 = 70_000;

/// A command as the drive saw it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) opcode: IoOpcode,
    pub(crate) slba: u64,
    pub(crate) blocks: u64,
    pub(crate) fua: bool,
    pub(crate) deallocate: bool,
}

/// The drive's commands, in order.
pub(crate) type Log = Arc<Mutex<Vec<Seen>>>;

/// The drive's behaviour.
pub(crate) struct Plain {
    data: RefCell<Vec<u8>>,
    log: Log,
}

pub(crate) struct PlainExport {
    pub(crate) drive: Rc<FakeDrive<Plain>>,
    /// Clients that it takes.
    pub(crate) most: usize,
}

impl PlainExport {
    pub(crate) fn new(sim: &Sim, log: Log, most: usize) -> PlainExport {
        let service = Plain { data: RefCell::new(vec![0; SIZE as usize]), log };
        let info = DriveInfo {
            blocks: BLOCKS,
            lba_bytes: BLOCK as u32,
            metadata_bytes: 0,
            max_blocks: MAX_BLOCKS,
            volatile_cache: true,
            keeps_data: true,
            ..INFO
        };
        PlainExport { drive: FakeDrive::new(sim, info, Servers::One, service), most }
    }
}

impl Service for Plain {
    fn begin(&self, io: &Io) -> Span {
        let slow = io.command.slba() * BLOCK >= SLOW && io.command.opcode != IoOpcode::FLUSH.0;
        if slow { Span::from_ms(20) } else { Span::from_us(5) }
    }

    fn end(&self, io: &Io, _: Time) -> Status {
        let seen = seen(io);
        self.log.lock().unwrap().push(seen);
        assert!(seen.slba + seen.blocks <= BLOCKS, "{seen:?} is beyond the end");
        if (seen.slba..seen.slba + seen.blocks).contains(&BROKEN) {
            return if seen.opcode == IoOpcode::READ { Status::UNRECOVERED_READ_ERROR } else { Status::WRITE_FAULT };
        }
        let mut data = self.data.borrow_mut();
        let part = &mut data[(seen.slba * BLOCK) as usize..((seen.slba + seen.blocks) * BLOCK) as usize];
        match seen.opcode {
            IoOpcode::READ => io.mem.write(0, part),
            IoOpcode::WRITE => io.mem.read(0, part),
            IoOpcode::WRITE_ZEROES | IoOpcode::DATASET_MANAGEMENT => part.fill(0),
            _ => {}
        }
        if matches!(seen.opcode, IoOpcode::READ | IoOpcode::WRITE) {
            assert!(io.mem.len() == part.len() && seen.blocks <= u64::from(MAX_BLOCKS), "{seen:?}: {}", io.mem.len());
        }
        Status::SUCCESS
    }
}

fn seen(io: &Io) -> Seen {
    let (opcode, cdw12) = (IoOpcode(io.command.opcode), Cdw12::of(&io.command));
    let (slba, blocks) = match opcode {
        IoOpcode::FLUSH => (0, 0),
        IoOpcode::DATASET_MANAGEMENT => {
            assert_eq!((io.command.cdw10.get(), io.command.cdw11.get()), (0, 4), "one range, deallocated");
            let range = DsmRange::read_from_bytes(&io.mem.to_vec()).expect("one range");
            (range.slba.get(), range.blocks.get().into())
        }
        _ => (io.command.slba(), u64::from(cdw12.nlb_z()) + 1),
    };
    let deallocate = opcode == IoOpcode::DATASET_MANAGEMENT || opcode == IoOpcode::WRITE_ZEROES && cdw12.deac();
    let fua = matches!(opcode, IoOpcode::READ | IoOpcode::WRITE | IoOpcode::WRITE_ZEROES) && cdw12.fua();
    Seen { opcode, slba, blocks, fua, deallocate }
}

impl Connect for PlainExport {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        match self.drive.connections() < self.most {
            true => Ok(self.drive.connect()),
            false => Err(Status::INVALID_QUEUE_ID),
        }
    }

    fn pairs(&self) -> Option<Pairs> {
        Some(Pairs { free: self.most - self.drive.connections(), all: self.most })
    }
}

impl Export for PlainExport {}
