//! Small drives of several FTLs.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueDrive, QueueId};
use nandscape_sim::{Seed, Sim};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// The small drive, of 12 MiB, without its parts.
const DRIVE: &str = r#"version = 1
base = "default"
capacity = "12MiB"
[geometry]
channels = 4
dies_per_channel = 2
planes_per_die = 1
pages_per_block = 16
[buffer]
size = "1MiB"
[controller]
queue_pairs = 4
max_transfer = "256KiB"
"#;

/// A page FTL and an OX-Block, with two channels each.
pub(crate) const TWO: &str = r#"
[[ftl.parts]]
name = "fast"
channels = "0-1"
[[ftl.parts]]
name = "archive"
channels = "2-3"
ftl.kind = "ox_block"
ftl.over_provisioning = "100%"
"#;

/// A page FTL, an OX-Block, and memory under a page FTL.
pub(crate) const THREE: &str = r#"
[[ftl.parts]]
channels = "0,2"
[[ftl.parts]]
channels = "3"
media = "ram"
[[ftl.parts]]
channels = "1"
ftl.kind = "ox_block"
ftl.over_provisioning = "100%"
"#;

/// As [`TWO`], with two dies of each of all channels.
pub(crate) const DIES: &str = r#"
[[ftl.parts]]
name = "fast"
channels = "0-3"
dies = "0"
[[ftl.parts]]
name = "archive"
channels = "0-3"
dies = "1"
ftl.kind = "ox_block"
ftl.over_provisioning = "100%"
"#;

/// The drive with these parts and changes.
pub(crate) fn profile(parts: &str, changes: &[&str]) -> Profile {
    let mut profile = Profile::parse("parts.toml", &format!("{DRIVE}{parts}")).expect("a profile");
    profile.set_all(changes).expect("valid changes");
    profile
}

pub(crate) fn resolved(parts: &str, changes: &[&str]) -> Resolved {
    profile(parts, changes).resolve().unwrap_or_else(|error| panic!("{parts} {changes:?}: {error}"))
}

pub(crate) fn ssd(sim: &Sim, profile: &Resolved) -> Rc<Ssd> {
    Rc::new(Ssd::new(sim, profile, StoreKind::Ram, Seed::new(9)).expect("memory for a small drive"))
}

/// A queue pair on a namespace.
pub(crate) fn queue(sim: &Sim, ssd: &Ssd, nsid: u32, id: u16) -> Rc<QueueDrive> {
    QueueDrive::of_namespace(sim, ssd.controller(), nsid, QueueId(id), 17).expect("a free queue pair")
}

/// The admin queue.
pub(crate) fn admin(sim: &Sim, ssd: &Ssd) -> Host {
    Host::new(sim, QueueDrive::new(sim, ssd.controller(), QueueId::ADMIN, 17).expect("the admin queue"))
}

pub(crate) async fn run(host: &Host, entry: SubmissionEntry, mem: HostMem) -> Result<u32, Status> {
    let ended = host.execute(entry, mem).await.expect("a command ends once");
    if ended.status.is_success() { Ok(ended.dw0) } else { Err(ended.status.meaning()) }
}

/// Writes blocks of a namespace.
pub(crate) async fn write(host: &Host, nsid: u32, slba: u64, value: u8) -> Result<u32, Status> {
    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, nsid, slba, 8);
    run(host, entry, HostMem::from_bytes(&[value; 4_096])).await
}

/// The value that blocks of a namespace hold.
pub(crate) async fn read(host: &Host, nsid: u32, slba: u64) -> Result<u8, Status> {
    let mem = HostMem::zeroed(4_096);
    run(host, SubmissionEntry::blocks(IoOpcode::READ, nsid, slba, 8), mem.clone()).await?;
    let bytes = mem.to_vec();
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "the blocks were written as one");
    Ok(bytes[0])
}
