//! A drive with a deliberate mistake: a campaign that misses it tests nothing.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::{IoOpcode, Status};

/// The mistake.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Lie {
    /// Flushes end at once, and no write is forced to flash. Over a drive with a volatile write buffer, acknowledged data is lost.
    Durable,
    /// Each `nth` write of several blocks is acknowledged with its first half written.
    Half {
        /// Counted from one.
        nth: u64,
    },
    /// Each `nth` write is acknowledged and dropped: the old version stays.
    Dropped {
        /// Counted from one.
        nth: u64,
    },
}

/// See the file.
pub struct Liar {
    drive: Rc<dyn Drive>,
    lie: Lie,
    writes: Cell<u64>,
}

impl Liar {
    /// A drive over another.
    pub fn new(drive: Rc<dyn Drive>, lie: Lie) -> Rc<Liar> {
        Rc::new(Liar { drive, lie, writes: Cell::new(0) })
    }

    /// Whether this write is one of each `nth`.
    fn is_turn(&self, nth: u64) -> bool {
        self.writes.set(self.writes.get() + 1);
        self.writes.get().is_multiple_of(nth.max(1))
    }
}

impl Drive for Liar {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn submit(&self, mut io: Io) {
        let is_write = io.command.opcode == IoOpcode::WRITE.0;
        let blocks = (io.command.cdw12.get() & 0xffff) + 1;
        match self.lie {
            Lie::Durable if io.command.opcode == IoOpcode::FLUSH.0 => {
                return io.token.complete(Completion::of(Status::SUCCESS));
            }
            Lie::Durable if is_write => io.command.cdw12 = (io.command.cdw12.get() & !FUA).into(),
            Lie::Half { nth } if is_write && blocks > 1 && self.is_turn(nth) => {
                let half = blocks / 2;
                io.command.cdw12 = ((io.command.cdw12.get() & !0xffff) | (half - 1)).into();
                let bytes = half as usize * self.info().lba_bytes as usize;
                io.mem = io.mem.part(0, bytes);
            }
            Lie::Dropped { nth } if is_write && self.is_turn(nth) => {
                return io.token.complete(Completion::of(Status::SUCCESS));
            }
            _ => {}
        }
        self.drive.submit(io);
    }
}
