//! For tests: a drive that takes 10 us for each request and records it.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use nandscape_drive::testing::{FakeDrive, INFO, Servers, Service};
use nandscape_drive::{DriveInfo, Io};
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::IoOpcode;

use crate::client::Client;
use crate::record::Direction;
use crate::run::Runner;
use crate::spec::{JobSpec, Workload};

/// The requests: direction, first block of 4 KiB, blocks.
pub(crate) type Asked = (Direction, u64, u64);

/// Records its commands.
#[derive(Default)]
pub(crate) struct Noting(RefCell<Vec<Asked>>);

/// The drive.
pub(crate) type NotingDrive = FakeDrive<Noting>;

impl Noting {
    /// The requests since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.0.take()
    }
}

impl Service for Noting {
    fn begin(&self, io: &Io) -> Span {
        let blocks = u64::from(io.command.cdw12.get() & 0xffff) + 1;
        let slba = io.command.slba();
        self.0.borrow_mut().push(match IoOpcode(io.command.opcode) {
            IoOpcode::READ => (Direction::Read, slba / 8, blocks / 8),
            IoOpcode::WRITE => (Direction::Write, slba / 8, blocks / 8),
            _ => (Direction::Flush, 0, 0),
        });
        Span::from_us(10)
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
    let info = DriveInfo { blocks: bytes / 512, max_blocks: 1 << 16, volatile_cache, ..INFO };
    let drive = FakeDrive::new(&sim, info, Servers::Unlimited, Noting::default());
    let runner = Runner::new(&sim, &Workload::of(JobSpec::default()), Box::new(()));
    let client = Client::new(&sim, runner, drive.connect());
    executor.block_on(work(drive, client)).expect("nothing waits for ever")
}
