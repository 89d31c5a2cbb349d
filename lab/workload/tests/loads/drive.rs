//! The drive, and a workload run on it.

use std::cell::{Cell, RefCell};

use nandscape_drive::testing::{FakeDrive, INFO, Servers, Service};
use nandscape_drive::{DriveInfo, Io};
use nandscape_lab_workload::{Outcome, Runner, Workload, load};
use nandscape_sim::{Executor, Seed, Span, Time};
use nandscape_wire_nvme::{IoOpcode, Status};

pub(crate) const SEED: u64 = 5;

/// A command: its opcode and its bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    pub(crate) opcode: IoOpcode,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Asked {
    pub(crate) fn pages(self) -> std::ops::Range<u64> {
        self.offset / 4_096..(self.offset + self.bytes).div_ceil(4_096)
    }
}

/// Records its commands, and the most outstanding commands.
#[derive(Default)]
struct Noting {
    asked: RefCell<Vec<Asked>>,
    outstanding: Cell<u32>,
    most_outstanding: Cell<u32>,
    bytes: u64,
}

impl Service for Noting {
    fn begin(&self, io: &Io) -> Span {
        let opcode = IoOpcode(io.command.opcode);
        let has_data = opcode == IoOpcode::READ || opcode == IoOpcode::WRITE;
        let blocks = if has_data { u64::from(io.command.cdw12.get()) + 1 } else { 0 };
        let (offset, bytes) = (io.command.slba() * 512, blocks * 512);
        assert!(offset + bytes <= self.bytes, "{offset} + {bytes} lies beyond the drive");
        self.asked.borrow_mut().push(Asked { opcode, offset, bytes });
        self.outstanding.set(self.outstanding.get() + 1);
        self.most_outstanding.set(self.most_outstanding.get().max(self.outstanding.get()));
        Span::from_us(10)
    }

    fn end(&self, _: &Io, _: Time) -> Status {
        self.outstanding.set(self.outstanding.get() - 1);
        Status::SUCCESS
    }
}

/// What a run left.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) asked: Vec<Asked>,
    pub(crate) most_outstanding: u32,
}

impl Ran {
    /// How many operations of a name there were.
    pub(crate) fn operations(&self, name: &str) -> f64 {
        self.outcome.operations.get(name).map_or(0.0, |taken| taken.count() as f64)
    }

    pub(crate) fn of(&self, opcode: IoOpcode) -> impl Iterator<Item = Asked> {
        self.asked.iter().copied().filter(move |asked| asked.opcode == opcode)
    }
}

/// Runs a workload on a drive of `mib` MiB with a volatile cache.
pub(crate) fn run(workload: &Workload, mib: u64) -> Ran {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let info = DriveInfo { blocks: mib << 11, max_blocks: 1 << 16, volatile_cache: true, ..INFO };
    assert_eq!(workload.check_on(info.bytes(), info.lba_bytes), Ok(()), "{}", workload.name);
    let service = Noting { bytes: info.bytes(), ..Noting::default() };
    let drive = FakeDrive::new(&sim, info, Servers::Unlimited, service);
    let runner = Runner::new(&sim, workload, Box::new(()));
    let outcome = executor.block_on(runner.run(workload, Seed::new(SEED), |_, _| drive.connect())).expect("it ends");
    assert_eq!(outcome.broken, None, "{}", workload.name);
    let Noting { asked, most_outstanding, .. } = drive.service();
    Ran { outcome, asked: asked.take(), most_outstanding: most_outstanding.get() }
}

/// A workload from the text of a file, without its version.
pub(crate) fn own(text: &str) -> Result<Workload, String> {
    let file = tempfile::NamedTempFile::with_suffix(".toml").expect("a temporary file");
    std::fs::write(file.path(), format!("version = 1\n{text}")).expect("room for it");
    load(file.path().to_str().expect("a name")).map_err(|error| error.problem)
}

/// Within a share of what it should be.
pub(crate) fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let off = (measured / expected - 1.0).abs();
    assert!(off <= tolerance, "{what}, seed {SEED}: {measured} instead of {expected}, off by {:.2}%", off * 100.0);
}
