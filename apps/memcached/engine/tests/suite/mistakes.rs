//! Deliberate mistakes: the campaigns notice each of them, and the tests state after how many seeds at the latest.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config};
use nandscape_apps_store::bytes::seal;
use nandscape_drive::{Drive, DriveInfo, HostMem, Io};
use nandscape_lab_crash::Lie;
use nandscape_sim::{Seed, Span};
use nandscape_wire_nvme::IoOpcode;

use crate::rig::{self, Plan};
use crate::stand::Kind;

/// A mistake of the engine or of its drives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    /// The first drives lie.
    Lies(Lie, usize),
    /// A change is acknowledged that only memory has.
    Early,
    /// Recovery finds older versions than those that were acknowledged: all disks have their contents of an earlier time.
    Older,
    /// Checksums do not show that an item is torn: each `nth` write of a chunk has half of its last item, with checksums that match.
    Unchecked { nth: u64 },
}

/// A drive with [`Mistake::Unchecked`].
pub(crate) struct Unchecked {
    drive: Rc<dyn Drive>,
    nth: u64,
    chunks: Cell<u64>,
}

/// The first bytes of a chunk, and the bytes before its records and before the key of a record.
const MAGIC: usize = 0x4b43_4e45;
const CHUNK_HEADER: usize = 56;
const RECORD_HEADER: usize = 36;
/// The places of checksums and lengths: of a chunk, of a record, of its key and its value.
const CHUNK_CRC: usize = 4;
const CHUNK_LEN: usize = 44;
const RECORD_CRC: usize = 0;
const KIND: usize = 4;
const KEY_LEN: usize = 5;
const VALUE_LEN: usize = 8;
/// The kind of an item.
const PUT: u8 = 0;

fn number(bytes: &[u8], at: usize) -> usize {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}

/// The place and the bytes of the last item of a chunk.
fn last_item(chunk: &[u8]) -> Option<(usize, usize)> {
    let (mut at, mut found) = (CHUNK_HEADER, None);
    while let Some(record) = chunk.get(at..).filter(|record| record.len() > RECORD_HEADER) {
        let len = RECORD_HEADER + usize::from(record[KEY_LEN]) + number(record, VALUE_LEN);
        if record[KIND] == PUT && number(record, VALUE_LEN) > 0 {
            found = Some((at, len));
        }
        at += len;
    }
    found.filter(|(at, len)| at + len <= chunk.len())
}

/// Has the last item of a chunk lose the second half of its value. Whether it has one.
fn tear(bytes: &mut [u8]) -> bool {
    let len = number(bytes, CHUNK_LEN);
    if number(bytes, 0) != MAGIC || len > bytes.len() {
        return false;
    }
    let chunk = &mut bytes[..len];
    let Some((at, len)) = last_item(chunk) else { return false };
    let record = &mut chunk[at..at + len];
    let half = number(record, VALUE_LEN) / 2;
    record[len - half..].fill(0);
    seal(record, RECORD_CRC);
    seal(chunk, CHUNK_CRC);
    true
}

impl Unchecked {
    pub(crate) fn over(drive: Rc<dyn Drive>, nth: u64) -> Rc<dyn Drive> {
        Rc::new(Unchecked { drive, nth, chunks: Cell::new(0) })
    }
}

impl Drive for Unchecked {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn submit(&self, mut io: Io) {
        if io.command.opcode == IoOpcode::WRITE.0 {
            let mut bytes = io.mem.to_vec();
            self.chunks.set(self.chunks.get() + 1);
            if self.chunks.get().is_multiple_of(self.nth) && tear(&mut bytes) {
                io.mem = HostMem::from_bytes(&bytes);
            }
        }
        self.drive.submit(io);
    }
}

/// Copies on drives of the model, under the default policy.
const COPIES: Plan = Plan {
    policy: "gc_control",
    config: Config { ack: Ack::All, caches: false, ..rig::DISKS.config },
    kind: Kind::Model("volatile"),
    ..rig::DISKS
};
const PARITY: Plan = Plan { policy: "epochs", ..COPIES.with_parity() };
/// Copies on disks.
const DISKS: Plan = rig::DISKS.with_ack(Ack::All);

/// The number of seeds within which each mistake is noticed.
const SEEDS: u64 = 4;

/// Each mistake, and the plan whose campaign is to notice it.
const MISTAKES: [(Plan, Mistake); 13] = [
    // A flush, or a write that is to be durable, is acknowledged early.
    (COPIES, Mistake::Lies(Lie::Durable, 2)),
    (PARITY, Mistake::Lies(Lie::Durable, 2)),
    (COPIES, Mistake::Early),
    (PARITY, Mistake::Early),
    // A replica is not written: of one drive that shows once the other is missing.
    (COPIES, Mistake::Lies(Lie::Dropped { nth: 3 }, 2)),
    (Plan { misses: true, ..COPIES }, Mistake::Lies(Lie::Dropped { nth: 3 }, 1)),
    (PARITY, Mistake::Lies(Lie::Dropped { nth: 3 }, 2)),
    // Half of a chunk is not written.
    (COPIES, Mistake::Lies(Lie::Half { nth: 3 }, 2)),
    (PARITY, Mistake::Lies(Lie::Half { nth: 3 }, 2)),
    // Recovery finds an older version.
    (DISKS, Mistake::Older),
    (Plan { kind: DISKS.kind, ..PARITY }, Mistake::Older),
    // The check of a torn item is skipped.
    (COPIES, Mistake::Unchecked { nth: 3 }),
    (PARITY, Mistake::Unchecked { nth: 3 }),
];

#[test]
fn each_deliberate_mistake_is_noticed_within_four_seeds() {
    for (plan, mistake) in MISTAKES {
        let plan = Plan { mistake: Some(mistake), ..plan };
        let points = |seed| plan.points(4, Span::from_ms(150), seed);
        let is_noticed = (1..=SEEDS).map(Seed::new).any(|seed| plan.explore(points(seed), seed).is_err());
        assert!(is_noticed, "{plan:?}");
    }
}

/// One drive that drops or halves writes is repaired from the others.
#[test]
fn mistakes_of_one_drive_lose_nothing() {
    for plan in [COPIES, Plan { drives: 4, ..PARITY }] {
        for lie in [Lie::Half { nth: 3 }, Lie::Dropped { nth: 3 }] {
            let (plan, seed) = (Plan { mistake: Some(Mistake::Lies(lie, 1)), ..plan }, Seed::new(1));
            let seen = plan.passes(plan.points(4, Span::from_ms(150), seed), seed);
            assert!(seen.changes > 0, "{seen:?}");
        }
    }
}
