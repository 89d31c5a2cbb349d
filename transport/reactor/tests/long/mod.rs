//! For tests of transports: a drive without delays, and commands that keep it at work for long while they move little.
//!
//! A turn of the reactor does a bounded part of their work, as the reactor counts it: whatever the machine does, the
//! clients of other drives have a turn between two parts.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, DriveInfo, Subsystem};
use nandscape_sim::{Seed, Sim};
use nandscape_transport_reactor::handle::Figures;
use nandscape_transport_reactor::{Connect, Export, QueueExport};
use nandscape_wire_nvme::io::{CopyRange, DEAC, DsmRange};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes as _;

/// Commands of a kind that a test has under way at a time.
pub(crate) const COMMANDS: u16 = 6;
/// Bytes of the drive.
pub(crate) const CAPACITY: u64 = 64 << 20;
/// Blocks of a long command: 32 MiB.
const LONG: u32 = 1 << 16;
/// Mapping units of which a turn begins at most: it ends after 32, with a part that writes 16, or one that reads a transfer of 512.
const A_TURN: u64 = 512;

/// The drive.
pub(crate) struct Long {
    ssd: Ssd,
    queues: QueueExport,
}

impl Long {
    pub(crate) fn new(sim: &Sim) -> Rc<Long> {
        let mut profile = Profile::load("default").unwrap();
        let capacity = format!("capacity={}MiB", CAPACITY >> 20);
        for change in [&*capacity, "controller.queue_pairs=8", "controller.queue_entries=256"] {
            profile.set(change).unwrap();
        }
        let resolved = profile.resolve().unwrap().without_delay();
        let ssd = Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(1)).unwrap();
        let queues = QueueExport::new(sim, ssd.controller(), 8, 64);
        Rc::new(Long { ssd, queues })
    }
}

impl Connect for Long {
    fn info(&self) -> DriveInfo {
        self.queues.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.queues.connect()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        Some(self.ssd.subsystem())
    }
}

impl Export for Long {}

/// A long command of each kind, with its transfer. A Compare transfers the data that it compares, and is left out.
pub(crate) fn commands() -> Vec<(&'static str, SubmissionEntry, Vec<u8>)> {
    let blocks = |opcode| SubmissionEntry::blocks(opcode, 1, 0, LONG);
    let mut deallocating = blocks(IoOpcode::WRITE_ZEROES);
    deallocating.cdw12 = (deallocating.cdw12.get() | DEAC).into();
    let range = DsmRange { blocks: ((CAPACITY / 512) as u32).into(), ..DsmRange::default() };
    let source = |number: u64| CopyRange { slba: (number * 128).into(), nlb_z: 127.into(), ..CopyRange::default() };
    let sources: Vec<CopyRange> = (0..64).map(source).collect();
    vec![
        ("Write Zeroes", blocks(IoOpcode::WRITE_ZEROES), Vec::new()),
        ("Copy", SubmissionEntry::copy(1, u64::from(LONG), 64, 0), sources.as_bytes().to_vec()),
        ("Verify", blocks(IoOpcode::VERIFY), Vec::new()),
        ("Write Zeroes with Deallocate", deallocating, Vec::new()),
        ("Dataset Management", SubmissionEntry::deallocate(1, 4), [range; 4].as_bytes().to_vec()),
        ("Write Uncorrectable", blocks(IoOpcode::WRITE_UNCORRECTABLE), Vec::new()),
        ("Flush", SubmissionEntry::io(IoOpcode::FLUSH, 1), Vec::new()),
    ]
}

/// No turn so far has done more than a part, and some have done one.
pub(crate) fn check(name: &str, figures: &Figures) {
    let most = figures.timing.work_max;
    assert!((32..=A_TURN).contains(&most), "{name}: a turn had {most} units of work");
}
