//! A small open-channel drive, and its host.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_host_open_channel::{Error, Means, OpenChannel};
use nandscape_sim::{Seed, Sim};
use nandscape_wire_nvme::Status;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 4_096;

const DRIVE: &str = r#"version = 1
base = "default"
lba_size = "4KiB"
capacity = "6MiB"
[geometry]
channels = 3
dies_per_channel = 1
planes_per_die = 2
pages_per_block = 12
page_size = "8KiB"
[timing]
program_unit = "word_line"
planes = "multi_plane"
[buffer]
mode = "through"
size = "256KiB"
[controller]
max_transfer = "256KiB"
[ftl]
kind = "open_channel"
over_provisioning = "50%"
"#;

pub(crate) fn profile(changes: &[&str]) -> Resolved {
    let mut profile = Profile::parse("open-channel.toml", DRIVE).expect("a profile");
    profile.set_all(changes).expect("valid changes");
    profile.resolve().unwrap_or_else(|error| panic!("{changes:?}: {error}"))
}

pub(crate) struct Rig {
    pub(crate) sim: Sim,
    pub(crate) ssd: Rc<Ssd>,
    pub(crate) admin: Rc<QueueDrive>,
    pub(crate) drive: Rc<QueueDrive>,
    pub(crate) host: OpenChannel,
    /// Each write is flushed.
    flushes: bool,
}

impl Rig {
    pub(crate) async fn new(sim: &Sim, changes: &[&str], means: Means) -> Rig {
        Rig::seeded(sim, changes, means, Seed::new(3)).await
    }

    /// Of a drive with a seed, which decides when its flash fails.
    pub(crate) async fn seeded(sim: &Sim, changes: &[&str], means: Means, seed: Seed) -> Rig {
        let ssd = Ssd::new(sim, &profile(changes), StoreKind::Ram, seed).expect("memory for a small drive");
        let ssd = Rc::new(ssd);
        let queue = |id| QueueDrive::new(sim, ssd.controller(), id, 32).expect("a free queue pair");
        let (admin, drive) = (queue(QueueId::ADMIN), queue(QueueId(1)));
        let host = OpenChannel::open(sim, admin.clone(), drive.clone(), means).await.expect("an open-channel drive");
        Rig { sim: sim.clone(), ssd, admin, drive, host, flushes: false }
    }

    /// The same, with a flush after each write; the flush's report of lost data becomes the write's
    /// status.
    pub(crate) fn flushing(self) -> Rig {
        Rig { flushes: true, ..self }
    }

    /// The stamps of blocks.
    pub(crate) async fn read(&self, addresses: &[u64]) -> Result<Vec<u64>, Status> {
        let bytes = self.host.read(addresses).await.map_err(|error: Error| error.status)?;
        Ok(bytes.chunks_exact(BLOCK).map(stamp_of).collect())
    }

    pub(crate) async fn write(&self, addresses: &[u64], stamps: &[u64]) -> Result<(), Status> {
        let written = self.host.write(addresses, &bytes_of(stamps)).await.map_err(|error| error.status);
        if !self.flushes {
            return written;
        }
        // A part of a write that failed has ended perhaps, and may fail yet.
        let flushed = self.host.flush().await.map_err(|error| match error.status {
            Status::WRITE_FAULT => Status::CHUNK_EARLY_CLOSE,
            other => other,
        });
        written.and(flushed)
    }
}

pub(crate) fn bytes_of(stamps: &[u64]) -> Vec<u8> {
    stamps.iter().flat_map(|stamp| stamp.to_le_bytes().repeat(BLOCK / 8)).collect()
}

fn stamp_of(block: &[u8]) -> u64 {
    let first: [u8; 8] = block[..8].try_into().expect("eight bytes");
    assert!(block.chunks_exact(8).all(|each| each == first), "a block was written as one");
    u64::from_le_bytes(first)
}
