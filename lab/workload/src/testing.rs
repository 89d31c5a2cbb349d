//! For tests: a drive that takes 10 us for each request and records it.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status};

use crate::client::Client;
use crate::record::Direction;
use crate::run::Runner;
use crate::spec::{JobSpec, Workload};

/// The requests: direction, first block of 4 KiB, blocks.
pub(crate) type Asked = (Direction, u64, u64);

pub(crate) struct NotingDrive {
    sim: Sim,
    info: DriveInfo,
    asked: RefCell<Vec<Asked>>,
}

impl NotingDrive {
    /// The requests since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.take()
    }
}

impl Drive for NotingDrive {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn submit(&self, io: Io) {
        let blocks = u64::from(io.command.cdw12.get() & 0xffff) + 1;
        let (slba, opcode) = (io.command.slba(), IoOpcode(io.command.opcode));
        let asked = match opcode {
            IoOpcode::READ => (Direction::Read, slba / 8, blocks / 8),
            IoOpcode::WRITE => (Direction::Write, slba / 8, blocks / 8),
            _ => (Direction::Flush, 0, 0),
        };
        self.asked.borrow_mut().push(asked);
        let sim = self.sim.clone();
        self.sim.spawn(async move {
            sim.sleep(Span::from_us(10)).await;
            io.token.complete(Completion::of(Status::SUCCESS));
        });
    }
}

/// Runs a future on a drive of this capacity in bytes, with or without a volatile cache.
pub(crate) fn on_a_drive<F>(
    bytes: u64,
    volatile_cache: bool,
    work: impl FnOnce(Rc<NotingDrive>, Rc<Client>) -> F,
) -> F::Output
where
    F: Future,
{
    let mut executor = Executor::new();
    let sim = executor.sim();
    let info = DriveInfo {
        nsid: 1,
        blocks: bytes / 512,
        lba_bytes: 512,
        max_blocks: 1 << 16,
        unit_bytes: 4_096,
        volatile_cache,
        keeps_data: false,
    };
    let drive = Rc::new(NotingDrive { sim: sim.clone(), info, asked: RefCell::default() });
    let runner = Runner::new(&sim, &Workload::of(JobSpec::default()), Box::new(()));
    let client = Client::new(&runner, drive.clone());
    executor.block_on(work(drive, client)).expect("nothing waits for ever")
}
