//! A small drive with zones, and its commands one at a time.

use std::future::Future;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{Completion, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Seed, Sim};
use nandscape_wire_nvme::io::CopyRange;
use nandscape_wire_nvme::zns::{REPORT_HEAD, ZoneDescriptor, send as action};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 4_096;
/// Blocks from zone to zone, and blocks of a zone: 8 rows of 4 strips of 3 pages.
pub(crate) const SIZE: u64 = 128;
pub(crate) const CAPACITY: u64 = 96;
pub(crate) const ZONES: u64 = 16;
pub(crate) const ACTIVE: usize = 4;
pub(crate) const OPEN: usize = 3;
/// Blocks of a random write area, its commit granularity in blocks, and the maximum of zones with an area.
pub(crate) const AREA: u64 = 12;
pub(crate) const GRANULARITY: u64 = 4;
pub(crate) const AREAS: usize = 2;
/// Bytes of a zone descriptor extension.
pub(crate) const EXTENSION: usize = 64;
/// A drive without them.
pub(crate) const PLAIN: [&str; 2] = ["ftl.zone.zrwa_size=0", "ftl.zone.descriptor_extension=0"];

const DRIVE: &str = r#"version = 1
base = "default"
capacity = "6MiB"
lba_size = "4KiB"
[geometry]
channels = 2
dies_per_channel = 2
planes_per_die = 1
pages_per_block = 24
page_size = "4KiB"
[timing]
program_unit = "word_line"
[buffer]
size = "192KiB"
[controller]
max_transfer = "64KiB"
[ftl]
kind = "zone"
over_provisioning = "50%"
[ftl.zone]
write_time = "2us"
append_time = "3us"
max_active = 4
max_open = 3
zrwa_size = "48KiB"
zrwa_granularity = "16KiB"
zrwa_zones = 2
descriptor_extension = "64B"
"#;

pub(crate) fn profile(changes: &[&str]) -> Resolved {
    let mut profile = Profile::parse("zones.toml", DRIVE).expect("a profile");
    profile.set_all(changes).expect("valid changes");
    profile.resolve().unwrap_or_else(|error| panic!("{changes:?}: {error}"))
}

/// A queue, to which commands are submitted at depth.
pub(crate) struct Queue {
    issuer: Issuer,
    drive: Rc<QueueDrive>,
}

impl Queue {
    pub(crate) fn new(sim: &Sim, ssd: &Ssd, id: QueueId, entries: u32) -> Queue {
        let drive = QueueDrive::new(sim, ssd.controller(), id, entries).expect("a free queue pair");
        Queue { issuer: Issuer::new(sim), drive }
    }

    /// Submits a command at once.
    pub(crate) fn execute(&self, entry: SubmissionEntry, mem: HostMem) -> impl Future<Output = Completion> + '_ {
        self.issuer.execute(&*self.drive, entry, mem)
    }
}

/// A drive, and a host of it.
pub(crate) struct Rig {
    pub(crate) sim: Sim,
    pub(crate) ssd: Ssd,
    pub(crate) host: Queue,
}

impl Rig {
    pub(crate) fn new(sim: &Sim, changes: &[&str]) -> Rig {
        Rig::of(sim, &profile(changes))
    }

    /// Of a drive with a seed, which decides when its flash fails.
    pub(crate) fn seeded(sim: &Sim, changes: &[&str], seed: Seed) -> Rig {
        Rig::with(sim, &profile(changes), seed)
    }

    pub(crate) fn of(sim: &Sim, profile: &Resolved) -> Rig {
        Rig::with(sim, profile, Seed::new(3))
    }

    fn with(sim: &Sim, profile: &Resolved, seed: Seed) -> Rig {
        let ssd = Ssd::new(sim, profile, StoreKind::Ram, seed).expect("memory for a small drive");
        let host = Queue::new(sim, &ssd, QueueId(1), 64);
        Rig { sim: sim.clone(), ssd, host }
    }

    /// Runs a command. Returns DW0 and DW1 of its completion, or its status.
    pub(crate) async fn run(&self, entry: SubmissionEntry, mem: HostMem) -> Result<u64, Status> {
        let ended = self.host.execute(entry, mem).await;
        let value = u64::from(ended.dw1) << 32 | u64::from(ended.dw0);
        if ended.status.is_success() { Ok(value) } else { Err(ended.status.meaning()) }
    }

    /// Writes or appends blocks, each with its own stamp.
    pub(crate) async fn put(&self, opcode: IoOpcode, slba: u64, stamps: &[u64]) -> Result<u64, Status> {
        let entry = SubmissionEntry::blocks(opcode, 1, slba, stamps.len() as u32);
        self.run(entry, HostMem::from_bytes(&bytes_of(stamps))).await
    }

    /// The stamps of blocks.
    pub(crate) async fn read(&self, slba: u64, blocks: u32) -> Result<Vec<u64>, Status> {
        let mem = HostMem::zeroed(blocks as usize * BLOCK);
        self.run(SubmissionEntry::blocks(IoOpcode::READ, 1, slba, blocks), mem.clone()).await?;
        Ok(mem.to_vec().chunks_exact(BLOCK).map(stamp_of).collect())
    }

    pub(crate) async fn send(&self, slba: u64, action: u8, all: bool) -> Result<u64, Status> {
        self.run(send(slba, u32::from(action) | u32::from(all) << 8), HostMem::none()).await
    }

    /// Opens a zone with a random write area.
    pub(crate) async fn open_random(&self, slba: u64) -> Result<u64, Status> {
        self.run(send(slba, u32::from(action::OPEN) | 1 << 9), HostMem::none()).await
    }

    /// Sets a zone descriptor extension of equal bytes.
    pub(crate) async fn set_extension(&self, slba: u64, byte: u8) -> Result<u64, Status> {
        self.run(send(slba, action::SET_EXTENSION.into()), HostMem::from_bytes(&[byte; EXTENSION])).await
    }

    /// Copies blocks.
    pub(crate) async fn copy(&self, sources: &[(u64, u64)], to: u64) -> Result<u64, Status> {
        let range = |(slba, blocks): &(u64, u64)| CopyRange {
            slba: (*slba).into(),
            nlb_z: (*blocks as u16 - 1).into(),
            ..CopyRange::default()
        };
        let list: Vec<u8> = sources.iter().flat_map(|source| range(source).as_bytes().to_vec()).collect();
        self.run(SubmissionEntry::copy(1, to, sources.len() as u32, 0), HostMem::from_bytes(&list)).await
    }

    /// The first byte of each zone's descriptor extension, in order.
    pub(crate) async fn extensions(&self) -> Vec<u8> {
        let bytes = REPORT_HEAD + ZONES as usize * (64 + EXTENSION);
        let mem = HostMem::zeroed(bytes);
        let entry = receive(0, bytes as u32, u32::from(nandscape_wire_nvme::zns::receive::EXTENDED_REPORT));
        self.run(entry, mem.clone()).await.expect("a report");
        mem.to_vec()[REPORT_HEAD..].chunks_exact(64 + EXTENSION).map(|zone| zone[64]).collect()
    }

    /// The descriptors of zones from that of `slba` on, and the number in the header.
    pub(crate) async fn report(&self, slba: u64, cdw13: u32, bytes: u32) -> Result<(u64, Vec<ZoneDescriptor>), Status> {
        let mem = HostMem::zeroed(bytes as usize);
        self.run(receive(slba, bytes, cdw13), mem.clone()).await?;
        let page = mem.to_vec();
        let count = u64::from_le_bytes(page[..8].try_into().expect("eight bytes"));
        let all = page[REPORT_HEAD..].chunks_exact(64);
        let all = all.map(|bytes| ZoneDescriptor::read_from_bytes(bytes).expect("64 bytes"));
        Ok((count, all.take_while(|zone| zone.zt != 0).collect()))
    }
}

pub(crate) fn send(slba: u64, cdw13: u32) -> SubmissionEntry {
    let mut entry = SubmissionEntry::blocks(IoOpcode::ZONE_MANAGEMENT_SEND, 1, slba, 1);
    entry.cdw13 = cdw13.into();
    entry
}

pub(crate) fn receive(slba: u64, bytes: u32, cdw13: u32) -> SubmissionEntry {
    let mut entry = SubmissionEntry::blocks(IoOpcode::ZONE_MANAGEMENT_RECEIVE, 1, slba, 1);
    entry.cdw12 = (bytes / 4 - 1).into();
    entry.cdw13 = cdw13.into();
    entry
}

pub(crate) fn bytes_of(stamps: &[u64]) -> Vec<u8> {
    stamps.iter().flat_map(|stamp| stamp.to_le_bytes().repeat(BLOCK / 8)).collect()
}

fn stamp_of(block: &[u8]) -> u64 {
    let first: [u8; 8] = block[..8].try_into().expect("eight bytes");
    assert!(block.chunks_exact(8).all(|each| each == first), "a block was written as one");
    u64::from_le_bytes(first)
}
