//! Profiles of any text: each is rejected with a reason, or equal after it is written and read again. A drive that is small
//! enough works.

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

/// The most flash of a drive that is built, in mapping units.
const MOST_UNITS: u64 = 1 << 20;

/// Reads a profile: TOML, and after a line `---` changes as `--set` takes them, one a line.
///
/// # Panics
/// When an error has no text, a profile changes on its way through TOML, or its drive does not work.
pub fn profile(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (toml, changes) = text.split_once("\n---\n").unwrap_or((&text, ""));
    let Ok(mut profile) = Profile::parse("any", toml).map_err(told) else { return };
    for change in changes.lines().take(20) {
        let _ = profile.set(change).map_err(told);
    }
    let Ok(resolved) = profile.resolve().map_err(told) else { return };
    let written = resolved.to_toml();
    let again = Profile::parse("any", &written).expect("what is written can be read");
    let again = again.resolve().expect("and describes a drive");
    assert_eq!(again.to_toml(), written);
    work(&resolved);
}

fn told(error: nandscape_device_ssd::ProfileError) {
    assert!(!error.to_string().is_empty());
}

/// Writes and reads a block, where the drive is small.
fn work(resolved: &Resolved) {
    let units = resolved.units_per_block() * u64::from(resolved.sizing.blocks_per_plane) * resolved.planes();
    if units > MOST_UNITS || resolved.max_queue_pairs() == 0 {
        return;
    }
    let mut executor = Executor::new();
    let sim = executor.sim();
    let Ok(ssd) = Ssd::new(&sim, resolved, StoreKind::Ram, Seed::new(1)) else { return };
    let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 4).expect("it has a queue pair");
    let lba = resolved.lba_bytes() as usize;
    let ended = executor.block_on(async {
        let issuer = Issuer::new(&sim);
        for opcode in [IoOpcode::WRITE, IoOpcode::READ] {
            let _ = issuer.execute(&*drive, SubmissionEntry::blocks(opcode, 1, 0, 1), HostMem::zeroed(lba)).await;
        }
    });
    ended.expect("the drive does not stall");
    ssd.check().expect("the tables agree");
}
