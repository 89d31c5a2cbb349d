//! A drive that serves one command at a time, in order, from memory. A command takes 5 us, and 20 ms where it begins in
//! the last quarter of the drive. Commands of a client that has gone are dropped undone.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span};
use nandscape_transport_reactor::Export;
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

/// What the drive did, in order.
pub(crate) type Log = Arc<Mutex<Vec<Seen>>>;

/// The drive.
pub(crate) struct Plain {
    queue: RefCell<VecDeque<(Rc<Cell<bool>>, Io)>>,
    came: Signal,
    data: RefCell<Vec<u8>>,
    log: Log,
    /// Clients that it has.
    ways: Cell<usize>,
}

/// A client's way to it.
struct Way {
    plain: Rc<Plain>,
    gone: Rc<Cell<bool>>,
}

pub(crate) struct PlainExport {
    pub(crate) plain: Rc<Plain>,
    /// Clients that it takes.
    pub(crate) most: usize,
}

impl Plain {
    pub(crate) fn start(sim: &Sim, log: Log) -> Rc<Plain> {
        let data = RefCell::new(vec![0; SIZE as usize]);
        let plain = Rc::new(Plain { queue: RefCell::default(), came: Signal::new(sim), data, log, ways: Cell::new(0) });
        let (sim, me) = (sim.clone(), plain.clone());
        sim.clone().spawn(async move {
            loop {
                let next = me.queue.borrow_mut().pop_front();
                match next {
                    None => me.came.changed().await,
                    Some((gone, io)) if gone.get() => io.token.complete(Completion::of(Status::ABORTED_SQ_DELETION)),
                    Some((_, io)) => {
                        let slow = io.command.slba() * BLOCK >= SLOW && io.command.opcode != IoOpcode::FLUSH.0;
                        sim.sleep(if slow { Span::from_ms(20) } else { Span::from_us(5) }).await;
                        let status = me.serve(&io);
                        io.token.complete(Completion::of(status));
                    }
                }
            }
        });
        plain
    }

    fn serve(&self, io: &Io) -> Status {
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

fn info() -> DriveInfo {
    DriveInfo {
        nsid: 1,
        blocks: BLOCKS,
        lba_bytes: BLOCK as u32,
        max_blocks: MAX_BLOCKS,
        unit_bytes: 4_096,
        volatile_cache: true,
        keeps_data: true,
    }
}

impl Drive for Way {
    fn info(&self) -> DriveInfo {
        info()
    }

    fn submit(&self, io: Io) {
        self.plain.queue.borrow_mut().push_back((self.gone.clone(), io));
        self.plain.came.notify();
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.gone.set(true);
        self.plain.ways.set(self.plain.ways.get() - 1);
    }
}

impl Export for PlainExport {
    fn info(&self) -> DriveInfo {
        info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        let ways = self.plain.ways.get();
        if ways == self.most {
            return Err(Status::INVALID_QUEUE_ID);
        }
        self.plain.ways.set(ways + 1);
        Ok(Rc::new(Way { plain: self.plain.clone(), gone: Rc::default() }))
    }
}
